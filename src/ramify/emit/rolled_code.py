"""Loops over the links: one kernel per algorithm serves every robot.

``int64 NAME(int64 states, double **inputs, double **outputs, Robot *robot, double *scratch)``; a
Robot is ``{int64 links; int64 *parents; double *constants; double *extras; double *globals; int64
*marks; int64 *places; int64 most}``, ``most`` being the number of places. Records live in
``scratch``: slot k + 1 holds the fields of link k, each ``width`` doubles wide, slot 0 those of the
base; before them all stand those that the base alone has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.guards import MemoryGuard
from ramify.emit.rows import row_pointers, write_block, write_lanes, write_rest
from ramify.emit.values import LlvmValue
from ramify.emit.vector import emit
from ramify.emit.writer import Writer
from ramify.trace.graph import Graph, symbols
from ramify.trace.rolled_program import (
    Argument,
    Climb,
    Epilogue,
    LinkSteps,
    RolledProgram,
    Sweep,
    plain_steps,
)

_ROBOT: Final = {
    "links": "i64", "parents": "ptr", "constants": "ptr", "extras": "ptr", "globals": "ptr",
    "marks": "ptr", "places": "ptr", "most": "i64",
}  # fmt: skip


def rolled_scratch_doubles(program: RolledProgram, links: int, places: int, width: int) -> int:
    """Size of the scratch memory of one thread, in doubles, for a robot of ``links`` links whose
    transient records need ``places`` places: records, then (for more than one lane) matrices.
    """
    records = (links + 1) * _size(program.fields) + places * _size(program.transient_fields)
    records += _size(program.base)
    matrices = [
        (links + p.base_rows) * (links + p.columns) * p.count
        for p in program.outputs
        if p.per == "pair"
    ]
    return (records + (sum(matrices) if width > 1 else 0)) * width


def _size(fields: dict[int, int]) -> int:
    return 1 + max(fields.values(), default=0)


class RolledWriter:
    """Writes one function, pass after pass.

    ``row_strides``, for programs whose results are all matrices: the table of outputs continues
    with the distances between their states, in numbers, and for each a list of the blocks to write,
    preceded by its length. ``in_lanes``: the function takes one block of states and leaves the
    states of a matrix side by side, entry by entry, in memory that holds zeros.
    """

    def __init__(
        self,
        program: RolledProgram,
        target: CpuTarget,
        row_strides: bool = False,
        in_lanes: bool = False,
    ) -> None:
        self.program, self.row_strides = program, row_strides
        self.in_lanes = in_lanes and target.width > 1
        self.w = Writer(target)
        self.lasting_size, self.transient_size = (
            _size(program.fields),
            _size(program.transient_fields),
        )
        # addresses of transient and lasting records, by slot, in the pass being written
        self._places: dict[str, str] = {}
        self._slots: dict[str, str] = {}
        # in an inward pass: whether the link is a leaf, and the sums it then has not
        self._empty: tuple[str, set[int]] = ("", set())

    def text(self, name: str) -> str:
        """LLVM text."""
        w, width, program = self.w, self.w.width, self.program
        w.unpack("%robot", _ROBOT)
        self.inputs, self.outputs = (
            [self._port(f"%{table}", i, port) for i, port in enumerate(ports)]
            for table, ports in (("inputs", program.inputs), ("outputs", program.outputs))
        )
        lasting = w.mul(w.add("%links", 1), self.lasting_size * width)
        w.do(f"%slots = getelementptr double, ptr %scratch, i64 {_size(program.base) * width}")
        w.do(f"%brief = getelementptr double, ptr %slots, i64 {lasting}")
        self.guard = MemoryGuard(w)
        self._clear_matrices()
        w.begin_blocks()
        self.guard.start()
        for first in program.quaternions:
            self.guard.quaternion([self._gather(0, str(first + i)) for i in range(4)])
        for one, plain in zip(program.passes, plain_steps(program), strict=True):
            if isinstance(one, Sweep):
                self._sweep(one, plain)
            elif isinstance(one, Climb):
                self._climb(one)
            else:
                self._epilogue(one)
        self._write_matrices()
        w.end_blocks(self.guard.flags())
        return w.module(w.function(name, "inputs outputs robot scratch"))

    # ---- addresses ----

    def _port(self, table: str, index: int, port: Argument) -> tuple[str, str]:
        """Base address and numbers per state."""
        w = self.w
        base = w.item(table, index, "ptr")
        if port.per == "state":
            return base, str(port.count)
        if port.per == "link":
            return base, w.add(w.mul("%links", port.count), port.base_rows)
        rows, columns = (w.add("%links", n) for n in (port.base_rows, port.columns))
        return base, w.mul(w.mul(rows, columns), port.count)

    def _cell(self, port: int, row: str, column: str, number: int) -> str:
        """The position of a number from the links of its row and column."""
        w, argument = self.w, self.program.outputs[port]
        i, j = w.add(row, argument.base_rows), w.add(column, argument.columns)
        cell = i * w.add("%links", argument.columns) + j
        return cell if argument.count == 1 else cell * argument.count + number

    # ---- matrices: lanes side by side in scratch memory, transposed into rows at the end ----

    def _clear_matrices(self) -> None:
        """Entries between links of different branches are zero, in every block alike."""
        w = self.w
        self.matrices: dict[int, str] = {}
        start = w.at("%brief", w.mul("%most", self.transient_size * w.width))
        for i, port in enumerate(self.program.outputs):
            if port.per != "pair":
                continue
            base, size = self.outputs[i]
            if self.in_lanes:
                self.matrices[i] = base
                continue
            many = w.mul(size, w.width if w.width > 1 else "%states")
            self.matrices[i] = start if w.width > 1 else base
            w.clear(self.matrices[i], w.mul(many, 8))
            start = w.at(start, many)

    def _write_matrices(self) -> None:
        """All lanes' matrices into their rows."""
        w, many = self.w, len(self.outputs)
        if w.width == 1 or self.in_lanes:
            return
        for port, base in self.matrices.items():
            out, size = self.outputs[port]
            if not self.row_strides:
                write_lanes(w, base, row_pointers(w, out, size), size)
                continue
            rows = row_pointers(w, out, w.item("%outputs", many + port, "i64"))
            blocks = w.item("%outputs", 2 * many + port, "ptr")

            def chosen(
                i: str, base: str = base, rows: list[str] = rows, blocks: str = blocks
            ) -> None:
                write_block(w, base, rows, w.item(blocks, i, "i64"))

            last = w.add(w.put(f"load i64, ptr {blocks}"), 1)
            w.count(chosen, "1", last)
            write_rest(w, base, rows, size)

    def _field(self, slot: str, field: int) -> str:
        w = self.w
        if field in self.program.transient_fields:
            return w.at(
                "%brief", w.add(self._place(slot), self.program.transient_fields[field] * w.width)
            )
        if field in self.program.base:
            return w.at("%scratch", self.program.base[field] * w.width)
        if slot not in self._slots:
            self._slots[slot] = w.at("%slots", w.mul(slot, self.lasting_size * w.width))
        return w.at(self._slots[slot], self.program.fields[field] * w.width)

    def _place(self, slot: str) -> str:
        """Where the transient records of a slot begin."""
        w = self.w
        if slot not in self._places:
            index = w.item("%places", slot, "i64")
            self._places[slot] = w.mul(index, self.transient_size * w.width)
        return self._places[slot]

    def _load(self, slot: str, field: int) -> str:
        return self.w.load(self._field(slot, field))

    def _store(self, slot: str, field: int, value: str) -> None:
        self.w.store(value, self._field(slot, field))

    def _without(self, marks: LlvmValue, bit: int) -> str:
        """All bits set in all lanes where a mark is not set (see RobotTable)."""
        w, without = self.w, (marks & bit).equals(0)
        bits = w.typed("i64", f"sext i1 {without} to i64")
        return w.to_bits(w.splat(bits.bits_as("double")))

    def _where(self, mask: str, value: str) -> str:
        """The value where the mask is set, else zero; no branch."""
        w = self.w
        return w.from_bits(w.put(f"and {w.integer} {w.to_bits(value)}, {mask}"))

    def _lane_addresses(self, port: tuple[str, str], position: str) -> list[str]:
        """The address of number ``position`` of each lane's state."""
        w, (base, size) = self.w, port
        rows = (w.add("%row", lane) for lane in range(w.width))
        return [w.at(base, w.add(w.mul(row, size), position)) for row in rows]

    def _gather(self, port: int, position: str) -> str:
        w, addresses = self.w, self._lane_addresses(self.inputs[port], position)
        value = w.joined([w.put(f"load double, ptr {address}") for address in addresses])
        self.guard.finite(value)
        return value

    def _scatter(self, port: int, position: str, value: str) -> None:
        w = self.w
        self.guard.finite(value)
        if port in self.matrices and w.width > 1:
            w.store(value, w.at(self.matrices[port], w.mul(position, w.width)))
            return
        for i, address in enumerate(self._lane_addresses(self.outputs[port], position)):
            w.do(f"store double {w.lane(value, i)}, ptr {address}")

    def _symbol(self, who: dict[str, str], carried: dict[int, str]) -> Callable[[Any], str]:
        """Reads a symbol; ``who`` gives the slot of each link that the pass knows."""
        w, program = self.w, self.program

        def entry(of: str, count: int, index: int) -> str:
            return w.add(w.mul(w.sub(who[of], 1), count), index)

        def read(name: Any) -> str:
            match name:
                case "slot", field, of:
                    value, (leaf, sums) = self._load(who[of], field), self._empty
                    return self._where(leaf, value) if of == "k" and field in sums else value
                case "link", i, of:
                    return w.splat(w.item("%constants", entry(of, program.constants, i)))
                case "extra", i, of:
                    return w.splat(w.item("%extras", entry(of, program.extras, i)))
                case "in", port, i, of:
                    lead = program.inputs[port].base_rows
                    return self._gather(port, entry(of, program.inputs[port].count, lead + i))
                case "lane", port, i:
                    return self._gather(port, str(i))
                case "global", i:
                    return w.splat(w.item("%globals", i))
            return carried[name[1]]

        return read

    def _values(
        self,
        roots: list[int],
        who: dict[str, str],
        carried: dict[int, str] | None = None,
        graph: Graph | None = None,
    ) -> dict[int, str]:
        self._places, self._slots = {}, {}
        read = self._symbol(who, carried or {})
        return emit(self.w, graph or self.program.graph, roots, read, self.guard.angle)

    # ---- passes ----

    def _over_links(self, body: Callable[[str], None], inward: bool = False) -> None:
        """``body(slot)`` for every link."""
        if inward:
            self.w.repeat(body, "%links", 1, -1, until="slt")
        else:
            self.w.repeat(body, "1", "%links", until="sgt")

    def _parent(self, slot: str) -> str:
        """Slot of a link's parent: 0 for the base."""
        return self.w.add(self.w.item("%parents", self.w.sub(slot, 1), "i64"), 1)

    def _sweep(self, sweep: Sweep, plain: LinkSteps | None) -> None:
        """``plain``: what plain links compute, if they have separate code."""
        w = self.w
        values = self._values(list(sweep.roots.values()), {"root": "0"})
        for field, node in sweep.roots.items():
            self._store("0", field, values[node])
        self.guard.collect()
        if not (sweep.stores or sweep.sums or sweep.outputs):
            return

        def body(slot: str) -> None:
            marks = w.item("%marks", w.sub(slot, 1), "i64")
            every = LinkSteps(self.program.graph, {node: node for node in sweep.link_needs})
            if plain is None:
                self._step(sweep, every, slot, marks)
                return
            is_plain = (marks & 4).differs(0)
            label = w.name()[1:]
            w.fork(is_plain, f"{label}.plain", f"{label}.other")
            for name, steps in (("plain", plain), ("other", every)):
                w.label(f"{label}.{name}")
                self._step(sweep, steps, slot, marks)
                w.go(f"{label}.done")
            w.label(f"{label}.done")

        self._over_links(body, sweep.direction == "inward")

    def _step(self, sweep: Sweep, steps: LinkSteps, slot: str, marks: LlvmValue) -> None:
        """A link's part of a pass."""
        w = self.w
        who = {"k": slot, "parent": self._parent(slot), "root": "0"}
        first, leaf = (self._without(marks, bit) for bit in (1, 2)) if sweep.zeros else ("", "")
        self._empty = (leaf, set(sweep.zeros))
        emitted = self._values(list(steps.nodes.values()), who, graph=steps.graph)
        values = {node: emitted[new] for node, new in steps.nodes.items()}
        self._empty = ("", set())
        for field, node in sweep.stores.items():
            self._store(slot, field, values[node])
        for field, node, whose in sweep.sums:
            old = self._load(who[whose], field)
            old = self._where(first, old) if whose == "parent" else old
            self._store(who[whose], field, w.binary("fadd", old, values[node]))
        link = w.sub(slot, 1)
        for port, layout, i, node in sweep.outputs:
            argument = self.program.outputs[port]
            if layout == "row":
                place: str = link * argument.count + (argument.base_rows + i)
            elif layout == "diagonal":
                place = self._cell(port, link, link, i)
            else:  # beside a link, then above it
                rows = argument.base_rows
                number, i = divmod(i, 2 * rows)
                edge, above = str(i % rows - rows), i >= rows
                row, column = (edge, link) if above else (link, edge)
                place = self._cell(port, row, column, number)
            self._scatter(port, place, values[node])
        self.guard.collect()

    def _climb(self, climb: Climb) -> None:
        w, graph = self.w, self.program.graph
        if not climb.outputs:
            return
        entries = [node for i in climb.outputs for node in climb.entries[i]]
        read = {
            name[1]
            for _, name in symbols(graph, graph.reachable([*climb.carry, *entries]))
            if name[0] == "carry"
        }
        same = {i for i in read if graph.payload.get(climb.carry[i]) == ("carry", i)}
        changing = sorted(read - same)

        def body(slot: str) -> None:
            values = self._values([climb.start[i] for i in sorted(read)], {"k": slot, "root": "0"})
            self.guard.collect()
            label, above = w.name()[1:], self._parent(slot)
            i, j, up = f"%{label}.i", f"%{label}.j", f"%{label}.up"
            w.go(f"{label}.enter")
            w.label(f"{label}.enter")
            w.fork(w.put(f"icmp eq i64 {above}, 0"), f"{label}.done", f"{label}.body")
            w.label(f"{label}.body")
            w.do(f"{i} = phi i64 [{slot}, %{label}.enter], [{j}, %{label}.end]")
            w.do(f"{j} = phi i64 [{above}, %{label}.enter], [{up}, %{label}.end]")
            carried = {c: values[climb.start[c]] for c in same}
            for c in changing:
                carried[c] = f"%{label}.carry{c}"
                w.do(
                    f"{carried[c]} = phi {w.vector} [{values[climb.start[c]]}, %{label}.enter], "
                    f"[{carried[c]}.next, %{label}.end]"
                )
            roots = [*(climb.carry[c] for c in changing), *entries]
            pair_values = self._values(roots, {"i": i, "j": j, "root": "0"}, carried)
            row, column = w.sub(slot, 1), w.sub(j, 1)
            for which, (port, number) in climb.outputs.items():
                for cell, node in zip(
                    ((row, column), (column, row)), climb.entries[which], strict=True
                ):
                    if graph.payload.get(node) != 0.0:
                        self._scatter(port, self._cell(port, *cell, number), pair_values[node])
            self.guard.collect()
            for c in changing:  # a copy under a known name, for the phi above
                copy = pair_values[climb.carry[c]]
                w.do(f"{carried[c]}.next = select i1 true, {w.vector} {copy}, {w.vector} {copy}")
            w.do(f"{up} = add i64 {self._parent(j)}, 0")
            w.go(f"{label}.end")
            w.label(f"{label}.end")
            w.fork(w.put(f"icmp eq i64 {up}, 0"), f"{label}.done", f"{label}.body")
            w.label(f"{label}.done")

        self._over_links(body)

    def _epilogue(self, epilogue: Epilogue) -> None:
        values = self._values([node for *_, node in epilogue.outputs], {"root": "0"})
        for port, position, node in epilogue.outputs:
            if isinstance(position, int):
                place = str(position)
            else:
                row, column, number = position
                lead = self.program.outputs[port].base_rows
                place = self._cell(port, str(row - lead), str(column - lead), number)
            self._scatter(port, place, values[node])
        self.guard.collect()
