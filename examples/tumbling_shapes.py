"""Shapes that collide: a ball, a rod, a crate and a dumbbell tumble down a slope, without contact
points. Draws tumbling_shapes.png.
"""

import math
from pathlib import Path

import numpy as np

import ramify as rf
from ramify.view.film import picture

model = rf.load(Path(__file__).with_suffix(".yaml"))
print(f"{len(model.shapes)} shapes; in pairs: {len(rf.contact.collision_pairs(model))}")

q = model.neutral().reshape(4, 7)
q[:, :3] = [[0.0, -0.6, 0.5], [0.0, 0.0, 0.6], [0.0, 0.6, 0.6], [0.0, 1.2, 0.6]]
q[1, 3:] = [math.cos(0.4), math.sin(0.4), 0.0, 0.0]
q[2, 3:] = [math.cos(0.3), 0.0, math.sin(0.3), 0.0]
slope = rf.contact.Slope(angle=math.radians(12), heading=math.pi)  # falls along x
ground = rf.contact.HuntCrossley(terrain=slope, friction=0.6)
r = rf.simulate(model, 1.6, q.ravel(), ground=ground, step=0.002, dt_out=0.02)

down = {body.name: round(float(x), 2) for body, x in zip(model.bodies, r.q[-1, ::7], strict=True)}
print(f"m down the slope after {r.t[-1]:g} s: {down}")
print(f"deepest: {1e3 * float(r.contacts.penetration.max()):.1f} mm")
assert down["ball"] > 1.5 > down["crate"]  # the ball rolls, the crate slides
assert np.isfinite(r.q).all()
picture(r, "tumbling_shapes.png", time=0.9)
