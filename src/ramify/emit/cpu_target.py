"""The processor that code is emitted for."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CpuTarget:
    """What code is emitted for: ``width`` lanes of numbers of so many ``bits`` (64: doubles, 32:
    single precision), ``fma`` where the machine has it, the CPU's name and features.
    """

    width: int
    fma: bool
    cpu: str
    features: str
    bits: int = 64

    def with_width(self, width: int) -> CpuTarget:
        return replace(self, width=width)

    def in_single(self) -> CpuTarget:
        """Single precision: twice the lanes."""
        return replace(self, width=2 * self.width, bits=32)
