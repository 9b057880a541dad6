"""The analytical factors I = U D U' of a gripper's inertia matrix, by joint and by module: branches
leave zeros.
"""

import numpy as np

import ramify as rf

np.set_printoptions(precision=5, suppress=True, linewidth=120)

m = rf.load("gripper")
q = np.full(m.nv, 0.4)
inertia = m.mass_matrix(q)
U, D = m.udu(q)
print("I =", inertia, "U =", U, "D =", np.diagonal(D), sep="\n")
assert np.allclose(U @ D @ U.T, inertia)

blocks = m.udu(q, level="module")
print("U in blocks, one per module:", blocks.U, sep="\n")
assert np.allclose(blocks.U @ blocks.D @ blocks.U.T, inertia)
assert np.allclose(m.mass_matrix_inverse(q) @ inertia, np.eye(m.nv))
