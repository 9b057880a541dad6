"""Torques of a KUKA KR5 whose joints all turn by 60 degrees within a second, and the power they
take.
"""

import numpy as np

import ramify as rf
from ramify.motion import cycloid

m = rf.load("kuka_kr5")
motion = cycloid(start=np.zeros(m.nv), end=np.full(m.nv, np.pi / 3), duration=1.0)
tau = m.inverse_dynamics(motion.q, motion.v, motion.a)  # (1001, 6), all instants in one call

print("joint      largest torque, N m")
for name, largest in zip(m.coordinates, np.abs(tau).max(axis=0), strict=True):
    print(f"{name:10} {largest:12.5g}")

# What the motors put in must come out as energy: the audit of the whole motion.
power = (tau * motion.v).sum(axis=1)
work = np.sum((power[1:] + power[:-1]) / 2 * np.diff(motion.t))
energy = m.energy(motion.q, motion.v)
gained = (energy.kinetic + energy.potential)[-1] - (energy.kinetic + energy.potential)[0]
print(f"work of the motors {work:.4f} J, energy gained {gained:.4f} J")
assert abs(work - gained) < 1e-3
