"""Hoeken's mechanism: one turn of the crank, the line its pen draws, and the torque that drives it;
writes hoeken.svg.
"""

import numpy as np

import ramify as rf

m = rf.load("hoeken_four_bar")  # given whole: ramify found the joint to cut
rate = 1.5 * np.pi  # 45 rpm
angle = np.linspace(0.0, 2.0 * np.pi, 361)
state = m.assemble({"crank": angle}, rates={"crank": np.full(361, rate)})
tau, multipliers = m.inverse_dynamics(*state, multipliers=True)

pose = m.kinematics(state.q)
coupler = m.body_index("coupler")
pen = pose.position[:, coupler] + pose.rotation[:, coupler] @ dict(m.body("coupler").points)["pen"]
line = np.cos(angle) > np.cos(np.radians(85))  # the crank on the side away from the rocker's pivot
off = np.ptp(pen[line, 1])

print(
    f"start {state.q[0].round(4) + 0.0} rad, rates {state.v[0].round(4) + 0.0} rad/s, gap "
    f"{state.gap:.1e} m"
)
print(f"the pen stays within {1e3 * off:.2f} mm of a line over {1e3 * np.ptp(pen[line, 0]):.0f} mm")
pull = np.hypot(*multipliers.T)
print(
    f"driving torque between {tau[:, 0].min():.3f} and {tau[:, 0].max():.3f} N m; pin force up to "
    f"{pull.max():.1f} N"
)

try:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit(0) from None

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.0, 3.9), layout="constrained", width_ratios=[1.0, 1.15]
)
left.plot(*(1e3 * pen[:, :2].T), color="#b3261e", lw=1.4, label="pen")
for k, shade in ((0, 0.9), (90, 0.55), (180, 0.3), (270, 0.55)):
    origin = 1e3 * pose.position[k, :, :2]
    crank_pin = 1e3 * (pose.position[k, 0] + pose.rotation[k, 0] @ [0.038, 0.0, 0.0])[:2]
    rocker_pin = origin[coupler]
    for ends in ([origin[0], crank_pin], [origin[1], rocker_pin], [crank_pin, 1e3 * pen[k, :2]]):
        left.plot(
            *np.transpose(ends),
            "o-",
            ms=3.5,
            lw=2.2,
            color="#34506e",
            alpha=shade,
            solid_capstyle="round",
        )
left.plot(*(1e3 * pose.position[0, :2, :2].T), "^", ms=8, color="black")
left.set(aspect="equal", xlabel="x, mm", ylabel="y, mm", title="four postures of a turn")
left.legend(frameon=False, loc="lower left")
right.plot(np.degrees(angle), tau[:, 0], color="#34506e", label="torque, N m")
right.plot(
    np.degrees(angle),
    pull / 100.0,
    color="#b3261e",
    lw=1.0,
    ls="--",
    label="force in the cut pin, 100 N",
)
right.set(xlabel="crank angle, deg", title="at 45 rpm", xticks=range(0, 361, 90))
right.axhline(0.0, color="black", lw=0.6)
right.legend(frameon=False)
figure.savefig("hoeken.svg", metadata={"Date": None})
print("written: hoeken.svg")
