"""From the document of a robot file to a model: templates written out, the tree checked, every
mistake noted with its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.names import MAX_NAME
from ramify.documents.expression import RESERVED, ExpressionError, evaluate
from ramify.documents.file_version import refuse_newer
from ramify.documents.forms import NotedError, Reading
from ramify.documents.kinds import read_part
from ramify.documents.mistakes import Map, Mistakes, Path
from ramify.files.collision_reader import read_collisions
from ramify.files.import_report import ImportReport
from ramify.files.inertia_rule import doubt_about
from ramify.files.link_reader import link_spec, renamed
from ramify.files.loop_reader import OWN, read_loops, read_whole
from ramify.files.machine_reader import read_machine
from ramify.files.mirror import mirrored
from ramify.files.robot_schema import LinkPart, RobotPart, TemplatePart, UsePart, clashes
from ramify.model.build import LinkSpec, build
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import between_bodies
from ramify.model.mechanism import guess_without
from ramify.model.parent_cycles import cycles
from ramify.model.robot import Robot

MAX_LINKS: Final = 20_000
MAX_NESTING: Final = 32
"""Links of a robot, and copies of templates, when all is written out; templates that use templates.
"""

NumbersByName = Mapping[str, float]
P = TypeVar("P")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]{0,63}")


@dataclass(frozen=True)
class _Scope:
    """Where links are read: the file itself, or one copy of a template."""

    path: Path
    names: Mapping[str, float]
    prefix: str = ""
    copy: str = ""
    within: tuple[str, ...] = ()

    def full(self, name: str) -> str:
        """A name of this scope as the robot has it; ``$`` is the number of the copy."""
        return self.prefix + (name.replace("$", self.copy) if self.copy else name)


@dataclass(frozen=True)
class _Grown:
    """A link, its place in the file, the place where its parent is named, and its DH row: the key,
    and alpha, a, b, theta.
    """

    spec: LinkSpec
    path: Path
    parent_path: Path
    row: tuple[str, tuple[float, float, float, float]] | None = None


def robot_of_document(
    document: Map, mistakes: Mistakes, overrides: Mapping[str, object], warns: bool = True
) -> Robot:
    """The model a document describes, with some of its parameters overridden. Warns of what it
    leaves out, unless that was said before. Raises ModelError with all mistakes.
    """
    refuse_newer(document, mistakes)
    reader = _RobotReader(document, mistakes)
    names = reader.parameters(document.get("parameters", {}), ("parameters",), {}, overrides)
    reading = Reading(mistakes, names=names)
    robot = reader.part(RobotPart, document, (), reading)
    grown = reader.read(names)
    exists = reader.check_tree(grown)
    for i, group in enumerate((robot and robot.modules) or ()):
        for k, link in enumerate(group):
            if not exists(link):
                hint = near(link, sorted(g.spec.name for g in grown))
                mistakes.add(("modules", i, k), f"no link is named {link!r}{hint}")
    loops, links = (
        read_loops(_list(document.get("loops")), reading, exists),
        [g.spec for g in grown],
    )
    guess: Mapping[str, float] = {} if robot is None else robot.guess
    if reader.whole:
        links, cut = read_whole(document, links, reading, exists)
        loops, guess = [*cut, *loops], guess_without(guess, cut)
    mistakes.raise_if_any()
    assert robot is not None
    said = {"description": robot.description, "source": robot.source}
    notes: dict[str, Any] = {key: value for key, value in said.items() if value}
    for grown_link in grown:
        if grown_link.row is not None:
            kind, row = grown_link.row
            notes.setdefault(kind, {})[grown_link.spec.name] = row
    report = ImportReport(mistakes.file)
    for text in robot.left_out:
        report.ignored("left_out", text, moves=True)
    report = report.after(len(loops))
    for spec in links:
        if doubt := doubt_about(spec.mass, np.asarray(spec.inertia)):
            report.note(f"link {spec.name!r}", doubt, doubt=True)
    if report.entries:
        notes["report"] = report
    early = between_bodies(loops)
    with _noted(mistakes, document):
        model = build(robot.name, links, robot.gravity, robot.modules, notes, early, guess)
    machine = read_machine(document, model, reading)
    collisions = read_collisions(document, model, reading)
    mistakes.raise_if_any()
    with _noted(mistakes, document):
        model = replace(model, loops=tuple(loops), machine=machine, collisions=collisions)
    if warns:
        report.warn()
    return model


@contextmanager
def _noted(mistakes: Mistakes, document: Map) -> Iterator[None]:
    """Errors of the robot as a whole as mistakes of the file, at the key that they name."""
    try:
        yield
    except ModelError as error:
        at = error.key if error.key and error.key[0] in document else ("links",)
        mistakes.stop(at, str(error))


class _RobotReader:
    def __init__(self, document: Map, mistakes: Mistakes) -> None:
        self.document, self.mistakes = document, mistakes
        self.whole = "joints" in document
        self.shared: Mapping[str, float] = {}
        self.templates: dict[str, TemplatePart] = {}
        self.unused: set[str] = set()
        self.counting: set[str] = (
            set()
        )  # templates that mention the number of the copy: no two copies are alike
        self.specs: dict[tuple[object, ...], LinkSpec] = {}  # by path and parameters
        self.rows: dict[tuple[object, ...], tuple[str, tuple[float, float, float, float]]] = {}
        self.failed_prefixes: list[str] = []  # prefixes of templates that could not be written out
        self.sizes: dict[str, int] = {}  # links of a template, those it uses written out
        self.links = self.copies = 0

    def part(self, kind: type[P], raw: object, path: Path, reading: Reading) -> P | None:
        """A part, or None with its mistakes noted."""
        with suppress(NotedError):
            return read_part(kind, raw, path, reading)
        return None

    def parameters(
        self, raw: object, path: Path, outer: NumbersByName, overrides: Mapping[str, object]
    ) -> NumbersByName:
        """Named numbers: the outer ones, then these in order; each may use those before it.
        ``overrides`` win.
        """
        names, parameters = dict(outer), raw if isinstance(raw, Mapping) else {}
        for name, value in parameters.items():
            why = "must be made of letters, digits and _ and start with a letter"
            if not _IDENTIFIER.fullmatch(name) or name in RESERVED:
                why = "is taken" if name in RESERVED else why
                self.mistakes.add((*path, name), f"this name {why}; choose another", key=True)
            try:
                names[name] = evaluate(overrides.get(name, value), names)
                if not math.isfinite(names[name]):
                    raise ExpressionError(f"{names[name]} is not finite")
            except ExpressionError as error:
                names[name] = 1.0
                self.mistakes.add((*path, name), f"{error}; it must be a finite number")
        for name in overrides:
            if name not in parameters:
                hint = near(name, list(parameters)) or "; there is none"
                self.mistakes.add(path, f"no parameter is named {name!r}{hint}")
        return names

    # ---- links and templates ----

    def read(self, names: Mapping[str, float]) -> list[_Grown]:
        """All links of the file, templates written out. Unused templates are read as
        well, for their mistakes.
        """
        self.shared = names
        for name, raw in _mapping(self.document.get("templates")).items():
            template = self.part(TemplatePart, raw, ("templates", name), Reading(self.mistakes))
            if template is not None:
                self.templates[name] = template
                if "copy" in repr(raw):
                    self.counting.add(name)
        self.unused = set(self.templates)
        grown = self.grow(_list(self.document.get("links")), _Scope(("links",), names))
        for name in sorted(self.unused):
            self.links = self.copies = 0
            self.grow(self.templates[name].links, self.enter(name, _Scope((), names, copy="1"), {}))
        return grown

    def grow(self, items: Sequence[object], scope: _Scope) -> list[_Grown]:
        """The links of a scope. Parents are full names, None for what the scope hangs on."""
        out: list[_Grown] = []
        for i, raw in enumerate(items):
            path = (*scope.path, i)
            if not isinstance(raw, Mapping):
                text = "a link (name, joint, ...) or a template (use, parent, ...)"
                self.mistakes.add(path, f"must be a mapping: {text}")
            elif "use" in raw:
                out.extend(self.grow_use(raw, path, scope))
            else:
                out.append(self.grow_link(raw, path, scope))
        return out

    def grow_link(self, raw: Mapping[str, object], path: Path, scope: _Scope) -> _Grown:
        self.links += 1
        self.check_size(path)
        name = scope.full(str(raw.get("name", ""))[:80])
        if not name:
            self.mistakes.add((*path, "name"), "is missing")
        key = (path, *scope.names.values())
        if key not in self.specs:
            reading = Reading(self.mistakes, names=scope.names, link=name)
            link = self.part(LinkPart, raw, path, reading)
            wrong = clashes(raw, path, reading, hung=not self.whole)
            for own in OWN if self.whole else ():
                if own in raw:
                    text = "does not belong in a link where the file lists joints; give it there"
                    wrong = bool(reading.refuse((*path, own), text))
            sound = None if wrong else link
            self.specs[key] = _stand_in(raw) if sound is None else link_spec(sound, path, reading)
            for kind in ("dh", "classical_dh"):
                if row := getattr(link, kind, None):
                    a, alpha, b, theta = row.columns
                    self.rows[key] = kind, (alpha, a, b, theta)
        spec = renamed(self.specs[key], scope.full)
        return _Grown(spec, path, (*path, "parent"), self.rows.get(key))

    def check_size(self, path: Path) -> None:
        if max(self.links, self.copies) > MAX_LINKS:
            text = f"templates written out, this is link {MAX_LINKS + 1}"
            self.mistakes.stop(path, f"{text}; a robot has at most {MAX_LINKS}")

    def grow_use(self, raw: Mapping[str, object], path: Path, scope: _Scope) -> list[_Grown]:
        """A template written out, once or in several copies, its roots mounted on the parent."""
        self.unused.discard(str(raw["use"]))
        counting = "copy" in repr(raw) and ("repeat" in raw or "series" in raw)
        reading = Reading(self.mistakes, names=scope.names)
        first = replace(reading, names={**scope.names, "copy": 1.0}) if counting else reading
        use = self.part(UsePart, raw, path, first)
        if use is None or not self.usable(use, path, scope):
            self.failed_prefixes.append(scope.full(str(raw.get("prefix", ""))))
            return []
        carrier = None if use.parent is None else scope.full(use.parent)
        copies = use.repeat or use.series
        out: list[_Grown] = []
        for number in [""] if copies is None else map(str, range(1, copies + 1)):
            self.copies += 1
            self.check_size(path)
            if counting:
                known = {**scope.names, "copy": float(number)}
                use = self.part(UsePart, raw, path, replace(reading, names=known)) or use
            here = replace(scope, copy=number or scope.copy)
            inner = self.enter(use.use, here, use.arguments, use.prefix)
            seat = use.frame.to_frame((*path, "frame"), replace(reading, link=inner.prefix))
            copy = self.grow(self.templates[use.use].links, inner)
            out.extend(self.mounted(grown, use, path, carrier, seat) for grown in copy)
            carrier = out[-1].spec.name if use.series and out else carrier
        return out

    def usable(self, use: UsePart, path: Path, scope: _Scope) -> bool:
        name, at = use.use, (*path, "use")
        if name not in self.templates:
            if name not in _mapping(self.document.get("templates")):
                hint = near(name, list(self.templates))
                self.mistakes.add(at, f"no template is named {name!r}{hint}")
            return False
        if name in scope.within:
            cycle = " -> ".join([*scope.within, name])
            self.mistakes.add(at, f"templates use each other without end: {cycle}")
            return False
        if len(scope.within) >= MAX_NESTING:
            text = f"templates use one another more than {MAX_NESTING} levels deep"
            self.mistakes.stop(at, text)
        own = self.templates[name].parameters
        for key in use.arguments:
            if key not in own:
                text = f"the template {name!r} has no such parameter"
                hint = near(key, list(own)) or "; it has none"
                self.mistakes.add((*path, "with", key), text + hint, key=True)
        copies = use.repeat or use.series or 1
        if copies > MAX_LINKS:
            text = f"{copies} copies; a robot has at most {MAX_LINKS} links"
            self.mistakes.stop((*path, "repeat" if use.repeat else "series"), text)
        if self.links + copies * self.size(name) > MAX_LINKS:
            text = "templates written out, there are too many links"
            self.mistakes.stop(at, f"{text}; a robot has at most {MAX_LINKS}")
        return True

    def size(self, name: str, depth: int = 0) -> int:
        """Links of a template when those it uses are written out, as far as their numbers of copies
        are plain numbers.
        """
        if name not in self.sizes and name in self.templates and depth <= MAX_NESTING:
            self.sizes[name] = 1  # for a template that uses itself
            total = 0
            for item in map(_mapping, self.templates[name].links):
                given = [item.get(key) for key in ("repeat", "series")]
                copies = next((n for n in given if isinstance(n, int | float)), 1)
                used = self.size(str(item["use"]), depth + 1) if "use" in item else 1
                total = min(total + used * int(min(max(1, copies), MAX_LINKS + 1)), MAX_LINKS + 1)
            self.sizes[name] = max(total, 1)
        return self.sizes.get(name, 1)

    def enter(
        self, name: str, scope: _Scope, arguments: Mapping[str, float], prefix: str = ""
    ) -> _Scope:
        """The scope of a template's links: the file's parameters and its own, names prefixed."""
        template, path = self.templates[name], ("templates", name)
        outer = dict(self.shared)
        if scope.copy and name in self.counting:
            outer["copy"] = float(scope.copy)
        overrides = {key: value for key, value in arguments.items() if key in template.parameters}
        names = self.parameters(template.parameters, (*path, "parameters"), outer, overrides)
        full = scope.full(prefix)
        if len(full) > MAX_NAME:
            text = f"its links' names start with {len(full)} characters of prefix"
            self.mistakes.stop(path, f"{text}; names have at most {MAX_NAME}")
        return _Scope((*path, "links"), names, full, scope.copy, (*scope.within, name))

    def mounted(
        self, grown: _Grown, use: UsePart, path: Path, carrier: str | None, seat: Frame
    ) -> _Grown:
        """A link of a copy, mirrored if asked; a root is put on the carrier."""
        spec = grown.spec
        if use.mirror:
            try:
                spec = mirrored(spec, use.mirror)
            except ModelError as error:
                self.mistakes.add((*path, "mirror"), str(error), link=spec.name)
        if spec.parent is not None:
            return replace(grown, spec=spec)
        joint = spec.joint
        if not seat.is_identity:
            joint = replace(joint, placement=seat @ joint.placement)
        return _Grown(replace(spec, parent=carrier, joint=joint), grown.path, (*path, "parent"))

    # ---- the tree ----

    def check_tree(self, grown: Sequence[_Grown]) -> Callable[[str], bool]:
        """Names that clash, parents that do not exist, cycles. Gives a function: whether a link of
        some name exists, or might, had its template no mistake.
        """
        first: dict[str, _Grown] = {}
        joints: dict[str, str] = {}
        for g in grown:
            name, joint = g.spec.name, g.spec.joint.name
            if not name:
                continue
            if first.setdefault(name, g) is not g:
                text = f"two links are named {name!r}; names must differ"
                self.mistakes.add((*g.path, "name"), text, link=name)
            other = joints.setdefault(joint, name)
            if other != name:
                text = f"the joints of {other!r} and {name!r} are both named {joint!r}"
                self.mistakes.add((*g.path, "joint"), f"{text}; names must differ", link=name)

        def exists(name: str) -> bool:
            return name in first or name.startswith(tuple(self.failed_prefixes))

        for g in grown:
            parent = g.spec.parent
            if parent is not None and not exists(parent):
                text = f"no link is named {parent!r}{near(parent, list(first))}"
                self.mistakes.add(g.parent_path, text, link=g.spec.name)
        for cycle in cycles({name: g.spec.parent for name, g in first.items()}):
            told = " -> ".join([*cycle[:8], *["..."] * (len(cycle) > 8), cycle[0]])
            text = f"the parents {told} form a cycle; one link must hang on the base"
            self.mistakes.add(
                first[cycle[0]].parent_path, f"{text}, without a parent", link=cycle[0]
            )
        return exists


def _stand_in(raw: Mapping[str, object]) -> LinkSpec:
    """For a link with mistakes: its name and parent, so that they are known to the others."""
    name, parent = raw.get("name", ""), raw.get("parent")
    name = name if isinstance(name, str) else ""
    return LinkSpec(name, parent if isinstance(parent, str) else None, Joint(name, "fixed"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
