"""The equations of motion of a planar arm as formulas: with names, as Python, and the steps of a
recursion.
"""

import numpy as np

import ramify as rf

m = rf.load("planar_3r")
named = rf.formulations.equations(m, symbols=True)
print(named.text(("M", "g")))

# The formulas as a module of their own: here run at once, usually written to a file.
module: dict = {}
exec(named.python(("M", "C", "g")), module)
q, v = m.random(1)
assert np.allclose(module["mass_matrix"](q), m.mass_matrix(q))
assert np.allclose(module["coriolis_matrix"](q, v), m.coriolis_matrix(q, v))

# The family of arms: links of half the length weigh on their joints a quarter as much.
half = module["mass_matrix"](q, l1=0.5, l2=0.5, l3=0.5)
assert np.allclose(half, m.mass_matrix(q) / 4)

# What the recursion does in place of these formulas, link by link.
print(rf.formulations.step_table(m, "inverse_dynamics"))
