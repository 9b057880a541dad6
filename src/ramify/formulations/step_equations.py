"""The equations of the step tables, one function for each pair of the book's equations: between the
modules of a robot and within them. ``ramify.formulations.steps`` has the symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ramify.formulations.chain import refuse_quaternions
from ramify.formulations.denoc_assembly import shared_origins
from ramify.model.robot import Robot

SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class StepRow:
    """The steps of one link within its module, beside those of the module, which only the first row
    of a module has.
    """

    module: str
    inter: tuple[str, ...]
    link: str
    intra: tuple[str, ...]


@dataclass(frozen=True)
class TableSweep:
    """A recursion: its title with equation numbers, and its rows in the order of computation."""

    title: str
    rows: tuple[StepRow, ...]


# ---- the robot's links and modules, named ----


@dataclass(frozen=True)
class StepLink:
    """A link on one screw: its label, that of its carrier ('' for the base) and those it carries;
    ``same`` where it shares its carrier's origin, so that A = 1; ``heavy`` where it is a body and
    not between two freedoms of a joint.
    """

    label: str
    carrier: str
    carried: tuple[str, ...]
    same: bool
    heavy: bool


@dataclass(frozen=True)
class StepModule:
    label: str
    carrier: str
    carried: tuple[str, ...]
    links: tuple[StepLink, ...]


def module_bodies(model: Robot, floating: bool) -> tuple[list[tuple[int, ...]], list[int]]:
    """Bodies and carrier (-1: none) of every module; with ``floating`` the base is a module of its
    own even where it carries one branch only.
    """
    bodies = [tuple(module.bodies) for module in model.modules]
    carriers = [module.parent for module in model.modules]
    if floating and len(bodies[0]) > 1:
        bodies = [bodies[0][:1], bodies[0][1:], *bodies[1:]]
        carriers = [-1, 0, *(carrier + 1 for carrier in carriers[1:])]
    return bodies, carriers


def named_modules(model: Robot, floating: bool) -> list[StepModule]:
    """Modules from 1 on; with ``floating`` the six links of the base are link 0 of module 0."""
    refuse_quaternions(model)
    parents, start = model.skeleton.parents, 0 if floating else 1
    groups, carriers = module_bodies(model, floating)
    ends = [0]
    for body in model.bodies:
        ends.append(ends[-1] + body.joint.dof)
    label: dict[int, str] = {}
    for i, group in enumerate(groups, start=start):
        for k, b in enumerate(group, start=1):
            links = range(ends[b], ends[b + 1])
            for r, link in enumerate(links, start=1):
                label[link] = f"{k}{str(i).translate(SUPERSCRIPT)}" + (
                    f".{r}" if len(links) > 1 else ""
                )
    if floating:
        label |= dict.fromkeys(range(6), "0")
    carried = {k: tuple(label[c] for c, parent in enumerate(parents) if parent == k) for k in label}
    last, shared = set(model.skeleton.last), shared_origins(model)
    out = []
    for i, (group, carrier) in enumerate(zip(groups, carriers, strict=True)):
        rows = []
        for b in group:
            for k in range(ends[b], ends[b + 1]):
                above = label.get(parents[k], "")
                rows.append(StepLink(label[k], above, carried[k], shared[k], k in last))
        if floating and i == 0:
            rows = [StepLink("0", "", carried[5], False, True)]
        children = tuple(str(j + start) for j, above in enumerate(carriers) if above == i)
        above = str(carrier + start) if carrier >= 0 else ""
        out.append(StepModule(str(i + start), above, children, tuple(rows)))
    return out


# ---- equations ----


def sum_of(first: str, *more: str) -> str:
    return " + ".join([x for x in (first, *more) if x])


def through(a: str, b: str, same: bool, transposed: bool = False) -> str:
    """A of b's motion seen at a, followed by a space; nothing where A = 1."""
    return "" if same else f"A[{a},{b}]{'ᵀ' if transposed else ''} "


def motion_of_module(m: StepModule) -> list[str]:
    """(6.2)."""
    i, h = m.label, m.carrier
    above = (
        (f"A[{i},{h}] t[{h}]", f"A[{i},{h}] ṫ[{h}]", f"Ȧ[{i},{h}] t[{h}]") if h else ("", "", "")
    )
    return [
        f"t[{i}] = {sum_of(above[0], f'N[{i}] q̇[{i}]')}",
        f"ṫ[{i}] = "
        f"{sum_of(above[1], above[2], f'Ṅ[{i}] q̇[{i}]', f'N[{i}] q̈[{i}]', '' if h else f'ρ[{i}]')}",
        f"w*[{i}] = M[{i}] ṫ[{i}] + Ω[{i}] M[{i}] E[{i}] t[{i}]",
    ]


def motion_of_link(x: StepLink) -> list[str]:
    """(6.3); a link that shares its carrier's origin needs no A."""
    k, b = x.label, x.carrier
    above = ("", "", "")
    if b:
        A = through(k, b, x.same)
        above = f"{A}t[{b}]", f"{A}ṫ[{b}]", "" if x.same else f"Ȧ[{k},{b}] t[{b}]"
    out = [
        f"t[{k}] = {sum_of(above[0], f'p[{k}] θ̇[{k}]')}",
        f"ṫ[{k}] = {sum_of(above[1], above[2], f'Ω[{k}] p[{k}] θ̇[{k}]', f'p[{k}] θ̈[{k}]', '' if b else f'ρ[{k}]')}",
    ]
    return [*out, f"w*[{k}] = M[{k}] ṫ[{k}] + Ω[{k}] M[{k}] E[{k}] t[{k}]"] if x.heavy else out


def wrench_of_module(m: StepModule) -> list[str]:
    """(6.5)."""
    i = m.label
    handed = [f"A[{j},{i}]ᵀ w̃[{j}]" for j in m.carried]
    return [f"w̃[{i}] = {sum_of(f'w*[{i}]', *handed)}", f"τ[{i}] = N[{i}]ᵀ w̃[{i}]"]


def wrench_of_link(x: StepLink, links: dict[str, StepLink]) -> list[str]:
    """(6.6)."""
    k = x.label
    handed = [f"{through(j, k, links[j].same, True)}w̃[{j}]" for j in x.carried]
    return [
        f"w̃[{k}] = {sum_of(f'w*[{k}]' if x.heavy else '', *handed)}",
        f"τ[{k}] = p[{k}]ᵀ w̃[{k}]",
    ]


def articulated_module(m: StepModule) -> list[str]:
    """(5.34)-(5.37)."""
    i = m.label
    handed = [f"A[{j},{i}]ᵀ M̂′[{j}] A[{j},{i}]" for j in m.carried]
    out = [
        f"M̂[{i}] = {sum_of(f'M[{i}]', *handed)}", f"ψ̂[{i}] = M̂[{i}] N[{i}]", f"Î[{i}] = N[{i}]ᵀ ψ̂[{i}]", f"ψ[{i}] = ψ̂[{i}] Î[{i}]⁻¹",
    ]  # fmt: skip
    return [*out, f"M̂′[{i}] = M̂[{i}] − ψ̂[{i}] ψ[{i}]ᵀ"] if m.carrier else out


def articulated_link(x: StepLink, links: dict[str, StepLink]) -> list[str]:
    k = x.label
    handed = [
        f"{through(j, k, links[j].same, True)}M̂′[{j}]" + ("" if links[j].same else f" A[{j},{k}]")
        for j in x.carried
    ]
    out = [
        f"M̂[{k}] = {sum_of(f'M[{k}]' if x.heavy else '', *handed)}", f"ψ̂[{k}] = M̂[{k}] p[{k}]", f"m̂[{k}] = p[{k}]ᵀ ψ̂[{k}]",
        f"ψ[{k}] = ψ̂[{k}] / m̂[{k}]",
    ]  # fmt: skip
    return [*out, f"M̂′[{k}] = M̂[{k}] − ψ̂[{k}] ψ[{k}]ᵀ"] if x.carrier else out


CarriedTerm = tuple[str, str, bool, bool]
"""What a module or link carries: label, Aᵀ followed by a space, whether it carries more, whether it
has mass.
"""


def carried_by(
    x: StepModule | StepLink, all_of_them: Mapping[str, StepModule | StepLink]
) -> list[CarriedTerm]:
    """The modules that a module carries, or the links that a link carries."""
    out = []
    for j in x.carried:
        y = all_of_them[j]
        same, heavy = (y.same, y.heavy) if isinstance(y, StepLink) else (False, True)
        out.append((j, through(j, x.label, same, True), bool(y.carried), heavy))
    return out


def force_lines(label: str, others: Sequence[CarriedTerm], wrenches: bool) -> list[str]:
    """η of all that a module or link carries, and η̃ of itself; with ``wrenches`` their w* too."""
    out = [
        f"η[{j}] = "
        + sum_of(
            f"ψ[{j}] φ̂[{j}]", f"η̃[{j}]" if deep else "", f"w*[{j}]" if heavy and wrenches else ""
        )
        for j, _, deep, heavy in others
    ]
    if others:
        out.append(f"η̃[{label}] = {sum_of(*(f'{A}η[{j}]' for j, A, _, _ in others))}")
    return out


def _force(x: StepModule | StepLink, others: Sequence[CarriedTerm]) -> list[str]:
    """(6.10) and (6.11)."""
    k, link = x.label, isinstance(x, StepLink)
    less = f" − {'p' if link else 'N'}[{k}]ᵀ η̃[{k}]" if others else ""
    tilde = f"φ̂[{k}] / m̂[{k}]" if link else f"Î[{k}]⁻¹ φ̂[{k}]"
    return [*force_lines(k, others, False), f"φ̂[{k}] = φ[{k}]{less}", f"φ̃[{k}] = {tilde}"]


def acceleration(x: StepModule | StepLink, P: str, q: str) -> list[str]:
    """(6.12) and (6.13), which read alike: P is N or p, q the module's or the joint's
    acceleration.
    """
    k, same = x.label, isinstance(x, StepLink) and x.same
    moved = f"{P}[{k}] {q}[{k}]"
    if not x.carrier:
        out = [f"{q}[{k}] = φ̃[{k}]"]
        return [*out, f"μ[{k}] = {moved}"] if x.carried else out
    A = through(k, x.carrier, same)
    out = [f"μ̃[{k}] = {A}μ[{x.carrier}]", f"{q}[{k}] = φ̃[{k}] − ψ[{k}]ᵀ μ̃[{k}]"]
    return [*out, f"μ[{k}] = {moved} + μ̃[{k}]"] if x.carried else out


# ---- tables ----


def sweep(
    title: str,
    modules: Sequence[StepModule],
    inward: bool,
    inter: Callable[[StepModule], list[str]],
    intra: Callable[[StepLink], list[str]],
) -> TableSweep:
    rows = []
    for m in reversed(modules) if inward else modules:
        for position, x in enumerate(reversed(m.links) if inward else m.links):
            first = position == 0
            rows.append(
                StepRow(
                    m.label if first else "",
                    tuple(inter(m)) if first else (),
                    x.label,
                    tuple(intra(x)),
                )
            )
    return TableSweep(title, tuple(rows))


def inverse_table(
    modules: Sequence[StepModule], links: dict[str, StepLink]
) -> tuple[TableSweep, ...]:
    return (
        sweep("Forward recursion, eqs. (6.2) and (6.3)", modules, False, motion_of_module, motion_of_link),
        sweep(
            "Backward recursion, eqs. (6.5) and (6.6)", modules, True, wrench_of_module, lambda x: wrench_of_link(x, links)
        ),
    )  # fmt: skip


def forward_table(
    modules: Sequence[StepModule], links: dict[str, StepLink]
) -> tuple[TableSweep, ...]:
    by_label = {m.label: m for m in modules}

    def forces_left(x: StepModule | StepLink) -> list[str]:
        return [f"φ[{x.label}] = τ[{x.label}] − h[{x.label}]"]

    return (
        sweep("Joint forces left, eq. (6.8): h from the inverse dynamics at q̈ = 0", modules, False, forces_left, forces_left),
        sweep(
            "Backward recursion: articulated mass matrices, eqs. (5.34) to (5.37)", modules, True, articulated_module,
            lambda x: articulated_link(x, links),
        ),
        sweep(
            "Backward recursion: φ̂ and φ̃, eqs. (6.10) and (6.11)", modules, True, lambda m: _force(m, carried_by(m, by_label)),
            lambda x: _force(x, carried_by(x, links)),
        ),
        sweep(
            "Forward recursion: accelerations, eqs. (6.12) and (6.13)", modules, False, lambda m: acceleration(m, "N", "q̈"),
            lambda x: acceleration(x, "p", "θ̈"),
        ),
    )  # fmt: skip
