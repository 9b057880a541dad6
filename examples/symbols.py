"""The same algorithms over symbols: the inertia matrix of a planar arm, in closed form."""

import sympy as sp

import ramify as rf
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.dynamics.tree import tree_of

m = rf.load("planar_3r")
q = sp.symbols(f"q1:{m.nv + 1}")
inertia = sp.Matrix(m.nv, m.nv, mass_matrix(tree_of(m), q).row_major())
inertia = inertia.applyfunc(lambda entry: sp.simplify(sp.nsimplify(entry, rational=True)))
for i in range(m.nv):
    for j in range(i, m.nv):
        print(f"I[{i + 1},{j + 1}] =", inertia[i, j])

# The compiled kernel says the same at any posture.
posture = dict(zip(q, (0.3, -0.7, 1.1), strict=True))
difference = inertia.subs(posture).evalf() - sp.Matrix(m.mass_matrix(list(posture.values())))
assert max(abs(entry) for entry in difference) < 1e-12
