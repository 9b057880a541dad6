"""Values of LLVM code: names with their types, on which arithmetic writes instructions.

``where(error < inf, 0.9 / error, 0.2)`` writes a comparison, a division and a selection, in the
order in which Python evaluates them. Numbers of Python become literals of the type of the value
beside them.
"""

from __future__ import annotations

import struct
from typing import Protocol


def double_literal(x: float) -> str:
    """A double as LLVM writes it, to the bit."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', x))[0]:016X}"


class Instructions(Protocol):
    """The function that is being written, to which values append their instructions."""

    def put(self, text: str) -> str: ...

    def literal(self, x: float, kind: str) -> str: ...


Operand = str | float
"""A value, the name of one, or a Python number."""


class LlvmValue(str):
    """The name or the literal of a value, with its type ``kind`` and the ``lines`` of its function.

    ``+ - * /`` (and ``// %`` of integers), ``& | ^`` and ``< <= > >=`` write instructions; the
    comparison for equality is ``equals``, since ``==`` compares names. Vectors work lane by lane.
    ``//`` and ``%`` round towards zero, as in C. A value is a str, but ``+`` and ``%`` do not join
    or format text: use f-strings.
    """

    __slots__ = ("kind", "lines")
    kind: str
    lines: Instructions

    def __new__(cls, name: str, kind: str, lines: Instructions) -> LlvmValue:
        value = str.__new__(cls, name)
        value.kind, value.lines = kind, lines
        return value

    @property
    def is_real(self) -> bool:
        """Whether it is a floating-point number, or a vector of these."""
        return "double" in self.kind or "float" in self.kind

    @property
    def truth(self) -> str:
        """The LLVM type of the result of a comparison."""
        return f"{self.kind.partition(' x ')[0]} x i1>" if self.kind[0] == "<" else "i1"

    def operand(self, x: Operand) -> str:
        """A number as a literal of this type; a value or its name as it is."""
        return x if isinstance(x, str) else self.lines.literal(x, self.kind)

    def _write(self, op: str, a: Operand, b: Operand) -> LlvmValue:
        text = f"{op} {self.kind} {self.operand(a)}, {self.operand(b)}"
        return LlvmValue(self.lines.put(text), self.kind, self.lines)

    def _compare(self, real: str, whole: str, b: Operand) -> LlvmValue:
        op = f"fcmp {real}" if self.is_real else f"icmp {whole}"
        text = f"{op} {self.kind} {self}, {self.operand(b)}"
        return LlvmValue(self.lines.put(text), self.truth, self.lines)

    def __add__(self, other: Operand) -> LlvmValue:
        return self._write("fadd" if self.is_real else "add", self, other)

    def __radd__(self, other: Operand) -> LlvmValue:
        return self._write("fadd" if self.is_real else "add", other, self)

    def __sub__(self, other: Operand) -> LlvmValue:
        return self._write("fsub" if self.is_real else "sub", self, other)

    def __rsub__(self, other: Operand) -> LlvmValue:
        return self._write("fsub" if self.is_real else "sub", other, self)

    def __mul__(self, other: Operand) -> LlvmValue:  # type: ignore[override]
        return self._write("fmul" if self.is_real else "mul", self, other)

    def __rmul__(self, other: Operand) -> LlvmValue:  # type: ignore[override]
        return self._write("fmul" if self.is_real else "mul", other, self)

    def __truediv__(self, other: Operand) -> LlvmValue:
        return self._write("fdiv", self, other)

    def __rtruediv__(self, other: Operand) -> LlvmValue:
        return self._write("fdiv", other, self)

    def __floordiv__(self, other: Operand) -> LlvmValue:
        return self._write("sdiv", self, other)

    def __mod__(self, other: Operand) -> LlvmValue:
        return self._write("srem", self, other)

    def __and__(self, other: Operand) -> LlvmValue:
        return self._write("and", self, other)

    def __or__(self, other: Operand) -> LlvmValue:
        return self._write("or", self, other)

    def __xor__(self, other: Operand) -> LlvmValue:
        return self._write("xor", self, other)

    def __lt__(self, other: Operand) -> LlvmValue:  # type: ignore[override, misc]
        return self._compare("olt", "slt", other)

    def __le__(self, other: Operand) -> LlvmValue:  # type: ignore[override, misc]
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Operand) -> LlvmValue:  # type: ignore[override, misc]
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Operand) -> LlvmValue:  # type: ignore[override, misc]
        return self._compare("oge", "sge", other)

    def equals(self, other: Operand) -> LlvmValue:
        """Whether two values are equal."""
        return self._compare("oeq", "eq", other)

    def differs(self, other: Operand) -> LlvmValue:
        """Whether two values differ; false where one of two real values is NaN."""
        return self._compare("one", "ne", other)

    def to_real(self) -> LlvmValue:
        """An integer as a double."""
        return LlvmValue(
            self.lines.put(f"sitofp {self.kind} {self} to double"), "double", self.lines
        )

    def to_whole(self) -> LlvmValue:
        """A double as an integer, rounded towards zero."""
        return LlvmValue(self.lines.put(f"fptosi {self.kind} {self} to i64"), "i64", self.lines)

    def bits_as(self, kind: str) -> LlvmValue:
        """Its bits, read as a value of another type."""
        return LlvmValue(self.lines.put(f"bitcast {self.kind} {self} to {kind}"), kind, self.lines)


def where(condition: LlvmValue, a: Operand, b: Operand) -> LlvmValue:
    """a where a condition holds, else b."""
    typed = a if isinstance(a, LlvmValue) else b
    if not isinstance(typed, LlvmValue):
        raise TypeError(f"one of {a!r} and {b!r} must be a value with a type")
    kind, x, y = typed.kind, typed.operand(a), typed.operand(b)
    text = f"select {condition.kind} {condition}, {kind} {x}, {kind} {y}"
    return LlvmValue(condition.lines.put(text), kind, condition.lines)
