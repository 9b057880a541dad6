"""Step tables of a robot on a floating base: tables 7.1 and 7.2, the base being module M0.

Module 0 has one link, 0, with the motion P[0] q̇[0]: six rates at once. t′ is the twist rate while
the accelerations that are asked for are zero: those of the base (7.1), or all (7.2). A wrench w^F
that acts on a link, such as that of the ground, is taken off its w*.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.formulations.step_equations import (
    CarriedTerm,
    StepLink,
    StepModule,
    TableSweep,
    acceleration,
    articulated_link,
    articulated_module,
    carried_by,
    force_lines,
    motion_of_link,
    motion_of_module,
    sum_of,
    sweep,
    through,
    wrench_of_link,
    wrench_of_module,
)

Links = dict[str, StepLink]


def _motion(lines: list[str], accelerates: bool) -> list[str]:
    """(6.2), (6.3) as (7.3)-(7.6): t′ for ṫ, without the accelerations that are not known yet."""
    out = [line.replace("ṫ", "t′") for line in lines]
    for unknown in () if accelerates else (r" + N[{}] q̈[{}]", r" + p[{}] θ̈[{}]"):
        out = [_without(line, unknown) for line in out]
    return out


def _without(line: str, term: str) -> str:
    label = line[line.index("[") + 1 : line.index("]")]
    return line.replace(term.format(label, label), "")


def _module_motion(m: StepModule, accelerates: bool) -> list[str]:
    out = _motion(motion_of_module(m), accelerates and bool(m.carrier))
    far = [f"A[{m.label},0] = A[{m.label},{m.carrier}] A[{m.carrier},0]"]
    return [*out, *(far if accelerates and m.carrier not in ("", "0") else ())]


def _link_motion(x: StepLink, accelerates: bool) -> list[str]:
    if not x.carrier:
        return [
            "t[0] = P[0] q̇[0]",
            "t′[0] = Ṗ[0] q̇[0] + ρ[0]",
            "w*[0] = M[0] t′[0] + Ω[0] M[0] E[0] t[0]",
        ]
    k, b = x.label, x.carrier
    far = [f"A[{k},0] = {through(k, b, x.same)}A[{b},0]"] if b != "0" else []
    return [*_motion(motion_of_link(x), accelerates), *(far if accelerates else ())]


def _module_forces(m: StepModule) -> list[str]:
    """(7.7), (7.8)."""
    i = m.label
    handed = [f"A[{j},{i}]ᵀ M̃[{j}] A[{j},{i}]" for j in m.carried]
    out = [line.replace("τ[", "h̃[") for line in wrench_of_module(m)]
    out += [f"M̃[{i}] = {sum_of(f'M[{i}]', *handed)}", f"K[{i}] = M̃[{i}] N[{i}]"]
    return [*out, f"K̃[{i}] = A[{i},0]ᵀ K[{i}]" if m.carrier else "I[0,0] = K[0]ᵀ N[0]"]


def _link_forces(x: StepLink, links: Links) -> list[str]:
    """(7.9), (7.10)."""
    k = x.label
    handed = [
        f"{through(j, k, links[j].same, True)}M̃[{j}]" + ("" if links[j].same else f" A[{j},{k}]")
        for j in x.carried
    ]
    out = [line.replace("τ[", "h̃[") for line in wrench_of_link(x, links)]
    out.append(f"M̃[{k}] = {sum_of(f'M[{k}]' if x.heavy else '', *handed)}")
    if not x.carrier:
        return [line.replace("p[0]", "P[0]") for line in out] + [
            "K[0] = M̃[0] P[0]",
            "I[0,0] = K[0]ᵀ P[0]",
        ]
    return [*out, f"κ[{k}] = M̃[{k}] p[{k}]", f"κ̃[{k}] = A[{k},0]ᵀ κ[{k}]"]


def _torque(x: StepModule | StepLink, P: str, K: str) -> list[str]:
    """(7.11), (7.12) and (7.13), (7.14)."""
    if not x.carrier:
        return ["q̈[0] = −I[0,0]⁻¹ h̃[0]", f"q̃[0] = {P}[0] q̈[0]"]
    return [f"τ[{x.label}] = {K}[{x.label}]ᵀ q̃[0] + h̃[{x.label}]"]


def floating_inverse_table(modules: Sequence[StepModule], links: Links) -> tuple[TableSweep, ...]:
    """Table 7.1: accelerations of the base and joint forces, those of the joints being given."""
    return (
        sweep(
            "Forward recursion: twists and wrenches while q̈₀ = 0, eqs. (7.3) to (7.6)",
            modules,
            False,
            lambda m: _module_motion(m, True),
            lambda x: _link_motion(x, True),
        ),
        sweep(
            "Backward recursion: h̃, M̃, K̃ and I₀, eqs. (7.7) to (7.10)",
            modules,
            True,
            _module_forces,
            lambda x: _link_forces(x, links),
        ),
        sweep(
            "Forward recursion: q̈₀ and τ, eqs. (7.11) to (7.14)",
            modules,
            False,
            lambda m: _torque(m, "N", "K̃"),
            lambda x: _torque(x, "P", "κ̃"),
        ),
    )


def _force(
    x: StepModule | StepLink, others: Sequence[CarriedTerm], P: str, pivot: str
) -> list[str]:
    """(7.18)-(7.20)."""
    k = x.label
    heavy = x.heavy if isinstance(x, StepLink) else True
    less = [f" − {P}[{k}]ᵀ {name}[{k}]" for name, has in (("η̃", others), ("w*", heavy)) if has]
    left = f"Î[{k}]⁻¹ φ̂[{k}]" if pivot == "Î" else f"φ̂[{k}] / m̂[{k}]"
    return [*force_lines(k, others, True), f"φ̂[{k}] = τ[{k}]{''.join(less)}", f"φ̃[{k}] = {left}"]


def floating_forward_table(modules: Sequence[StepModule], links: Links) -> tuple[TableSweep, ...]:
    """Table 7.2: all accelerations; the base has τ[0] = 0 where nothing holds it."""
    by_label = {m.label: m for m in modules}

    def articulated(x: StepLink) -> list[str]:
        out = articulated_link(x, links)
        if x.carrier:
            return out
        return [out[0], "ψ̂[0] = M̂[0] P[0]", "Î[0] = P[0]ᵀ ψ̂[0]", "ψ[0] = ψ̂[0] Î[0]⁻¹"]

    def forces(m: StepModule) -> list[str]:
        return _force(m, carried_by(m, by_label), "N", "Î")

    def link_forces(x: StepLink) -> list[str]:
        return _force(x, carried_by(x, links), *(("p", "m̂") if x.carrier else ("P", "Î")))

    return (
        sweep(
            "Forward recursion: twists and wrenches while q̈ = 0, eqs. (7.3) to (7.6)",
            modules,
            False,
            lambda m: _module_motion(m, False),
            lambda x: _link_motion(x, False),
        ),
        sweep(
            "Backward recursion: articulated mass matrices, eqs. (5.34) to (5.37)",
            modules,
            True,
            articulated_module,
            articulated,
        ),
        sweep(
            "Backward recursion: φ̂ and φ̃, eqs. (7.18) to (7.20)",
            modules,
            True,
            forces,
            link_forces,
        ),
        sweep(
            "Forward recursion: accelerations, eqs. (7.21) to (7.24)",
            modules,
            False,
            lambda m: acceleration(m, "N", "q̈"),
            lambda x: acceleration(x, *(("p", "θ̈") if x.carrier else ("P", "q̈"))),
        ),
    )
