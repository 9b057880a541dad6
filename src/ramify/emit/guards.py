"""Running checks inside a kernel: numbers that are not finite, angles too large for our sine and
cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramify.emit.values import LlvmValue
from ramify.emit.writer import Writer

NOT_FINITE: Final = 1
HUGE_ANGLE: Final = 2
NOT_UNIT: Final = 4
_UNIT: Final = 1.9e-4  # of a quaternion's squared length; Python then looks closer


class Guard:
    """A sum of 0 * x that stays zero while every x is finite, the largest angle, the quaternion
    furthest from unit length.

    In registers: straight-line code only.
    """

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.sums = [writer.const(0.0)] * 4
        self.largest = ""
        self.furthest = ""
        self._turn = 0

    def quaternion(self, parts: Sequence[str]) -> None:
        self.furthest = self._larger(self.furthest, _off_unit(self.w, parts))

    def finite(self, x: str) -> None:
        i = self._turn = (self._turn + 1) % len(self.sums)
        self.sums[i] = self.w.multiply_add(x, self.w.const(0.0), self.sums[i])

    def angle(self, x: str) -> None:
        self.largest = self._larger(self.largest, self.w.call("fabs", x))

    def _larger(self, a: str, b: str) -> str:
        return self.w.call("maxnum", a, b) if a else b

    def flags(self) -> str:
        total = self.sums[0]
        for s in self.sums[1:]:
            total = self.w.binary("fadd", total, s)
        flags = _flags(self.w, total, self.largest)
        if self.furthest:
            flags = self.w.put(f"or i64 {flags}, {_not_unit(self.w, self.furthest)}")
        return flags


class MemoryGuard:
    """A guard with its sums in memory, for code with loops over the links."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self._pending: list[str] = []
        self._unit = "0"
        for slot in ("sum", "angle"):
            writer.do(f"%audit.{slot} = alloca {writer.vector}, align 64")

    def start(self) -> None:
        for slot in ("sum", "angle"):
            self.w.store(self.w.const(0.0), f"%audit.{slot}", 64)

    def quaternion(self, parts: Sequence[str]) -> None:
        """Check a quaternion; to be called before the passes."""
        flag = _not_unit(self.w, _off_unit(self.w, parts))
        self._unit = self.w.put(f"or i64 {self._unit}, {flag}")

    def finite(self, x: str) -> None:
        """To be looked at by the next ``collect``, in the same piece of straight-line code."""
        self._pending.append(x)

    def collect(self) -> None:
        """Add what has been seen to the sum in memory, at once: one such step waits for the
        last.
        """
        if not self._pending:
            return
        total = self.w.const(0.0)
        for x in self._pending:
            total = self.w.multiply_add(x, self.w.const(0.0), total)
        old = self.w.load("%audit.sum", 64)
        self.w.store(self.w.binary("fadd", old, total), "%audit.sum", 64)
        self._pending = []

    def angle(self, x: str) -> None:
        old = self.w.load("%audit.angle", 64)
        self.w.store(self.w.call("maxnum", old, self.w.call("fabs", x)), "%audit.angle", 64)

    def flags(self) -> str:
        total, largest = (self.w.load(f"%audit.{slot}", 64) for slot in ("sum", "angle"))
        return self.w.put(f"or i64 {self._unit}, {_flags(self.w, total, largest)}")


def square(w: Writer, parts: Sequence[str]) -> LlvmValue:
    """The squared length of a quaternion."""
    total = w.binary("fmul", parts[0], parts[0])
    for x in parts[1:]:
        total = w.multiply_add(x, x, total)
    return total


def _off_unit(w: Writer, parts: Sequence[str]) -> str:
    """How far the squared length of a quaternion is from one."""
    return w.call("fabs", w.binary("fsub", square(w, parts), w.const(1.0)))


def _not_unit(w: Writer, off: str) -> str:
    return _flag(w, w.compare("ogt", off, w.const(_UNIT)), NOT_UNIT)


def _flags(w: Writer, total: str, largest: str) -> str:
    """The kernel's result: NOT_FINITE and HUGE_ANGLE as bits."""
    flags = _flag(w, w.compare("uno", total, total), NOT_FINITE)
    if largest:
        huge = _flag(w, w.compare("ogt", largest, w.const(w.angle_limit)), HUGE_ANGLE)
        flags = w.put(f"or i64 {flags}, {huge}")
    return flags


def _flag(w: Writer, condition: str, flag: int) -> str:
    return w.put(f"select i1 {w.any(condition)}, i64 {flag}, i64 0")
