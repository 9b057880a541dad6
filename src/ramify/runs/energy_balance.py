"""The energy balance of a run (appendix C): the one that audits, plots, exports and studies use."""

from __future__ import annotations

from typing import NamedTuple

from ramify.core.arrays import Array


class EnergyBalance(NamedTuple):
    """Energy over time and what changed it, each (T,), in J: ``kinetic``, ``potential`` (springs,
    stops and tendons included) and what the ``ground`` stores; and since the first row the work of
    the joint forces (``actuator``), that of external ``wrenches``, what was ``dissipated``, and
    what the steps of hard contact themselves have added (``scheme``): their error of
    discretisation, counted step by step.
    """

    kinetic: Array
    potential: Array
    ground: Array
    actuator: Array
    wrenches: Array
    dissipated: Array
    scheme: Array | float = 0.0

    @property
    def error(self) -> Array:
        """e (T,), in J: what the energy E = T + V + S has gained beyond the work done, losses
        added: e = E - E(0) - W_act + W_diss - W_ext - W_scheme. Zero in an exact run.
        """
        total, stored = self.kinetic + self.potential, self.ground
        gained = total - total[0] + (stored - stored[0])
        return gained - self.actuator + self.dissipated - self.wrenches - self.scheme

    @property
    def conserved(self) -> Array:
        """(T,), in J: the energy that an exact run keeps, E - W_act + W_diss - W_ext."""
        return self.kinetic[0] + self.potential[0] + self.ground[0] + self.error
