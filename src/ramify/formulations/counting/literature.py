"""Operation counts that the literature publishes, and the counts of this program beside them.

Formulas are those that the source documents print (Saha 1999, tables 1, 2; Lin 1991, tables I, II;
the book, tables 6.11, 6.12, 7.6, 7.7), with slips mended. n1, n2, n3 are the joint variables that
belong to joints of one, two and three axes, n is their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from ramify.core.errors import ModelError
from ramify.formulations.counting.written import model_op_count
from ramify.model.robot import Robot

CountedTask = Literal[
    "inverse", "forward", "inertia matrix", "bias vector", "floating inverse", "floating forward"
]
Joints = tuple[int, int, int]
Coefficient = int | float | Fraction

ALGORITHM: Final[dict[CountedTask, str]] = {
    "inverse": "inverse_dynamics",
    "forward": "forward_dynamics",
    "inertia matrix": "mass_matrix",
    "bias vector": "bias",
    "floating inverse": "hybrid_dynamics",
    "floating forward": "forward_dynamics",
}
"""The algorithm of this program that does the task."""

THIRD: Final = Fraction(1, 3)
SIXTH: Final = Fraction(1, 6)


@dataclass(frozen=True)
class Formula:
    """cubic n^3 + square n^2 + k1 n1 + k2 n2 + k3 n3 + constant."""

    k: tuple[Coefficient, Coefficient, Coefficient]
    constant: Coefficient
    square: Coefficient = 0
    cubic: Coefficient = 0

    def at(self, joints: Joints) -> int:
        n = sum(joints)
        factors = (self.cubic, self.square, *self.k, self.constant)
        powers = (n**3, n**2, *joints, 1)
        return round(sum(Fraction(k) * x for k, x in zip(factors, powers, strict=True)))

    def __str__(self) -> str:
        names = ["n"] if len(set(self.k)) == 1 else ["n₁", "n₂", "n₃"]
        factors, text = (self.cubic, self.square, *self.k[: len(names)], self.constant), ""
        for k, name in zip(factors, ("n³", "n²", *names, ""), strict=True):
            sign = (" − " if k < 0 else " + ") if text else ("−" if k < 0 else "")
            text += (
                f"{sign}{'' if abs(k) == 1 and name else _number(abs(Fraction(k)))}{name}"
                if k
                else ""
            )
        return text


def _number(k: Coefficient) -> str:
    whole, rest = divmod(Fraction(k).limit_denominator(6), 1)
    sixths = {0: "", 1: "⅙", 2: "⅓", 3: "½", 4: "⅔", 5: "⅚"}
    return f"{whole if whole or not rest else ''}{sixths[int(6 * rest)]}"


@dataclass(frozen=True)
class Published:
    """A published algorithm: task, source, multiplications (with divisions), additions."""

    task: CountedTask
    who: str
    mul: Formula
    add: Formula

    def at(self, joints: Joints) -> tuple[int, int]:
        return self.mul.at(joints), self.add.at(joints)


def _every(
    task: CountedTask, who: str, mul: tuple[Coefficient, ...], add: tuple[Coefficient, ...]
) -> Published:
    """Counts of n alone: coefficient of n, constant, coefficients of n^2 and n^3."""
    return Published(task, who, *(Formula((k,) * 3, *rest) for k, *rest in (mul, add)))


BOOK: Final = "Shah, Saha, Dutt 2013"

PUBLISHED: Final = (
    Published("inverse", BOOK, Formula((94, 58, 46), -81), Formula((82, 48, 36 + 2 * THIRD), -75)),
    _every("inverse", "Balafoutis, Patel 1991", (93, -69), (81, -65)),
    _every("inverse", "Angeles et al. 1989", (105, -109), (90, -105)),
    _every("inverse", "Khalil et al. 1986", (105, -92), (94, -86)),
    _every("inverse", "Saha 1999", (120, -44), (97, -55)),
    _every("inverse", "Featherstone 1987", (130, -68), (101, -56)),
    _every("inverse", "Walker, Orin 1982", (137, -22), (101, -11)),
    _every("inverse", "Luh et al. 1980", (150, -48), (131, 48)),
    _every("inverse", "Hollerbach 1980", (412, -277), (320, -201)),
    Published("forward", BOOK, Formula((135, 99, 87), -116), Formula((131, 92, 79), -123)),
    _every("forward", "Mohan, Saha 2007", (173, -128), (150, -133)),
    _every("forward", "Saha 2003", (191, -284), (187, -325)),
    _every("forward", "Saha 1999", (201, -335), (193, -361)),
    _every("forward", "Featherstone 1983", (199, -198), (174, -173)),
    _every("forward", "Lilly, Orin 1991", (40 + THIRD, -51, 11.5, SIXTH), (50 + 5 * SIXTH, -51, 7, SIXTH)),
    _every("forward", "Walker, Orin 1982", (38 + THIRD, -47, 11.5, SIXTH), (38 + 5 * SIXTH, -46, 7, SIXTH)),
    _every("inertia matrix", "Lin 1991", (38.5, -85, 10.5), (39, -70, 6)),
    _every("inertia matrix", "Renaud, in Lin 1991", (22.5, -68, 13.5), (26, -64, 9)),
    _every("inertia matrix", "Lin 1988", (-107 * THIRD, 19, 16.5, Fraction(7, 6)), (-28.5, 14, 13.5, 1)),
    _every("inertia matrix", "Walker, Orin, in Lin 1991", (53, -74, 11), (52, -62, 8)),
    _every("inertia matrix", "Fijany, Bejczy 1989", (115.5, -175, 4.5), (88, -134, 4)),
    _every("bias vector", "Lin 1991, beside the matrix", (5.5, 3, 12.5), (1, 0, 9)),
    _every("bias vector", "Balafoutis et al. 1988", (93, -69), (81, -66)),
    _every("bias vector", "Khalil, Kleinfinger 1987", (101, -129), (90, -118)),
    Published("floating inverse", BOOK, Formula((164, 113, 96), 60), Formula((156, 101, 82 + 2 * THIRD), 66)),
    _every("floating inverse", "Balafoutis, Patel 1991", (104, -51, 11.5), (113.5, -53, 5.5)),
    _every("floating inverse", "Featherstone 1987", (161, -49, 10), (141, -36, 6)),
    _every("floating inverse", "Saha 1999, Bhangale et al. 2004", (162, -2, 11), (141, -42, 7)),
    Published("floating forward", BOOK, Formula((209, 139.5, 116 + THIRD), 60), Formula((201, 130, 106 + THIRD), 72)),
    _every("floating forward", "McMillan et al. 1995", (224, 158), (205, 131)),
    _every("floating forward", "McMillan, Orin 1998", (175 + THIRD, 137, 17.5, SIXTH), (160 + 5 * SIXTH, 91, 13, SIXTH)),
)  # fmt: skip


def joint_counts(model: Robot) -> Joints:
    """n1, n2, n3 of a model; the six variables of a floating base are not among them. Longer joints
    count as single axes.
    """
    n = [0, 0, 0]
    for b, body in enumerate(model.bodies):
        if b > 0 or not has_floating_base(model):
            n[body.joint.dof - 1 if body.joint.dof <= 3 else 0] += body.joint.dof
    return n[0], n[1], n[2]


def has_floating_base(model: Robot) -> bool:
    return model.bodies[0].joint.floating


def why_not_comparable(model: Robot) -> str:
    """Why no published formula is for such a robot: its loops are closed, or a joint does more than
    turn; else an empty text.
    """
    if model.loops:
        return "closed loops; published counts are for open chains and trees"
    if model.nv < 2:
        return "a single joint; published counts are for two or more"
    for b, body in enumerate(model.bodies):
        own, counts = body.joint, b > 0 or not has_floating_base(model)
        if counts and (own.dof > 3 or any(step.eta for step in own.steps)):
            return f"{own.name!r} is {own.kind}; published counts are for joints that turn"
    return ""


def tasks_of(model: Robot) -> tuple[CountedTask, ...]:
    """Inverse and forward dynamics on the base that a model has; on a fixed base also the inertia
    matrix and the bias vector.
    """
    if has_floating_base(model):
        return "floating inverse", "floating forward"
    return "inverse", "forward", "inertia matrix", "bias vector"


def best_of(published: Sequence[tuple[str, tuple[int, int]]]) -> tuple[str, tuple[int, int]]:
    """The published count with the fewest operations, multiplications and additions together."""
    return min(published, key=lambda row: sum(row[1]))


def fewer_by(ours: tuple[int, int], other: tuple[int, int]) -> float:
    """Share of another count's operations, M + A, that ours does without."""
    return 1.0 - sum(ours) / sum(other)


@dataclass(frozen=True)
class ComparedCount:
    """A task on a robot: our count and all published, multiplications with divisions first."""

    robot: str
    task: CountedTask
    joints: Joints
    ours: tuple[int, int]
    published: tuple[tuple[str, tuple[int, int]], ...]

    @property
    def best(self) -> tuple[str, tuple[int, int]]:
        """The published count with the fewest operations."""
        return best_of(self.published)

    @property
    def saved(self) -> float:
        """Share of the best published count's operations that ours does without."""
        return fewer_by(self.ours, self.best[1])

    @property
    def below_all(self) -> bool:
        """Whether ours has fewer multiplications and fewer additions than every published count."""
        return all(self.ours[0] < mul and self.ours[1] < add for _, (mul, add) in self.published)


def compare(
    model: Robot, how: Literal["compiled", "written"] = "compiled", joints: Joints | None = None
) -> list[ComparedCount]:
    """The tasks of a model beside all that is published for as many joints.

    ``joints``: n1, n2, n3 of the published robot where they are not the model's own. ModelError
    where they are not given and no published formula is for such a robot.
    """
    if joints is None and (why := why_not_comparable(model)):
        raise ModelError(f"{model.name}: {why}")
    joints = joints or joint_counts(model)
    out = []
    for task in tasks_of(model):
        published = tuple((row.who, row.at(joints)) for row in PUBLISHED if row.task == task)
        count = model_op_count(model, ALGORITHM[task], how)
        ours = count.mul + count.div, count.add  # as the literature counts
        out.append(ComparedCount(model.name, task, joints, ours, published))
    return out


SEED_ROBOTS: Final[tuple[tuple[str, Joints], ...]] = (
    ("gripper", (4, 0, 0)),
    ("kuka_kr5", (6, 0, 0)),
    ("stanford_arm", (6, 0, 0)),
    ("spatial_biped_fixed", (2, 4, 6)),
    ("spatial_biped", (2, 4, 6)),
    ("quadruped", (4, 8, 0)),
    ("hexapod", (12, 0, 0)),
)
"""Robots of the source documents with published counts, and the joints counted there."""


def markdown(comparisons: Sequence[ComparedCount]) -> str:
    """A table for the documentation."""
    lines = [
        "| robot | task | n₁, n₂, n₃ | the book | best published | compiled | fewer by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for x in comparisons:
        (who, best), book = x.best, dict(x.published).get(BOOK)
        cells = [f"`{x.robot}`", x.task, ", ".join(map(str, x.joints))]
        cells += [pair_text(book) if book else "", f"{pair_text(best)}, {who}"]
        lines.append(f"| {' | '.join(cells)} | {pair_text(x.ours)} | {x.saved:.0%} |")
    return "\n".join(lines) + "\n"


def pair_text(pair: tuple[int, int]) -> str:
    """Multiplications and additions as tables print them."""
    return f"{pair[0]}M {pair[1]}A"
