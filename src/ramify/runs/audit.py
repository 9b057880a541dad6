"""The audit of a run (appendix C): energy that appears or vanishes is an error, and so is momentum
where nothing can change it.

The balance is e(t) = (T + V + S)(t) - (T + V + S)(0) - W_act(t) - W_ext(t) + W_diss(t), zero for an
exact solution; S is what the springs of a ground store, W_ext the work of external wrenches, and
W_diss holds what its damping and friction have turned to heat. Where every body that stands on the
world does so on an unforced free joint, linear momentum less what gravity gave it, p(t) - m g t,
and angular momentum about the centre of mass are conserved too; on an unforced planar joint their
parts in the plane and about its normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.html import Markup, facts, html_table
from ramify.core.messages import pretty
from ramify.integrate.schemes import IMPLICIT
from ramify.runs.audit_checks import (
    Check,
    allowed,
    energy_check,
    internal_check,
    loop_checks,
    momentum_checks,
    step_checks,
)
from ramify.runs.audit_scales import Scales
from ramify.runs.energy_blame import blame
from ramify.runs.machine_account import machine_figures, machine_lines
from ramify.runs.run_record import Run


class Break(NamedTuple):
    """Where a run first breaks: which ``quantity``, at which ``row`` and ``time`` (s), the ``body``
    to blame, if any, and why.
    """

    quantity: str
    row: int
    time: float
    body: str | None
    reason: str


@dataclass(frozen=True, eq=False)
class Audit:
    """The verdict on a run and the figures behind it. Print it to read it.

    kinetic, potential, actuator, dissipated (T,) in J; ``energy``, ``internal`` (the same without
    the motion of the centre of mass, where nothing but gravity acts along some axis), ``momentum``,
    ``loops`` and ``steps`` (what those of hard contact have added themselves) are the checks;
    ``tolerance`` is the share of the scale that an error may reach, and ``basis`` says where it
    comes from.
    """

    result: Run
    energy: Check
    momentum: tuple[Check, ...]
    loops: tuple[Check, ...]
    tolerance: float
    basis: str
    internal: tuple[Check, ...] = ()
    steps: tuple[Check, ...] = ()

    @property
    def t(self) -> Array:
        return self.result.t

    @property
    def kinetic(self) -> Array:
        return self.result.energy.kinetic

    @property
    def potential(self) -> Array:
        return self.result.energy.potential

    @property
    def actuator(self) -> Array:
        return self.result.work.actuator

    @property
    def dissipated(self) -> Array:
        return self.result.work.dissipated

    @property
    def own_dissipation(self) -> float | None:
        """J that the implicit steps have dissipated numerically, at the end of the run; negative
        where they added energy; None for other methods.
        """
        method = str(self.result.options.get("method", ""))
        return -float(self.error[-1]) if method in IMPLICIT else None

    @property
    def _by_steps(self) -> str:
        loss = self.own_dissipation
        if loss is None:
            return ""
        return f"{'added' if loss < 0.0 else 'dissipated'} {abs(loss):.6g} J"

    @property
    def error(self) -> Array:
        """e (T,) of the energy balance, J."""
        return self.energy.error

    @property
    def checks(self) -> tuple[Check, ...]:
        return (self.energy, *self.steps, *self.internal, *self.loops, *self.momentum)

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def verdict(self) -> str:
        """ "passed", or "failed" with the reason or the time, in a few words."""
        if self._too_long:
            return f"failed: {self._too_long}"
        at = self.first_break
        if at is None:
            return "passed"
        return f"failed at t = {at.time:.6g} s" + (f", body {at.body!r}" if at.body else "")

    @property
    def _too_long(self) -> str:
        """What steps themselves have added or dissipated, where that breaks the run and the balance
        closes otherwise; else empty.
        """
        for check in self.steps:
            if self.energy.passed and not check.passed and math.isfinite(check.largest):
                added = "added" if check.error[check.worst] > 0.0 else "took"
                work = f"{added} {check.largest:.3g} J"
                share = f"{100.0 * check.relative:.2g} % of {check.scale:.3g} J"
                return f"the steps themselves {work} ({share}); shorten the step"
        others = [check for check in self.checks if check is not self.energy]
        alone = not self.energy.passed and all(check.passed for check in others)
        worst = float(self.error[self.energy.worst])
        if self.own_dissipation is None or not alone or not -math.inf < worst < 0.0:
            return ""
        share = f"{100.0 * self.energy.relative:.2g} % of {self.energy.scale:.3g} J"
        return f"the steps dissipated {-worst:.3g} J ({share}); shorten the step"

    @cached_property
    def first_break(self) -> Break | None:
        """The first row at which a check breaks, and the body whose balance is worst by then;
        None for a run that passes.
        """
        broken = [(check.first, check) for check in self.checks if check.first is not None]
        if not broken:
            return None
        row, check = min(broken, key=lambda pair: pair[0])
        body, reason = None, "the states of this run are not states of the mechanism"
        if self._too_long:
            reason = self._too_long
        elif check not in self.loops:
            body, reason = blame(self.result, self.energy.error, row)
        return Break(check.name, row, float(self.t[row]), body, reason)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data for JSON; numbers that are not finite become None."""
        at, loops, wrenches = self.first_break, self.result.loops, self.result.wrenches
        ground: dict[str, Any] | None = None
        if (contacts := self.result.contacts) is not None:
            dissipated = _number(contacts.dissipated[-1])
            ground = {"stored": _ends(contacts.stored), "dissipated": dissipated}
        return {
            "passed": self.passed,
            "tolerance": self.tolerance,
            "basis": self.basis,
            "checks": [
                {
                    "quantity": check.name,
                    "unit": check.unit,
                    "passed": check.passed,
                    "largest_error": _number(check.largest),
                    "at": float(self.t[check.worst]),
                    "relative_error": _number(check.relative),
                    "scale": _number(check.scale),
                    "limit": _number(check.limit),
                }
                for check in self.checks
            ],
            "kinetic": _ends(self.kinetic),
            "potential": _ends(self.potential),
            "actuator_work": _number(self.actuator[-1]),
            "dissipated": _number(self.dissipated[-1]),
            "wrench_work": wrenches and _number(wrenches.work[-1]),
            "dissipated_by_steps": _number(self.own_dissipation),
            "ground": ground,
            "machine": machine_figures(self.result),
            "loop_gap": None if loops is None else loops.largest_gap,
            "singular_postures": self.result.stats.get("singular_postures", []),
            "constraint_power": None if loops is None else _number(np.abs(loops.power).max()),
            "first_break": at._asdict() if at else None,
        }

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        lines = [
            f"audit of {self.result.model.name!r}: {verdict} (tolerance {self.tolerance:.3g}: "
            f"{self.basis})"
        ]
        if self.result.status != "finished":
            lines.append(
                f"  the run ended at t = {self.t[-1]:.6g} s ({self.result.status}); audited is "
                "what was computed"
            )
        for check in self.checks:
            mark, at = "ok" if check.passed else "BROKEN", self.t[check.worst]
            lines.append(
                f"  {check.name:16} {mark:6}  largest error {check.largest:.3g} {check.unit} at "
                f"t = {at:.6g} s, {check.relative:.2g} of {check.scale:.4g} {check.unit}"
            )
        if not self.momentum:
            lines.append("  momentum         not conserved in this run, not checked")
        lines += [
            f"  {name} energy {x[0]:.6g} J at the start, {x[-1]:.6g} J at the end"
            for name, x in (("kinetic", self.kinetic), ("potential", self.potential))
        ]
        lines.append(
            f"  work of the actuators {self.actuator[-1]:.6g} J, dissipated "
            f"{self.dissipated[-1]:.6g} J"
        )
        if self.result.wrenches is not None:
            lines.append(f"  work of external wrenches {self.result.wrenches.work[-1]:.6g} J")
        if self._by_steps:
            lines.append(
                f"  the implicit steps themselves {self._by_steps}, not part of the balance"
            )
        if (contacts := self.result.contacts) is not None:
            lines.append(
                f"  in the ground {contacts.dissipated[-1]:.6g} J dissipated; "
                f"{contacts.stored[0]:.6g} J stored at the start, "
                f"{contacts.stored[-1]:.6g} J at the end"
            )
        lines += [f"  {line}" for line in machine_lines(self.result)]
        loops = self.result.loops
        if loops is not None:
            most = np.abs(loops.power).max()
            lines.append(f"  constraint forces have a power of {most:.2g} W at most")
        lines += [f"  {line}" for line in _dead_centres(self.result)]
        if (first := self.first_break) is not None:
            where = f"t = {first.time:.6g} s (row {first.row})"
            lines.append(f"  {first.quantity} first breaks at {where}: {first.reason}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"<b>audit of {escape(self.result.model.name)}: {escape(self.verdict)}</b>"
        return f"<div>{head}{audit_table(self)}</div>"


def audited(result: Run) -> Audit:
    """The audit of a run at the tolerance of its options, computed once and remembered with it."""
    if "audit" not in result.__dict__:
        result.__dict__["audit"] = audit(result)
    return result.__dict__["audit"]


def audit(result: Run, tolerance: float | None = None) -> Audit:
    """The audit of a run.

    An energy error is measured by the largest of |V - V(0)|, S, |W_act|, |W_ext|, |W_diss| and the
    kinetic energy that moved (``ramify.runs.audit_scales``: what spins or travels steadily does not
    count), and may reach ``tolerance`` times that, plus the rounding of the energies
    themselves. Momentum is measured by what the bodies exchanged. Where nothing but gravity acts
    along some axis, the energy without the motion of the centre of mass along it is checked too, so
    that the verdict is the same in every frame that moves steadily. What steps of hard contact have
    added themselves is counted, and fails beyond 1 % of the energy that moved.
    By default the tolerance follows from the integrator's: a step may miss by rtol, energy is
    quadratic in the rates, errors of n steps add up at worst, so 2 n rtol, with n at least 50,
    between 1e-12 and 1e-3; a method without rtol, or with a fixed step, gets 1e-3. Where the robot
    hardly moves, what atol allows in the same way is added (``Scales.by_errors``).

    Raises RamifyError for a tolerance that is not a positive number.
    """
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance > 0.0):
        raise RamifyError(
            f"tolerance {tolerance} must be finite and positive: a share of the energy that moved"
        )
    share, absolute, basis = allowed(result) if tolerance is None else (tolerance, 0.0, "as given")
    scales = Scales(result)
    energy = energy_check(result, scales, share, absolute)
    internal = internal_check(result, scales, share, absolute)
    momentum = momentum_checks(result, scales, share, absolute)
    steps = step_checks(result, energy, scales)
    return Audit(result, energy, momentum, loop_checks(result), share, basis, internal, steps)


def _dead_centres(result: Run) -> list[str]:
    """A line on the singular postures that the run has met, where there are any."""
    met = result.stats.get("singular_postures", [])
    times = ", ".join(f"{t:.6g} s" for t in met[:6]) + (", …" if len(met) > 6 else "")
    said = "the loops do not determine which branch it follows from there"
    return [f"the run meets a singular posture at t = {times}: {said}"] if met else []


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _ends(values: Array) -> tuple[float | None, float | None]:
    return _number(values[0]), _number(values[-1])


def audit_table(audit: Audit) -> str:
    """The checks of an audit and where the energy went."""
    rows = []
    for check in audit.checks:
        mark, word = ("good", "passed") if check.passed else ("bad", "failed")
        verdict = Markup(f'<span class="{mark}">{word}</span>')
        unit = pretty(check.unit)
        largest, at = f"{check.largest:.3g} {unit}", f"{audit.t[check.worst]:.5g} s"
        rows.append((check.name, verdict, largest, at, f"{check.relative:.2g}"))
    heads = ("conserved", "verdict", "largest error", "at", "of its scale")
    checks = html_table(heads, rows, right=(2, 3, 4))
    moved = {
        "kinetic energy": f"{audit.kinetic[0]:.6g} → {audit.kinetic[-1]:.6g} J",
        "potential energy": f"{audit.potential[0]:.6g} → {audit.potential[-1]:.6g} J",
        "work of the actuators": f"{audit.actuator[-1]:.6g} J",
        "dissipated": f"{audit.dissipated[-1]:.6g} J",
        "tolerance": f"{audit.tolerance:.3g} ({audit.basis})",
    }
    if audit.result.wrenches is not None:
        moved["work of external wrenches"] = f"{audit.result.wrenches.work[-1]:.6g} J"
    if audit._by_steps:
        moved["implicit steps"] = f"themselves {audit._by_steps}, not part of the balance"
    if lines := list(machine_lines(audit.result)):
        moved["machine"] = "; ".join(lines)
    if lines := _dead_centres(audit.result):
        moved["dead centres"] = lines[0]
    if not audit.momentum:
        moved["momentum"] = "not conserved in this run, not checked"
    if (first := audit.first_break) is not None:
        moved["first break"] = f"{first.quantity} at t = {first.time:.6g} s: {first.reason}"
    return checks + facts(moved)
