"""Loops of ReDySim's closed models, found again in the files beside ``inputs``.

ReDySim cuts its loops and asks the user for their closure: ``for_kine.m`` holds where links hang on
the ground, ``jacobian.m`` the velocities that must vanish, J(th) dth = 0. The hinges are constants,
and are read. The Jacobian is user code, but only arithmetic: it is evaluated at some states, and a
pair of its rows is the joint between two links where it is the velocity of a point of one less that
of a point of the other, at every state. Both points then follow from linear equations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.files.redysim.matlab_text import parse_matlab
from ramify.files.redysim.matlab_tokens import tokens
from ramify.files.redysim.matlab_values import run_matlab
from ramify.model.frame import Frame, modified_dh
from ramify.model.loop import Loop, LoopEnd

Jacobian = Callable[[Array], Array]
_HEADER: Final = re.compile(r"function[^=\n]*=\s*\w+\s*\(([^)]*)\)")
_STATES: Final = 5
_MOST: Final = 5  # loops whose rows may be added to each other
_EXACT: Final = 1e-9
_ROUNDED: Final = 1e-3
"""Of the largest length: how far a loop may gape at angles that are given with four digits."""


OTHER_ORDER: Final = (
    "it takes the values of inputs() in another order than inputs.m returns them, and MATLAB goes "
    "by position"
)


def by_position(
    text: str, file: str, inputs: Mapping[str, Array], outputs: Sequence[str]
) -> Mapping[str, Array] | None:
    """The values of ``[n dof ...] = inputs()`` in a file, by their position among the ``outputs``
    of ``inputs.m``; None where the names agree. Raises ModelError for two calls that differ.
    """
    words = [token.text for token in tokens(text, file) if token.text not in (",", ";", "")]
    lists = set()
    for k, word in enumerate(words):
        if word == "inputs" and words[max(0, k - 2) : k] == ["]", "="]:
            start = max(j for j in range(k) if words[j] == "[")
            lists.add(tuple(words[start + 1 : k - 2]))
    if len(lists) > 1:
        raise ModelError(f"{file}: takes the values of inputs() in two orders")
    wanted = next(iter(lists), ())
    pairs = list(zip(wanted, outputs, strict=False))
    if not any(name != output and name in inputs for name, output in pairs):
        return None
    rest = {name: value for name, value in inputs.items() if name not in wanted}
    return rest | {name: inputs[output] for name, output in pairs if output in inputs}


def freedom(J: Jacobian, th: Array) -> tuple[int, int]:
    """n - rank J at th, given with four digits, and at some other place."""
    places = ((th, 1e-3), (np.random.default_rng(1).uniform(-2.0, 2.0, len(th)), 1e-9))
    at, elsewhere = (
        len(th) - int(np.linalg.matrix_rank(J(x), tol=tol * np.abs(J(x)).max()))
        for x, tol in places
    )
    return at, elsewhere


def jacobian_function(text: str, file: str, inputs: Mapping[str, Array]) -> Jacobian:
    """J(th) of a ``jacobian.m``. Raises ModelError, at once or when called, for what is not
    arithmetic.
    """
    header = _HEADER.search(text)
    names = [name.strip() for name in header[1].split(",")] if header else []
    if not 1 <= len(names) <= 2 or not names[0]:
        has = f"has {len(names)} arguments" if len(names) > 2 else "is not of that form"
        raise ModelError(
            f"{file}: its first line must be function [J, dJ] = jacobian(th, dth): one or two "
            f"arguments, the coordinates and their rates; yours {has}; take lengths and others "
            "from [n dof ...] = inputs()"
        )
    program = parse_matlab(text, file)

    def at(th: Array) -> Array:
        state = dict(zip(names, (th.reshape(-1, 1), np.zeros((len(th), 1))), strict=False))
        results = run_matlab(program, file, names=state, inputs=inputs)
        if "J" not in results:
            raise ModelError(f"{file}: assigns no J")
        return np.atleast_2d(np.asarray(results["J"], dtype=np.float64))

    return at


@dataclass(frozen=True)
class PlaneTree:
    """The opened mechanism: rows of modified DH, parents (-1: the ground), which joints turn, and
    where links hang on the ground if not at their row.
    """

    rows: Sequence[tuple[float, float, float, float]]
    parents: Sequence[int]
    turns: Sequence[bool]
    hinges: Mapping[int, Array]

    def chain(self, k: int) -> list[int]:
        """Link k and its carriers, the one on the ground last."""
        out = []
        while k >= 0:
            out.append(k)
            k = self.parents[k]
        return out

    def frames(self, th: Array) -> list[Frame]:
        out: list[Frame] = []
        for k, (alpha, a, b, theta) in enumerate(self.rows):
            frame = modified_dh(alpha, a, *((b, th[k]) if self.turns[k] else (th[k], theta)))
            if self.parents[k] < 0 and k in self.hinges:
                frame = Frame(frame.rotation, self.hinges[k])
            out.append(frame if self.parents[k] < 0 else out[self.parents[k]] @ frame)
        return out

    @property
    def in_plane(self) -> bool:
        """Whether it moves in the plane xy: axes of turning along z, slides across it."""
        axes = [frame.rotation[:, 2] for frame in self.frames(np.zeros(len(self.rows)))]
        return all(
            abs(abs(axis[2]) - turn) < _EXACT for axis, turn in zip(axes, self.turns, strict=True)
        )


def unplaced(tree: PlaneTree) -> list[int]:
    """Links that turn on the ground at the place of an earlier one, and have no hinge of a file: in
    a closed mechanism two links on one pin have the length 0 between them.
    """
    places: list[Array] = []
    out: list[int] = []
    frames = tree.frames(np.zeros(len(tree.rows)))
    for k, parent in enumerate(tree.parents):
        if parent >= 0 or not tree.turns[k]:
            continue
        taken = any(np.allclose(frames[k].position, place) for place in places)
        if taken and k not in tree.hinges:
            out.append(k)
        places.append(frames[k].position)
    return out


@dataclass(frozen=True)
class PinClosure:
    """A pin between points (3,) of two links, ``second`` None for the ground."""

    first: int
    second: int | None
    at_first: Array
    at_second: Array


def pin_closures(J: Jacobian, tree: PlaneTree) -> list[PinClosure]:
    """The pins whose velocities the rows of J are, two rows each; ModelError where there are none.

    A pair may have earlier pairs added to it or taken from it.
    """
    if not tree.in_plane:
        raise ModelError("the mechanism does not move in the plane xy")
    rng = np.random.default_rng(0)
    states = list(rng.uniform(-2.0, 2.0, (_STATES, len(tree.rows))))
    rows = [J(th) for th in states]
    if rows[0].shape[0] % 2 or rows[0].shape[1] != len(tree.rows):
        height, width = rows[0].shape
        raise ModelError(f"J is {height} x {width}; a pin in the plane takes two rows of all links")
    pairs = [np.array([r[k : k + 2] for r in rows]) for k in range(0, len(rows[0]), 2)]
    out = []
    for k, pair in enumerate(pairs):
        for signs in product((0.0, 1.0, -1.0), repeat=min(k, _MOST)):
            total = pair + sum(s * other for s, other in zip(signs, pairs, strict=False))
            pin = _pin(total, states, tree)
            if pin is not None:
                out.append(pin)
                break
        else:
            raise ModelError(
                f"rows {2 * k + 1} and {2 * k + 2} of J are not a pin between two links"
            )
    return out


def _pin(pair: Array, states: Sequence[Array], tree: PlaneTree) -> PinClosure | None:
    """The pin that two rows (states, 2, n) are, seen from axes turned by quarter turns."""
    touched = [k for k in range(len(tree.rows)) if np.abs(pair[:, :, k]).max() > _EXACT]
    ends = [k for k in touched if not any(k in tree.chain(j)[1:] for j in touched)]
    if not 1 <= len(ends) <= 2:
        return None
    # velocities of the points: known parts and, per end, what multiplies its point
    matrix, constants = [], []
    for th in states:
        frames = tree.frames(th)
        for k in range(len(tree.rows)):
            axis = frames[k].rotation[:, 2]
            row, fixed = np.zeros((2, 6)), np.zeros(2)
            for side, end in enumerate(ends):
                if k not in tree.chain(end):
                    continue
                sign = 1.0 - 2.0 * side
                if tree.turns[k]:
                    spin = np.cross(axis, np.eye(3)).T  # axis x
                    row[:, 3 * side : 3 * side + 3] = sign * (spin @ frames[end].rotation)[:2]
                    fixed += sign * (spin @ (frames[end].position - frames[k].position))[:2]
                else:
                    fixed += sign * axis[:2]
            matrix.append(row)
            constants.append(fixed)
    A, c = np.concatenate(matrix), np.concatenate(constants)
    for quarter in range(4):
        turn = np.linalg.matrix_power(np.array([[0.0, -1.0], [1.0, 0.0]]), quarter)
        b = np.einsum("ij,sjk->ski", turn, pair).ravel() - c
        x = np.linalg.lstsq(A, b, rcond=None)[0]
        if np.abs(A @ x - b).max() <= _EXACT * (1.0 + np.abs(pair).max()):
            x[:] = np.round(x, 12) + 0.0  # m: by least squares, 0.4 may be 0.39999999999999997
            return PinClosure(ends[0], ends[1] if len(ends) == 2 else None, x[:3], x[3:])
    return None


def loops_of_pins(
    pins: Sequence[PinClosure], tree: PlaneTree, th: Array, names: Sequence[str]
) -> tuple[tuple[Loop, ...], dict[int, Array], dict[str, float]]:
    """The pins as loops; hinges that must move for them to close at the coordinates th: J says
    nothing of where the ground is; and, by loop, the gaps [m] at th where the hinges are known: th
    is only a guess there.
    """
    frames = tree.frames(th)
    size = max((abs(x) for row in tree.rows for x in row[1:3]), default=1.0) or 1.0
    moved: dict[int, Array] = {}
    gaps: dict[str, float] = {}
    out = []
    for i, pin in enumerate(pins):
        ends = [(pin.first, pin.at_first), (pin.second, pin.at_second)]
        places = [
            at if k is None else frames[k].position + frames[k].rotation @ at for k, at in ends
        ]
        gap = places[0] - places[1]
        if np.abs(gap[:2]).max() > _ROUNDED * size:
            gap[2] = 0.0
            for side, (k, at) in enumerate(ends):
                sign = 2.0 * side - 1.0
                chain = [] if k is None else tree.chain(k)
                if not any(tree.turns[j] for j in chain):  # the ground, or a slide: J is blind
                    R = np.eye(3) if k is None else frames[k].rotation
                    ends[side] = (k, at + sign * (R.T @ gap))
                    break
            else:
                roots = [tree.chain(k)[-1] for k, _ in ends if k is not None]
                free = [r for r in roots[1:] if r not in tree.hinges and not any(tree.rows[r][1:3])]
                if free and len(pins) == 1 and len(set(roots)) == 2:
                    moved[free[0]] = frames[free[0]].position + gap
                elif free:
                    links = ", ".join(names[r] for r in sorted(set(free)))
                    text = f"which says where {links} is hinged to the ground"
                    raise ModelError(f"for_kine.m, {text}, is missing or not understood")
                else:
                    gaps[f"pin{i + 1}"] = float(np.linalg.norm(gap))
        first, second = (_end(k, at, frames, names) for k, at in ends)
        out.append(Loop(f"pin{i + 1}", "revolute", first, second, planar=True))
    return tuple(out), moved, gaps


def _end(k: int | None, at: Array, frames: Sequence[Frame], names: Sequence[str]) -> LoopEnd:
    """A frame at a point of a link, z along the world's."""
    if k is None:
        return LoopEnd(None, Frame(np.eye(3), at))
    upright = frames[k].rotation[2, 2] > 1.0 - _EXACT
    turn = np.eye(3) if upright else np.round(frames[k].rotation.T, 15)
    return LoopEnd(names[k], Frame(turn, at))
