"""Differential inverse kinematics at 1 kHz: the tip of an arm follows a circle with its wrist held
upright, within the speeds of its joints.
"""

from time import perf_counter

import numpy as np

import ramify as rf
from ramify.motion import KeepPosture, Target

arm = rf.load("kuka_kr5")
tip, dt, speeds = arm.bodies[-1].name, 0.001, np.full(arm.nv, 3.0)  # rad/s
home = q = np.array([0.0, 0.3, 0.3, 0.0, 0.3, 0.0])
start = arm.pose(q, tip)
away, fastest, spent = [], 0.0, []
for i in range(1000):
    angle = 2.0 * np.pi * i * dt
    place = start.position + 0.08 * np.array([0.0, np.sin(angle), np.cos(angle) - 1.0])
    begin = perf_counter()
    tasks = [Target(tip, place, start.rotation), KeepPosture(home, weight=1e-4)]
    v = rf.differential_ik(arm, q, tasks, dt, speeds=speeds)
    q = arm.integrate(q, v, dt)
    spent.append(perf_counter() - begin)
    away.append(np.linalg.norm(arm.pose(q, tip).position - place))
    fastest = max(fastest, np.abs(v).max())
print(f"one second at 1 kHz: off the circle by at most {1e3 * max(away):.4f} mm")
print(f"fastest joint {fastest:.2f} rad/s; a cycle takes {1e6 * np.median(spent):.0f} µs of 1000")
assert max(away) < 1e-4
assert fastest <= 3.0 + 1e-9
