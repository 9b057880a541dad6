"""A KUKA KR5 whose links are heavier than its file says, with friction: from a planned motion to an
identified robot and its payload.
"""

import numpy as np

import ramify as rf

arm = rf.load("kuka_kr5")
limits = {"lower": -1.5, "upper": 1.5, "velocity": 2.0}
plan = rf.identify.excite(arm, period=8.0, limits=limits, rate=500.0)

# What the robot is, which nobody knows: heavier links, rotors, friction.
pi = 1.15 * arm.dynamic_parameters
pi[60:] = np.concatenate([np.linspace(size, 0.1 * size, 6) for size in (1.0, 2.0, 6.0)])
real = rf.with_inertial_parameters(arm, pi)


def measured(robot: rf.Model, seed: int) -> dict[str, np.ndarray]:
    """Torques of the motion with noise, as a log."""
    q, v, a = plan.at(plan.t)
    tau = robot.regressor(q, v, a, drives=True) @ robot.dynamic_parameters
    noise = 0.01 * tau.std(axis=0) * np.random.default_rng(seed).normal(size=tau.shape)
    return {"t": plan.t, "q": q, "tau": tau + noise}


fit = rf.identify.fit(arm, measured(real, 0))
loaded = rf.with_payload(real, "link6", 2.0, (0, 0, 0.1), 0.01)
tool = rf.identify.payload(fit, measured(loaded, 1), "link6")

print(f"{len(fit.base)} base parameters, band {fit.band:g} Hz, passed: {fit.passed}")
for x in fit.parameters[:5]:
    print(f"{x.name:14} {x.value:9.4f} ± {x.error:.4f} {x.unit}, in the file {x.nominal:.4f}")
print(f"payload {tool.mass:.3f} ± {tool.mass_error:.3f} kg")
assert fit.passed
assert abs(tool.mass - 2.0) < 5 * tool.mass_error
