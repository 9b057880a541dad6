"""The impulses of one step with hard contact, by Newton's method on an augmented Lagrangian, over
any scalar.

Every row has a multiplier l and a small compliance R. The impulse of a row at velocity u is

    g = l + (target - u) / R, within its bounds;

a contact's tangential impulse lies within the disk of radius rho = friction times the normal
impulse. F(w) = A w - r - J' g(w) is the gradient of a convex function of w as long as l and rho
stay as they are; Newton's method finds its zero. Then l and rho are replaced by g and the friction
of the new normal impulse, until nothing changes any more: Signorini's and Coulomb's laws then hold
exactly, whatever R is.

A solution is three texts: ``direction`` (residual, update of l and rho, Newton's direction),
``search`` along it, until it is done, and ``advance``; they repeat while the step is ``open``. They
are run on numbers, on batches, and inside compiled code, where lanes are robots: a lane that is
done keeps its values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ramify.contact.ground import TINY
from ramify.contact.hard_system import ContactRows, Sparse, System
from ramify.core.scalar import Scalar, absolute, maximum, select, sqrt
from ramify.dynamics.linear import dot
from ramify.dynamics.tree_factor import Entries, TreeFactors, symmetric_times

OPEN, STICK, SLIDE = 0.0, 1.0, 2.0
"""Modes of a contact."""
_SLOPE: Final = 0.05
"""Share of the first slope at which a search along a direction ends."""
_SEARCHES: Final = 30.0
_RELAXED: Final = 3.5
"""Updates after which rho moves only half as far where it turns back."""
_STIFFER: Final = 12.0
"""Passes during which compliances may become smaller."""


@dataclass(frozen=True)
class Rules:
    """When a solution is good enough. ``speed``: m/s by which a row of a contact may be missed, and
    a hundred times the m/s or rad/s of any other row; ``impulse``: share of the largest normal
    impulse by which impulses may still change, in fast motion (a hundredth of that at rest);
    ``passes``, ``updates``: the largest numbers of both; ``final``: never looser after many
    updates; ``norm``: of the residual, as a share of a step's gravity impulse.
    """

    speed: float = 1e-4
    impulse: float = 1e-2
    passes: float = 60.0
    updates: float = 15.0
    final: bool = False
    norm: float = 1e-6


def rules_of(tolerance: float, passes: float) -> Rules:
    """The rules of a tolerance in m/s; one below 1e-4 also makes impulses as many times closer."""
    share = min(1.0, tolerance / 1e-4)
    return Rules(
        tolerance, 1e-2 * share, passes, max(15.0, 0.25 * passes), share < 0.1,
        1e-6 * max(share, 1e-4),
    )  # fmt: skip


@dataclass
class Weights:
    """Numbers of a robot at its reference posture: the compliance R of each slot, the largest
    inverse inertia ``most`` (1/kg) of one, and ``weight`` = sqrt(m) g h, the norm of a step's
    gravity impulse.
    """

    R: Sequence[Scalar]
    most: Scalar
    weight: Scalar


STATE: Final = (
    "w", "multipliers", "rho", "relax", "lags", "R", "stiff", "misses", "modes", "impulses",
    "passes", "updates", "open",
    "failed", "residual", "contact_modes",
)  # fmt: skip
"""What a solution carries from pass to pass."""
SEARCH: Final = ("d", "u", "du", "line", "alpha", "low", "high", "tries", "searching")
"""What a search along a direction carries; ``line``: d' (A w - r), d' A d and the first slope."""

SolverState = dict[str, list[Any]]


def most(values: Sequence[Scalar]) -> Scalar:
    """The largest of some numbers, none negative."""
    out: Scalar = 0.0
    for x in values:
        out = maximum(x, out)
    return out


@dataclass(frozen=True)
class Impulses:
    """Of all rows: impulses, their slopes -dg/du (of a contact: normal, and the tangential block
    xx, yy, xy; of a single row one number), and the mode of every slot.
    """

    g: list[Scalar]
    slopes: list[tuple[Scalar, ...]]
    modes: list[Scalar]


class HardSolver:
    """The texts for systems of n velocities with these slots."""

    def __init__(self, n: int, frictions: Sequence[float], singles: int, rules: Rules) -> None:
        self.n, self.frictions, self.singles, self.rules = n, tuple(frictions), singles, rules

    @property
    def contacts(self) -> int:
        return len(self.frictions)

    @property
    def rows(self) -> int:
        return 3 * self.contacts + self.singles

    @property
    def slots(self) -> int:
        return self.contacts + self.singles

    def sizes(self) -> dict[str, int]:
        """The number of scalars of each part of the state."""
        one = dict.fromkeys((*STATE, *SEARCH), 1)
        return one | {
            "relax": self.contacts, "lags": self.contacts,
            "w": self.n, "multipliers": self.rows, "rho": self.contacts, "R": self.slots,
            "stiff": self.slots, "misses": self.slots, "modes": self.slots, "impulses": self.rows,
            "contact_modes": self.contacts,
            "d": self.n, "u": self.rows, "du": self.rows, "line": 3,
        }  # fmt: skip

    def start(
        self, v: Sequence[Scalar], impulses: Sequence[Scalar], weights: Weights
    ) -> SolverState:
        """The state before the first pass: from the impulses of the step before."""
        rho = [
            mu * maximum(impulses[3 * c], 0.0) for c, mu in enumerate(self.frictions)
        ]  # fmt: skip
        o: Scalar = 0.0
        return {
            "w": list(v), "multipliers": list(impulses), "rho": rho, "R": list(weights.R),
            "stiff": [1.0 / r for r in weights.R], "relax": [1.0] * self.contacts,
            "lags": [o] * self.contacts,
            "misses": [1e30] * self.slots, "modes": [-1.0] * self.slots,
            "impulses": list(impulses), "passes": [o], "updates": [o], "open": [1.0],
            "failed": [o], "residual": [o], "contact_modes": [o] * self.contacts,
        }  # fmt: skip

    # ---- the law ----

    def impulses(
        self, system: System, multipliers: Sequence[Scalar], rho: Sequence[Scalar],
        stiff: Sequence[Scalar], u: Sequence[Scalar],
    ) -> Impulses:  # fmt: skip
        """g of all rows at their velocities u; stiff: 1 / R."""
        g: list[Scalar] = []
        slopes: list[tuple[Scalar, ...]] = []
        modes: list[Scalar] = []
        for c, contact in enumerate(system.contacts):
            k = stiff[c]
            normal = multipliers[3 * c] + (contact.least - u[3 * c]) * k
            pressed = normal > 0.0
            x, y = (multipliers[3 * c + i] - u[3 * c + i] * k for i in (1, 2))
            along = _friction(contact, rho[c], k, x, y)
            g += [select(pressed, normal, 0.0), *along.g]
            slopes.append((select(pressed, k, 0.0), *along.slopes))
            modes.append(select(pressed, select(along.sticks, STICK, SLIDE), OPEN))
        for s, row in enumerate(system.singles, 3 * self.contacts):
            k = stiff[s - 2 * self.contacts]
            x = multipliers[s] + (row.target - u[s]) * k
            mode: Scalar = STICK
            slope = k
            if row.low is not None:
                below = x < row.low
                x, slope = select(below, row.low, x), select(below, 0.0, slope)
                mode = select(below, OPEN, mode)
            if row.high is not None:
                above = x > row.high
                x, slope = select(above, row.high, x), select(above, 0.0, slope)
                mode = select(above, SLIDE, mode)
            g.append(x)
            slopes.append((slope,))
            modes.append(mode)
        return Impulses(g, slopes, modes)

    # ---- one pass ----

    def direction(self, system: System, weights: Weights, state: SolverState) -> SolverState:
        """Residual and convergence at w, the update of l and rho where the inner problem is solved,
        and Newton's direction after it. What is done is computed once more and stays as it is.
        """
        w, old, rows = state["w"], state["multipliers"], system.rows
        u = [row_rate(row, w) for row in rows]
        now = self.impulses(system, old, state["rho"], state["stiff"], u)
        momentum = [a - b for a, b in zip(symmetric_times(system.A, w), system.r, strict=True)]
        judged = self._judge(system, weights, state, now, momentum)
        stays = maximum(1.0 - state["open"][0], judged.converged)
        update = judged.solved * (1.0 - stays)
        changed = update > 0.5
        new = self._updated(state, now, judged, update)
        after = self.impulses(system, new["multipliers"], new["rho"], new["stiff"], u)
        F = residual(rows, momentum, after.g)
        H = stiffened(system, after)
        d = [-x for x in TreeFactors(self.n, H).solve(F)]
        du = [row_rate(row, d) for row in rows]
        line = [dot(d, momentum), dot(d, symmetric_times(system.A, d))]
        first = line[0] - dot(du, after.g)
        passes, updates = state["passes"][0], state["updates"][0] + update
        spent = maximum(
            select(passes >= self.rules.passes - 0.5, 1.0, 0.0),
            select(updates >= self.rules.updates + 0.5, 1.0, 0.0),
        )
        failed = maximum(spent, judged.unbounded) * (1.0 - stays)
        still_open = 1.0 - maximum(stays, failed)
        return {
            **new,
            "misses": [
                select(changed, b, a) for a, b in zip(state["misses"], judged.misses, strict=True)
            ],
            "modes": [
                select(changed, b, a) for a, b in zip(state["modes"], now.modes, strict=True)
            ],
            "impulses": after.g, "updates": [updates], "open": [still_open],
            "failed": [maximum(state["failed"][0], failed)],
            "residual": [select(judged.unbounded > 0.5, judged.beyond, judged.violation)],
            "contact_modes": after.modes[: self.contacts],
            "d": d, "u": u, "du": du, "line": [*line, first], "alpha": [still_open], "low": [0.0],
            "high": [1.0], "tries": [0.0], "searching": [still_open],
        }  # fmt: skip

    def _judge(
        self, system: System, weights: Weights, state: SolverState, now: Impulses,
        momentum: Sequence[Scalar],
    ) -> Judged:  # fmt: skip
        """How far w, l and rho are from a solution."""
        rules, old, R = self.rules, state["multipliers"], state["R"]
        F = residual(system.rows, momentum, now.g)
        norm = dot([x * x for x in F], system.inverses)
        changes = [absolute(a - b) for a, b in zip(now.g, old, strict=True)]
        lags = [
            absolute(mu * now.g[3 * c] - state["rho"][c]) if mu else 0.0
            for c, mu in enumerate(self.frictions)
        ]
        of_contacts = [most([*changes[3 * c : 3 * c + 3], lags[c]]) for c in range(self.contacts)]
        per_slot = [*of_contacts, *changes[3 * self.contacts :]]
        misses = [x * r for x, r in zip(per_slot, R, strict=True)]
        violation = most(misses)
        strict = most([violation, *(100.0 * x for x in misses[self.contacts :])])
        updates = state["updates"][0]
        loosest, ratio = rules.impulse, system.speed / weights.weight
        share = maximum(0.01 * loosest, select(ratio > 1.0, loosest, loosest * ratio))
        if not rules.final:
            share = select(updates > 7.5, 3.0 * loosest, share)
        pressing = most([now.g[3 * c] for c in range(self.contacts)])
        settled = select(most(of_contacts) <= share * pressing, 1.0, 0.0)
        if not rules.final:
            settled = select(updates > 11.5, 1.0, settled)
        fine_norm = select(state["passes"][0] < 0.5, 0.01, 1.0) * (rules.norm * weights.weight)
        fine = norm <= fine_norm * fine_norm
        close = select(strict <= rules.speed, 1.0, 0.0)
        converged = select(fine, close * settled, 0.0)
        rough = norm * weights.most <= 0.01 * violation * violation
        solved = maximum(select(fine, 1.0, 0.0), select(rough, 1.0, 0.0))
        unbounded = select(norm < 1e300, 0.0, 1.0)
        return Judged(converged, solved, unbounded, norm * norm, violation, misses)

    def _updated(
        self, state: SolverState, now: Impulses, judged: Judged, update: Scalar
    ) -> SolverState:
        """l, rho and R, replaced where the inner problem is solved."""
        changed, updates = update > 0.5, state["updates"][0]
        rho, relax, lags = [], [], []
        multipliers = [
            select(changed, b, a) for a, b in zip(state["multipliers"], now.g, strict=True)
        ]
        for c, (mu, old) in enumerate(zip(self.frictions, state["rho"], strict=True)):
            lag, last, share = mu * now.g[3 * c] - old, state["lags"][c], state["relax"][c]
            faster = select(share < 0.7, 1.4 * share, 1.0)
            share = select(lag * last < 0.0, select(updates > _RELAXED, 0.5 * share, share), faster)
            rho.append(select(changed, old + share * lag, old))
            relax.append(select(changed, share, state["relax"][c]))
            lags.append(select(changed, lag, last))
        same: Scalar = 1.0
        for a, b in zip(state["modes"], now.modes, strict=True):
            same = select(absolute(a - b) > 0.5, 0.0, same)
        same = same * select(state["passes"][0] < _STIFFER, 1.0, 0.0) * update
        R, stiff = [], []
        slots = zip(state["R"], state["stiff"], judged.misses, state["misses"], strict=True)
        for r, k, miss, before in slots:
            slow = select(4.0 * miss > before, same, 0.0) > 0.5
            R.append(select(slow, 0.1 * r, r))
            stiff.append(select(slow, 10.0 * k, k))
        return {
            "multipliers": multipliers,
            "rho": rho,
            "relax": relax,
            "lags": lags,
            "R": R,
            "stiff": stiff,
        }

    def search(self, system: System, state: SolverState) -> SolverState:
        """One try along d: the slope of the function at alpha; done where it is small, or where
        the whole direction still descends.
        """
        alpha, line = state["alpha"][0], state["line"]
        u = [x + alpha * dx for x, dx in zip(state["u"], state["du"], strict=True)]
        now = self.impulses(system, state["multipliers"], state["rho"], state["stiff"], u)
        slope = line[0] + alpha * line[1] - dot(state["du"], now.g)
        bend = line[1] + curvature(self.contacts, now.slopes, state["du"])
        small = absolute(slope) <= -_SLOPE * line[2]
        whole = select(alpha >= 1.0, select(slope < 0.0, 1.0, 0.0), 0.0)
        good = maximum(select(small, 1.0, 0.0), whole)
        good = maximum(good, select(state["tries"][0] >= _SEARCHES, 1.0, 0.0))
        rising = slope > 0.0
        low = select(rising, state["low"][0], alpha)
        high = select(rising, alpha, state["high"][0])
        newton = alpha - slope / maximum(bend, TINY)
        inside = select(newton > low, select(newton < high, 1.0, 0.0), 0.0)
        following = select(inside > 0.5, newton, 0.5 * (low + high))
        stays = maximum(good, 1.0 - state["searching"][0])
        still = stays > 0.5
        return {
            "alpha": [select(still, alpha, following)],
            "low": [select(still, state["low"][0], low)],
            "high": [select(still, state["high"][0], high)],
            "tries": [state["tries"][0] + 1.0],
            "searching": [1.0 - stays],
        }

    def advance(self, state: SolverState) -> SolverState:
        """w after the search."""
        done = state["open"][0] < 0.5
        alpha = state["alpha"][0]
        return {
            "w": [
                select(done, w, w + alpha * d) for w, d in zip(state["w"], state["d"], strict=True)
            ],
            "passes": [select(done, state["passes"][0], state["passes"][0] + 1.0)],
        }

    def solve(self, system: System, weights: Weights, state: SolverState) -> SolverState:
        """The state when all is done, with numbers or arrays of them."""
        state = dict(state)
        while _some(state["open"][0]):
            state |= self.direction(system, weights, state)
            while _some(state["searching"][0]):
                state |= self.search(system, state)
            state |= self.advance(state)
        return state


@dataclass(frozen=True)
class TangentialImpulse:
    """Tangential impulses of a contact, their slopes xx, yy, xy, and whether it sticks."""

    g: tuple[Scalar, Scalar]
    slopes: tuple[Scalar, Scalar, Scalar]
    sticks: Any


def _friction(
    contact: ContactRows, rho: Scalar, k: Scalar, x: Scalar, y: Scalar
) -> TangentialImpulse:
    """(x, y) within the disk of radius rho, which it has the slope k to leave; of a planar robot
    within an interval.
    """
    first, second = contact.tangents
    if not contact.friction or not (first or second):
        return TangentialImpulse((0.0, 0.0), (0.0, 0.0, 0.0), False)
    if not (first and second):
        z = x if first else y
        sticks = absolute(z) <= rho
        clipped = select(sticks, z, select(z < 0.0, -rho, rho))
        slope = select(sticks, k, 0.0)
        if first:
            return TangentialImpulse((clipped, 0.0), (slope, 0.0, 0.0), sticks)
        return TangentialImpulse((0.0, clipped), (0.0, slope, 0.0), sticks)
    square = x * x + y * y
    sticks = square <= rho * rho
    inverse = 1.0 / sqrt(square + TINY)
    ex, ey = x * inverse, y * inverse
    share = select(sticks, 1.0, rho * inverse)
    slide = select(sticks, 0.0, share * k)
    stick = select(sticks, k, 0.0)
    slopes = stick + slide * (ey * ey), stick + slide * (ex * ex), -slide * (ex * ey)
    return TangentialImpulse((share * x, share * y), slopes, sticks)


@dataclass(frozen=True)
class Judged:
    """Whether (0 or 1) the step and the inner problem are solved, whether something is not finite,
    a number ``beyond`` all bounds where it is not, by how many m/s the rows are missed at most, and
    each slot's.
    """

    converged: Scalar
    solved: Scalar
    unbounded: Scalar
    beyond: Scalar
    violation: Scalar
    misses: list[Scalar]


def _some(x: Any) -> bool:
    above: Any = x > 0.5
    return bool(above if isinstance(above, bool) else above.any())


def row_rate(row: Sparse, v: Sequence[Scalar]) -> Scalar:
    """A row of J times v."""
    total: Scalar = 0.0
    for k, x in row.items():
        total = total + x * v[k]
    return total


def residual(
    rows: Sequence[Sparse], momentum: Sequence[Scalar], g: Sequence[Scalar]
) -> list[Scalar]:
    """F = A w - r - J' g; momentum: A w - r."""
    F = list(momentum)
    for row, impulse in zip(rows, g, strict=True):
        for k, x in row.items():
            F[k] = F[k] - x * impulse
    return F


def stiffened(system: System, now: Impulses) -> Entries:
    """H = A + J' G J, G being the slopes of the impulses."""
    H = dict(system.A)

    def add(i: int, j: int, x: Scalar) -> None:
        H[i, j] = H.get((i, j), 0.0) + x

    for contact, slopes in zip(system.contacts, now.slopes, strict=False):
        _add_contact(contact, slopes, add)
    for row, (slope,) in zip(system.singles, now.slopes[len(system.contacts) :], strict=True):
        for i, x in row.entries.items():
            scaled = slope * x
            for j, y in row.entries.items():
                if j <= i:
                    add(i, j, scaled * y)
    return H


def _add_contact(
    contact: ContactRows, slopes: Sequence[Scalar], add: Callable[[int, int, Scalar], None]
) -> None:
    along, xx, yy, xy = slopes
    n, (s, t) = contact.normal, contact.tangents
    for i in sorted({*n, *s, *t}):
        a, b, c = (row.get(i, 0.0) for row in (n, s, t))
        scaled = along * a, xx * b + xy * c, xy * b + yy * c
        for j in sorted({*n, *s, *t}):
            if j <= i:
                x, y, z = (row.get(j, 0.0) for row in (n, s, t))
                add(i, j, scaled[0] * x + scaled[1] * y + scaled[2] * z)


def curvature(contacts: int, slopes: Sequence[Sequence[Scalar]], du: Sequence[Scalar]) -> Scalar:
    """du' G du."""
    total: Scalar = 0.0
    for c in range(contacts):
        along, xx, yy, xy = slopes[c]
        a, x, y = du[3 * c : 3 * c + 3]
        total = total + along * a * a + xx * x * x + yy * y * y + 2.0 * xy * x * y
    for (slope,), x in zip(slopes[contacts:], du[3 * contacts :], strict=True):
        total = total + slope * x * x
    return total
