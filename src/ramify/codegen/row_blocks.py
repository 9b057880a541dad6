"""The loop that every kernel has around it: blocks of ``width`` rows, the last one overlapping the
one before.
"""

from __future__ import annotations

from collections.abc import Callable

from ramify.codegen.vector import Writer


def begin_blocks(w: Writer) -> None:
    """From ``%states`` rows on: in what follows, ``%row`` is the first row of a block."""
    w.do(f"%last = sub i64 %states, {w.width}")
    w.do("br label %block")
    w.label("block")
    w.do("%row = phi i64 [0, %entry], [%next, %finish]")
    w.do("%flags = phi i64 [0, %entry], [%flags.next, %finish]")


def end_blocks(w: Writer, flags: str) -> None:
    """Collect a block's flags and go on: one width further, but no later than the last full block;
    then return all flags.
    """
    w.do("br label %finish")
    w.label("finish")
    w.do(f"%flags.next = or i64 %flags, {flags}")
    following = w.put(f"add i64 %row, {w.width}")
    beyond = w.put(f"icmp sgt i64 {following}, %last")
    w.do(f"%next = select i1 {beyond}, i64 %last, i64 {following}")
    done = w.put("icmp sge i64 %row, %last")
    w.do(f"br i1 {done}, label %exit, label %block")
    w.label("exit")
    w.do("ret i64 %flags.next")


def count(w: Writer, body: Callable[[str], None], start: str, stop: str, step: int = 1) -> None:
    """``body(i)`` for i = start, start + step … while i < stop; downwards, while i >= stop."""
    label = w.name()[1:]
    w.do(f"br label %{label}.enter")
    w.label(f"{label}.enter")
    w.do(f"br label %{label}.test")
    w.label(f"{label}.test")
    w.do(f"%{label}.i = phi i64 [{start}, %{label}.enter], [%{label}.next, %{label}.end]")
    more = w.put(f"icmp {'slt' if step > 0 else 'sge'} i64 %{label}.i, {stop}")
    w.do(f"br i1 {more}, label %{label}.body, label %{label}.exit")
    w.label(f"{label}.body")
    body(f"%{label}.i")
    w.do(f"br label %{label}.end")
    w.label(f"{label}.end")
    w.do(f"%{label}.next = add i64 %{label}.i, {step}")
    w.do(f"br label %{label}.test")
    w.label(f"{label}.exit")


def function(name: str, arguments: str, w: Writer) -> str:
    """The whole function: pointers that do not overlap, beside the number of rows. Spilled vectors
    are kept within cache lines.
    """
    pointers = ", ".join(f"ptr noalias %{argument}" for argument in arguments.split())
    return "\n".join(
        [f'define i64 @{name}(i64 %states, {pointers}) "stackrealign" {{', "entry:", *w.lines, "}"]
    )
