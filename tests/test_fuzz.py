"""A bounded run of the fuzzer; ``make fuzz`` runs it for hours."""

from __future__ import annotations

import pytest
from fuzzing import TARGETS, prepare, run


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_input_gives_an_answer_or_an_error(target: str) -> None:
    prepare()
    outcomes = {run(target, seed) for seed in range(TARGETS[target][1])}
    assert "answer" in outcomes  # the undamaged input is sound
