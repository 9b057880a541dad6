"""One compiled right-hand side for many robots: runs of one structure differ in numbers alone.

The traced right-hand side of a run is a graph whose leaves are symbols and numbers: folded
masses, offsets, gains, durations. Its *structure* is that graph with the numbers taken out; they
become further entries of the input u. Two runs whose robots, controllers or motions differ only in
values have the same structure, and one kernel serves both. A number that folds away (a mass of
zero, an angle of 90 degrees) gives a structure of its own. The structure depends on the run alone,
not on other runs: its results are the same, bit for bit, whoever shares its kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import Memo, cached_property
from ramify.kernels.robot_keys import robot_key
from ramify.plant.field import Field, FieldEntry
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.target import host
from ramify.trace.graph import Graph
from ramify.trace.program import Port, Program

MOST: Final = 256
"""Structures that are remembered."""
LARGEST: Final = 1e300
"""Numbers beyond it (an endless duration) stay in the code: kernels refuse inputs that are not
finite.
"""

_ON: ContextVar[bool] = ContextVar("sharing", default=False)


@contextmanager
def sharing() -> Iterator[None]:
    """Within it, ``rf.simulate`` and ``Scenario.run`` compile a structure once, however many robots
    have it.
    """
    token = _ON.set(True)
    try:
        yield
    finally:
        _ON.reset(token)


def lifted(program: Program) -> tuple[Program, Array]:
    """A program with its numbers as further entries of its last input, and those numbers."""
    old, graph, last = program.graph, Graph(), len(program.inputs) - 1
    first, numbers, place = program.inputs[last].size, list[float](), dict[int, int]()
    for node in program.order:
        op = old.ops[node]
        payload: Any = old.payload.get(node)
        if op == "const" and abs(payload) < LARGEST:
            op, payload = "symbol", (last, first + len(numbers))
            numbers.append(old.payload[node])
        place[node] = graph.copied(op, [place[a] for a in old.args[node]], payload)
    inputs = (*program.inputs[:last], Port(program.inputs[last].name, (first + len(numbers),)))
    results = tuple(tuple(place[node] for node in port) for port in program.results)
    bare = Program(program.name, graph, inputs, program.outputs, results)
    return bare, np.array(numbers, dtype=np.float64)


class Structure:
    """A right-hand side without its numbers: (t, y, [u, numbers]) -> y'."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def digest(self) -> str:
        p, g = self.program, self.program.graph
        said = (p.inputs, p.outputs, p.results, g.ops, g.args, sorted(g.payload.items()))
        return hashlib.sha256(repr(said).encode()).hexdigest()

    @cached_property
    def compiled(self) -> CompiledProgram:
        return CompiledProgram("field", self.program, f"shared {self.digest}")

    @cached_property
    def call(self) -> Callable[[Array, Array, Array], Array | None]:
        """y' of one state; None for an input that the kernel refuses."""
        return self.compiled.call(self.program.inputs, self.program.outputs, lambda *_: None)

    def rows(self, t: Array, y: Array, u: Array) -> Array:
        """y' for rows of t, y and [u, numbers]. Every row goes through full lanes, so that its
        neighbours do not matter.
        """
        count, width = len(t), host().width
        padded = [
            np.ascontiguousarray(np.concatenate([x, x[-1:].repeat(-count % width, axis=0)]))
            for x in (t[:, None], y, u)
        ]
        (out,) = self.compiled.rows(padded)
        return out[:count]


_structures: Final = Memo(MOST)
_last: dict[str, tuple[Structure, Array]] = {}


def structure_of(program: Program) -> tuple[Structure, Array]:
    """The structure of a program, remembered if it has been seen before, and the
    program's numbers.
    """
    bare, numbers = lifted(program)
    g = bare.graph
    key = (bare.inputs, bare.results, tuple(g.ops), tuple(g.args), tuple(g.payload.items()))
    return _structures.remember(key, lambda: Structure(bare)), numbers


@dataclass(frozen=True)
class SharedField(Field):
    """A field that shares its code with all fields of its structure; ``alone``: the field with code
    of its own.
    """

    alone: Field = field(kw_only=True)

    @cached_property
    def shared(self) -> tuple[Structure, Array]:
        """The structure and the numbers; those of the run before where only the start differs."""
        last = _last.get(self.alone.fingerprint)
        if last is None:
            _last.clear()
            last = _last[self.alone.fingerprint] = structure_of(self.alone.program)
        return last

    @property
    def program(self) -> Program:
        return self.shared[0].program

    @cached_property
    def fingerprint(self) -> str:
        robot = f" {robot_key(self.model)}" if self.model.loops else ""
        return f"shared {self.shared[0].digest}{robot}"

    @property
    def numbers(self) -> Array:
        return self.shared[1]

    @cached_property
    def entry(self) -> FieldEntry:
        structure = self.shared[0]
        return FieldEntry(structure.compiled.function(), structure.call)

    @cached_property
    def implicitly(self) -> Field:
        return _shared(self.alone.implicitly)

    @property
    def bare(self) -> Field:
        return self.alone.bare

    def accelerated(self, t: Array, y: Array, outside: Array) -> Array:
        structure, numbers = self.shared
        u = np.concatenate([outside, np.broadcast_to(numbers, (len(t), len(numbers)))], axis=1)
        return structure.rows(t, y, u)[:, self.state_slices[1]]


def _shared(field: Field) -> SharedField:
    return SharedField(**field.options, alone=field)


def shared(field: Field) -> Field:
    """The field as it is, or, within ``sharing()`` and where all of it can be compiled, one that
    shares its code.
    """
    alone = field.hard is not None or not field.compiles
    return field if alone or not _ON.get() else _shared(field)
