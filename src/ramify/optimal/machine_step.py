"""One step of a machine from knot to knot, and its derivatives, as texts over any scalar.

The state is x = [q, v, z], z the bristles of LuGre friction. Its deviations are [dq, ds]: dq (nv)
as velocities move q, ds those of s = [v, z]. Schemes that give the new velocities first, and then
move q with them, are *split*: only the slopes F of s+ by [dq, ds, u] are needed, since

    dq+ = A dq + B ds+,   A = 1, B = [dt 1, 0]

but for the rotations of ball joints. Other schemes have the slopes of all of x+.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar, Scalars, may_be_nonzero, sqrt
from ramify.core.spatial import Vec3, Wrench
from ramify.dynamics.derivatives import forward_dynamics_derivatives
from ramify.dynamics.tree import Matrix, tree_of
from ramify.dynamics.wrenches import joint_forces
from ramify.emit.stepper import Scheme
from ramify.kernels.text import IDENTITY
from ramify.model.configuration import coordinate_rates, turning
from ramify.model.driven import Driven
from ramify.model.robot import Robot
from ramify.motion.ik_text import moved_by_step, velocity_between
from ramify.plant.field import Field
from ramify.trace.interpret import replay
from ramify.trace.jacobian_program import rates_along
from ramify.trace.program import Port, Program, trace

SlopeRows = list[list[Scalar]]


class StepSlopes(NamedTuple):
    """x+ after a step; rows of the slopes of s+ (of x+ where the scheme is not split) by [dq, ds,
    u]; for each ball joint the blocks A, B (3 x 3) of dq+ = A dq + B dw+.
    """

    after: list[Scalar]
    rows: SlopeRows
    turns: list[tuple[SlopeRows, SlopeRows]]


@dataclass(frozen=True)
class MachineStep:
    """Steps of a machine. ``dt``: the length of a step, s; None: the last control is it."""

    field: Field
    scheme: Scheme
    driven: Driven
    dt: float | None

    @property
    def robot(self) -> Robot:
        return self.field.model

    @cached_property
    def controls(self) -> int:
        """The number of controls: forces, and the length of the step if that is free."""
        return len(self.driven) + (self.dt is None)

    @property
    def size(self) -> int:
        """Numbers of x."""
        return self.robot.nq + self.robot.nv + self.field.states

    @property
    def deviations(self) -> int:
        """Numbers of a deviation of x."""
        return 2 * self.robot.nv + self.field.states

    @property
    def split(self) -> bool:
        """Whether new velocities move q over a step of known length."""
        return self._velocities_first and self.dt is not None

    @property
    def _velocities_first(self) -> bool:
        return self.scheme.kick or (self.scheme.implicit and self.scheme.stages == 1)

    def length(self, u: Scalars) -> Scalar:
        """The length of the step, s."""
        return u[-1] if self.dt is None else self.dt

    def parts(self, x: Scalars) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """q, v, z."""
        a, b = self.robot.nq, self.robot.nq + self.robot.nv
        return list(x[:a]), list(x[a:b]), list(x[b:])

    def _joint_forces(self, u: Scalars) -> list[Scalar]:
        tau: list[Scalar] = [0.0] * self.robot.nv
        for j, force in zip(self.driven.v, u, strict=False):
            tau[j] = force
        return tau

    # ---- the step ----

    def next(self, x: Scalars, u: Scalars) -> list[Scalar]:
        """x+ after a step."""
        if not self._velocities_first:
            return self._runge_kutta(x, u)
        q, _, _ = self.parts(x)
        s = self._next_velocities(x, u)
        return [*self._moved(q, s[: self.robot.nv], self.length(u)), *s]

    def _next_velocities(self, x: Scalars, u: Scalars) -> list[Scalar]:
        """s+ = [v+, z+]."""
        h, tau = self.length(u), self._joint_forces(u)
        if self.scheme.implicit:
            rates = self.field.text(0.0, list(x), tau, h)[self.robot.nq :]
        else:
            observed = self.field.observe(0.0, list(x), tau)
            rates = [*observed.a, *observed.state_rates]
        return [s + h * rate for s, rate in zip(x[self.robot.nq :], rates, strict=True)]

    def _moved(self, q: Scalars, v: Scalars, h: Scalar) -> list[Scalar]:
        """q after moving with v: quaternions as the compiled steps move them, one Euler step and
        back to unit length.
        """
        rates = coordinate_rates(self.robot, q, v)
        return self._normalised([x + h * rate for x, rate in zip(q, rates, strict=True)])

    def _normalised(self, x: list[Scalar]) -> list[Scalar]:
        for i, _ in self.robot.layout.balls:
            scale = 1.0 / sqrt(sum((a * a for a in x[i + 1 : i + 4]), x[i] * x[i]))
            x[i : i + 4] = [a * scale for a in x[i : i + 4]]
        return x

    def _runge_kutta(self, x: Scalars, u: Scalars) -> list[Scalar]:
        h, tau, slopes = self.length(u), self._joint_forces(u), list[list[Scalar]]()
        for i in range(self.scheme.stages):
            row = self.scheme.a[i]
            at = list(x)
            for k, slope in zip(row, slopes, strict=False):
                if k:
                    at = [a + (h * k) * b for a, b in zip(at, slope, strict=True)]
            lengths = (h * self.scheme.lengths[i],) if self.scheme.implicit else ()
            slopes.append(self.field.text(0.0, at, tau, *lengths))
        out = list(x)
        for k, slope in zip(self.scheme.b, slopes, strict=True):
            if k:
                out = [a + (h * k) * b for a, b in zip(out, slope, strict=True)]
        return self._normalised(out)

    # ---- deviations ----

    def difference(self, x0: Scalars, x1: Scalars) -> list[Scalar]:
        """The deviation that leads from x0 to x1."""
        n = self.robot.nq
        rest = [b - a for a, b in zip(x0[n:], x1[n:], strict=True)]
        return [*velocity_between(self.robot, x0[:n], x1[:n]), *rest]

    def shifted(self, x: Scalars, deviation: Scalars) -> list[Scalar]:
        """x moved by a deviation."""
        n = self.robot.nq
        q = moved_by_step(self.robot, x[:n], dict(enumerate(deviation[: self.robot.nv])))
        rest = zip(x[n:], deviation[self.robot.nv :], strict=True)
        return [*q, *(a + b for a, b in rest)]

    def directions(self, x: Scalars) -> list[dict[tuple[int, int], Scalar]]:
        """The rates of the symbols (0, i) of x along each unit deviation, and of the controls
        (1, i).
        """
        robot, out = self.robot, [dict[tuple[int, int], Scalar]() for _ in range(self.robot.nv)]
        for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True):
            out[j][0, i] = 1.0
        for i, j in robot.layout.balls:
            for axis in range(3):
                w = [float(axis == k) for k in range(3)]
                for k, rate in enumerate(turning(x[i : i + 4], w)):
                    if may_be_nonzero(rate):
                        out[j + axis][0, i + k] = rate
        out += [{(0, i): 1.0} for i in range(robot.nq, self.size)]
        return out + [{(1, i): 1.0} for i in range(self.controls)]

    # ---- slopes ----

    def slopes(self, x: Scalars, u: Scalars) -> StepSlopes:
        """``next`` with its derivatives."""
        if not self._velocities_first:
            after = self.next(x, u)
            return StepSlopes(after, self._all_rows(x, u, after), [])
        if self._has_chain_rule:
            s, rows = self._chain_rows(x, u)
        else:
            s, rows = self._next_velocities(x, u), self._along(self._velocity_program, x, u)
        h, w = self.length(u), s[: self.robot.nv]
        after = [*self._moved(self.parts(x)[0], w, h), *s]
        turns = [_turn_blocks(w[j : j + 3], h) for _, j in self.robot.layout.balls]
        if self.split:
            return StepSlopes(after, rows, turns)
        return StepSlopes(after, [*self._coordinate_rows(rows, turns, w, h), *rows], [])

    def _coordinate_rows(
        self, rows: SlopeRows, turns: list[tuple[SlopeRows, SlopeRows]], w: Scalars, h: Scalar
    ) -> SlopeRows:
        """The rows of dq+ = A dq + B ds+ + (its rate by the length of the step) dh."""
        robot, last = self.robot, self.deviations + self.controls - 1
        out: SlopeRows = [[0.0] * len(rows[0]) for _ in range(robot.nv)]
        for j in robot.layout.plain_v:
            out[j] = [h * x for x in rows[j]]
            out[j][j] = out[j][j] + 1.0
            if self.dt is None:
                out[j][last] = out[j][last] + w[j]
        for (_, j), (A, B) in zip(robot.layout.balls, turns, strict=True):
            for i in range(3):
                row: list[Scalar] = [0.0] * len(rows[0])
                for k in range(3):
                    row = [a + B[i][k] * b for a, b in zip(row, rows[j + k], strict=True)]
                    row[j + k] = row[j + k] + A[i][k]
                    if self.dt is None:
                        row[last] = row[last] + B[i][k] * w[j + k] / h
                out[j + i] = row
        return out

    @property
    def _has_chain_rule(self) -> bool:
        """Whether the accelerations are those of a tree under joint forces."""
        return self.scheme.kick and not self.robot.loops and not self.field.states

    def _outer_forces(self, q: Scalars, v: Scalars) -> list[Scalar] | None:
        """Joint forces (nv) of the machine and its ground; None where there are none."""
        field, robot = self.field, self.robot
        total: list[Scalar] | None = None
        if field.passive_forces:
            total = list(field.passive_forces(list(q), list(v), []).total)
        if any(field.damping):
            damping = [-(d * w) for d, w in zip(field.damping, v, strict=True)]
            total = damping if total is None else _sum(total, damping)
        if field.contact is not None:
            wrenches = field.contact.reactions(q, v)[2]
            tree = tree_of(robot)
            pushes = [
                [(link.seat.r, Wrench(Vec3(*w[:3]), Vec3(*w[3:])))]
                if any(map(may_be_nonzero, w))
                else []
                for k, link in enumerate(tree.links)
                for w in [wrenches[6 * k : 6 * k + 6]]
            ]
            columns = robot.skeleton.coordinates(list(q), IDENTITY)
            reactions = list(joint_forces(tree, columns, pushes))
            total = reactions if total is None else _sum(total, reactions)
        return total

    @cached_property
    def _forces_program(self) -> Program | None:
        """x -> joint forces of the machine and its ground."""
        ports = [Port("x", (self.size,))], [Port("forces", (self.robot.nv,))]
        silent = False

        def text(x: list[Any]) -> list[list[Any]]:
            nonlocal silent
            q, v, _ = self.parts(x)
            forces = self._outer_forces(q, v)
            silent = forces is None
            return [forces or [0.0] * self.robot.nv]

        program = trace("outer_forces", text, *ports)
        return None if silent else program

    def _chain_rows(self, x: Scalars, u: Scalars) -> tuple[list[Scalar], SlopeRows]:
        """v+ and dv+ = dv + h da, da = a_q dq + a_v dv + I^-1 dtau with the derivatives of forward
        dynamics; tau includes the forces of the machine and its ground.
        """
        robot, n, h = self.robot, self.robot.nv, self.length(u)
        q, v, _ = self.parts(x)
        tau, outer = self._joint_forces(u), self._forces_program
        slopes = None
        if outer is not None:
            values = replay(outer, [x])
            (nodes,) = outer.results
            tau = _sum(tau, [values[node] for node in nodes])
            columns = [rates_along(outer, values, way) for way in self.directions(x)[: 2 * n]]
            by_q, by_v = (
                {(i, j): rates[node] for j, rates in enumerate(part)
                 for i, node in enumerate(nodes) if node in rates}
                for part in (columns[:n], columns[n:])
            )  # fmt: skip
            slopes = Matrix(n, by_q), Matrix(n, by_v)
        entries = robot.skeleton.coordinates(q, IDENTITY)
        answer = forward_dynamics_derivatives(tree_of(robot), entries, v, tau, slopes)
        a = list(answer.tau)
        a_q, a_v, inverse = (
            _square(matrix.row_major(), n) for matrix in (answer.by_q, answer.by_v, answer.by_a)
        )
        rows: SlopeRows = []
        for i in range(n):
            row = [h * y for y in (*a_q[i], *a_v[i])]
            row[n + i] = row[n + i] + 1.0
            row += [h * inverse[i][k] for k in self.driven.v]
            rows.append(row + ([a[i]] if self.dt is None else []))
        return [w + h * y for w, y in zip(v, a, strict=True)], rows

    @cached_property
    def _velocity_program(self) -> Program:
        return self._program("velocities", lambda x, u: self._next_velocities(x, u))

    @cached_property
    def _step_program(self) -> Program:
        return self._program("step", self._runge_kutta)

    def _program(self, name: str, text: Callable[[Any, Any], list[Scalar]]) -> Program:
        inputs = [Port("x", (self.size,)), Port("u", (self.controls,))]
        size = self.size - (self.robot.nq if name == "velocities" else 0)
        return trace(name, lambda x, u: [text(x, u)], inputs, [Port("after", (size,))])

    def _along(self, program: Program, x: Scalars, u: Scalars) -> SlopeRows:
        """The rows of the derivatives of a program by [dq, ds, u]."""
        values = replay(program, [x, u])
        (nodes,) = program.results
        columns = [rates_along(program, values, along) for along in self.directions(x)]
        return [[rates.get(node, 0.0) for rates in columns] for node in nodes]

    def _all_rows(self, x: Scalars, u: Scalars, after: Scalars) -> SlopeRows:
        """The slopes of all of x+; a quaternion's as those of its rotation."""
        raw, robot = self._along(self._step_program, x, u), self.robot
        out: SlopeRows = [[] for _ in range(robot.nv)]
        for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True):
            out[j] = raw[i]
        for i, j in robot.layout.balls:
            for axis in range(3):
                unit = [float(axis == k) for k in range(3)]
                back = [4.0 * k for k in turning(after[i : i + 4], unit)]  # 2 conj(q) dq
                columns = zip(*raw[i : i + 4], strict=True)
                out[j + axis] = [_dot(back, column) for column in columns]
        return out + raw[robot.nq :]


def _turn_blocks(w: Scalars, h: Scalar) -> tuple[SlopeRows, SlopeRows]:
    """A and B of a rotation that moves with w: q+ = q (1, r) / |(1, r)|, r = h w / 2. Then
    A = 1 + 2 ((r x)^2 - r x) / (1 + r.r) is the rotation back, and B = h (1 - r x) / (1 + r.r).
    """
    r = [0.5 * h * x for x in w]
    scale = 1.0 / (1.0 + (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]))
    cross: SlopeRows = [[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]]
    square = [[_dot(cross[i], [cross[k][j] for k in range(3)]) for j in range(3)] for i in range(3)]
    A: SlopeRows = [
        [float(i == j) + 2.0 * scale * (square[i][j] - cross[i][j]) for j in range(3)]
        for i in range(3)
    ]
    B: SlopeRows = [[h * scale * (float(i == j) - cross[i][j]) for j in range(3)] for i in range(3)]
    return A, B


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def _sum(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _square(entries: Sequence[Scalar], n: int) -> SlopeRows:
    return [list(entries[i * n : (i + 1) * n]) for i in range(n)]
