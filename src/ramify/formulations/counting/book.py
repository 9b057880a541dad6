"""What the book's recursions cost as written: in all, and step by step beside its own tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from ramify.core.spatial import Vec3, Wrench
from ramify.formulations.counting import book_fixed, book_floating
from ramify.formulations.counting.book_fixed import FURTHER
from ramify.formulations.counting.book_tree import BookTree, general_tree
from ramify.formulations.counting.tally import Counted, OperationLedger, Tally
from ramify.trace.op_count import OpCount

Recursion = Literal[
    "denoc_inverse", "denoc_forward", "denoc_floating_inverse", "denoc_floating_forward"
]
MulAdd = tuple[int, int]


def run(tree: BookTree, recursion: Recursion) -> tuple[OpCount, OperationLedger]:
    """Operations of a recursion on a tree, in all and by step. Wrenches from outside act where the
    book's table has them (7.3).
    """
    tally = Tally()
    ledger = OperationLedger(tally)

    def column(start: float) -> list[Counted]:
        return [tally.number(start + 0.1 * i) for i in range(tree.n)]

    def vector(start: float) -> Vec3:
        return Vec3(*(tally.number(start + 0.1 * i) for i in range(3)))

    if recursion == "denoc_inverse":
        book_fixed.inverse_dynamics(tree, column(0.3), column(0.2), column(0.5), ledger)
    elif recursion == "denoc_forward":
        book_fixed.accelerations_from(tree, column(0.3), column(0.2), ledger)
    elif recursion == "denoc_floating_inverse":
        outside = [Wrench(vector(0.1), vector(0.2)) for _ in range(len(tree.links) + 1)]
        book_floating.inverse_dynamics(
            tree, column(0.3), vector(0.1), vector(9.0), column(0.2), column(0.5), outside, ledger
        )
    else:
        book_floating.forward_dynamics(
            tree, column(0.3), vector(0.1), vector(9.0), column(0.2), column(0.5), None, ledger
        )
    return tally.count(), ledger


def is_floating_recursion(recursion: str) -> bool:
    return recursion.startswith("denoc_floating")


@dataclass(frozen=True)
class BookStep:
    """A step: (multiplications, additions) as published and as counted, and why they differ."""

    step: str
    published: MulAdd | None
    counted: MulAdd
    why: str = ""


_MOTION = ("angular velocity", "angular acceleration", "acceleration of the origin")
_WRENCH = (
    "tensor of the acceleration field",
    "moment I dw + w x I w",
    "moment m d x acceleration",
    "force",
)
_FREED = ("I less psi^ psi'", "G less psi^ psi'", "F less psi^ psi'")

_ADDED = "five additions for a product of six, one for h~"
_MORE_MOTION = (
    "the total printed cannot be had from the rows: those of table 6.9, 63M 53A, and the printed "
    "14M 10A make 77M 63A"
)

# (step, steps of the ledger, what the book prints, why it differs), for a link on one axis
_ROWS: Final[dict[str, tuple[tuple[str, tuple[str, ...], MulAdd | None, str], ...]]] = {
    "denoc_inverse": (
        ("angular velocity", _MOTION[:1], (8, 5), ""),
        ("angular acceleration", _MOTION[1:2], (10, 7), ""),
        ("acceleration of the origin", _MOTION[2:], (17, 13), ""),
        ("tensor of the acceleration field", _WRENCH[:1], (6, 9), ""),
        ("moment I dω + ω × Iω", _WRENCH[1:2], (15, 15), ""),
        ("moment m d × acceleration", _WRENCH[2:3], (6, 6), ""),
        ("force", _WRENCH[3:], (12, 9), ""),
        ("wrench to the parent (A.16)", ("wrench to the parent",), (20, 12), ""),
        ("added to the parent's", ("wrench added to the parent's",), (0, 6), ""),
    ),
    "denoc_forward": (
        ("ψ", ("psi",), (5, 0), ""),
        ("φ̂", ("phi^",), (0, 1), ""),
        ("φ̃", ("phi~",), (1, 0), ""),
        ("Î − ψ̂ψᵀ", _FREED[:1], (3, 3), ""),
        ("Ĝ − ψ̂ψᵀ", _FREED[1:2], (6, 6), ""),
        ("F̂ − ψ̂ψᵀ", _FREED[2:], (6, 6), ""),
        ("η", ("eta",), (5, 6), ""),
        ("M̂ to the parent (A.43)", ("M^ to the parent",), (64, 63), ""),
        ("M̂ added to the parent's", ("M^ added to the parent's",), (0, 15), ""),
        ("η to the parent", ("eta to the parent",), (20, 12), ""),
        ("μ̃", ("mu~",), (20, 12), ""),
        ("acceleration", ("acceleration",), (5, 6), ""),
        ("μ", ("mu",), (0, 1), ""),
    ),
    "denoc_floating_inverse": (
        ("t", _MOTION[:1], (8, 5), ""),
        ("t′", _MOTION[1:], (27, 20), ""),
        ("a from the base", ("a from the base",), (8, 7), ""),
        ("w*, less the outside wrench", (*_WRENCH, "less the outside wrench"), (39, 45), ""),
        ("k̃", ("k~",), (6, 6), ""),
        ("w̃ to the parent, added", ("w~ to the parent", "w~ added to the parent's"), (20, 18), ""),
        ("M̃ to the parent, added (A.29)", ("M~ to the parent", "M~ added to the parent's"), (34, 40), ""),
        ("base acceleration, turned", ("base acceleration, turned",), (16, 8), ""),
        ("τ", ("tau",), (6, 7), _ADDED),
    ),
    "denoc_floating_forward": (
        ("t, t′, w*", (*_MOTION, *_WRENCH), (74, 66), "5A, 19A (no θ̈ to add), 39A make 63A; 66A misses the printed total"),
        ("ψ", ("psi",), (5, 0), ""),
        ("φ̂", ("phi^",), (0, 2), ""),
        ("φ̃", ("phi~",), (1, 0), ""),
        ("M̂ − ψ̂ψᵀ", _FREED, (18, 18), "15M 15A in table 6.9 and in the printed total: row and column 3 are known zeros"),
        ("η", ("eta",), (5, 18), "three vectors of six are added up: 12A"),
        ("M̂ to the parent, added (A.43)", ("M^ to the parent", "M^ added to the parent's"), (64, 78), ""),
        ("η to the parent", ("eta to the parent",), (20, 12), ""),
        ("μ̃", ("mu~",), (20, 12), ""),
        ("acceleration", ("acceleration",), (5, 6), ""),
        ("μ", ("mu",), (0, 1), ""),
    ),
}  # fmt: skip

_TOTALS: Final[dict[str, tuple[MulAdd, MulAdd, str, str]]] = {
    "denoc_inverse": ((94, 82), (22, 14), "", ""),
    "denoc_forward": ((135, 131), (63, 53), "", ""),
    "denoc_floating_inverse": (
        (164, 156), (62, 46), _ADDED,
        "1A as for a link; 3A is what adding an offset to a would take, which is zero between the "
        "axes of a joint",
    ),
    "denoc_floating_forward": ((209, 201), (70, 59), "", _MORE_MOTION),
}  # fmt: skip
"""Published per link on one axis, and for each further axis; why ours differ."""

_ENDS: Final[dict[str, tuple[tuple[str, MulAdd, str], ...]]] = {
    "denoc_inverse": (
        (
            "link on the fixed base", (13, 7),
            "printed without steps. Needed are gravity, turned: 8M 4A; θ̇²: 1M; the moment about "
            "the axis: 3M 2A",
        ),
    ),
    "denoc_forward": (
        (
            "link on the fixed base", (19, 8),
            "printed without steps, as that of a link without children. No choice of rows of table "
            "6.9 adds up to 19M 8A;"
            " ψ, φ̂, φ̃, η and μ make 11M 8A: the additions as printed, so that 19M may be a slip, "
            "8M too many. Of these, ψ and η"
            " (10M 6A) are worked out for the first link as for all, and nothing reads them",
        ),
    ),
    "denoc_floating_inverse": (
        ("base: w*", (24, 30), "the moment Iω̇ + ω × Iω of the base, 15M 15A, is missing in print"),
        ("base: acceleration", (36, 36), "a product with the inverse of a 6 × 6 matrix (36M 30A); to solve for it takes 86M 65A"),
    ),
    "denoc_floating_forward": (
        ("base: w*", (24, 30), "the moment of the base, 15M 15A, is missing in print; no outside wrench here, −6A"),
        ("base: φ̂", (0, 6), ""),
        ("base: acceleration", (36, 36), "a product with the inverse of a 6 × 6 matrix (36M 30A); to solve for it takes 86M 65A"),
    ),
}  # fmt: skip


_FURTHER: Final[dict[str, dict[str, MulAdd]]] = {
    "denoc_inverse": {
        "angular velocity": (4, 3), "angular acceleration": (6, 5), "acceleration of the origin": (4, 2),
        "wrench to the axis before": (8, 4),
    },
    "denoc_forward": {
        "psi": (4, 0), "phi^": (0, 1), "phi~": (1, 0), _FREED[0]: (1, 1), _FREED[1]: (6, 6), _FREED[2]: (3, 3), "eta": (4, 5),
        "M^ to the axis before": (24, 23), "eta to the axis before": (8, 4), "mu~": (8, 4), "acceleration": (4, 5), "mu": (0, 1),
    },
}  # fmt: skip
"""What the book prints for each further axis; its tables 7.3 and 7.4 have the totals alone."""

_SYMBOLS: Final = {
    "psi^ psi'": "ψ̂ψᵀ", "psi": "ψ", "phi^": "φ̂", "phi~": "φ̃", "eta": "η", "mu~": "μ̃", "mu": "μ", "M^": "M̂", "M~": "M̃", "w~": "w̃",
    "k~": "k̃", "tau": "τ",
}  # fmt: skip


def _pretty(step: str) -> str:
    for plain, symbol in _SYMBOLS.items():
        step = step.replace(plain, symbol)
    return step


def _less(a: dict[str, MulAdd], b: dict[str, MulAdd]) -> dict[str, MulAdd]:
    rows = {step: (row, b.get(step, (0, 0))) for step, row in a.items()}
    return {step: (x[0] - y[0], x[1] - y[1]) for step, (x, y) in rows.items()}


def book_step_table(recursion: Recursion) -> list[BookStep]:
    """What a link, a further axis of its joint, and the base or first link cost, step by step."""
    floating = is_floating_recursion(recursion)
    ledgers = {
        axes: run(general_tree(axes, floating=floating), recursion)[1]
        for axes in ((1,) * 4, (1,) * 5, (1, 1, 2, 1))
    }
    four = ledgers[(1,) * 4].rows
    link, further = _less(ledgers[(1,) * 5].rows, four), _less(ledgers[1, 1, 2, 1].rows, four)
    out = [
        BookStep(step, paper, book_total([link[x] for x in names]), why)
        for step, names, paper, why in _ROWS[recursion]
    ]
    per_link, per_axis, why_link, why_axis = _TOTALS[recursion]
    out.append(BookStep("**a link**", per_link, book_total(link.values()), why_link))
    printed = _FURTHER.get(recursion, {})
    for name, counted in further.items():
        if name.startswith(FURTHER):
            out.append(BookStep(_pretty(name), printed.get(name.removeprefix(FURTHER)), counted))
    each = "**each further axis of its joint**"
    out.append(BookStep(each, per_axis, book_total(further.values()), why_axis))
    for step, paper, why in _ENDS[recursion]:
        of_base = [step.replace("φ̂", "phi^")]
        if step == "base: w*":  # what an outside wrench takes is part of it
            of_base.append("base: less the outside wrench")
        ends = {name: four.get(name, (0, 0)) for name in of_base} if floating else four
        less = 0 if floating else 3  # of four links
        sums = zip(book_total(ends.values()), book_total(link.values()), strict=True)
        mul, add = (all_of_them - less * one for all_of_them, one in sums)
        out.append(BookStep(f"**{step}**", paper, (mul, add), why))
    return out


def book_total(pairs: Iterable[MulAdd]) -> MulAdd:
    """The sums of pairs."""
    mul, add = map(sum, zip((0, 0), *pairs, strict=True))
    return mul, add
