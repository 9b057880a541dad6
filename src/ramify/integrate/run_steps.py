"""The steps of one run."""

from __future__ import annotations

from ramify.core.arrays import Array
from ramify.integrate.integrator import Adaptive
from ramify.integrate.options import Options
from ramify.integrate.run_segments import (
    AdaptiveSegment,
    FixedSegment,
    LoopClosing,
    RunState,
    StepChunk,
)
from ramify.plant.rates import Rates


class RunSteps(RunState):
    """The steps of one run, from (0, y) to the end: see ``driver.TimeSteps``."""

    def __init__(
        self, rates: Rates, options: Options, y: Array, one_by_one: bool = False,
        closing: LoopClosing | None = None,
    ) -> None:  # fmt: skip
        super().__init__(rates, options, options.integrator, y, options.t_end, one_by_one, closing)
        self.status, self.ended, self.restart = "finished", False, False
        self.segment: AdaptiveSegment | FixedSegment | None = None

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end, or been ended."""
        return self.ended or (
            self.segment is None and not self.t < self.options.t_end * (1.0 - 1e-12)
        )

    @property
    def at_boundary(self) -> bool:
        return self.segment is None

    def limit(self, until: float) -> None:
        """Let the next segment end at this time at the latest."""
        self.until = min(self.until, until)

    def end(self, status: str) -> None:
        """End the run after this chunk."""
        self.status, self.ended = status, True

    def advance(self) -> StepChunk:
        if self.segment is None:
            adaptive = isinstance(self.integrator.method, Adaptive)
            self.segment = (AdaptiveSegment if adaptive else FixedSegment)(self)
        chunk, closing = self.segment.advance(), self.closing
        if closing is None:
            return chunk
        y, close = chunk.y, closing.step if self.multistep else closing.state
        return StepChunk(chunk.start, chunk.end, lambda t: close(y(t)))

    def accept(self, chunk: StepChunk) -> None:
        self.t, self.y = chunk.reached, chunk.y(chunk.reached)

    def settle(self) -> None:
        if self.ended:
            return
        assert self.segment is not None
        if not self.restart:
            self.segment.settle()
        if self.restart or self.segment.finished:
            self.segment, self.restart, self.until = None, False, self.options.t_end
