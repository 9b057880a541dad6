"""Forces and motion of the contact points of a robot over a run, or at any states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.grounds import as_ground
from ramify.contact.robot_on_ground import ContactText, What
from ramify.core.arrays import Array, together
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.scalar import sqrt
from ramify.core.spatial import Vec3
from ramify.kernels.queries import kinematics
from ramify.model.configuration import checked
from ramify.model.robot import Robot
from ramify.runtime.kernel import Kernel

if TYPE_CHECKING:
    from ramify.contact.ground import Ground


@dataclass(frozen=True, eq=False, repr=False)
class Contacts:
    """n contact points at T rows (or any batch): names, forces and motion. Vectors are in the
    world.

    names, bodies (n,): of the points and of the bodies that carry them; force (T, n, 3) on the
    robot, N; normal_load (T, n): its part along the surface's normal, N; position (T, n, 3), m;
    penetration (T, n), m, negative above the ground; slip (T, n, 3): velocity along the surface,
    m/s; stored (T,): elastic energy in the ground, J; dissipated (T,): what the ground has turned
    to heat since the first row, J (NaN outside of a run); up: the ground's upward direction.

    With hard contact also, of the step that ends at each row: mode (T, n): 0 open, 1 sticking, 2
    sliding; impulse (T, n, 3) along the normal and two tangents, N s, of which force is the mean
    over the step; iterations (T,) of the solver; residual (T,), m/s by which it misses a row;
    others: the body on the other side of each contact, which feels the opposite force, "" for the
    ground (so are all where this is empty).
    """

    names: tuple[str, ...]
    bodies: tuple[str, ...]
    force: Array
    normal_load: Array
    position: Array
    penetration: Array
    slip: Array
    stored: Array
    dissipated: Array
    up: tuple[float, float, float] = field(default=(0.0, 0.0, 1.0))
    mode: Array | None = None
    impulse: Array | None = None
    iterations: Array | None = None
    residual: Array | None = None
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lead, n = np.shape(self.stored), len(self.names)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("force", "position", "slip"), (n, 3))
        shapes |= {"normal_load": (n,), "penetration": (n,), "stored": (), "dissipated": ()}
        hard = {"mode": (n,), "impulse": (n, 3), "iterations": (), "residual": ()}
        shapes |= {name: shape for name, shape in hard.items() if getattr(self, name) is not None}
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (*lead, *shape):
                raise SimulationError(
                    f"contacts.{name} has shape {array.shape}; {n} points need {(*lead, *shape)}"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        rows = " x ".join(map(str, self.stored.shape)) or "1"
        names = ", ".join(self.names[:8]) + (", …" if len(self) > 8 else "")
        return f"<ramify.Contacts of {names}: {rows} rows>"

    def __getitem__(self, name: str) -> Array:
        """The force (T, 3) on a point, or the sum of the forces on the points of a body, N."""
        if name in self.names:
            return self.force[..., self.names.index(name), :]
        if name in self.bodies or (name and name in self.others):
            signs = [float(b == name) for b in self.bodies]
            signs = [s - float(o == name) for s, o in zip(signs, self._others, strict=True)]
            return (self.force * np.array(signs)[:, None]).sum(axis=-2)
        alike = [full for full in self.names if full.endswith(f".{name}")]
        if alike:
            raise SimulationError(
                f"contact point {name!r} is ambiguous, several bodies have one; say which: "
                f"{', '.join(alike)}"
            )
        raise SimulationError(
            f"no contact point and no body with one is called {name!r}; there are "
            f"{', '.join(self.names)}"
        )

    @property
    def gap(self) -> Array:
        """The distance (T, n) of each point from the ground, m; negative inside it."""
        return -self.penetration

    @cached_property
    def load(self) -> Array:
        """The upward force (T, n) on each point, N."""
        return self.force @ np.array(self.up)

    @cached_property
    def touching(self) -> Any:
        """Whether each point is pressed by the ground, (T, n)."""
        return self.force.any(axis=-1)

    @cached_property
    def total_force(self) -> Array:
        """The sum of the forces of the ground (T, 3), N."""
        return self.force[..., self._on_ground, :].sum(axis=-2)

    @property
    def _others(self) -> tuple[str, ...]:
        return self.others or ("",) * len(self)

    @property
    def _on_ground(self) -> list[int]:
        return [i for i, other in enumerate(self._others) if not other]

    @cached_property
    def center_of_pressure(self) -> Array:
        """Where the ground's pressure acts (T, 3), m: the mean of the points by their normal loads,
        sum N_i p_i / sum N_i. Friction has no part in it. NaN in flight.
        """
        loads = self.normal_load[..., self._on_ground]
        places, total = self.position[..., self._on_ground, :], loads.sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            place = (loads[..., None] * places).sum(axis=-2) / total[..., None]
        return np.where((total > 0.0)[..., None], place, np.nan)

    def wrenches(self, model: Robot, q: ArrayLike) -> dict[str, Array]:
        """The wrench (T, 6) on each body that has points: at its origin, in the axes of the world,
        as models take it.
        """
        places = kinematics(model, q).position
        on_bodies: dict[str, Array] = {}
        sides = [(i, name, 1.0) for i, name in enumerate(self.bodies)]
        sides += [(i, name, -1.0) for i, name in enumerate(self.others) if name]
        for i, name, sign in sides:
            b = next(k for k, body in enumerate(model.bodies) if body.name == name)
            f, arm = sign * self.force[..., i, :], self.position[..., i, :] - places[..., b, :]
            w = np.concatenate([np.cross(arm, f), f], axis=-1)
            on_bodies[name] = on_bodies[name] + w if name in on_bodies else w
        return on_bodies


def forces(model: Robot, ground: Ground | Any, q: ArrayLike, v: ArrayLike) -> Contacts:
    """The contact points at the states q (..., nq), v (..., nv): a Contacts with these
    leading dimensions.

    ground: as for rf.simulate. Raises StateError, ModelError or SimulationError naming what is
    wrong.
    """
    text = _contact(model, ground)
    rows = checked(model, "q", q, model.nq, True), checked(model, "v", v, model.nv, True)
    batch = together(q=rows[0].shape[:-1], v=rows[1].shape[:-1])
    return contacts(text, text.kernel("contact_forces")(*rows), np.full(batch, np.nan))


def contacts(text: ContactText, answers: Sequence[Array], heat: Array) -> Contacts:
    """Contacts from the results of the kernel "contact_forces", and the heat lost so far."""
    place, force, depth, slip, stored, *_ = answers
    terrain, energy = text.ground.terrain, stored.sum(axis=-1)
    _, normal = terrain.under(Vec3(*np.moveaxis(place, -1, 0)))
    along = normal.dot(Vec3(*np.moveaxis(force, -1, 0))) / sqrt(normal.dot(normal))
    pressed: Array = np.asarray(along)
    return Contacts(
        text.names, text.bodies, force, pressed, place, depth, slip, energy, heat, terrain.axes[2]
    )


def kernel(
    model: Robot, ground: Ground | Any, what: What = "contact_dynamics", tier: str | None = None
) -> Kernel:
    """A kernel of a robot on a ground, with ``.c_source()`` and the rest of what kernels have.

    what: "contact_dynamics": (q, v, tau) -> a (nv), force (n, 3); "contact_forces": (q, v) -> place
    (n, 3), force (n, 3), depth (n), slip (n, 3), stored (n), loss (n), wrenches (nv, 6). tier:
    "unrolled" or "numpy"; None: compiled where it can be.
    """
    return _contact(model, ground).kernel(what, tier)


def _contact(model: Robot, ground: Ground | Any) -> ContactText:
    made = as_ground(ground, model)
    if made is None:
        raise SimulationError("there is no ground; give one such as 'firm' or rf.contact.Firm()")
    return ContactText(model, made)
