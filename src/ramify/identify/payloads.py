"""What the hand holds: mass, mass centre and inertia of a payload, from a log with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.identify.consistent_links import MAP, pseudo_inertia, ten_of
from ramify.identify.fit_result import Fit
from ramify.identify.least_squares import solve_least_squares
from ramify.identify.log_checks import segments
from ramify.identify.log_reader import read_log
from ramify.identify.regression import regression
from ramify.lint.finding import Finding
from ramify.model.dynamic_parameters import PER_BODY
from ramify.model.edits import with_payload
from ramify.model.robot import Robot

R = TypeVar("R", bound=Robot)
_UNSEEN: Final = 1e-3  # remainder of a normalised column beside the others


@dataclass(frozen=True, eq=False, repr=False)
class Payload(Generic[R]):
    """A body on a link: ``mass`` (kg), ``com`` (3,) in m and ``inertia`` (3, 3) in kg m^2 about it,
    in the frame of the ``link``, each with its standard error; ``ten`` and ``covariance`` are m,
    m c, Ixx Iyy Izz Ixy Iyz Ixz about the link's origin.
    """

    fit: Fit[R]
    link: str
    ten: Array
    covariance: Array
    verdicts: tuple[Finding, ...]

    @property
    def mass(self) -> float:
        return float(self.ten[0])

    @property
    def com(self) -> Array:
        return np.asarray(self.ten[1:4] / self.ten[0])

    @property
    def inertia(self) -> Array:
        return _about_centre(self.ten)

    @property
    def mass_error(self) -> float:
        return float(np.sqrt(self.covariance[0, 0]))

    @property
    def com_error(self) -> Array:
        slope = np.zeros((3, PER_BODY))
        slope[:, 0] = -self.com / self.mass
        slope[:, 1:4] = np.eye(3) / self.mass
        return np.sqrt(np.diag(slope @ self.covariance @ slope.T))

    @property
    def inertia_error(self) -> Array:
        """(3, 3), by the derivative of the inertia by the ten numbers."""
        h = 1e-6 * np.maximum(np.abs(self.ten), 1e-3)
        steps = np.eye(PER_BODY) * h
        slope = np.stack(
            [(_about_centre(self.ten + s) - _about_centre(self.ten - s)).ravel() for s in steps],
            axis=1,
        ) / (2.0 * h)
        return np.sqrt(np.maximum(np.diag(slope @ self.covariance @ slope.T), 0.0)).reshape(3, 3)

    @property
    def passed(self) -> bool:
        """Whether no verdict is an error."""
        return not any(verdict.level == "error" for verdict in self.verdicts)

    @property
    def robot(self) -> R:
        """The identified robot with the payload. Raises ModelError where a verdict is an error."""
        errors = [str(verdict) for verdict in self.verdicts if verdict.level == "error"]
        if errors:
            raise ModelError("the payload is not to be trusted: " + "; ".join(errors[:3]))
        return with_payload(self.fit.robot, self.link, self.mass, self.com, self.inertia)

    def __str__(self) -> str:
        com = ", ".join(
            f"{1e3 * x:.3f} ± {1e3 * e:.2g}" for x, e in zip(self.com, self.com_error, strict=True)
        )
        moments = ", ".join(
            f"{name} {self.inertia[i, j]:.4g} ± {self.inertia_error[i, j]:.2g}"
            for name, i, j in (
                ("xx", 0, 0),
                ("yy", 1, 1),
                ("zz", 2, 2),
                ("xy", 0, 1),
                ("yz", 1, 2),
                ("xz", 0, 2),
            )
        )
        return "\n".join(
            [
                f"Payload on {self.link}: {'passed' if self.passed else 'NOT to be trusted'}",
                *(f"  {verdict}" for verdict in self.verdicts),
                f"mass {self.mass:.5g} ± {self.mass_error:.2g} kg",
                f"mass centre ({com}) mm",
                f"inertia about it: {moments} kg m^2",
            ]
        )

    def __repr__(self) -> str:
        return f"<ramify.identify.Payload on {self.link!r}: {self.mass:.4g} kg>"


def _about_centre(ten: Array) -> Array:
    m, h = ten[0], ten[1:4]
    xx, yy, zz, xy, yz, xz = ten[4:]
    c = h / m
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.asarray(tensor - m * (c @ c * np.eye(3) - np.outer(c, c)))


def payload(fit: Fit[R], log: object, link: str, units: str | None = None) -> Payload[R]:
    """The payload on a link from a log with it, beside the fit of the robot without it: one least
    squares of both, so that what the fit leaves uncertain counts.

    log: as for ``fit``; link: of the robot, also a merged one or a frame; units: "rad" or "deg" of
    the angles. Raises ModelError for an unknown link or one of the base.
    """
    robot = fit.nominal
    carrier = robot.attachment(link)
    if carrier.body < 0:
        raise ModelError(f"link {link!r} is part of the base, where a payload does not act")
    parts = segments(robot, read_log(robot, log, units))
    loaded = regression(fit.base, [parts], fit.band, fit.problem.delay)
    loaded = replace(loaded, speeds=fit.problem.speeds)
    here = slice(PER_BODY * carrier.body, PER_BODY * (carrier.body + 1))
    move = _moved(carrier.frame.rotation, carrier.frame.position)
    extra = loaded.rows_of([x[..., here] @ move for x in loaded.all_columns])
    keep, n = loaded.keep, len(fit.base)
    X = np.hstack([loaded.X, extra])[keep]
    root = fit.solution.root
    known = np.hstack([root, np.zeros((len(root), PER_BODY))]), root @ fit.solution.beta
    solution = solve_least_squares(
        X, loaded.y[keep], loaded.group[keep], knowledge=known, groups=len(loaded.groups)
    )
    ten, covariance = solution.beta[n:], solution.covariance[n:, n:]
    return Payload(
        fit,
        link,
        ten,
        covariance,
        (*parts.notes, *_verdicts(fit, link, ten, covariance, extra[keep])),
    )


def _moved(R: Array, p: Array) -> Array:
    """(10, 10): the ten numbers in the body's frame of ten in the frame (R, p)."""
    H = np.eye(4)
    H[:3, :3], H[:3, 3] = R, p
    J = MAP.T.reshape(PER_BODY, 4, 4)
    return np.asarray(ten_of(H @ J @ H.T).T)


def _verdicts(
    fit: Fit[R], link: str, ten: Array, covariance: Array, columns: Array
) -> list[Finding]:
    out = []
    if not fit.passed:
        text = "the fit of the robot without the payload is not to be trusted"
        out.append(Finding("error", link, "fit", text))
    error = float(np.sqrt(covariance[0, 0]))
    size = np.linalg.norm(columns, axis=0)
    if (size <= 1e-9 * size.max(initial=0.0)).any() or error > 0.3 * abs(ten[0]):
        text = f"the motion does not show the payload: its mass is {ten[0]:.3g} ± {error:.2g} kg"
        out.append(Finding("error", link, "poor-motion", text))
    elif ten[0] < -3.0 * error:
        text = f"the mass is {ten[0]:.3g} kg: the logs with and without the payload are exchanged"
        out.append(Finding("error", link, "negative-mass", text))
    elif np.linalg.eigvalsh(pseudo_inertia(ten)).min() < 0.0:
        text = "no body of matter has this inertia; within its errors it may: see inertia_error"
        out.append(Finding("warning", link, "inertia", text))
    return out
