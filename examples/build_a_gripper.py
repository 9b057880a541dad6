"""A gripper built link by link; then it grasps something, loses a joint, and flies to the Moon."""

import numpy as np

import ramify as rf


def slender(mass: float, length: float) -> dict[str, object]:
    """Mass properties of a thin rod that lies along x, from its end."""
    moment = mass * length**2 / 12
    return {"mass": mass, "com": (length / 2, 0, 0), "inertia": (0, moment, moment)}


robot = rf.Builder("gripper", gravity=(0, -9.81, 0))
robot.link("palm", **slender(0.4, 0.10))
for side in ("left", "right"):
    robot.link(f"{side}_finger", parent="palm", at=(0.10, 0, 0), **slender(0.2, 0.05))
    robot.link(f"{side}_tip", parent=f"{side}_finger", at=(0.05, 0, 0), **slender(0.1, 0.05))
m = robot.model()

print(m)
for module in m.modules:
    print(f"module {module.index + 1}:", ", ".join(m.bodies[b].name for b in module.bodies))
for finding in m.check():
    print(f"{finding.level}: {finding.where}: {finding.message}")

q = np.array([0.3, 0.5, 0.2, -0.5, -0.2])
print("torques that hold it:  ", m.gravity_forces(q).round(4))

loaded = rf.with_payload(m, "left_tip", mass=0.5, com=(0.05, 0, 0))
print("with half a kilogram:  ", loaded.gravity_forces(q).round(4))

stiff = rf.with_locked(loaded, "left_tip", at=0.2)
print("with one joint locked: ", stiff.gravity_forces(np.delete(q, 2)).round(4))

moon = rf.with_gravity(m, (0, -1.62, 0))
print("on the Moon:           ", moon.gravity_forces(q).round(4))
assert np.allclose(moon.gravity_forces(q) * 9.81 / 1.62, m.gravity_forces(q))
