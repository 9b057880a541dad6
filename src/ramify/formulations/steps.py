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
| t′, P, M̃, h̃ | on a floating base: twist rate while it does not accelerate; its motion propagation; composite mass matrix; forces then |
| K, K̃; κ, κ̃ | M̃ N, seen from the base; of a link, M̃ p |
| I[0,0], q̃[0] | inertia matrix of the base with all it carries; what its acceleration adds |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from ramify.core.arrays import flag
from ramify.core.errors import RamifyError
from ramify.core.messages import shown
from ramify.core.names import one_of
from ramify.formulations.chain import refuse_machines
from ramify.formulations.denoc_assembly import has_euler_floating_base, module_bodies
from ramify.formulations.step_equations import (
    SUPERSCRIPT,
    SWEEPS,
    TableSweep,
    named_modules,
    swept,
)
from ramify.model.robot import Robot, the_robot

_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


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
        flag("within", within, RamifyError)
        rows = (row for sweep in self.sweeps for row in sweep.rows)
        return [line for row in rows for line in (row.intra if within else row.inter)]

    def __str__(self) -> str:
        rows = [row for sweep in self.sweeps for row in sweep.rows]
        widths = [max(len(_shown(x)) for x in column) for column in (
            ["module", *(row.module for row in rows)],
            ["between modules", *(line for row in rows for line in row.inter)],
            ["link", *(row.link for row in rows)],
        )]  # fmt: skip
        lines = [f"{self.robot}: steps of the {self.algorithm.replace('_', ' ')}", *self.legend]
        for number, sweep in enumerate(self.sweeps, start=1):
            lines += ["", f"Step {number}. {sweep.title}"]
            head = ("module", "between modules", "link", "within modules")
            lines += [_line(cells, widths) for cells in (head, *_cells(sweep))]
        return "\n".join(lines)

    def latex(self) -> str:
        """LaTeX: one ``tabular`` per sweep."""
        blocks = []
        for number, sweep in enumerate(self.sweeps, start=1):
            lines = [f"Step {number}. {sweep.title}", "", r"\begin{tabular}{llll}"]
            lines.append(r"module & between modules & link & within modules \\")
            lines += [" & ".join(map(_tex, cells)) + r" \\" for cells in _cells(sweep)]
            blocks.append("\n".join([*lines, r"\end{tabular}"]))
        return "\n\n".join(blocks) + "\n"


def _cells(sweep: TableSweep) -> Iterator[tuple[str, str, str, str]]:
    """The lines of a sweep: module, an equation of it, link, an equation of it."""
    for row in sweep.rows:
        for i, (inter, intra) in enumerate(zip_longest(row.inter, row.intra, fillvalue="")):
            module, link = (row.module, row.link) if i == 0 else ("", "")
            yield module, inter, link, intra


def _shown(text: str) -> str:
    """A text without the marks that stand above its letters, as wide as it is printed."""
    return re.sub("[\u0300-\u036f]", "", text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=False)
    padded = [cell + " " * (width - len(_shown(cell))) for cell, width in pairs]
    return "  ".join([*padded, cells[3]]).rstrip()


_TEX: Final = {
    "ṫ": r"\dot{t}", "Ȧ": r"\dot{A}", "Ṅ": r"\dot{N}", "q̇": r"\dot{q}", "q̈": r"\ddot{q}", "θ̇": r"\dot{\theta}",
    "θ̈": r"\ddot{\theta}", "w*": "w^*", "w̃": r"\tilde{w}", "M̂′": r"\hat{M}'", "M̂": r"\hat{M}", "Î": r"\hat{I}", "m̂": r"\hat{m}",
    "ψ̂": r"\hat{\psi}", "ψ": r"\psi",
    "φ̂": r"\hat{\varphi}", "φ̃": r"\tilde{\varphi}", "φ": r"\varphi", "η̃": r"\tilde{\eta}", "η": r"\eta", "μ̃": r"\tilde{\mu}",
    "μ": r"\mu", "τ": r"\tau", "Ω": r"\Omega", "ρ": r"\rho", "t′": "t'", "M̃": r"\tilde{M}", "h̃": r"\tilde{h}",
    "K̃": r"\tilde{K}", "κ̃": r"\tilde{\kappa}", "κ": r"\kappa", "q̃": r"\tilde{q}", "Ṗ": r"\dot{P}", "−I": "-I",
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


STEPPED: Final = ("inverse_dynamics", "forward_dynamics")
"""Algorithms that have step tables."""


def step_table(model: Robot, name: str, base: str = "module") -> StepTable:
    """The steps of ``inverse_dynamics`` or ``forward_dynamics`` for a robot: tables 6.1 and 6.2 for
    a fixed base, 7.1 and 7.2 for a floating one.

    base: a floating base as "module" M0 with six rates, or as "joint", a run of six links like any
    other joint of several degrees of freedom (then the tables are those of a fixed base).

    RamifyError for another name, ModelError for joints with quaternions and for loops.
    """
    the_robot(model)
    if not isinstance(name, str) or name not in STEPPED:
        raise RamifyError(
            f"there is no step table of {shown(name)}; choose one of {', '.join(STEPPED)}"
        )
    one_of("base", base, ("module", "joint"))
    refuse_machines(model)
    floating = base == "module" and has_euler_floating_base(model)
    modules = named_modules(model, floating)
    groups, _ = module_bodies(model, floating)
    named = {
        f"{k}{str(i).translate(SUPERSCRIPT)}": model.bodies[b].name
        for i, group in enumerate(groups, start=0 if floating else 1)
        for k, b in enumerate(group, start=1)
    }
    if floating:
        named = {"0": named.pop("1⁰"), **named}
    freedoms = (
        ", kⁱ.r its r-th freedom" if any("." in x.label for m in modules for x in m.links) else ""
    )
    legend = [
        "links: " + ", ".join(f"{label} = {body}" for label, body in named.items()),
        f"an index without superscript is a module, kⁱ is link k of module i{freedoms}",
    ]
    if floating:
        legend.append("0 is the floating base, module M₀ with six rates")
    sweeps = tuple(swept(modules, *sweep) for sweep in SWEEPS[name, floating])
    return StepTable(model.name, name, tuple(legend), sweeps)
