"""Digits: errors against extended precision beside Pinocchio's, on real robots and in long chains."""

from __future__ import annotations

import pytest
from accuracy import ROBOTS, TIERS, medians
from extended_reference import EXTENDED

from ramify.formulations.stability import chain_errors

STATES = 200
MOST = 1.25
"""Median error over Pinocchio's: 1.1 (``make accuracy``), and the scatter of so few states."""
ALIKE = {"ur10", "a1", "go1", "laikago", "b1"}
"""Built like ur5 and anymal: left to ``make accuracy``."""


@pytest.mark.skipif(not EXTENDED, reason="this machine has no format wider than double")
@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in ALIKE])
def test_errors_beside_pinocchio(name: str) -> None:
    found = medians(name, STATES)
    for tier in TIERS:
        assert max(found.ratios(tier)) <= MOST, tier


@pytest.mark.parametrize("case", ["equal", "doubling", "halving"])
def test_chains_of_very_different_masses(case: str) -> None:
    """Rods up to 2^23 times heavier than the first keep their digits in every tier."""
    found = chain_errors(case, 24)
    assert max(found.rolled, found.unrolled, found.recursion) < 1.5e-15
