"""Loops over the links: one kernel per algorithm serves every robot.

``int64 NAME(int64 states, double **inputs, double **outputs, Robot *robot, double *scratch)``; a
Robot is ``{int64 links; int64 *parents; double *constants; double *extras; double *globals; int64
*marks; int64 *places; int64 most}``, ``most`` being the number of places. Records live in
``scratch``: slot k + 1 holds the fields of link k, each ``width`` doubles wide, slot 0 those of the
base; before them all stand those that the base alone has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramify.codegen.guards import MemoryGuard
from ramify.codegen.row_blocks import begin_blocks, count, end_blocks, function
from ramify.codegen.rows import (
    load_number,
    row_pointers,
    write_block,
    write_lanes,
    write_rest,
)
from ramify.codegen.target import CpuTarget
from ramify.codegen.vector import Writer, emit
from ramify.trace.graph import Graph, symbols
from ramify.trace.rolled_program import (
    Argument,
    Climb,
    LinkSteps,
    Once,
    RolledProgram,
    Sweep,
    plain_steps,
)

_ROBOT = (
    "%links",
    "%parents",
    "%constants",
    "%extras",
    "%globals",
    "%marks",
    "%places",
    "%most",
)


def rolled_ir(
    program: RolledProgram,
    target: CpuTarget,
    name: str,
    apart: bool = False,
    in_lanes: bool = False,
) -> tuple[str, set[str]]:
    """LLVM text of one function, and the declarations it needs. ``apart``, for programs whose
    results are all matrices: behind the outputs' addresses stand the distances between their
    states, in numbers, and then for each a list of the blocks to be written, preceded by its
    length. ``in_lanes``: the function takes one block of states and leaves the states of a matrix
    side by side, entry by entry, in memory whose zeros are there already.
    """
    return _RolledWriter(program, target, apart, in_lanes).function(name)


def scratch_doubles(program: RolledProgram, links: int, places: int, width: int) -> int:
    """Size of the scratch memory of one thread, for a robot of so many links whose brief records
    need so many places: records, then (of more lanes than one) matrices.
    """
    records = (links + 1) * _size(program.fields) + places * _size(program.brief)
    records += _size(program.base)
    matrices = [
        (links + p.lead) * (links + p.columns) * p.count for p in program.outputs if p.per == "pair"
    ]
    return (records + (sum(matrices) if width > 1 else 0)) * width


def _size(fields: dict[int, int]) -> int:
    return 1 + max(fields.values(), default=0)


class _RolledWriter:
    """Writes one function, pass after pass."""

    def __init__(
        self, program: RolledProgram, target: CpuTarget, apart: bool, in_lanes: bool
    ) -> None:
        self.program, self.apart = program, apart
        self.in_lanes = in_lanes and target.width > 1
        self.w = Writer(target)
        self.fields, self.brief = _size(program.fields), _size(program.brief)
        # addresses of brief and lasting records, by slot, in the pass being written
        self._places: dict[str, str] = {}
        self._slots: dict[str, str] = {}
        # in an inward pass: whether the link is a leaf, and the sums it then has not
        self._empty: tuple[str, set[int]] = ("", set())
        self._labels = 0

    def function(self, name: str) -> tuple[str, set[str]]:
        w, width = self.w, self.w.width
        for i, what in enumerate(_ROBOT):
            place = w.put(f"getelementptr i64, ptr %robot, i64 {i}")
            w.do(f"{what} = load {'i64' if what in ('%links', '%most') else 'ptr'}, ptr {place}")
        self.inputs = [self._port("%inputs", i, port) for i, port in enumerate(self.program.inputs)]
        self.outputs = [
            self._port("%outputs", i, port) for i, port in enumerate(self.program.outputs)
        ]
        lasting = w.put(f"mul i64 {w.put('add i64 %links, 1')}, {self.fields * width}")
        w.do(f"%slots = getelementptr double, ptr %scratch, i64 {_size(self.program.base) * width}")
        w.do(f"%brief = getelementptr double, ptr %slots, i64 {lasting}")
        self.audit = MemoryGuard(w)
        self._clear_matrices()
        begin_blocks(w)
        self.audit.start()
        for first in self.program.quaternions:
            self.audit.quaternion([self._gather(self.inputs[0], str(first + i)) for i in range(4)])
        for one, plain in zip(self.program.passes, plain_steps(self.program), strict=True):
            if isinstance(one, Sweep):
                self._sweep(one, plain)
            elif isinstance(one, Climb):
                self._climb(one)
            else:
                self._once(one)
        self._write_matrices()
        end_blocks(w, self.audit.flags())
        return function(name, "inputs outputs robot scratch", w), w.intrinsics

    # ---- addresses ----

    def _port(self, table: str, index: int, port: Argument) -> tuple[str, str]:
        """Base address and numbers per state."""
        w = self.w
        base = w.put(f"load ptr, ptr {w.put(f'getelementptr ptr, ptr {table}, i64 {index}')}")
        if port.per == "state":
            return base, str(port.count)
        if port.per == "link":
            per_link = w.put(f"mul i64 %links, {port.count}")
            return base, w.put(f"add i64 {per_link}, {port.lead}")
        rows, columns = (w.put(f"add i64 %links, {n}") for n in (port.lead, port.columns))
        return base, w.put(f"mul i64 {w.put(f'mul i64 {rows}, {columns}')}, {port.count}")

    def _cell(self, port: int, row: str, column: str, number: int) -> str:
        """The place of a number, given links of its row and column."""
        w, argument = self.w, self.program.outputs[port]
        row = w.put(f"add i64 {row}, {argument.lead}")
        column = w.put(f"add i64 {column}, {argument.columns}")
        columns = w.put(f"add i64 %links, {argument.columns}")
        cell = w.put(f"add i64 {w.put(f'mul i64 {row}, {columns}')}, {column}")
        if argument.count == 1:
            return cell
        return w.put(f"add i64 {w.put(f'mul i64 {cell}, {argument.count}')}, {number}")

    # ---- matrices: lanes side by side in scratch memory, transposed into rows at the end ----

    def _clear_matrices(self) -> None:
        """Entries between links of different branches are zero, in every block alike."""
        w = self.w
        self.matrices: dict[int, str] = {}
        start = w.put(f"getelementptr double, ptr %brief, i64 {self._brief_size()}")
        for i, port in enumerate(self.program.outputs):
            if port.per != "pair":
                continue
            base, size = self.outputs[i]
            if self.in_lanes:
                self.matrices[i] = base
                continue
            many = w.put(f"mul i64 {size}, {w.width if w.width > 1 else '%states'}")
            self.matrices[i] = start if w.width > 1 else base
            w.intrinsics.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            w.do(
                f"call void @llvm.memset.p0.i64(ptr {self.matrices[i]}, i8 0, i64 "
                f"{w.put(f'mul i64 {many}, 8')}, i1 false)"
            )
            start = w.put(f"getelementptr double, ptr {start}, i64 {many}")

    def _brief_size(self) -> str:
        return self.w.put(f"mul i64 %most, {self.brief * self.w.width}")

    def _write_matrices(self) -> None:
        """All lanes' matrices into their rows."""
        w = self.w
        if w.width == 1 or self.in_lanes:
            return
        for port, base in self.matrices.items():
            out, size = self.outputs[port]
            if not self.apart:
                write_lanes(w, base, row_pointers(w, out, size), size)
                continue
            many = len(self.outputs)
            rows = row_pointers(w, out, load_number(w, "%outputs", many + port))
            listed = load_number(w, "%outputs", 2 * many + port)
            blocks = w.put(f"inttoptr i64 {listed} to ptr")

            def chosen(
                i: str, base: str = base, rows: list[str] = rows, blocks: str = blocks
            ) -> None:
                place = w.put(f"getelementptr i64, ptr {blocks}, i64 {i}")
                write_block(w, base, rows, w.put(f"load i64, ptr {place}"))

            last = w.put(f"add i64 {w.put(f'load i64, ptr {blocks}')}, 1")
            count(w, chosen, "1", last, 1)
            write_rest(w, base, rows, size)

    def _field(self, slot: str, field: int) -> str:
        w = self.w
        if field in self.program.brief:
            place = w.put(f"add i64 {self._place(slot)}, {self.program.brief[field] * w.width}")
            return w.put(f"getelementptr double, ptr %brief, i64 {place}")
        if field in self.program.base:
            offset = self.program.base[field] * w.width
            return w.put(f"getelementptr double, ptr %scratch, i64 {offset}")
        if slot not in self._slots:
            start = w.put(f"mul i64 {slot}, {self.fields * w.width}")
            self._slots[slot] = w.put(f"getelementptr double, ptr %slots, i64 {start}")
        offset = self.program.fields[field] * w.width
        return w.put(f"getelementptr double, ptr {self._slots[slot]}, i64 {offset}")

    def _place(self, slot: str) -> str:
        """Where the brief records of a slot begin."""
        w = self.w
        if slot not in self._places:
            index = w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %places, i64 {slot}')}")
            self._places[slot] = w.put(f"mul i64 {index}, {self.brief * w.width}")
        return self._places[slot]

    def _load(self, slot: str, field: int) -> str:
        return self.w.put(
            f"load {self.w.vector}, ptr {self._field(slot, field)}, align {8 * self.w.width}"
        )

    def _store(self, slot: str, field: int, value: str) -> None:
        self.w.do(
            f"store {self.w.vector} {value}, ptr {self._field(slot, field)}, align "
            f"{8 * self.w.width}"
        )

    def _without(self, marks: str, bit: int) -> str:
        """All bits set in all lanes where a mark is not set (see RobotTable)."""
        w = self.w
        without = w.put(f"icmp eq i64 {w.put(f'and i64 {marks}, {bit}')}, 0")
        bits = w.put(f"sext i1 {without} to i64")
        return w.put(
            f"bitcast {w.vector} {w.splat(w.put(f'bitcast i64 {bits} to double'))} to {w.integer}"
        )

    def _where(self, mask: str, value: str) -> str:
        """The value where the mask is set, else zero; no branch."""
        w = self.w
        bits = w.put(f"bitcast {w.vector} {value} to {w.integer}")
        return w.put(
            f"bitcast {w.integer} {w.put(f'and {w.integer} {bits}, {mask}')} to {w.vector}"
        )

    def _lane_addresses(self, port: tuple[str, str], position: str) -> list[str]:
        """Where each lane's number stands, ``position`` numbers into its state."""
        w, (base, size) = self.w, port
        out = []
        for lane in range(w.width):
            row = w.put(f"add i64 %row, {lane}")
            place = w.put(f"add i64 {w.put(f'mul i64 {row}, {size}')}, {position}")
            out.append(w.put(f"getelementptr double, ptr {base}, i64 {place}"))
        return out

    def _gather(self, port: tuple[str, str], position: str) -> str:
        w = self.w
        lanes = [
            w.put(f"load double, ptr {address}") for address in self._lane_addresses(port, position)
        ]
        value = lanes[0]
        if w.width > 1:
            value = "poison"
            for i, lane in enumerate(lanes):
                value = w.put(f"insertelement {w.vector} {value}, double {lane}, i64 {i}")
        self.audit.finite(value)
        return value

    def _scatter(self, port: int, position: str, value: str) -> None:
        w = self.w
        self.audit.finite(value)
        if port in self.matrices and w.width > 1:
            place = w.put(f"mul i64 {position}, {w.width}")
            address = w.put(f"getelementptr double, ptr {self.matrices[port]}, i64 {place}")
            w.do(f"store {w.vector} {value}, ptr {address}, align {8 * w.width}")
            return
        for i, address in enumerate(self._lane_addresses(self.outputs[port], position)):
            lane = value if w.width == 1 else w.put(f"extractelement {w.vector} {value}, i64 {i}")
            w.do(f"store double {lane}, ptr {address}")

    def _symbol(self, who: dict[str, str], carried: dict[int, str]) -> Callable[[Any], str]:
        """Reads a symbol; ``who`` gives the slot of each link that the pass knows."""
        w = self.w

        def link(name: str) -> str:
            return w.put(f"sub i64 {who[name]}, 1")

        def table(base: str, width: int, index: int, of: str) -> str:
            place = w.put(f"add i64 {w.put(f'mul i64 {link(of)}, {width}')}, {index}")
            return w.splat(
                w.put(f"load double, ptr {w.put(f'getelementptr double, ptr {base}, i64 {place}')}")
            )

        def read(name: Any) -> str:
            kind = name[0]
            if kind == "slot":
                value = self._load(who[name[2]], name[1])
                leaf, sums = self._empty
                return self._where(leaf, value) if name[2] == "k" and name[1] in sums else value
            if kind == "link":
                return table("%constants", self.program.constants, name[1], name[2])
            if kind == "extra":
                return table("%extras", self.program.extras, name[1], name[2])
            if kind == "in":
                port = self.program.inputs[name[1]]
                first = w.put(f"mul i64 {link(name[3])}, {port.count}")
                return self._gather(
                    self.inputs[name[1]], w.put(f"add i64 {first}, {port.lead + name[2]}")
                )
            if kind == "lane":
                return self._gather(self.inputs[name[1]], str(name[2]))
            if kind == "global":
                return w.splat(
                    w.put(
                        "load double, ptr "
                        f"{w.put(f'getelementptr double, ptr %globals, i64 {name[1]}')}"
                    )
                )
            return str(carried[name[1]])

        return read

    def _values(
        self,
        roots: list[int],
        who: dict[str, str],
        carried: dict[int, str] | None = None,
        graph: Graph | None = None,
    ) -> dict[int, str]:
        read = self._symbol(who, carried or {})
        return emit(self.w, graph or self.program.graph, roots, read, self.audit.angle)

    # ---- passes ----

    def _label(self) -> str:
        self._labels += 1
        return f"loop{self._labels}"

    def _over_links(self, body: Callable[[str], None], direction: str = "outward") -> None:
        """``body(slot)`` for every link."""
        w, label = self.w, self._label()
        start, step = ("%links", -1) if direction == "inward" else ("1", 1)
        w.do(f"br label %{label}.enter")
        w.label(f"{label}.enter")
        w.do(f"br label %{label}")
        w.label(label)
        w.do(f"%{label}.slot = phi i64 [{start}, %{label}.enter], [%{label}.next, %{label}.end]")
        body(f"%{label}.slot")
        w.do(f"br label %{label}.end")
        w.label(f"{label}.end")
        w.do(f"%{label}.next = add i64 %{label}.slot, {step}")
        bound = "%links" if step > 0 else "1"
        done = w.put(f"icmp {'sgt' if step > 0 else 'slt'} i64 %{label}.next, {bound}")
        w.do(f"br i1 {done}, label %{label}.exit, label %{label}")
        w.label(f"{label}.exit")

    def _parent(self, slot: str) -> str:
        """Slot of a link's parent: 0 for the base."""
        w = self.w
        link = w.put(f"sub i64 {slot}, 1")
        parent = w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %parents, i64 {link}')}")
        return w.put(f"add i64 {parent}, 1")

    def _sweep(self, sweep: Sweep, plain: LinkSteps | None) -> None:
        """``plain``: what plain links compute, where they have code of their own."""
        w = self.w
        self._places, self._slots = {}, {}
        values = self._values(list(sweep.roots.values()), {"root": "0"})
        for field, node in sweep.roots.items():
            self._store("0", field, values[node])
        self.audit.collect()
        if not (sweep.stores or sweep.sums or sweep.outputs):
            return

        def body(slot: str) -> None:
            link = w.put(f"sub i64 {slot}, 1")
            marks = w.put(f"load i64, ptr {w.put(f'getelementptr i64, ptr %marks, i64 {link}')}")
            every = LinkSteps(self.program.graph, {node: node for node in sweep.steps})
            if plain is None:
                self._step(sweep, every, slot, marks)
                return
            is_plain = w.put(f"icmp ne i64 {w.put(f'and i64 {marks}, 4')}, 0")
            label = self._label()
            w.do(f"br i1 {is_plain}, label %{label}.plain, label %{label}.other")
            for name, steps in (("plain", plain), ("other", every)):
                w.label(f"{label}.{name}")
                self._step(sweep, steps, slot, marks)
                w.do(f"br label %{label}.done")
            w.label(f"{label}.done")

        self._over_links(body, sweep.direction)

    def _step(self, sweep: Sweep, steps: LinkSteps, slot: str, marks: str) -> None:
        """A link's part of a pass."""
        w = self.w
        self._places, self._slots = {}, {}
        who = {"k": slot, "parent": self._parent(slot), "root": "0"}
        first, leaf = (self._without(marks, bit) for bit in (1, 2)) if sweep.zeros else ("", "")
        self._empty = (leaf, set(sweep.zeros))
        found = self._values(list(steps.nodes.values()), who, graph=steps.graph)
        values = {node: found[new] for node, new in steps.nodes.items()}
        self._empty = ("", set())
        for field, node in sweep.stores.items():
            self._store(slot, field, values[node])
        for field, node, whose in sweep.sums:
            old = self._load(who[whose], field)
            old = self._where(first, old) if whose == "parent" else old
            self._store(who[whose], field, w.binary("fadd", old, values[node]))
        link = w.put(f"sub i64 {slot}, 1")
        for port, layout, i, node in sweep.outputs:
            argument = self.program.outputs[port]
            if layout == "row":
                start = w.put(f"mul i64 {link}, {argument.count}")
                place = w.put(f"add i64 {start}, {argument.lead + i}")
            elif layout == "diagonal":
                place = self._cell(port, link, link, i)
            else:  # beside a link, then above it
                number, i = divmod(i, 2 * argument.lead)
                edge, above = str(i % argument.lead - argument.lead), i >= argument.lead
                place = self._cell(port, *((edge, link) if above else (link, edge)), number)
            self._scatter(port, place, values[node])
        self.audit.collect()

    def _climb(self, climb: Climb) -> None:
        w, label, graph = self.w, self._label(), self.program.graph
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
            self._places, self._slots = {}, {}
            starts = [climb.start[i] for i in sorted(read)]
            values = self._values(starts, {"k": slot, "root": "0"})
            self.audit.collect()
            above = self._parent(slot)
            w.do(f"br label %{label}.enter")
            w.label(f"{label}.enter")
            at_base = w.put(f"icmp eq i64 {above}, 0")
            w.do(f"br i1 {at_base}, label %{label}.done, label %{label}")
            w.label(label)
            w.do(f"%{label}.i = phi i64 [{slot}, %{label}.enter], [%{label}.j, %{label}.end]")
            w.do(f"%{label}.j = phi i64 [{above}, %{label}.enter], [%{label}.up, %{label}.end]")
            self._places, self._slots = {}, {}
            carried = {i: values[climb.start[i]] for i in same}
            for i in changing:
                carried[i] = f"%{label}.carry{i}"
                w.do(
                    f"{carried[i]} = phi {w.vector} [{values[climb.start[i]]}, %{label}.enter], "
                    f"[{carried[i]}.next, %{label}.end]"
                )
            found = self._values(
                [*(climb.carry[i] for i in changing), *entries],
                {"i": f"%{label}.i", "j": f"%{label}.j", "root": "0"},
                carried,
            )
            k, j = w.put(f"sub i64 {slot}, 1"), w.put(f"sub i64 %{label}.j, 1")
            for which, (port, number) in climb.outputs.items():
                for row, column, node in zip((k, j), (j, k), climb.entries[which], strict=True):
                    if graph.payload.get(node) != 0.0:
                        self._scatter(port, self._cell(port, row, column, number), found[node])
            self.audit.collect()
            for i in changing:  # a copy under a known name, for the phi above
                copy = found[climb.carry[i]]
                w.do(f"{carried[i]}.next = select i1 true, {w.vector} {copy}, {w.vector} {copy}")
            up = self._parent(f"%{label}.j")
            w.do(f"%{label}.up = add i64 {up}, 0")
            w.do(f"br label %{label}.end")
            w.label(f"{label}.end")
            finished = w.put(f"icmp eq i64 %{label}.up, 0")
            w.do(f"br i1 {finished}, label %{label}.done, label %{label}")
            w.label(f"{label}.done")

        self._over_links(body)

    def _once(self, once: Once) -> None:
        self._places, self._slots = {}, {}
        values = self._values([node for *_, node in once.outputs], {"root": "0"})
        for port, position, node in once.outputs:
            if isinstance(position, int):
                place = str(position)
            else:
                row, column, number = position
                lead = self.program.outputs[port].lead
                place = self._cell(port, str(row - lead), str(column - lead), number)
            self._scatter(port, place, values[node])
        self.audit.collect()
