"""The equations of motion with position servos at the joints, whose targets are the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ramify.codegen.cache_keys import digest
from ramify.core.scalar import Scalar
from ramify.sim.field import Field


@dataclass(frozen=True)
class ServoField(Field):
    """A field whose inputs u are targets of the joints: the force on rate j is
    kp (u_j - q_j) - kd v_j, within the effort of its drive; rates with neither gain feel none.
    """

    kp: tuple[float, ...] = ()
    kd: tuple[float, ...] = ()

    def observe(
        self, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar]
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar], list[Scalar]]:
        plain = dict(zip(self.model.layout.plain_v, self.model.layout.plain_q, strict=True))
        v = y[self.parts[1]]
        forces: list[Scalar] = [0.0] * self.model.nv
        for j, (k, d) in enumerate(zip(self.kp, self.kd, strict=True)):
            if k or d:
                forces[j] = k * (u[j] - y[plain[j]]) - d * v[j]
        return super().observe(t, y, forces)

    @cached_property
    def fingerprint(self) -> str:
        return digest(super().fingerprint, repr((self.kp, self.kd)), "servo")
