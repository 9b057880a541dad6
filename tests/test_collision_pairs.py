"""Which shapes of a robot collide: groups, masks, declared pairs, excludes, neighbours, limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ramify as rf
from ramify.contact.collision_pairs import MOST_PAIRS, CollisionPair, all_pairs, collision_pairs
from ramify.core.errors import ModelError
from ramify.core.warning import LeftOutWarning
from ramify.model.collisions import Collisions, DeclaredPair
from ramify.model.frame import Frame
from ramify.model.robot import Robot
from ramify.model.shape import Shape


def ball(name: str = "", group: int = 1, mask: int = 1, **more: float) -> Shape:
    return Shape("sphere", (0.1,), name=name, group=group, mask=mask, **more)  # type: ignore[arg-type]


NONE = Collisions()
FLOOR = Shape("plane", (), name="floor", group=1, mask=1)


def chain(*shapes: tuple[Shape, ...], collisions: Collisions = NONE) -> Robot:
    """A chain of links with a mass each, and these shapes."""
    builder = rf.Builder("chain")
    for i, of_link in enumerate(shapes):
        builder.link(f"l{i}", parent=f"l{i - 1}" if i else None, mass=1.0, shapes=of_link)
    return replace(builder.model(), collisions=collisions)


def names(pairs: tuple[CollisionPair, ...]) -> set[str]:
    return {pair.name for pair in pairs}


def test_all_but_neighbours_collide() -> None:
    robot = chain(*[(ball(),)] * 4)
    assert names(collision_pairs(robot)) == {"l0.0–l2.0", "l0.0–l3.0", "l1.0–l3.0"}
    near = replace(robot, collisions=Collisions(neighbours=True))
    assert len(collision_pairs(near)) == 6


def test_massless_parts_of_a_joint_do_not_keep_neighbours_apart() -> None:
    builder = rf.Builder("arm").link("a", mass=1.0, shapes=[ball()])
    builder.link("turn", parent="a").link("b", parent="turn", mass=1.0, shapes=[ball()])
    robot = builder.link("c", parent="b", mass=1.0, shapes=[ball()]).model()
    assert names(collision_pairs(robot)) == {"a.0–c.0"}


def test_groups_and_masks_name_partners_either_way() -> None:
    robot = chain((ball("a", 1, 0),), (), (ball("b", 0, 1),), (), (ball("c", 1, 0),))
    assert names(collision_pairs(robot)) == {"a–b", "b–c"}
    robot = replace(robot, collisions=Collisions(world=(FLOOR, ball("post", 2, 2))))
    assert names(collision_pairs(robot)) == {"a–b", "b–c", "a–floor", "b–floor", "c–floor"}


def test_the_first_link_collides_with_the_world() -> None:
    (pair,) = collision_pairs(chain((ball("foot"),), collisions=Collisions(world=(FLOOR,))))
    assert (pair.body, pair.other, pair.on_surface, pair.contacts) == (0, -1, True, 1)
    assert (pair.shape.name, pair.other_shape.name) == ("foot", "floor")


def test_declared_pairs_collide_whatever_their_groups() -> None:
    """Neighbours too, with the numbers of the pair; excludes do not concern them."""
    declared = DeclaredPair("b", "a", friction=0.3, restitution=0.5)
    collisions = Collisions(pairs=(declared,), excludes=(("l0", "l1"),))
    robot = chain((ball("a", 0, 0),), (ball("b", 0, 0),), collisions=collisions)
    (pair,) = collision_pairs(robot)
    assert (pair.name, pair.friction, pair.restitution) == ("a–b", 0.3, 0.5)


def test_excludes_are_of_links_shapes_or_the_world() -> None:
    shapes = [(ball("a"), ball("a2")), (), (ball("b"),)]
    world = (FLOOR, ball("post"))

    def left(*excludes: tuple[str, str]) -> set[str]:
        return names(collision_pairs(chain(*shapes, collisions=Collisions(world, (), excludes))))

    everything = {f"{x}–{y}" for x in ("a", "a2") for y in ("b", "floor", "post")}
    everything |= {"b–floor", "b–post"}
    assert left() == everything
    assert left(("l2", "l0")) == everything - {"a–b", "a2–b"}
    assert left(("a2", "b")) == everything - {"a2–b"}
    assert left(("l0", "world")) == {"a–b", "a2–b", "b–floor", "b–post"}
    assert left(("post", "b")) == everything - {"b–post"}


def test_friction_and_restitution_are_the_larger_ones_or_of_the_higher_priority() -> None:
    def pair(first: Shape, second: Shape) -> tuple[float, float]:
        (one,) = collision_pairs(chain((first,), (), (second,)))
        return one.friction, one.restitution

    rough, smooth = ball(friction=0.9, restitution=0.1), ball(friction=0.2, restitution=0.6)
    assert pair(rough, smooth) == pair(smooth, rough) == (0.9, 0.6)
    assert pair(rough, replace(smooth, priority=1)) == (0.2, 0.6)
    assert pair(replace(rough, priority=-1), smooth) == (0.2, 0.6)
    assert pair(replace(rough, slippery=True), smooth) == (0.9, 0.6)
    assert pair(*(replace(shape, slippery=True) for shape in (rough, smooth))) == (0.0, 0.6)
    assert pair(rough, replace(smooth, slippery=True, priority=1)) == (0.0, 0.6)


def test_shapes_of_the_base_do_not_collide_with_what_hangs_on_them() -> None:
    builder = rf.Builder("arm").link("base", joint="fixed", shapes=[ball()])
    builder.link("a", parent="base", mass=1.0, shapes=[ball("first")])
    builder.link("b", parent="a", mass=1.0, shapes=[ball("second")])
    robot = builder.link("other", mass=1.0, shapes=[ball("third")]).model()
    assert [shape.name for shape in robot.collisions.world] == ["base"]
    assert names(collision_pairs(robot)) == {
        "first–third", "second–third", "second–base", "third–base",
    }  # fmt: skip


def test_a_locked_link_stays_where_it_is_and_collides() -> None:
    robot = chain((ball("a"),), (), (ball("b"),))
    robot = replace(robot, collisions=Collisions(world=(FLOOR,), excludes=(("a", "floor"),)))
    locked = rf.with_locked(rf.Model.of(robot), robot.joints[0].name, 0.0)
    assert [shape.name for shape in locked.collisions.world] == ["floor", "a"]
    assert names(collision_pairs(locked)) == {"b–a", "b–floor"}


def test_unknown_names_are_refused() -> None:
    for collisions in (
        Collisions(pairs=(DeclaredPair("l0", "l9"),)),
        Collisions(excludes=(("l9", "l0"),)),
    ):
        with pytest.raises(ModelError, match="there is no link or shape 'l9'"):
            chain((ball(),), (ball(),), collisions=collisions)
    robot = chain((ball(),), (), collisions=Collisions(pairs=(DeclaredPair("l0", "l1"),)))
    with pytest.raises(ModelError, match="'l1' has no shape that collides"):
        collision_pairs(robot)


def test_kinds_without_a_contact_text_are_warned_of() -> None:
    box = Shape("box", (1.0, 1.0, 1.0), group=1, mask=1)
    robot = chain((box,), (), (box,), (), (ball(),))
    with pytest.warns(LeftOutWarning, match="no contact of box and box: l0.0–l2.0"):
        pairs = collision_pairs(robot)
    assert names(pairs) == {"l0.0–l4.0", "l2.0–l4.0"}
    assert len(all_pairs(robot)) == 3


def test_many_pairs_are_warned_of_and_too_many_refused() -> None:
    with pytest.warns(RuntimeWarning, match="21 pairs of shapes collide"):
        assert len(collision_pairs(chain(*[(ball(),)] * 8))) == 21
    many = tuple(ball() for _ in range(100))
    with pytest.raises(ModelError, match=f"more than {MOST_PAIRS} pairs"):
        collision_pairs(chain(many, (), many))


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": (0.0,)},
        {"size": (-0.1,)},
        {"size": (float("nan"),)},
        {"size": (0.1, 0.2)},
        {"kind": "ball"},
        {"friction": float("nan")},
        {"friction": -0.1},
        {"restitution": 1.5},
        {"restitution": float("nan")},
        {"group": -1},
        {"mask": 2**32},
        {"frame": Frame(2.0 * np.eye(3))},
        {"frame": Frame(position=np.array([0.0, np.inf, 0.0]))},
        {"kind": "height_field", "size": (1.0, 1.0)},
        {"kind": "height_field", "size": (1.0, 1.0), "heights": ((1.0, 2.0),)},
        {"kind": "height_field", "size": (1.0, 1.0), "heights": ((1.0, 2.0), (1.0,))},
        {"kind": "height_field", "size": (1.0, 1.0), "heights": ((1.0, 2.0), (1.0, np.inf))},
        {"kind": "height_field", "size": (1.0, -1.0), "heights": ((1.0, 2.0), (1.0, 2.0))},
        {"heights": ((1.0, 2.0), (1.0, 2.0))},
    ],
)
def test_impossible_shapes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        Shape(**{"kind": "sphere", "size": (0.1,)} | wrong)  # type: ignore[arg-type]


def test_a_plane_on_a_link_is_refused() -> None:
    with pytest.raises(ModelError, match="link 'l0': a plane can only stand in the world"):
        chain((replace(FLOOR),))


def test_ten_thousand_shapes_that_touch_nothing_have_no_pairs() -> None:
    """They are compared as arrays: one by one it would take minutes."""
    robot = chain((ball(),), (), (ball(),))
    shapes = tuple(ball(group=1, mask=0) for _ in range(5_000))
    first, middle, last = robot.bodies
    bodies = (replace(first, shapes=shapes), middle, replace(last, shapes=shapes))
    assert collision_pairs(replace(robot, bodies=bodies)) == ()
