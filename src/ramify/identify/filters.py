"""One low-pass filter for all that is measured: a sinc under a Kaiser window. Derivatives are
five-point stencils folded into it; each half period of its band has one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.cached import cached_property

ATTENUATION: Final = 70.0
"""dB beyond the band; within it gains differ from one by as little, so that a filtered torque is
that of the filtered coordinates."""
_BETA: Final = 0.1102 * (ATTENUATION - 8.7)
_FIRST: Final = np.array([-1.0, 8.0, 0.0, -8.0, 1.0]) / 12.0
_SECOND: Final = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
"""Stencils in the order of a convolution."""


@dataclass(frozen=True)
class LowPass:
    """A filter with -6 dB at ``cutoff`` Hz, for samples ``dt`` s apart, that passes up to half of
    it and stops from one and a half times of it.
    """

    cutoff: float
    dt: float

    @cached_property
    def half(self) -> int:
        """Samples on each side of a filtered one."""
        width = self.cutoff * self.dt
        return max(2, math.ceil((ATTENUATION - 7.95) / (14.36 * width) / 2.0))

    @property
    def reach(self) -> int:
        """Samples that a derivative needs on each side."""
        return self.half + 2

    @property
    def stride(self) -> int:
        """Samples from one row of a fit to the next."""
        return max(1, round(1.0 / (2.0 * self.cutoff * self.dt)))

    def taps(self, shift: float = 0.0, pad: int = 0) -> Array:
        """The weights of 2 (half + pad) + 1 samples, the filter moved by ``shift`` s."""
        n = self.half + pad
        t = np.arange(-n, n + 1) * self.dt - shift
        x = np.clip(t / ((self.half + 1) * self.dt), -1.0, 1.0)
        window = np.i0(_BETA * np.sqrt(1.0 - x * x)) / np.i0(_BETA)
        h = np.sinc(2.0 * self.cutoff * t) * np.where(np.abs(x) < 1.0, window, 0.0)
        return np.asarray(h / h.sum(), dtype=np.float64)

    def derivative_taps(self, order: int) -> Array:
        """The weights of 2 reach + 1 samples that give a filtered signal (0), or its first or
        second derivative.
        """
        if order == 0:
            return np.pad(self.taps(), 2)
        return np.convolve(self.taps(), _FIRST if order == 1 else _SECOND) / self.dt**order

    def everywhere(self, x: Array, taps: Array) -> Array:
        """The filtered x (T - len(taps) + 1, n) at each sample that has all its neighbours."""
        from scipy.signal import oaconvolve

        return np.asarray(oaconvolve(x, taps[:, None], mode="valid", axes=0), dtype=np.float64)

    def at(self, x: Array, taps: Array, centres: NDArray[np.intp]) -> Array:
        """The filtered x (len(centres), n) at some samples."""
        half = len(taps) // 2
        windows = np.lib.stride_tricks.sliding_window_view(x, len(taps), axis=0)[centres - half]
        return np.asarray(windows @ taps[::-1], dtype=np.float64)
