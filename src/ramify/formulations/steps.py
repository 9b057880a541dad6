"""The steps of a recursion, written out for a robot: between its modules and within them, as tables
6.3 and 6.4 do for a gripper.

An index without a superscript is a module, k with superscript i the k-th link of module i; where a
joint has several degrees of freedom, 1².3 is the third of them. So t[2] are the twists of module 2
and t[1²] is that of its first link. Twists are taken at the joint origins; ``denoc_matrices`` gives
every matrix that is named here.

| symbol | meaning |
| --- | --- |
| t, ṫ | twist and its rate; ρ = [0; -g] of the base |
| A, Ȧ; N, Ṅ; p | twist propagation; joint-motion propagation of a module; of a link |
| M, Ω, E | mass matrix, angular velocity tensor, coupling matrix |
| w*, w̃ | inertia wrench; wrench that a joint transmits |
| τ, φ, h | joint forces; φ = τ − h, h being the forces at zero acceleration |
| M̂, M̂′ | articulated mass matrix; the same with the module's or link's own joint free |
| ψ̂, ψ; Î, m̂ | M̂ N or M̂ p; over the pivot; the pivot |
| η, η̃, φ̂, φ̃ | wrenches and joint forces of the backward sweep |
| μ, μ̃ | twist rates of the forward sweep |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ramify.core.errors import ModelError, RamifyError
from ramify.formulations.chain import refuse_machines
from ramify.model.robot import Robot

_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


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


@dataclass(frozen=True)
class StepTable:
    """The steps of an algorithm for one robot. ``print`` shows it; ``equations`` are all of it,
    between modules or within them.
    """

    robot: str
    algorithm: str
    legend: tuple[str, ...]
    sweeps: tuple[TableSweep, ...]

    def equations(self, within: bool = True) -> list[str]:
        """Every equation in the order of computation: those of links (``within`` the modules), or
        those of modules.
        """
        return [
            line
            for sweep in self.sweeps
            for row in sweep.rows
            for line in (row.intra if within else row.inter)
        ]

    def __str__(self) -> str:
        rows = [row for sweep in self.sweeps for row in sweep.rows]
        widths = [max(len(_shown(x)) for x in column) for column in (
            ["module", *(row.module for row in rows)],
            ["between modules", *(line for row in rows for line in row.inter)],
            ["link", *(row.link for row in rows)],
        )]  # fmt: skip
        lines = [f"{self.robot}: steps of the {self.algorithm.replace('_', ' ')}", *self.legend]
        for number, sweep in enumerate(self.sweeps, start=1):
            lines += [
                "",
                f"Step {number}. {sweep.title}",
                _line(("module", "between modules", "link", "within modules"), widths),
            ]
            for row in sweep.rows:
                for i in range(max(len(row.inter), len(row.intra))):
                    inter, intra = (
                        part[i] if i < len(part) else "" for part in (row.inter, row.intra)
                    )
                    first = (row.module, row.link) if i == 0 else ("", "")
                    lines.append(_line((first[0], inter, first[1], intra), widths))
        return "\n".join(lines)

    def latex(self) -> str:
        """LaTeX: one ``tabular`` per sweep."""
        blocks = []
        for number, sweep in enumerate(self.sweeps, start=1):
            lines = [f"Step {number}. {sweep.title}", "", r"\begin{tabular}{llll}"]
            lines.append(r"module & between modules & link & within modules \\")
            for row in sweep.rows:
                for i in range(max(len(row.inter), len(row.intra))):
                    inter, intra = (
                        part[i] if i < len(part) else "" for part in (row.inter, row.intra)
                    )
                    first = (row.module, row.link) if i == 0 else ("", "")
                    lines.append(
                        " & ".join(_tex(cell) for cell in (first[0], inter, first[1], intra))
                        + r" \\"
                    )
            blocks.append("\n".join([*lines, r"\end{tabular}"]))
        return "\n\n".join(blocks) + "\n"


def _shown(text: str) -> str:
    """A text without the marks that stand above its letters, as wide as it is printed."""
    return re.sub("[\u0300-\u036f]", "", text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell + " " * (width - len(_shown(cell))) for cell, width in zip(cells, widths, strict=False)
    ]
    return "  ".join([*padded, cells[3]]).rstrip()


_TEX: Final = {
    "ṫ": r"\dot{t}", "Ȧ": r"\dot{A}", "Ṅ": r"\dot{N}", "q̇": r"\dot{q}", "q̈": r"\ddot{q}", "θ̇": r"\dot{\theta}",
    "θ̈": r"\ddot{\theta}", "w*": "w^*", "w̃": r"\tilde{w}", "M̂′": r"\hat{M}'", "M̂": r"\hat{M}", "Î": r"\hat{I}", "m̂": r"\hat{m}",
    "ψ̂": r"\hat{\psi}", "ψ": r"\psi",
    "φ̂": r"\hat{\varphi}", "φ̃": r"\tilde{\varphi}", "φ": r"\varphi", "η̃": r"\tilde{\eta}", "η": r"\eta", "μ̃": r"\tilde{\mu}",
    "μ": r"\mu", "τ": r"\tau", "Ω": r"\Omega", "ρ": r"\rho",
}  # fmt: skip


def _tex(text: str) -> str:
    """One cell: an equation, a link or a module."""
    if not text:
        return ""

    def index(label: str) -> str:
        return re.sub(
            r"(\d+)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda x: f"{x[1]}^{{{x[2].translate(_PLAIN)}}}", label
        )

    def factor(x: re.Match[str]) -> str:
        power = {"ᵀ": "^T", "⁻¹": "^{-1}", "": ""}[x[3]]
        return f"{_TEX.get(x[1], x[1])}_{{{index(x[2])}}}{power}"

    body = re.sub(r"([^\s\[\]]+)\[([^\]]+)\](ᵀ|⁻¹|)", factor, text)
    return f"${index(body)}$".replace("−", "-")


# ---- the robot's links and modules, named ----


@dataclass(frozen=True)
class _StepLink:
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
class _StepModule:
    label: str
    carrier: str
    carried: tuple[str, ...]
    links: tuple[_StepLink, ...]


def _modules(model: Robot) -> list[_StepModule]:
    if model.skeleton.balls:
        raise ModelError(
            f"{model.name} has a joint with a quaternion; load it with base='free_euler', or use a "
            "spherical joint"
        )
    parents = model.skeleton.parents
    label: dict[int, str] = {}
    owner: dict[int, int] = {}
    ends = [0]
    for body in model.bodies:
        ends.append(ends[-1] + body.joint.dof)
    for i, module in enumerate(model.modules, start=1):
        for k, b in enumerate(module.bodies, start=1):
            links = range(ends[b], ends[b + 1])
            for r, link in enumerate(links, start=1):
                label[link] = f"{k}{str(i).translate(_SUPER)}" + (f".{r}" if len(links) > 1 else "")
                owner[link] = i
    carried = {k: tuple(label[c] for c, parent in enumerate(parents) if parent == k) for k in label}
    last = set(model.skeleton.last)
    out = []
    for i, module in enumerate(model.modules, start=1):
        rows = []
        for b in module.bodies:
            for r, k in enumerate(range(ends[b], ends[b + 1])):
                screw, r0 = model.skeleton.links[k].p, model.skeleton.links[k].r0
                same = r > 0 and screw.eta == 0.0 and (r0.x, r0.y, r0.z) == (0.0, 0.0, 0.0)
                rows.append(
                    _StepLink(label[k], label.get(parents[k], ""), carried[k], same, k in last)
                )
        children = tuple(
            str(j) for j, other in enumerate(model.modules, start=1) if other.parent == i - 1
        )
        out.append(
            _StepModule(
                str(i), str(module.parent + 1) if module.parent >= 0 else "", children, tuple(rows)
            )
        )
    return out


# ---- equations ----


def _sum(first: str, *more: str) -> str:
    return " + ".join([x for x in (first, *more) if x])


def _through(a: str, b: str, same: bool, transposed: bool = False) -> str:
    """A of b's motion seen at a, followed by a space; nothing where A = 1."""
    return "" if same else f"A[{a},{b}]{'ᵀ' if transposed else ''} "


def _motion_of_module(m: _StepModule) -> list[str]:
    """(6.2)."""
    i, h = m.label, m.carrier
    above = (
        (f"A[{i},{h}] t[{h}]", f"A[{i},{h}] ṫ[{h}]", f"Ȧ[{i},{h}] t[{h}]") if h else ("", "", "")
    )
    return [
        f"t[{i}] = {_sum(above[0], f'N[{i}] q̇[{i}]')}",
        f"ṫ[{i}] = "
        f"{_sum(above[1], above[2], f'Ṅ[{i}] q̇[{i}]', f'N[{i}] q̈[{i}]', '' if h else f'ρ[{i}]')}",
        f"w*[{i}] = M[{i}] ṫ[{i}] + Ω[{i}] M[{i}] E[{i}] t[{i}]",
    ]


def _motion_of_link(x: _StepLink) -> list[str]:
    """(6.3); a link that shares its carrier's origin needs no A."""
    k, b = x.label, x.carrier
    above = ("", "", "")
    if b:
        A = _through(k, b, x.same)
        above = f"{A}t[{b}]", f"{A}ṫ[{b}]", "" if x.same else f"Ȧ[{k},{b}] t[{b}]"
    out = [
        f"t[{k}] = {_sum(above[0], f'p[{k}] θ̇[{k}]')}",
        f"ṫ[{k}] = {_sum(above[1], above[2], f'Ω[{k}] p[{k}] θ̇[{k}]', f'p[{k}] θ̈[{k}]', '' if b else f'ρ[{k}]')}",
    ]
    return [*out, f"w*[{k}] = M[{k}] ṫ[{k}] + Ω[{k}] M[{k}] E[{k}] t[{k}]"] if x.heavy else out


def _wrench_of_module(m: _StepModule) -> list[str]:
    """(6.5)."""
    i = m.label
    handed = [f"A[{j},{i}]ᵀ w̃[{j}]" for j in m.carried]
    return [f"w̃[{i}] = {_sum(f'w*[{i}]', *handed)}", f"τ[{i}] = N[{i}]ᵀ w̃[{i}]"]


def _wrench_of_link(x: _StepLink, links: dict[str, _StepLink]) -> list[str]:
    """(6.6)."""
    k = x.label
    handed = [f"{_through(j, k, links[j].same, True)}w̃[{j}]" for j in x.carried]
    return [f"w̃[{k}] = {_sum(f'w*[{k}]' if x.heavy else '', *handed)}", f"τ[{k}] = p[{k}]ᵀ w̃[{k}]"]


def _articulated_module(m: _StepModule) -> list[str]:
    """(5.34)-(5.37)."""
    i = m.label
    handed = [f"A[{j},{i}]ᵀ M̂′[{j}] A[{j},{i}]" for j in m.carried]
    out = [
        f"M̂[{i}] = {_sum(f'M[{i}]', *handed)}", f"ψ̂[{i}] = M̂[{i}] N[{i}]", f"Î[{i}] = N[{i}]ᵀ ψ̂[{i}]", f"ψ[{i}] = ψ̂[{i}] Î[{i}]⁻¹",
    ]  # fmt: skip
    return [*out, f"M̂′[{i}] = M̂[{i}] − ψ̂[{i}] ψ[{i}]ᵀ"] if m.carrier else out


def _articulated_link(x: _StepLink, links: dict[str, _StepLink]) -> list[str]:
    k = x.label
    handed = [
        f"{_through(j, k, links[j].same, True)}M̂′[{j}]" + ("" if links[j].same else f" A[{j},{k}]")
        for j in x.carried
    ]
    out = [
        f"M̂[{k}] = {_sum(f'M[{k}]' if x.heavy else '', *handed)}", f"ψ̂[{k}] = M̂[{k}] p[{k}]", f"m̂[{k}] = p[{k}]ᵀ ψ̂[{k}]",
        f"ψ[{k}] = ψ̂[{k}] / m̂[{k}]",
    ]  # fmt: skip
    return [*out, f"M̂′[{k}] = M̂[{k}] − ψ̂[{k}] ψ[{k}]ᵀ"] if x.carrier else out


def _force_of_module(m: _StepModule, modules: dict[str, _StepModule]) -> list[str]:
    """(6.10)."""
    i = m.label
    out = [
        f"η[{j}] = {_sum(f'ψ[{j}] φ̂[{j}]', f'η̃[{j}]' if modules[j].carried else '')}"
        for j in m.carried
    ]
    if m.carried:
        out.append(f"η̃[{i}] = {_sum(*(f'A[{j},{i}]ᵀ η[{j}]' for j in m.carried))}")
    return [
        *out,
        f"φ̂[{i}] = φ[{i}]" + (f" − N[{i}]ᵀ η̃[{i}]" if m.carried else ""),
        f"φ̃[{i}] = Î[{i}]⁻¹ φ̂[{i}]",
    ]


def _force_of_link(x: _StepLink, links: dict[str, _StepLink]) -> list[str]:
    """(6.11)."""
    k = x.label
    out = [
        f"η[{j}] = {_sum(f'ψ[{j}] φ̂[{j}]', f'η̃[{j}]' if links[j].carried else '')}"
        for j in x.carried
    ]
    if x.carried:
        out.append(
            f"η̃[{k}] = {_sum(*(f'{_through(j, k, links[j].same, True)}η[{j}]' for j in x.carried))}"
        )
    return [
        *out,
        f"φ̂[{k}] = φ[{k}]" + (f" − p[{k}]ᵀ η̃[{k}]" if x.carried else ""),
        f"φ̃[{k}] = φ̂[{k}] / m̂[{k}]",
    ]


def _acceleration(label: str, carrier: str, carried: bool, A: str, P: str, q: str) -> list[str]:
    """(6.12) and (6.13), which read alike: P is N or p, q the module's or the joint's
    acceleration.
    """
    if not carrier:
        out = [f"{q}[{label}] = φ̃[{label}]"]
        return [*out, f"μ[{label}] = {P}[{label}] {q}[{label}]"] if carried else out
    out = [f"μ̃[{label}] = {A}μ[{carrier}]", f"{q}[{label}] = φ̃[{label}] − ψ[{label}]ᵀ μ̃[{label}]"]
    return [*out, f"μ[{label}] = {P}[{label}] {q}[{label}] + μ̃[{label}]"] if carried else out


# ---- tables ----


def _sweep(
    title: str,
    modules: Sequence[_StepModule],
    inward: bool,
    inter: Callable[[_StepModule], list[str]],
    intra: Callable[[_StepLink], list[str]],
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


def _inverse(modules: Sequence[_StepModule], links: dict[str, _StepLink]) -> tuple[TableSweep, ...]:
    return (
        _sweep("Forward recursion, eqs. (6.2) and (6.3)", modules, False, _motion_of_module, _motion_of_link),
        _sweep(
            "Backward recursion, eqs. (6.5) and (6.6)", modules, True, _wrench_of_module, lambda x: _wrench_of_link(x, links)
        ),
    )  # fmt: skip


def _forward(modules: Sequence[_StepModule], links: dict[str, _StepLink]) -> tuple[TableSweep, ...]:
    by_label = {m.label: m for m in modules}

    def forces_left(x: _StepModule | _StepLink) -> list[str]:
        return [f"φ[{x.label}] = τ[{x.label}] − h[{x.label}]"]

    def modules_accelerate(m: _StepModule) -> list[str]:
        return _acceleration(
            m.label, m.carrier, bool(m.carried), f"A[{m.label},{m.carrier}] ", "N", "q̈"
        )

    def links_accelerate(x: _StepLink) -> list[str]:
        return _acceleration(
            x.label, x.carrier, bool(x.carried), _through(x.label, x.carrier, x.same), "p", "θ̈"
        )

    return (
        _sweep("Joint forces left, eq. (6.8): h from the inverse dynamics at q̈ = 0", modules, False, forces_left, forces_left),
        _sweep(
            "Backward recursion: articulated mass matrices, eqs. (5.34) to (5.37)", modules, True, _articulated_module,
            lambda x: _articulated_link(x, links),
        ),
        _sweep(
            "Backward recursion: φ̂ and φ̃, eqs. (6.10) and (6.11)", modules, True, lambda m: _force_of_module(m, by_label),
            lambda x: _force_of_link(x, links),
        ),
        _sweep("Forward recursion: accelerations, eqs. (6.12) and (6.13)", modules, False, modules_accelerate, links_accelerate),
    )  # fmt: skip


_TABLES: Final = {"inverse_dynamics": _inverse, "forward_dynamics": _forward}


def step_table(model: Robot, name: str) -> StepTable:
    """The steps of ``inverse_dynamics`` or ``forward_dynamics`` for a robot.

    RamifyError for another name, ModelError for joints with quaternions and for loops.
    """
    if name not in _TABLES:
        raise RamifyError(f"there is no step table of {name!r}; choose one of {', '.join(_TABLES)}")
    refuse_machines(model)
    modules = _modules(model)
    links = {x.label: x for m in modules for x in m.links}
    names = [model.bodies[b].name for module in model.modules for b in module.bodies]
    labels = [
        f"{k}{str(i).translate(_SUPER)}"
        for i, m in enumerate(model.modules, start=1)
        for k in range(1, len(m.bodies) + 1)
    ]
    freedoms = ", kⁱ.r its r-th freedom" if any("." in x for x in links) else ""
    legend = (
        "links: "
        + ", ".join(f"{label} = {body}" for label, body in zip(labels, names, strict=True)),
        f"an index without superscript is a module, kⁱ is link k of module i{freedoms}",
    )
    return StepTable(model.name, name, legend, _TABLES[name](modules, links))
