"""The equations of the step tables, one function for each pair of the book's equations: between the
modules of a robot and within them. ``ramify.formulations.steps`` has the symbols.

On a floating base (tables 7.1, 7.2) module 0 has one link, 0, with the motion P[0] q̇[0]: six rates
at once. t′ is the twist rate while the accelerations that are asked for are zero: those of the base
(7.1), or all (7.2). A wrench w^F that acts on a link, such as that of the ground, is taken off its
w*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ramify.formulations.chain import refuse_quaternions
from ramify.formulations.denoc_assembly import link_groups, module_bodies, shared_origins
from ramify.model.robot import Robot

SUPERSCRIPT: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


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
class StepPart:
    """A module (P = "N"), a link on one screw ("p") or the floating base ("P"): its label, that of
    its carrier ('' for the fixed base) and what it carries.

    ``same`` where it shares its carrier's origin, so that A = 1; ``heavy`` where it is a body and
    not between two freedoms of a joint; ``links`` of a module.
    """

    label: str
    carrier: str
    carried: tuple[StepPart, ...]
    P: str = "N"
    same: bool = False
    heavy: bool = True
    links: tuple[StepPart, ...] = ()

    @property
    def A(self) -> str:
        """Its carrier's motion seen at it, followed by a space; nothing where A = 1."""
        return "" if self.same else f"A[{self.label},{self.carrier}] "

    @property
    def A_T(self) -> str:
        return self.A.replace("] ", "]ᵀ ")

    @property
    def rates(self) -> tuple[str, str]:
        return ("θ̇", "θ̈") if self.P == "p" else ("q̇", "q̈")

    @property
    def K(self) -> str:
        return "κ" if self.P == "p" else "K"


def named_modules(model: Robot, floating: bool) -> list[StepPart]:
    """Modules from 1 on; with ``floating`` the six links of the base are link 0 of module 0."""
    refuse_quaternions(model)
    parents, start = model.skeleton.parents, 0 if floating else 1
    bodies, carriers = module_bodies(model, floating)
    label: dict[int, str] = {-1: ""}
    for i, group in enumerate(bodies, start=start):
        for k, b in enumerate(group, start=1):
            name = f"{k}{str(i).translate(SUPERSCRIPT)}"
            dof = model.joints[b].dof
            first = model.skeleton.last[b] + 1 - dof
            label |= {first + r: f"{name}.{r + 1}" if dof > 1 else name for r in range(dof)}
    if floating:
        label |= dict.fromkeys(range(6), "0")
    last, shared = set(model.skeleton.last), shared_origins(model)
    links: dict[int, StepPart] = {}
    for k in reversed(range(len(parents))):
        carried = tuple(links[c] for c, parent in enumerate(parents) if parent == k)
        above = label[parents[k]]
        links[k] = StepPart(label[k], above, carried, "p", shared[k], k in last)
    if floating:
        links[0] = StepPart("0", "", links[5].carried, "P")
    modules: dict[int, StepPart] = {}
    groups = link_groups(model, "module", floating)
    for i in reversed(range(len(groups))):
        own = (links[0],) if floating and i == 0 else tuple(links[k] for k in groups[i])
        carried = tuple(modules[j] for j, carrier in enumerate(carriers) if carrier == i)
        above = str(carriers[i] + start) if carriers[i] >= 0 else ""
        modules[i] = StepPart(str(i + start), above, carried, links=own)
    return [modules[i] for i in range(len(groups))]


# ---- equations ----


def _sum(*terms: str) -> str:
    return " + ".join(x for x in terms if x)


def motion(x: StepPart, rate: str = "ṫ", accelerated: bool = True) -> list[str]:
    """(6.2), (6.3); with t′ for ṫ and without accelerations that are not known yet (7.3)-(7.6)."""
    k, b, (q_dot, q_ddot) = x.label, x.carrier, x.rates
    turning = {"N": f"Ṅ[{k}]", "P": f"Ṗ[{k}]", "p": f"Ω[{k}] p[{k}]"}[x.P]
    twist, above = "", [""]
    if b:
        twist = f"{x.A}t[{b}]"
        above = [f"{x.A}{rate}[{b}]", "" if x.same else f"Ȧ[{k},{b}] t[{b}]"]
    own = [f"{turning} {q_dot}[{k}]", f"{x.P}[{k}] {q_ddot}[{k}]" if accelerated else ""]
    out = [
        f"t[{k}] = {_sum(twist, f'{x.P}[{k}] {q_dot}[{k}]')}",
        f"{rate}[{k}] = {_sum(*above, *own, '' if b else f'ρ[{k}]')}",
    ]
    return [*out, f"w*[{k}] = M[{k}] {rate}[{k}] + Ω[{k}] M[{k}] E[{k}] t[{k}]"] if x.heavy else out


def _floating_motion(x: StepPart) -> list[str]:
    """``motion`` while the base does not accelerate, and A from the base on."""
    k, b = x.label, x.carrier
    far = [f"A[{k},0] = {x.A}A[{b},0]"] if b not in ("", "0") else []
    return motion(x, "t′", bool(b)) + far


def wrench(x: StepPart, tau: str = "τ") -> list[str]:
    """(6.5), (6.6)."""
    k = x.label
    handed = [f"{c.A_T}w̃[{c.label}]" for c in x.carried]
    own = f"w*[{k}]" if x.heavy else ""
    return [f"w̃[{k}] = {_sum(own, *handed)}", f"{tau}[{k}] = {x.P}[{k}]ᵀ w̃[{k}]"]


def _with_carried(x: StepPart, M: str, handed: str) -> str:
    """The mass matrix of a module or link with what those it carries hand over."""
    moved = [f"{c.A_T}{handed}[{c.label}] {c.A}".rstrip() for c in x.carried]
    return f"{M}[{x.label}] = {_sum(f'M[{x.label}]' if x.heavy else '', *moved)}"


def _composite(x: StepPart) -> list[str]:
    """(7.7)-(7.10)."""
    k, K = x.label, x.K
    own = f"{K}[{k}] = M̃[{k}] {x.P}[{k}]"
    seen = f"{K}̃[{k}] = A[{k},0]ᵀ {K}[{k}]" if x.carrier else f"I[0,0] = K[0]ᵀ {x.P}[0]"
    return [*wrench(x, "h̃"), _with_carried(x, "M̃", "M̃"), own, seen]


def _torque(x: StepPart) -> list[str]:
    """(7.11)-(7.14)."""
    if not x.carrier:
        return ["q̈[0] = −I[0,0]⁻¹ h̃[0]", f"q̃[0] = {x.P}[0] q̈[0]"]
    return [f"τ[{x.label}] = {x.K}̃[{x.label}]ᵀ q̃[0] + h̃[{x.label}]"]


def _articulated(x: StepPart) -> list[str]:
    """(5.34)-(5.37)."""
    k, pivot = x.label, "m̂" if x.P == "p" else "Î"
    over = f"/ m̂[{k}]" if x.P == "p" else f"Î[{k}]⁻¹"
    out = [
        _with_carried(x, "M̂", "M̂′"),
        f"ψ̂[{k}] = M̂[{k}] {x.P}[{k}]",
        f"{pivot}[{k}] = {x.P}[{k}]ᵀ ψ̂[{k}]",
        f"ψ[{k}] = ψ̂[{k}] {over}",
    ]
    return [*out, f"M̂′[{k}] = M̂[{k}] − ψ̂[{k}] ψ[{k}]ᵀ"] if x.carrier else out


def _forces_left(x: StepPart) -> list[str]:
    return [f"φ[{x.label}] = τ[{x.label}] − h[{x.label}]"]


def _force(x: StepPart, floating: bool = False) -> list[str]:
    """(6.10), (6.11): η of all that a module or link carries, η̃, φ̂ and φ̃ of itself; on a
    floating base with their w* (7.18)-(7.20).
    """
    k, out = x.label, []
    for c in x.carried:
        j = c.label
        more = f"η̃[{j}]" if c.carried else "", f"w*[{j}]" if c.heavy and floating else ""
        out.append(f"η[{j}] = {_sum(f'ψ[{j}] φ̂[{j}]', *more)}")
    if x.carried:
        out.append(f"η̃[{k}] = {_sum(*(f'{c.A_T}η[{c.label}]' for c in x.carried))}")
    taken = (("η̃", x.carried), ("w*", floating and x.heavy))
    less = "".join(f" − {x.P}[{k}]ᵀ {name}[{k}]" for name, has in taken if has)
    tilde = f"φ̂[{k}] / m̂[{k}]" if x.P == "p" else f"Î[{k}]⁻¹ φ̂[{k}]"
    return [*out, f"φ̂[{k}] = {'τ' if floating else 'φ'}[{k}]{less}", f"φ̃[{k}] = {tilde}"]


def _acceleration(x: StepPart) -> list[str]:
    """(6.12), (6.13); (7.21)-(7.24)."""
    k, q = x.label, x.rates[1]
    out, rest = [f"{q}[{k}] = φ̃[{k}]"], ""
    if x.carrier:
        out = [f"μ̃[{k}] = {x.A}μ[{x.carrier}]", f"{q}[{k}] = φ̃[{k}] − ψ[{k}]ᵀ μ̃[{k}]"]
        rest = f"μ̃[{k}]"
    return [*out, f"μ[{k}] = {_sum(f'{x.P}[{k}] {q}[{k}]', rest)}"] if x.carried else out


# ---- tables ----

PartEquations = Callable[[StepPart], list[str]]
_ARTICULATED: Final = "Backward recursion: articulated mass matrices, eqs. (5.34) to (5.37)"
SWEEPS: Final[dict[tuple[str, bool], tuple[tuple[str, bool, PartEquations], ...]]] = {
    ("inverse_dynamics", False): (
        ("Forward recursion, eqs. (6.2) and (6.3)", False, motion),
        ("Backward recursion, eqs. (6.5) and (6.6)", True, wrench),
    ),
    ("forward_dynamics", False): (
        ("Joint forces left, eq. (6.8): h from the inverse dynamics at q̈ = 0", False, _forces_left),
        (_ARTICULATED, True, _articulated),
        ("Backward recursion: φ̂ and φ̃, eqs. (6.10) and (6.11)", True, _force),
        ("Forward recursion: accelerations, eqs. (6.12) and (6.13)", False, _acceleration),
    ),
    ("inverse_dynamics", True): (
        (
            "Forward recursion: twists and wrenches while q̈₀ = 0, eqs. (7.3) to (7.6)",
            False,
            _floating_motion,
        ),
        ("Backward recursion: h̃, M̃, K̃ and I₀, eqs. (7.7) to (7.10)", True, _composite),
        ("Forward recursion: q̈₀ and τ, eqs. (7.11) to (7.14)", False, _torque),
    ),
    ("forward_dynamics", True): (
        (
            "Forward recursion: twists and wrenches while q̈ = 0, eqs. (7.3) to (7.6)",
            False,
            lambda x: motion(x, "t′", accelerated=False),
        ),
        (_ARTICULATED, True, _articulated),
        (
            "Backward recursion: φ̂ and φ̃, eqs. (7.18) to (7.20)",
            True,
            lambda x: _force(x, floating=True),
        ),
        ("Forward recursion: accelerations, eqs. (7.21) to (7.24)", False, _acceleration),
    ),
}
"""Of each algorithm, on a floating base or not: title of a sweep, whether inward, equations."""


def swept(
    modules: Sequence[StepPart], title: str, inward: bool, equations: PartEquations
) -> TableSweep:
    order = -1 if inward else 1
    rows = []
    for m in modules[::order]:
        between = m.label, tuple(equations(m))
        for x in m.links[::order]:
            rows.append(StepRow(*between, x.label, tuple(equations(x))))
            between = "", ()
    return TableSweep(title, tuple(rows))
