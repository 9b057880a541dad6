"""The solver of rf.optimal once more, in plain NumPy: dense matrices, textbook recursions, the active set of the
bounds by trying all of them. Programs are interpreted, nothing is compiled.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from ramify.optimal import Problem
from ramify.optimal.programs import gauss_newton
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace


def dense_slopes(problem: Problem):
    """x, u -> x+, dx+ by dx and du, as a function of rows."""
    step = problem.step
    n, m, nv = step.deviations, step.controls, problem.robot.nv
    rows = n - nv if step.split else n
    balls = problem.robot.layout.balls

    def text(x, u):
        after, slopes, turns = step.slopes(x, u)
        blocks = [y for pair in turns for block in pair for row in block for y in row]
        return [after, [y for row in slopes for y in row], blocks]

    sizes = step.size, rows * (n + m), 18 * len(balls) * step.split
    program = trace(
        "slopes",
        text,
        [Port("x", (step.size,)), Port("u", (m,))],
        [Port(f"o{i}", (s,)) for i, s in enumerate(sizes)],
    )

    def evaluate(x, u):
        after, F, blocks = interpret(program, [x, u])
        F = F.reshape(-1, rows, n + m)
        if step.split:
            A, B = np.zeros((len(x), nv, n + m)), np.zeros((len(x), nv, rows))
            A[:, range(nv), range(nv)] = 1.0
            B[:, range(nv), range(nv)] = problem.dt
            for (_, j), block in zip(
                balls, np.split(blocks, len(balls), axis=1) if balls else (), strict=True
            ):
                A[:, j : j + 3, j : j + 3] = block[:, :9].reshape(-1, 3, 3)
                B[:, j : j + 3, j : j + 3] = block[:, 9:].reshape(-1, 3, 3)
            F = np.concatenate([A + B @ F, F], axis=1)
        return after, F[:, :, :n], F[:, :, n:]

    return evaluate


class Oracle:
    def __init__(self, problem: Problem) -> None:
        self.problem, self.step = problem, problem.step
        self.slopes = dense_slopes(problem)
        programs, n, m = problem.programs, problem.step.deviations, problem.step.controls
        self.n, self.m = n, m

        def running(x, u, p):
            cost, H = gauss_newton(programs.residuals, [x, u, p], self.step.directions(x))
            return [[cost], [y for row in H for y in row]]

        def final(x, p):
            cost, H = gauss_newton(programs.final_residuals, [x, p], self.step.directions(x)[:n])
            return [[cost], [y for row in H for y in row]]

        size = 1 + n + m
        self._running = trace(
            "r",
            running,
            (programs.x, programs.u, programs.p),
            [Port("c", (1,)), Port("H", (size**2,))],
        )
        self._final = trace(
            "f", final, (programs.x, programs.p), [Port("c", (1,)), Port("H", ((1 + n) ** 2,))]
        )

    def quadratics(self, x, u, p):
        cost, H = interpret(self._running, [x[:-1], u, p[:-1]])
        last, HT = interpret(self._final, [x[-1:], p[-1:]])
        size = 1 + self.n + self.m
        return (
            cost.sum() + last[0, 0],
            H.reshape(-1, size, size),
            HT.reshape(1 + self.n, 1 + self.n),
        )

    def cost(self, x, u, p):
        return self.quadratics(x, u, p)[0]

    def difference(self, a, b):
        return np.array([float(y) for y in self.step.difference(a.tolist(), b.tolist())])

    def shifted(self, x, d):
        return np.array([float(y) for y in self.step.shifted(x.tolist(), d.tolist())])

    def next(self, x, u):
        return np.array([float(y) for y in self.step.next(x.tolist(), u.tolist())])

    def control_step(self, Quu, Qux, qu, low, high):
        """k, K of the controls within bounds: the one active set that meets the first-order conditions."""
        for states in sorted(product((0, -1, 1), repeat=self.m), key=lambda s: sum(map(abs, s))):
            free = [i for i, s in enumerate(states) if s == 0]
            fixed = [i for i, s in enumerate(states) if s]
            k, K = np.zeros(self.m), np.zeros((self.m, self.n))
            k[fixed] = [low[i] if states[i] < 0 else high[i] for i in fixed]
            if not np.isfinite(k).all():
                continue
            if free:
                inner = Quu[np.ix_(free, free)]
                k[free] = -np.linalg.solve(inner, qu[free] + Quu[np.ix_(free, fixed)] @ k[fixed])
                K[free] = -np.linalg.solve(inner, Qux[free])
            slope = qu + Quu @ k
            inside = all(low[i] <= k[i] <= high[i] for i in free)
            if inside and all(slope[i] * states[i] <= 0.0 for i in fixed):
                return k, K
        raise AssertionError("no active set")

    def backward(self, A, B, gaps, H, HT, u, reg):
        V, v = HT[1:, 1:], HT[0, 1:]
        gains = []
        n = self.n
        for t in reversed(range(len(u))):
            v = v + V @ gaps[t]
            qx, qu = H[t, 0, 1 : 1 + n] + A[t].T @ v, H[t, 0, 1 + n :] + B[t].T @ v
            Qxx = H[t, 1 : 1 + n, 1 : 1 + n] + A[t].T @ V @ A[t]
            Qux = H[t, 1 + n :, 1 : 1 + n] + B[t].T @ V @ A[t]
            Quu = H[t, 1 + n :, 1 + n :] + B[t].T @ V @ B[t]
            R = reg * np.diag(np.diag(Quu))
            k, K = self.control_step(
                Quu + R, Qux, qu, self.problem.low - u[t], self.problem.high - u[t]
            )
            v = qx + Qux.T @ k + K.T @ (qu + Quu @ k)
            V = Qxx + K.T @ Quu @ K + K.T @ Qux + Qux.T @ K
            V = 0.5 * (V + V.T)
            gains.append((k, K))
        return gains[::-1]

    def iterate(self, x, u, p, reg, tolerance, most):
        """The states, controls and gains, and of each iteration cost, gap, slope, curvature, length, regularisation."""
        history = []
        for _ in range(most + 1):
            after, A, B = self.slopes(x[:-1], u)
            gaps = np.array([self.difference(x[t + 1], after[t]) for t in range(len(u))])
            gaps[np.abs(gaps) < 1e-9] = 0.0
            J, H, HT = self.quadratics(x, u, p)
            while True:
                gains = self.backward(A, B, gaps, H, HT, u, reg)
                dx, DJ, zHz = np.zeros(self.n), 0.0, 0.0
                for t, (k, K) in enumerate(gains):
                    z = np.concatenate([dx, k + K @ dx])
                    DJ, zHz = DJ + H[t, 0, 1:] @ z, zHz + z @ H[t, 1:, 1:] @ z
                    dx = A[t] @ dx + B[t] @ z[self.n :] + gaps[t]
                DJ, zHz = DJ + HT[0, 1:] @ dx, zHz + dx @ HT[1:, 1:] @ dx
                gap = np.abs(gaps).max()
                if gap == 0.0 and -(DJ + 0.5 * zHz) <= tolerance * (1.0 + abs(J)):
                    if reg <= 1e-6:
                        return x, u, gains, np.array(history)
                    reg *= 0.1
                    continue
                chosen = None
                for i in range(8):
                    a = 0.5**i
                    new_x, new_u = self.forward(x, u, gains, gaps, a)
                    change = self.cost(new_x, new_u, p) - J
                    expected = a * DJ + 0.5 * a * a * zHz
                    bound = (
                        1e-4 * a * DJ if gap == 0.0 else (2.0 if expected > 0.0 else 0.1) * expected
                    )
                    if change <= bound + 1e-14 * abs(J):
                        chosen = i
                        break
                if chosen is not None:
                    break
                reg = max(10.0 * reg, 1e-9)
                assert reg < 1e10
            if len(history) == most:
                break
            history.append([J, gap, DJ, zHz, 0.5**chosen, reg])
            x, u = new_x, new_u
            if chosen <= 1:
                reg = max(0.1 * reg, 1e-9) if reg >= 1e-9 else reg
            elif chosen >= 5:
                reg *= 10.0
        return x, u, gains, np.array(history)

    def forward(self, x, u, gains, gaps, a):
        new_x, new_u = [x[0]], []
        for t, (k, K) in enumerate(gains):
            control = u[t] + a * k + K @ self.difference(x[t], new_x[-1])
            new_u.append(np.clip(control, self.problem.low, self.problem.high))
            after = self.next(new_x[-1], new_u[-1])
            new_x.append(self.shifted(after, (a - 1.0) * gaps[t]))
        return np.array(new_x), np.array(new_u)
