"""A hexapod walks: the gait, a run under computed torque, and what the ground had to do."""

import numpy as np

import ramify as rf

scenario = rf.scenario("hexapod_tripod")
gait = scenario.motion
print(f"{len(gait.legs)} legs; first stand {', '.join(gait.support)}")

r = scenario.run(control="computed_torque", t_end=1.0)
advance = r.q[-1, 0] - r.q[0, 0]
tilt = np.degrees(np.abs(r.q[:, 3:6]).max())
off = np.degrees(np.abs(r.q[:, 6:] - gait.at(r.t).q[:, 6:]).max())
print(
    f"{advance:.3f} m in {r.t[-1]:g} s; the trunk tilts by {tilt:.2f} degrees, the joints are off "
    f"by {off:.1e} degrees"
)

load = r.contacts.load.sum(axis=1)
print(
    f"weight {9.81 * r.model.mass:.0f} N, carried on average {load.mean():.0f} N, at touchdown "
    f"{load.max():.0f} N"
)
print(
    f"work of the motors {r.work.actuator[-1]:.1f} J, turned to heat in the ground "
    f"{r.contacts.dissipated[-1]:.1f} J"
)
print(r.audit)
