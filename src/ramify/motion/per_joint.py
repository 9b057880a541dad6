"""Different trajectories for different joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.errors import StateError
from ramify.core.names import mapping_of
from ramify.core.records import settle
from ramify.core.scalar import Scalar
from ramify.documents.forms import ByName, Listed, Reading
from ramify.documents.kinds import Alternatives, OneOf, key
from ramify.documents.mistakes import Path
from ramify.model.driven import Actuated, driven
from ramify.model.robot import Robot, joint_entries
from ramify.motion.coordinate_reader import AnyLength, RobotReading, about_robot
from ramify.motion.hold import Hold
from ramify.motion.trajectory import MOTIONS, Texts, Trajectory, row


@dataclass(frozen=True)
class PerJoint(Trajectory):
    """Trajectories side by side: the coordinates of the first of ``parts``, then those of the
    second, and so on.

    It begins with the first that begins and ends with the last that ends. ``PerJoint.named`` takes
    the joints by name.

    Raises StateError where there is no part, or one is not a trajectory.
    """

    parts: Any

    def __post_init__(self) -> None:
        settle(self, parts=trajectories("PerJoint", self.parts))

    @classmethod
    def named(
        cls,
        model: Robot,
        parts: Mapping[str, Trajectory],
        rest: ArrayLike | None = None,
        joints: Actuated = None,
    ) -> PerJoint:
        """The driven coordinates of a robot, or those of ``joints``, by the names of their joints.

        Joints that ``parts`` does not name stay at ``rest`` (k,), one entry per coordinate, rad or
        m; at zero by default.

        Raises StateError for a name that is not among them, a trajectory of the wrong length, and a
        joint with a quaternion.
        """
        chosen = driven(model, joints)
        if -1 in chosen.q:
            name = chosen.names[chosen.q.index(-1)]
            raise StateError(
                f"{name!r} belongs to a quaternion; a trajectory moves angles and slides: leave it "
                "out of joints="
            )
        still = row("rest", np.zeros(len(chosen)) if rest is None else rest)
        if len(still) != len(chosen):
            which = ", ".join(chosen.names[:12])
            raise StateError(
                f"rest has {len(still)} entries; {model.name} has {len(chosen)} driven "
                f"coordinates: {which}"
            )
        parts = mapping_of("parts", parts)
        columns: dict[str, list[int]] = {}
        for joint in model.joints:
            entries = joint_entries(model, joint.name)
            places = [chosen.v.index(j) for j in entries if j in chosen.v]
            columns |= {joint.name: places} if places else {}
        for name, part in parts.items():
            if name not in columns:
                raise StateError(
                    f"{model.name} has no driven joint {name!r}; its driven joints are "
                    f"{', '.join(list(columns)[:20])}"
                )
            (checked,) = trajectories(f"joint {name!r}", [part])
            if checked.n != len(columns[name]):
                raise StateError(
                    f"the trajectory of joint {name!r} has {checked.n} coordinates; the joint has "
                    f"{len(columns[name])}"
                )
        return cls(
            [
                parts.get(name) or Hold([still[i] for i in places])
                for name, places in columns.items()
            ]
        )

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    @property
    def begin(self) -> float:  # type: ignore[override]
        return min(part.begin for part in self._moving)

    @property
    def duration(self) -> float:  # type: ignore[override]
        return max(part.until for part in self._moving) - self.begin

    @property
    def _moving(self) -> tuple[Trajectory, ...]:
        """The parts that set the times: all that do not stand still, if there are any."""
        return tuple(part for part in self.parts if not isinstance(part, Hold)) or self.parts

    @property
    def traceable(self) -> bool:
        return all(part.traceable for part in self.parts)

    def inside(self, t: Scalar) -> Texts:
        texts = [part.text(t) for part in self.parts]
        q, v, a = ([x for text in texts for x in text[i]] for i in range(3))
        return q, v, a


@dataclass(frozen=True)
class _OfJoint(OneOf):
    """A motion of the joint that its key names."""

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        about = reading.of_joint(str(path[-1])) if isinstance(reading, RobotReading) else reading
        return super().read(raw, path, about)


@MOTIONS.add("per_joint")
@dataclass(frozen=True)
class NamedMotions:
    """Different motions for different joints: by name, and the others stay where the run starts; or
    ``parts``, the motions of all driven joints in their order.
    """

    builds: ClassVar[type] = PerJoint
    alternatives: ClassVar[Alternatives] = {("joints", "parts"): True}

    joints: Mapping[str, Trajectory] | None = field(
        default=None, metadata=key(ByName(_OfJoint(MOTIONS)))
    )
    parts: Any = field(default=None, metadata=key(AnyLength(Listed(OneOf(MOTIONS)))))

    @classmethod
    def recipe(cls, motion: PerJoint) -> NamedMotions:
        return cls(parts=motion.parts)

    def build(self, reading: Reading) -> PerJoint:
        if self.joints is None:
            return PerJoint(self.parts)
        about = about_robot(reading)
        return PerJoint.named(about.robot, self.joints, rest=about.rest)


def trajectories(name: str, parts: Any) -> tuple[Trajectory, ...]:
    """Trajectories as given; StateError where there is none, or something else among them."""
    listed = tuple(parts) if isinstance(parts, (list, tuple)) else (parts,)
    for i, part in enumerate(listed):
        if not isinstance(part, Trajectory):
            raise StateError(f"{name}: part {i} is a {type(part).__name__}, not a trajectory")
    if not listed:
        raise StateError(f"{name} needs at least one trajectory")
    return listed
