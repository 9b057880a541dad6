"""Digits of inverse and forward dynamics on real robots, beside Pinocchio's, against extended
precision.

``tests/test_accuracy.py`` runs some states. ``python tests/accuracy.py`` (``make accuracy``) runs
2000 of each robot, prints the medians that the documentation quotes, and fails above 1.1.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any, Final, NamedTuple

import numpy as np
import pinocchio as pin
from extended_reference import Reference
from packages import package

import ramify as rf

ROBOTS: Final = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "tiago": "tiago_description/robots/tiago_no_hand.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "b1": "b1_description/urdf/b1.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
}
TIERS: Final = ("unrolled", "rolled")
MOST: Final = 1.1
"""Median error over Pinocchio's."""


class Medians(NamedTuple):
    """Median errors of inverse and forward dynamics: Pinocchio's, and ours by tier."""

    pinocchio: tuple[float, float]
    ours: dict[str, tuple[float, float]]

    def ratios(self, tier: str) -> tuple[float, float]:
        (id_, fd), theirs = self.ours[tier], self.pinocchio
        return id_ / theirs[0], fd / theirs[1]


def median(found: Any, exact: Any) -> float:
    """Of the largest error of a state over the state's largest entry."""
    return float(np.median(np.abs(found - exact).max(axis=1) / np.abs(exact).max(axis=1)))


def medians(name: str, states: int, seed: int = 0) -> Medians:
    """The figures of a robot on a fixed base, at random states."""
    path = package("example-robot-data") / ROBOTS[name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*negative principal moment")
        ours = rf.load(path).tree
    theirs = pin.buildModelFromUrdf(str(path))
    data, order = theirs.createData(), list(theirs.names)
    exact = Reference(path, [joint.name for joint in ours.joints])
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.5, 1.5, (states, ours.nv))
    v, a = rng.normal(size=(2, states, ours.nv))

    def asked(ask: Any, third: Any) -> Any:
        """Pinocchio's answer to (q, v, third), in our order."""
        given = ours.to_pinocchio(q, v, third, order=order)
        rows = [ask(theirs, data, *row) for row in zip(given.q, given.v, given.a, strict=True)]
        return ours.from_pinocchio(given.q, given.v, np.array(rows), order=order).a

    tau = exact.inverse(q, v, a)
    applied = tau.astype(float)
    found = exact.forward(q, v, applied)
    return Medians(
        (median(asked(pin.rnea, a), tau), median(asked(pin.aba, applied), found)),
        {
            tier: (
                median(ours.kernel("inverse_dynamics", tier)(q, v, a), tau),
                median(ours.kernel("forward_dynamics", tier)(q, v, applied), found),
            )
            for tier in TIERS
        },
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--states", type=int, default=2000)
    options.add_argument("--only", choices=list(ROBOTS), action="append")
    given = options.parse_args()
    print("median error over Pinocchio's; inverse, forward dynamics")
    worst = 0.0
    for name in given.only or ROBOTS:
        found = medians(name, given.states)
        worst = max(worst, *(ratio for tier in TIERS for ratio in found.ratios(tier)))
        said = "  ".join(
            f"{tier} {ratio[0]:.2f} {ratio[1]:.2f}"
            for tier in TIERS
            for ratio in [found.ratios(tier)]
        )
        print(f"{name:9s} {said}  ({found.pinocchio[0]:.1e}, {found.pinocchio[1]:.1e})", flush=True)

    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
