"""A box on a slope, with hard contact and on two compliant grounds: its speed after a second, one
degree below the friction angle. Then a tower of balls, and who touches whom.
"""

import math

import numpy as np

import ramify as rf
from ramify.contact import Firm, Hard, HuntCrossley, Slope

FRICTION, STEP = 0.5, 2e-3
ANGLE = math.atan(FRICTION) - math.radians(1.0)

corners = {
    f"corner{i}": (0.1 * (-1) ** i, 0.1 * (-1) ** (i // 2), 0.1 * (-1) ** (i // 4))
    for i in range(8)
}
box = rf.Builder("box").link(
    "box", joint="free", mass=2.0, inertia=(0.0133,) * 3, points=corners
).model()  # fmt: skip
up = np.array([-math.sin(ANGLE), 0.0, math.cos(ANGLE)])
q0 = [*(0.1 * up), math.cos(ANGLE / 2), 0.0, -math.sin(ANGLE / 2), 0.0]

slope = Slope(angle=ANGLE)
runs = {
    "hard": rf.simulate(box, 1.0, q0, contact=Hard(friction=FRICTION, terrain=slope), step=STEP),
    "firm": rf.simulate(box, 1.0, q0, ground=Firm(friction=FRICTION, terrain=slope), step=STEP),
    "Hunt-Crossley": rf.simulate(
        box, 1.0, q0, ground=HuntCrossley(friction=FRICTION, terrain=slope), step=STEP
    ),
}
print("speed along the slope after 1 s:")
for name, r in runs.items():
    print(f"  {name:14} {np.linalg.norm(r.v[-1, :3]):.1e} m/s")
assert np.linalg.norm(runs["hard"].v[-1, :3]) < 1e-9

tower = rf.Builder("tower")
for i in range(4):
    tower.link(
        f"ball{i}", joint="free", mass=1.0, inertia=(0.004,) * 3,
        shapes=[{"sphere": 0.1, "collides": True}],
    )  # fmt: skip
start = [x for i in range(4) for x in (0, 0, 0.1 + 0.2 * i, 1, 0, 0, 0)]
r = rf.simulate(tower.model(), 0.5, start, contact="hard", step=STEP)
touching = r.contacts.mode[-1] > 0.0
print("\nloads in a tower of four balls of 1 kg:")
for name, other, load in zip(
    np.array(r.contacts.names)[touching],
    np.array(r.contacts.others)[touching],
    r.contacts.normal_load[-1][touching],
    strict=True,
):
    print(f"  {name:14} on {other or 'the ground':10} {load:7.3f} N")
print(r.audit)
assert r.audit.passed
