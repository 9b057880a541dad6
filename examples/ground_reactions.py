"""The ground under a walking biped over one step, foot by foot: the run behind figure 7.6 of the
book. Draws ground_reactions.svg.
"""

import numpy as np
from matplotlib.figure import Figure

import ramify as rf

r = rf.scenario("planar_biped_walk").run(t_end=1.0, dt_out=1e-3)
feet = {
    "standing foot": r.contacts["leg1_heel"] + r.contacts["leg1_toe"],
    "swinging foot": r.contacts["leg2_heel"] + r.contacts["leg2_toe"],
}
swung = (feet["swinging foot"][:, 2] > 0.0) & (r.t > 0.5)
landed = r.t[np.argmax(swung)]
print(f"the swinging foot lands at {landed:.2f} s")

# What the ground gives over the step is the weight and the change of momentum.
first, last = (r.model.momentum(r.q[k], r.v[k]).linear[2] for k in (0, -1))
weight = 9.81 * r.model.mass
needed = weight + (last - first) / r.t[-1]
mean = np.trapezoid(r.contacts.total_force[:, 2], r.t) / r.t[-1]
print(f"weight {weight:.2f} N; on average {needed:.2f} N by momentum, {mean:.2f} N from the rows")
assert abs(mean / needed - 1.0) < 5e-3

figure = Figure(figsize=(8.0, 5.0), layout="constrained")
panels = figure.subplots(2, 1, sharex=True)
for panel, axis, name in zip(panels, (2, 0), ("vertical", "horizontal"), strict=True):
    for foot, force in feet.items():
        panel.plot(r.t, force[:, axis], label=foot)
    panel.set(ylabel=f"{name}, N")
panels[0].set(ylim=(0.0, 300.0), title="Reactions of the ground over one step of the planar biped")
panels[0].axhline(weight, color="0.6", linewidth=0.8)
panels[0].annotate("weight", (0.02, weight + 6.0), color="0.4")
peak = feet["swinging foot"][:, 2].max()
panels[0].annotate(f"up to {peak:.0f} N", (landed, 290.0), (landed - 0.16, 270.0), color="0.4")
panels[1].set(xlabel="t, s", ylim=(-150.0, 50.0))
panels[0].legend(frameon=False, loc="center left")
figure.savefig("ground_reactions.svg", metadata={"Date": None})
