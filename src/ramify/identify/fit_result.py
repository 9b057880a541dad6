"""What a fit gives: parameters with their errors, verdicts, a robot, and how well it predicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError, RamifyError
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.consistent_links import ConsistentLinks, consistent_links
from ramify.identify.fit_validation import Validation, validation
from ramify.identify.least_squares import WeightedSolution, marginal_root
from ramify.identify.log_checks import Segments, segments
from ramify.identify.log_reader import read_log
from ramify.identify.motor_currents import TorqueConstants
from ramify.identify.regression import Delay, Regression, regression
from ramify.identify.unknowns import Unknowns
from ramify.lint.finding import Finding
from ramify.model.dynamic_parameters import dynamic_parameters, with_inertial_parameters
from ramify.model.elements import Friction
from ramify.model.robot import Robot

R = TypeVar("R", bound=Robot)


class Estimate(NamedTuple):
    """A base parameter: its leading unknown, the whole combination, value, standard error, value of
    the nominal robot, unit.
    """

    name: str
    group: str
    value: float
    error: float
    nominal: float
    unit: str

    @property
    def change(self) -> float:
        """The difference from the nominal robot in standard errors."""
        return (self.value - self.nominal) / self.error if self.error else np.inf


class ParameterDifference(NamedTuple):
    """A base parameter in two fits, and the difference in its standard errors."""

    name: str
    first: float
    second: float
    sigmas: float


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Generic[R]):
    """The result of ``rf.identify.fit``.

    ``nominal``: the robot that was given; ``delay``: by which torques are recorded later than
    coordinates; ``verdicts``: what was noticed, errors first; ``dropped``: parameters that were
    eliminated; ``torque_constants``: where the logs have currents.
    """

    nominal: R
    problem: Regression
    delay: Delay
    notes: tuple[Finding, ...]
    dropped: tuple[str, ...] = ()
    logs: tuple[Segments, ...] = ()
    torque_constants: TorqueConstants | None = None

    @property
    def base(self) -> BaseParameters:
        return self.problem.base

    @property
    def unknowns(self) -> Unknowns:
        return self.base.unknowns

    @property
    def band(self) -> float:
        """The cutoff of the filter, Hz."""
        return self.problem.cutoff

    @cached_property
    def solution(self) -> WeightedSolution:
        """The weighted least squares; the covariance includes the uncertainty of the delay and of
        the Stribeck speeds.
        """
        solution, problem = self.problem.solution, self.problem
        columns = []
        A, _, weights = problem.weighted()
        if self.delay.error > 0.0:
            h = 0.1 * min(part.part.dt for part in problem.parts)
            slope = problem.targets(problem.delay + h) - problem.targets(problem.delay - h)
            columns.append((slope / (2.0 * h))[problem.keep][:, None])
        if problem.speeds is not None:
            up = replace(problem, speeds=problem.speeds * 1.001)
            places = [
                self.base.columns.index(c)
                for c in self.unknowns.columns_of("stribeck")
                if c in self.base.columns
            ]
            slope = (up.X - problem.X)[problem.keep][:, places] / 1e-3 * solution.beta[places]
            columns.append(slope)
        if not columns:
            return solution
        extra = np.hstack(columns) * weights[:, None]
        C = np.zeros((0, A.shape[1])) if problem.knowledge is None else problem.knowledge[0]
        together = np.vstack([np.hstack([extra, A]), np.pad(C, ((0, 0), (extra.shape[1], 0)))])
        root = marginal_root(together, extra.shape[1])
        scale = np.linalg.norm(root, axis=0)
        inverse = np.linalg.pinv(root / scale, rcond=1e-12) / scale[:, None]
        return replace(solution, covariance=inverse @ inverse.T, root=root)

    @property
    def stribeck_speeds(self) -> dict[str, float]:
        """By drive, rad/s or m/s; empty without Stribeck friction."""
        if self.problem.speeds is None:
            return {}
        names = [self.nominal.velocities[j] for j in self.unknowns.drives]
        return dict(zip(names, self.problem.speeds.tolist(), strict=True))

    @property
    def parameters(self) -> tuple[Estimate, ...]:
        """The base parameters with their standard errors."""
        base, solution = self.base, self.solution
        rows = zip(
            base.short_names, base.names, solution.beta.tolist(), solution.errors.tolist(),
            base.nominal.tolist(), base.units, strict=True,
        )  # fmt: skip
        return tuple(Estimate(*row) for row in rows)

    @property
    def covariance(self) -> Array:
        """Of the base parameters, in the order of ``parameters``."""
        return self.solution.covariance

    @property
    def noise(self) -> dict[str, float]:
        """By joint, the standard deviation of the filtered torque that the fit leaves, N m or N; of
        several logs the mean.
        """
        by_joint: dict[str, list[float]] = {}
        for group, x in zip(self.problem.groups, self.problem.solution.noise.tolist(), strict=True):
            by_joint.setdefault(group.name, []).append(x)
        return {name: float(np.sqrt(np.mean(np.square(x)))) for name, x in by_joint.items()}

    @property
    def verdicts(self) -> tuple[Finding, ...]:
        """What was noticed, errors first."""
        order = {"error": 0, "warning": 1, "note": 2}
        unphysical = []
        if not any(note.level == "error" for note in self.notes):
            unphysical = _misfit(self)
        return tuple(sorted((*self.notes, *unphysical), key=lambda note: order[note.level]))

    @property
    def passed(self) -> bool:
        """Whether no verdict is an error."""
        return not any(verdict.level == "error" for verdict in self.verdicts)

    @cached_property
    def links(self) -> ConsistentLinks:
        """All unknowns, such that every body is one that matter could have."""
        return consistent_links(self.base, self.solution.root, self.solution.beta)

    @property
    def robot(self) -> R:
        """The robot with identified bodies, rotors and friction. Raises ModelError where a verdict
        is an error.
        """
        errors = [str(verdict) for verdict in self.verdicts if verdict.level == "error"]
        if errors:
            raise ModelError(
                "the fit is not to be trusted, so it has no robot: " + "; ".join(errors[:3])
            )
        return self._robot

    @cached_property
    def _robot(self) -> R:
        return identified_robot(
            self.nominal, self.unknowns, self.links.unknowns, self.problem.speeds
        )

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The joint forces (..., nv) of a motion by the identified robot, with friction, without
        offsets of sensors.
        """
        robot = self._robot
        from ramify.kernels.queries import regressor

        return regressor(robot, q, v, a, drives=True) @ dynamic_parameters(robot)

    def validate(self, log: object, units: str | None = None) -> Validation:
        """How well the parameters predict the torques of another log."""
        parts = segments(self.nominal, read_log(self.nominal, log, units))
        other = regression(self.base, [parts], self.band, self.problem.delay)
        other = replace(other, speeds=self.problem.speeds)
        return validation(other, self.problem.solution.beta, self.noise)

    def compare(self, other: Fit[R]) -> tuple[ParameterDifference, ...]:
        """The base parameters of two fits of one robot beside each other, the largest difference
        first. Raises RamifyError where they have no parameter in common.
        """
        mine = {x.group: x for x in self.parameters}
        both = [(mine[y.group], y) for y in other.parameters if y.group in mine]
        if not both:
            raise RamifyError("the two fits have no base parameter in common")
        rows = [
            ParameterDifference(
                x.name, x.value, y.value, (y.value - x.value) / np.hypot(x.error, y.error)
            )
            for x, y in both
        ]
        return tuple(sorted(rows, key=lambda row: -abs(row.sigmas)))

    def report(self, path: str | Path, validate: object = None) -> Path:
        """Write the fit as one HTML file: verdicts, torques, residuals, parameters; ``validate``:
        another log, which the page shows beside.
        """
        from ramify.identify.fit_report import write_fit_report

        return write_fit_report(self, path, validate)

    def __str__(self) -> str:
        from ramify.identify.fit_tables import fit_text

        return fit_text(self)

    def __repr__(self) -> str:
        state = "passed" if self.passed else "not to be trusted"
        return (
            f"<ramify.identify.Fit of {self.nominal.name!r}: {len(self.base)} parameters, {state}>"
        )

    def _repr_html_(self) -> str:
        from ramify.identify.fit_tables import fit_html

        return fit_html(self)


def _misfit(fit: Fit[R]) -> list[Finding]:
    """A verdict where no body of matter has the base parameters."""
    links, most = fit.links, max(0.5 * len(fit.base), 10.0)
    if links.chi2_increase <= most:
        return []
    text = (
        f"no robot made of matter has these base parameters: chi2 grows by "
        f"{links.chi2_increase:.3g} for {len(fit.base)} parameters; torques, signs or units of the "
        "log are wrong, or the kinematics of the file"
    )
    return [Finding("error", fit.nominal.name, "unphysical", text)]


def identified_robot(nominal: R, unknowns: Unknowns, values: Array, speeds: Array | None) -> R:
    """The robot with these unknowns."""
    parameters = np.array(dynamic_parameters(nominal))
    nv = nominal.nv
    parameters[: unknowns.bodies] = values[: unknowns.bodies]
    drives = list(unknowns.drives)
    for i, kind in enumerate(("armature", "damping", "coulomb")):
        if kind in unknowns.kinds:
            places = unknowns.bodies + i * nv + np.array(drives)
            parameters[places] = values[unknowns.columns_of(kind)]
    robot = with_inertial_parameters(nominal, parameters)
    if not {"asymmetric", "stribeck"} & {unknowns.friction}:
        return robot
    dry = values[unknowns.columns_of("coulomb")]
    skew = values[unknowns.columns_of("offset")] if unknowns.friction == "asymmetric" else 0.0 * dry
    skew = np.clip(skew, -0.99 * dry, 0.99 * dry)
    frictions: dict[int, Friction] = {}
    for k, j in enumerate(drives):
        law = Friction(float(dry[k] + skew[k]), float(dry[k] - skew[k]))
        if unknowns.friction == "stribeck" and speeds is not None:
            excess = max(float(values[unknowns.columns_of("stribeck")][k]), 0.0)
            law = replace(
                law, static=float(dry[k]) + excess, stribeck_speed=float(speeds[k]),
                stribeck="exponential",
            )  # fmt: skip
        frictions[j] = law
    bodies, start = [], 0
    for body in robot.bodies:
        elements = tuple(
            replace(e, friction=frictions[start + i]) if start + i in frictions else e
            for i, e in enumerate(body.joint.machine)
        )
        start += body.joint.dof
        bodies.append(replace(body, joint=replace(body.joint, elements=elements)))
    return replace(robot, bodies=tuple(bodies))
