"""Two limp robots fall on firm ground with their whole bodies: what they hit, and where their
energy goes. Draws falls.svg.
"""

import numpy as np
from matplotlib.figure import Figure

import ramify as rf

WHEN = [0.0, 0.25, 0.35, 0.5, 0.7, 2.0]  # s
figure = Figure(figsize=(9.0, 6.4), layout="constrained")
panels = figure.subplots(3, 1, height_ratios=(1.2, 1.0, 1.3))
for row, (name, apart) in enumerate((("biped_fall", 1.4), ("quadruped_fall", 1.9))):
    r = rf.scenario(name).run()
    first = dict.fromkeys(
        p for row in r.contacts.touching for p, on in zip(r.contacts.names, row, strict=True) if on
    )
    print(f"{name}: touches the ground with {', '.join(first)}, in this order")
    print(r.audit)
    assert r.audit.passed

    # The skeleton, from the side: every body from its origin to those it carries, and to its
    # contact points.
    side = panels[row]
    R, place = r.model.kinematics(r.q[np.searchsorted(r.t, WHEN)])
    for k, t in enumerate(WHEN):
        place[k, :, 0] += apart * k
        side.text(apart * k, -0.1, f"{t:g} s", ha="center", va="top")
        for b, body in enumerate(r.model.bodies):
            ends = [place[k, i] for i, child in enumerate(r.model.bodies) if child.parent == b]
            ends += [place[k, b] + R[k, b] @ np.array(point) for _, point in body.points]
            for end in ends:
                side.plot(
                    [place[k, b, 0], end[0]],
                    [place[k, b, 2], end[2]],
                    color=f"C{row}",
                    linewidth=1.3,
                )
    side.axhline(0.0, color="0.3", linewidth=1.0)
    side.set(ylabel="z, m", aspect="equal", xticks=[])

    # What became of the energy.
    panels[2].plot(
        r.t,
        r.energy.total - r.energy.total[0],
        f"C{row}",
        label=f"{r.model.name}: kinetic + potential",
    )
    panels[2].plot(r.t, r.contacts.dissipated, f"C{row}--", label="… lost in the ground")
    panels[2].plot(
        r.t, r.work.dissipated - r.contacts.dissipated, f"C{row}:", label="… lost in the joints"
    )
panels[2].set(xlabel="t, s", ylabel="energy, J")
panels[2].legend(
    fontsize="small", frameon=False, ncols=2, loc="center right", bbox_to_anchor=(1.0, 0.3)
)
figure.savefig("falls.svg", metadata={"Date": None})
