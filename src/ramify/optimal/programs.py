"""The programs of a problem: costs and their Gauss-Newton quadratics, steps and their slopes.

All are traced from the texts of the user and of the machine. What a knot depends on besides its
state and controls is one row of parameters p: those of the user, then a scale and a shift for each
constraint. A constraint c <= 0 is the residual max(0, scale c + shift): that of the augmented
Lagrangian with penalty scale^2 and multiplier scale shift.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar, Scalars, select
from ramify.model.robot import Robot
from ramify.optimal.knot import Knot
from ramify.optimal.knot_layout import HessianBlocks, KnotLayout
from ramify.optimal.machine_step import MachineStep
from ramify.optimal.terms import Term, call, half_square, read_constraints, read_terms
from ramify.trace.graph import Graph, as_node
from ramify.trace.interpret import replay
from ramify.trace.jacobian_program import rates_along
from ramify.trace.program import Port, Program, trace

CLOSED: Final = 1e-9
"""Gaps below it are zero."""
UserFunction = Callable[[Knot], Any]


class ProblemTexts:
    """The functions of a problem as texts over lists x, u, p."""

    def __init__(
        self,
        step: MachineStep,
        cost: UserFunction,
        final: UserFunction | None,
        keep: UserFunction | None,
        parameters: Mapping[str, int],
    ) -> None:
        self.step, self._cost, self._final, self._keep = step, cost, final, keep
        self.parameters = dict(parameters)
        self.user_size = sum(self.parameters.values())
        self._count_constraints()

    @property
    def robot(self) -> Robot:
        return self.step.robot

    @property
    def parameter_size(self) -> int:
        """Numbers of p."""
        return self.user_size + 2 * self.constraints

    def _knot(self, x: Scalars, u: Scalars | None, p: Scalars) -> Knot:
        q, v, _ = self.step.parts(x)
        named, start = {}, 0
        for name, size in self.parameters.items():
            named[name] = list(p[start : start + size])
            start += size
        dt = self.step.dt if u is None or self.step.dt is not None else u[-1]
        forces = None if u is None else list(u[: len(self.step.driven)])
        return Knot(self.robot, q, v, forces, 0.0 if dt is None else dt, named)

    def _count_constraints(self) -> None:
        """The number of constraints, and which of them hold at the last knot: those that do not
        depend on the controls.
        """
        self.constraints, self.final_constraints = 0, tuple[int, ...]()
        if self._keep is None:
            return
        program = _traced("keep", lambda x, u, p: [self._constraint_values(x, u, p)], self._inputs)
        self.constraints = len(program.results[0])
        graph = program.graph
        self.final_constraints = tuple(
            i
            for i, node in enumerate(program.results[0])
            if not any(
                graph.ops[x] == "symbol" and graph.payload[x][0] == 1
                for x in graph.reachable([node])
            )
        )

    @property
    def _inputs(self) -> tuple[Port, ...]:
        sizes = {"x": self.step.size, "u": self.step.controls, "p": self.user_size}
        return tuple(Port(name, (size,)) for name, size in sizes.items())

    def _constraint_values(self, x: Scalars, u: Scalars, p: Scalars) -> list[Scalar]:
        if self._keep is None:
            return []
        return read_constraints("keep", call("keep", self._keep, self._knot(x, u, p)))

    def _relaxed(self, values: Scalars, p: Scalars, which: Sequence[int]) -> list[Scalar]:
        """The residuals of constraints."""
        n, count, out = self.user_size, self.constraints, list[Scalar]()
        for i, value in zip(which, values, strict=True):
            pushed = p[n + i] * value + p[n + count + i]
            out.append(select(pushed > 0.0, pushed, 0.0))
        return out

    # ---- texts ----

    def terms(self, x: Scalars, u: Scalars, p: Scalars) -> list[Term]:
        """The terms of the running cost."""
        return read_terms("cost", call("cost", self._cost, self._knot(x, u, p)))

    def final_terms(self, x: Scalars, p: Scalars) -> list[Term]:
        """The terms of the final cost."""
        if self._final is None:
            return []
        return read_terms("final", call("final", self._final, self._knot(x, None, p)))

    def constraint_values(self, x: Scalars, u: Scalars, p: Scalars) -> list[Scalar]:
        """The values of all constraints, to be at most zero."""
        return self._constraint_values(x, u, p[: self.user_size])

    def final_constraint_values(self, x: Scalars, p: Scalars) -> list[Scalar]:
        """The values of the constraints that hold at the last knot."""
        if not self.final_constraints:
            return []
        u: list[Scalar] = [0.0] * self.step.controls
        values = self.constraint_values(x, u, p)
        return [values[i] for i in self.final_constraints]

    def residuals(self, x: Scalars, u: Scalars, p: Scalars) -> list[Scalar]:
        """All residuals of a knot."""
        own = [r for term in self.terms(x, u, p) for r in term.residuals]
        return own + self._relaxed(self.constraint_values(x, u, p), p, range(self.constraints))

    def final_residuals(self, x: Scalars, p: Scalars) -> list[Scalar]:
        """All residuals of the last knot."""
        own = [r for term in self.final_terms(x, p) for r in term.residuals]
        return own + self._relaxed(self.final_constraint_values(x, p), p, self.final_constraints)


class Programs:
    """The programs of a problem, for a number of lanes."""

    def __init__(self, texts: ProblemTexts, width: int) -> None:
        self.texts, self.step = texts, texts.step
        self.layout = KnotLayout.of(texts.step, width)
        x, m, p = self.step.size, self.step.controls, texts.parameter_size
        self.x, self.u, self.p = Port("x", (x,)), Port("u", (m,)), Port("p", (p,))

    # ---- residuals: small programs, from which all else follows ----

    @cached_property
    def residuals(self) -> Program:
        """x, u, p -> all residuals of a knot."""
        return _traced("residuals", lambda *a: [self.texts.residuals(*a)], (self.x, self.u, self.p))

    @cached_property
    def final_residuals(self) -> Program:
        """x, p -> all residuals of the last knot."""
        return _traced(
            "final_residuals", lambda *a: [self.texts.final_residuals(*a)], (self.x, self.p)
        )

    @cached_property
    def hessian(self) -> HessianBlocks:
        """The blocks of the running cost's Hessian."""
        blocks: list[HessianBlocks] = []

        def text(x: list[Any], u: list[Any], p: list[Any]) -> list[list[Any]]:
            _, matrix = self._quadratic(x, u, p)
            blocks.append(HessianBlocks.of(self.layout, matrix))
            return [[]]

        _traced("hessian", text, (self.x, self.u, self.p))
        return blocks[0]

    def _quadratic(self, x: Scalars, u: Scalars, p: Scalars) -> tuple[Scalar, list[list[Scalar]]]:
        return gauss_newton(self.residuals, [x, u, p], self.step.directions(x))

    # ---- what is compiled ----

    @cached_property
    def derivatives(self) -> Program:
        """x, u, p and the x of the next knot -> F, Hessian, cost, gap, and what moves dq."""
        layout, step = self.layout, self.step
        outputs = {
            "slopes": layout.rows * layout.stride, "hessian": self.hessian.size, "cost": 1,
            "gap": layout.n, "carried": layout.moved, "turns": layout.turn_size,
        }  # fmt: skip

        def text(x: list[Any], u: list[Any], p: list[Any], following: list[Any]) -> list[list[Any]]:
            cost, matrix = self._quadratic(x, u, p)
            after, rows, turns = step.slopes(x, u)
            gap = [_closed(g) for g in step.difference(following, after)]
            pad = [0.0] * (layout.stride - 1 - layout.n - layout.m)
            slopes = [y for g, row in zip(gap[layout.moved :], rows, strict=True)
                      for y in (g, *row, *pad)]  # fmt: skip
            return [
                slopes, self.hessian.computed(matrix), [cost], gap,
                self._carried(gap, turns), self._turn_rows(turns),
            ]  # fmt: skip

        ports = [Port(name, (size,)) for name, size in outputs.items()]
        following = Port("following", self.x.shape)
        return trace("derivatives", text, (self.x, self.u, self.p, following), ports)

    def _carried(self, gap: Scalars, turns: list[Any]) -> list[Scalar]:
        """c of dq+ = c + A dq + B ds+: the gap of q less what the gap of the velocities gives."""
        moved, out = self.layout.moved, list[Scalar]()
        if moved:
            assert self.step.dt is not None
            out = [g - self.step.dt * w for g, w in zip(gap[:moved], gap[moved:], strict=False)]
            for j, (_, B) in zip(self.layout.balls, turns, strict=True):
                for i in range(3):
                    turned = sum((B[i][k] * gap[moved + j + k] for k in range(3)), start=0.0)
                    out[j + i] = gap[j + i] - turned
        return out

    def _turn_rows(self, turns: list[Any]) -> list[Scalar]:
        """For each ball, the blocks of three rows over [1, dx] of [A - 1, B]."""
        layout, out = self.layout, list[Scalar]()
        for (j, blocks), (A, B) in zip(layout.turn_blocks.items(), turns, strict=True):
            for i in range(3):
                row: list[Scalar] = [0.0] * layout.state_stride
                for k in range(3):
                    row[1 + j + k] = A[i][k] - float(i == k)
                    row[1 + layout.moved + j + k] = B[i][k]
                for b in blocks:
                    out += row[b * layout.width : (b + 1) * layout.width]
        return out

    @cached_property
    def final_derivatives(self) -> Program:
        """x, p -> the value function at the last knot, rows over [1, dx], and the cost."""
        layout = self.layout

        def text(x: list[Any], p: list[Any]) -> list[list[Any]]:
            directions = self.step.directions(x)[: layout.n]
            cost, matrix = gauss_newton(self.final_residuals, [x, p], directions)
            pad = [0.0] * (layout.state_stride - 1 - layout.n)
            return [[y for row in matrix for y in (*row, *pad)], [cost]]

        ports = [Port("value", ((1 + layout.n) * layout.state_stride,)), Port("cost", (1,))]
        return trace("final_derivatives", text, (self.x, self.p), ports)

    @cached_property
    def forward(self) -> Program:
        """One knot of a forward pass with a step length: the new x, the old x, u, the gains over
        [1, dx], the gap behind the knot, the step length, p, and bounds of u -> the next x, u, the
        cost of the knot.
        """
        n, m = self.layout.n, self.layout.m

        def text(*inputs: list[Any]) -> list[list[Any]]:
            new, x, u, gains, gap, length, p, low, high = inputs
            dx = [length[0], *self.step.difference(x, new)]
            controls: list[Scalar] = []
            for i in range(m):
                total = u[i]
                for gain, d in zip(gains[i * (1 + n) : (i + 1) * (1 + n)], dx, strict=True):
                    total = total + gain * d
                total = select(total < low[i], low[i], total)
                controls.append(select(total > high[i], high[i], total))
            cost = half_square(self.texts.residuals(new, controls, p))
            left = length[0] - 1.0
            after = self.step.next(new, controls)
            return [self.step.shifted(after, [left * g for g in gap]), controls, [cost]]

        inputs = {
            "new": self.x.size, "x": self.x.size, "u": m, "gains": m * (1 + n), "gap": n,
            "length": 1, "p": self.p.size, "low": m, "high": m,
        }  # fmt: skip
        outputs = {"next": self.x.size, "controls": m, "cost": 1}
        return trace("forward", text, _ports(inputs), _ports(outputs))

    @cached_property
    def final_cost(self) -> Program:
        """x, p -> the cost of the last knot."""
        return _traced(
            "final_cost", lambda *a: [[half_square(self.texts.final_residuals(*a))]],
            (self.x, self.p),
        )  # fmt: skip

    # ---- for reports ----

    @cached_property
    def step_program(self) -> Program:
        """x, u -> the next x."""
        return _traced("step", lambda x, u: [self.step.next(x, u)], (self.x, self.u))

    @cached_property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the terms of the running and of the final cost."""
        _ = self.term_costs, self.final_term_costs
        return self._names["terms"], self._names["final_terms"]

    @cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        return {}

    @cached_property
    def term_costs(self) -> Program:
        """x, u, p -> the cost of each term, and the values of the constraints."""

        def text(x: list[Any], u: list[Any], p: list[Any]) -> list[list[Any]]:
            terms = self.texts.terms(x, u, p)
            self._names["terms"] = tuple(term.name for term in terms)
            costs = [half_square(term.residuals) for term in terms]
            return [costs, self.texts.constraint_values(x, u, p)]

        return _traced("terms", text, (self.x, self.u, self.p))

    @cached_property
    def final_term_costs(self) -> Program:
        """x, p -> the cost of each term of the last knot, and the values of its constraints."""

        def text(x: list[Any], p: list[Any]) -> list[list[Any]]:
            terms = self.texts.final_terms(x, p)
            self._names["final_terms"] = tuple(term.name for term in terms)
            costs = [half_square(term.residuals) for term in terms]
            return [costs, self.texts.final_constraint_values(x, p)]

        return _traced("final_terms", text, (self.x, self.p))


def gauss_newton(
    program: Program, inputs: list[Scalars], directions: list[dict[tuple[int, int], Scalar]]
) -> tuple[Scalar, list[list[Scalar]]]:
    """Half the sum of the squares of a program's residuals, and its quadratic over [1, directions]:
    gradient J' r in row and column 0, J' J.
    """
    values = replay(program, inputs)
    (nodes,) = program.results
    residuals = [values[node] for node in nodes]
    n = len(directions)
    matrix: list[list[Scalar]] = [[0.0] * (1 + n) for _ in range(1 + n)]
    rates = [rates_along(program, values, along) for along in directions]
    for node, r in zip(nodes, residuals, strict=True):
        row = [(0, r), *((1 + j, column[node]) for j, column in enumerate(rates) if node in column)]
        for k, (i, a) in enumerate(row):
            for j, b in row[k:]:
                if j:
                    matrix[i][j] = matrix[i][j] + a * b
    for i in range(1 + n):
        for j in range(i):
            matrix[i][j] = matrix[j][i]
    return half_square(residuals), matrix


def _closed(gap: Scalar) -> Scalar:
    """A gap, zero where it is a matter of rounding."""
    return select(gap * gap < CLOSED * CLOSED, 0.0, gap)


def _ports(sizes: Mapping[str, int]) -> list[Port]:
    return [Port(name, (size,)) for name, size in sizes.items()]


def _traced(name: str, text: Callable[..., list[list[Any]]], inputs: tuple[Port, ...]) -> Program:
    """A program whose outputs are as long as the text makes them."""
    graph = Graph()
    symbols = [[graph.symbol((i, j)) for j in range(port.size)] for i, port in enumerate(inputs)]
    results = tuple(tuple(as_node(graph, x) for x in out) for out in text(*symbols))
    ports = tuple(Port(f"out{i}", (len(nodes),)) for i, nodes in enumerate(results))
    return Program(name, graph, inputs, ports, results)
