"""Accelerations of ten thousand states of a biped on one foot in one call, and their time."""

from time import perf_counter

import numpy as np

import ramify as rf

m = rf.load("spatial_biped_fixed")
stance = [-0.2089, 0, 0.741, -0.5321, -1.5708, 3.1416, 0, -1.5708, -0.2089, 0.741, 0, -0.5321]
rng = np.random.default_rng(0)
q = stance + rng.uniform(-0.2, 0.2, size=(10_000, m.nv))
v = rng.normal(size=(10_000, m.nv))
tau = rng.normal(size=(10_000, m.nv))

forward = m.kernel("forward_dynamics", tier="unrolled")
a = forward(q, v, tau)  # the first call compiles, or finds the kernel in the cache
out = np.empty_like(a)
start = perf_counter()
forward(q, v, tau, out=out)  # no allocation
elapsed = perf_counter() - start
print(f"{m.name}: {m.nv} degrees of freedom, {forward.op_count}")
print(f"{1e6 * elapsed / len(q):.3f} microseconds a state ({forward.tier})")

# Inverse dynamics takes the accelerations back to the torques.
error = np.abs(m.inverse_dynamics(q, v, a) - tau).max()
print(f"largest error on the way back: {error:.1e} N m")
assert error < 1e-7
