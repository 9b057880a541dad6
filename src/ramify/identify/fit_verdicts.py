"""Verdicts on a fit, by name: what it shows of the robot and what is wrong with the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.explanations import explanation
from ramify.identify.log_checks import Segments, encoder_step
from ramify.identify.regression import Band, Delay, Regression
from ramify.lint.finding import Finding, Level
from ramify.model.dynamic_parameters import PER_BODY
from ramify.model.units import robot_units

UNMODELLED: Final = 0.4
"""Autocorrelation of residuals beyond which something acts that the unknowns do not have."""
WEAK: Final = 0.3
_FAR: Final = 2.5  # times the nominal robot's torque: no file is that wrong
_FAR_ALONE: Final = 8.0  # the same of a single joint, as of a small wrist
_ALIKE: Final = 0.5  # share of a torque's variation that the nominal robot must explain
_SURE: Final = 6.0  # standard errors
_DRIFT: Final = 0.04  # change of friction during a log, as a share
_EXPLAINED: Final = ("sign", "gear", "drift", "swapped", "gravity")
"""Verdicts that explain residuals."""
_LOUD: Final = 0.2  # noise over torque beyond which an encoder hides it
_COARSE: Final = 5.0  # Hz: a narrower band is a coarse encoder's


def verdicts(
    problem: Regression, delay: Delay, band: Band, hidden: Sequence[str], logs: Sequence[Segments]
) -> list[Finding]:
    """All verdicts on a fit but those on its logs alone."""
    findings = [
        *_poor(problem, hidden),
        *_encoder(problem, band, logs),
        *_late(problem, delay),
        *_scales(problem),
        *_negative(problem),
        *_drift(problem),
        *_unseen(problem.base),
        *_weak(problem),
    ]
    others = list(_unmodelled(problem, findings))
    if any(finding.code in _EXPLAINED for finding in others):
        findings = [finding for finding in findings if finding.code != "negative-friction"]
    return [*findings, *others]


def _poor(problem: Regression, hidden: Sequence[str]) -> Iterator[Finding]:
    unknowns = problem.base.unknowns
    rates = np.concatenate([part.driven_rates for part in problem.parts])
    for k, j in enumerate(unknowns.drives):
        if float(np.abs(rates[:, k]).max()) < 1e-3:
            text = "does not move in these logs, so that nothing of its drive is seen"
            yield Finding("warning", unknowns.robot.velocities[j], "poor-motion", text)
    if hidden:
        some = ", ".join(hidden[:6]) + (" …" if len(hidden) > 6 else "")
        level: Level = (
            "error" if len(hidden) > 0.25 * (len(hidden) + len(problem.base)) else "warning"
        )
        text = (
            f"the motion is too poor: {len(hidden)} parameters cannot be told from others ({some});"
            " the groups show with which; move all joints together, faster, see rf.identify.excite"
        )
        yield Finding(level, unknowns.robot.name, "poor-motion", text)


def _encoder(problem: Regression, band: Band, logs: Sequence[Segments]) -> Iterator[Finding]:
    robot = problem.base.unknowns.robot
    steps = [
        encoder_step(log.parts[0].q[:, i])
        for log in logs[:1]
        for i in robot.layout.plain_q
        if np.isfinite(log.parts[0].q[:, i]).all()
    ]
    step = max(steps, default=0.0)
    if not step or not (band.spoilt or (band.narrow and problem.cutoff <= _COARSE)):
        return
    bits = f"{np.log2(2.0 * np.pi / step):.1f} bits per turn"
    if not band.spoilt:
        text = f"the encoder is coarse ({bits}): the band is narrowed to {problem.cutoff:g} Hz"
        yield Finding("warning", robot.name, "encoder", text)
        return
    sizes = np.sqrt(np.bincount(problem.group, problem.y**2) / np.bincount(problem.group))
    loud = problem.solution.noise > _LOUD * np.maximum(sizes, 1e-300)
    text = f"the encoder is too coarse ({bits}) for the accelerations of this motion"
    ending = "; errors are large" if not loud.any() else "; its noise hides the torques"
    yield Finding("error" if loud.any() else "warning", robot.name, "encoder", text + ending)


def _late(problem: Regression, delay: Delay) -> Iterator[Finding]:
    dt = min(part.part.dt for part in problem.parts)
    reach = min((part.pad - 1) * part.part.dt for part in problem.parts)
    name, size, error = problem.base.unknowns.robot.name, abs(delay.value), delay.error
    if not error or size <= max(4.0 * error, 0.2 * dt):
        return
    which = "later" if delay.value > 0.0 else "earlier"
    text = f"torques are recorded {1e3 * size:.3g} ± {1e3 * error:.2g} ms {which} than coordinates"
    if size > 0.95 * reach:
        text += f", or more: {1e3 * reach:.3g} ms is the most that is searched; align the log"
        yield Finding("error", name, "delay", text)
    elif abs(size - 0.5 * dt) <= max(3.0 * error, 0.1 * dt):
        text += ": half a sample, as of torques that are held between samples; corrected"
        yield Finding("note", name, "half-sample", text)
    else:
        yield Finding("warning", name, "delay", f"{text}; corrected")


def nominal_scales(problem: Regression) -> dict[str, tuple[float, float]]:
    """By row: the factor on the nominal robot's torque that fits best beside friction and offset,
    and its standard error; rows which the nominal torque does not resemble are left out.
    """
    unknowns = problem.base.unknowns
    pi = np.array(unknowns.nominal)
    pi[unknowns.bodies :] = 0.0
    pi[unknowns.columns_of("armature")] = unknowns.nominal[unknowns.columns_of("armature")]
    torque = problem.per_part(problem.rows_of(problem.all_columns) @ pi)
    targets = problem.per_part(problem.y)
    out: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(group.name for group in problem.groups):
        x, y, beside = [], [], []
        for part, model_torque, target in zip(problem.parts, torque, targets, strict=True):
            if name not in part.names:
                continue
            r = part.names.index(name)
            keep = part.keep[:, r]
            x.append(model_torque[keep, r])
            y.append(target[keep, r])
            j = part.rows[r]
            extra = [np.ones(int(keep.sum()))]
            if j in unknowns.drives:
                k = unknowns.drives.index(j)
                extra += [part.v[keep, j], part.sign[keep, k], part.a[keep, j]]
            beside.append(np.column_stack(extra))
        answer = _slope(np.concatenate(x), np.concatenate(y), np.concatenate(beside))
        if answer is not None:
            out[name] = answer
    return out


def _slope(x: Array, y: Array, beside: Array) -> tuple[float, float] | None:
    if len(y) < 20 or not y.any():
        return None
    Q = np.linalg.qr(beside)[0]
    x_left, y_left = x - Q @ (Q.T @ x), y - Q @ (Q.T @ y)
    if not x_left.any():
        return None
    along = float(x_left @ y_left)
    if along * along < _ALIKE * float(x_left @ x_left) * float(y_left @ y_left):
        return None
    scale = along / float(x_left @ x_left)
    error = float(
        np.linalg.norm(y_left - scale * x_left) / np.linalg.norm(x_left) / np.sqrt(len(y))
    )
    return scale, error


def _scales(problem: Regression) -> Iterator[Finding]:
    """Torques of another sign or size than those of the nominal robot."""
    scales = nominal_scales(problem)
    sure = {name: s for name, (s, e) in scales.items() if abs(s) > _SURE * e}
    if not sure:
        return
    robot, usual = problem.base.unknowns.robot, float(np.median(list(sure.values())))
    if len(sure) > 1 and sum(s < -0.3 for s in sure.values()) > 0.6 * len(sure):
        text = (
            "the torques have the opposite sign of the nominal robot's: they act on the motor, or "
            "gravity points the other way"
        )
        yield Finding("error", robot.name, "sign", text)
        return
    if all(s > _FAR for s in sure.values()) or all(s < 1.0 / _FAR for s in sure.values()):
        text = (
            f"the torques are {usual:.3g} times those of the nominal robot: gear ratios or torque "
            "constants are forgotten, or the unit is not N m"
        )
        yield Finding("error", robot.name, "gear", text)
        return
    for name, s in sure.items():
        if s < -0.6 and _brakes_backward(problem, name):
            text = (
                f"the torque is {s:.3g} times that of the nominal robot: its sign, or that of q, "
                "is wrong"
            )
            yield Finding("error", name, "sign", text)
        elif s > _FAR_ALONE or 0.0 < s < 1.0 / _FAR_ALONE:
            text = (
                f"the torque is {s:.3g} times that of the nominal robot: a gear ratio or a torque "
                "constant is forgotten, or the unit is not N m"
            )
            yield Finding("error", name, "gear", text)


def _brakes_backward(problem: Regression, name: str) -> bool:
    """Whether the friction of a joint drives it, as where the sign of its torque is wrong."""
    base, solution, unknowns = problem.base, problem.solution, problem.base.unknowns
    j = unknowns.robot.velocities.index(name)
    if j not in unknowns.drives:
        return False
    k = unknowns.drives.index(j)
    for kind in ("coulomb", "damping"):
        columns = unknowns.columns_of(kind)
        if columns and columns[k] in base.columns:
            i = base.columns.index(columns[k])
            return bool(solution.beta[i] < -3.0 * solution.errors[i])
    return False


def _negative(problem: Regression) -> Iterator[Finding]:
    base, solution = problem.base, problem.solution
    place = {c: i for i, c in enumerate(base.columns)}
    unknowns = base.unknowns
    for k, j in enumerate(unknowns.drives):
        name, below = unknowns.robot.velocities[j], []
        for kind in ("armature", "damping", "coulomb"):
            columns = unknowns.columns_of(kind)
            i = place.get(columns[k]) if columns else None
            alone = i is not None and np.count_nonzero(base.grouping[i]) == 1
            if alone and solution.beta[i] < -4.0 * solution.errors[i]:
                below.append((kind, float(solution.beta[i])))
        if len(below) > 1:
            text = "friction and rotor are negative: the sign of the torque is wrong"
            yield Finding("error", name, "sign", text)
        elif below:
            kind, value = below[0]
            text = (
                f"{kind} is negative ({value:.3g}), as no machine's: torque or coordinate are wrong"
            )
            yield Finding("error", name, "negative-friction", text)


def _drift(problem: Regression) -> Iterator[Finding]:
    """Friction that changes during a log, as while warming up."""
    unknowns, base = problem.base.unknowns, problem.base
    kind = next((k for k in ("coulomb", "damping") if k in unknowns.kinds), None)
    if kind is None:
        return
    columns = [c for c in unknowns.columns_of(kind) if c in base.columns]
    if not columns:
        return
    changing = []
    for part, of_part in zip(problem.parts, problem.all_columns, strict=True):
        since = (part.t - part.t.mean()) / max(float(np.ptp(part.t)), 1e-9)
        changing.append(of_part[..., columns] * since[:, None, None])
    A, y, weights = problem.weighted()
    extra = problem.rows_of(changing)[problem.keep] * weights[:, None]
    whole = np.hstack([A, extra])
    beta, errors = _solved(whole, y)
    residuals = y - whole @ beta
    spread = max(float(np.sqrt(np.mean(residuals**2))), 1e-12)
    for n, c in enumerate(columns):
        change, error = float(beta[len(base) + n]), float(errors[len(base) + n]) * spread
        mean = float(beta[base.columns.index(c)])
        share = change / mean if mean else 0.0
        if abs(change) > _SURE * error and abs(share) > _DRIFT:
            joint = unknowns.robot.velocities[
                unknowns.drives[list(unknowns.columns_of(kind)).index(c)]
            ]
            text = (
                f"{kind} friction changes by {100 * share:+.0f} % during the log, as while warming "
                "up; record when warm, or fit shorter logs"
            )
            yield Finding("error", joint, "drift", text)


def _solved(A: Array, y: Array) -> tuple[Array, Array]:
    """Least squares with the errors for unit noise."""
    scale = np.linalg.norm(A, axis=0)
    scale[scale == 0.0] = 1.0
    inverse = np.linalg.pinv(A / scale, rcond=1e-10)
    return inverse @ y / scale, np.linalg.norm(inverse, axis=1) / scale


def _unseen(base: BaseParameters) -> Iterator[Finding]:
    unknowns = base.unknowns
    for b, body in enumerate(unknowns.robot.bodies):
        never = sum(PER_BODY * b <= c < PER_BODY * (b + 1) for c in base.unseen)
        if never:
            text = f"{never} of its {PER_BODY} parameters never act on a measured force"
            yield Finding("note", body.name, "unseen", text)


def _weak(problem: Regression) -> Iterator[Finding]:
    solution = problem.solution
    relative = solution.errors / np.maximum(np.abs(solution.beta), 1e-300)
    weak = [n for n, x in zip(problem.base.short_names, relative, strict=True) if x > WEAK]
    if weak:
        some = ", ".join(weak[:6]) + (" …" if len(weak) > 6 else "")
        count = f"{len(weak)} of {len(problem.base)} parameters"
        text = f"{count} have errors above {100 * WEAK:.0f} %: {some}"
        yield Finding("note", problem.base.unknowns.robot.name, "weak", text)


def _unmodelled(problem: Regression, findings: Sequence[Finding]) -> Iterator[Finding]:
    """What else would explain residuals that are not noise."""
    torque = {}
    for name in dict.fromkeys(group.name for group in problem.groups):
        numbers = [i for i, group in enumerate(problem.groups) if group.name == name]
        rows = np.isin(problem.group, numbers)
        torque[name] = float(np.sqrt(np.mean(problem.y[rows] ** 2)))
    noise = dict.fromkeys(torque, 0.0)
    for group, x in zip(problem.groups, problem.solution.noise.tolist(), strict=True):
        noise[group.name] = max(noise[group.name], x)
    doubtful = {
        name: x
        for name, x in problem.autocorrelation.items()
        if x > UNMODELLED and noise[name] > 1e-6 * max(torque.values())
    }
    if not doubtful:
        return
    said = any(f.code in _EXPLAINED for f in findings)
    cause = None if said else explanation(problem)
    if cause is not None:
        yield cause
    worst = max(doubtful, key=lambda name: doubtful[name])
    text = (
        f"residuals of {', '.join(doubtful)} follow the motion (autocorrelation "
        f"{doubtful[worst]:.2f}): something acts that the unknowns do not have"
    )
    explained = cause is not None or any(f.level == "error" for f in findings)
    yield Finding(
        "error", worst, "unmodelled", f"{text}; see the other verdicts" if explained else text
    )


def torque_unit(problem: Regression, name: str) -> str:
    """The unit of a row's force."""
    robot = problem.base.unknowns.robot
    return robot_units(robot)["tau"][robot.velocities.index(name)]
