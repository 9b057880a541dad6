"""Forces of a run as arrows in its scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.view.scene import Scene

LONGEST: Final = 0.9
"""The longest arrow of a force, in sizes of the robot."""


@dataclass(frozen=True, eq=False)
class Arrows:
    """Forces to draw, z up: names (n), positions (T, n, 3) in m and forces (T, n, 3) in N."""

    names: tuple[str, ...]
    position: Array
    force: Array

    def drawn(self, scene: Scene) -> Array:
        """The forces as arrows (T, n, 3) in m: none where they are tiny, shorter where they would
        leave the picture.
        """
        arrows = arrow_scale(scene, self.force) * np.nan_to_num(self.force)
        length = np.linalg.norm(arrows, axis=-1, keepdims=True)
        longest = LONGEST * scene.size
        fit = np.minimum(1.0, longest / np.maximum(length, 1e-300))
        found: Array = np.where(length > 1e-3 * scene.size, fit * arrows, 0.0)
        return found


def arrow_scale(scene: Scene, force: Array) -> float:
    """Metres per newton: the robot's weight is an arrow of a third of its size; without gravity the
    largest force a half.
    """
    weight = scene.model.mass * float(np.linalg.norm(scene.model.gravity))
    largest = float(np.linalg.norm(np.nan_to_num(force), axis=-1).max(initial=0.0))
    return scene.size / (3.0 * weight) if weight > 0.0 else 0.5 * scene.size / max(largest, 1e-9)


def contact_arrows(contacts: Contacts | None, up: Array) -> Arrows | None:
    """The contact forces of a run, where it has any."""
    if contacts is None or not len(contacts):
        return None
    return Arrows(contacts.names, contacts.position @ up.T, contacts.force @ up.T)
