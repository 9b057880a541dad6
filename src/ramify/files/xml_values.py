"""Texts of XML elements as numbers and frames, for URDF and SDF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from lxml import etree

from ramify.documents.expression import LARGEST
from ramify.documents.mistakes import Mistakes, Position
from ramify.files.import_report import ImportReport
from ramify.model.frame import Frame, beyond_a_turn, from_rpy

_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ENDLESS: Final = re.compile(r"[-+]?inf(?:inity)?", re.IGNORECASE)
_LONGEST: Final = 100

NumberTuple = tuple[float, ...]


class XmlValues:
    """Reads attributes. What is wrong is noted as a mistake, and the default or zero put in its
    place.
    """

    def __init__(self, mistakes: Mistakes, report: ImportReport) -> None:
        self.mistakes, self.report = mistakes, report

    def note(self, element: etree._Element, text: str) -> None:
        """A mistake at an element."""
        self.mistakes.add((), text, at=Position(element.sourceline or 1, 0))

    def number(
        self,
        element: etree._Element,
        key: str,
        who: str,
        default: float | None = None,
        endless: bool = False,
    ) -> float:
        """One number; with ``endless`` it may also be infinite."""
        otherwise = None if default is None else (default,)
        return self.numbers(element, key, 1, who, otherwise, endless)[0]

    def numbers(
        self,
        element: etree._Element,
        key: str,
        count: int,
        who: str,
        default: NumberTuple | None = None,
        endless: bool = False,
    ) -> NumberTuple:
        """So many numbers with blanks between them."""
        given, otherwise = element.get(key), default or (0.0,) * count
        if given is None:
            if default is None:
                zeros = " ".join(["0"] * count)
                self.note(
                    element,
                    f'{who}: <{element.tag}> has no {key}; write {key}="{zeros}" or what it is',
                )
            return otherwise
        return self.read(element, f"<{element.tag}> {key}", given, count, who, otherwise, endless)

    def read(
        self,
        element: etree._Element,
        what: str,
        given: str,
        count: int,
        who: str,
        otherwise: NumberTuple,
        endless: bool = False,
    ) -> NumberTuple:
        """So many numbers of a text; ``what`` names it in messages."""
        words = given.split() if len(given) <= _LONGEST * count else [given]
        if len(words) != count:
            need = "one number" if count == 1 else f"{count} numbers with blanks between them"
            self.note(element, f"{who}: {what}={shown(given)} must be {need}{_advice(given)}")
            return otherwise
        found = [self._number(element, what, word, who, endless) for word in words]
        return tuple(x for x in found if x is not None) if None not in found else otherwise

    def _number(
        self, element: etree._Element, what: str, word: str, who: str, endless: bool
    ) -> float | None:
        if endless and _ENDLESS.fullmatch(word):
            return float(word)
        if not _NUMBER.fullmatch(word):
            why = (
                "is not finite"
                if word.lower().lstrip("+-") in ("nan", "inf", "infinity")
                else "is not a number"
            )
            self.note(
                element,
                f"{who}: {what}: {shown(word)} {why}; write it like -0.5 or 1e-3{_advice(word)}",
            )
            return None
        value = float(word)
        if abs(value) > LARGEST and not endless:
            self.note(
                element,
                f"{who}: {what}: {shown(word)} is too large; numbers here stay below {LARGEST:.0e}",
            )
            return None
        return value

    def frame(self, origin: etree._Element | None, who: str) -> Frame:
        """The frame of an ``<origin xyz rpy/>``, the identity where there is none."""
        if origin is None:
            return Frame()
        zero = (0.0, 0.0, 0.0)
        xyz, rpy = (self.numbers(origin, key, 3, who, zero) for key in ("xyz", "rpy"))
        return self.turned(xyz, rpy, who)

    def turned(self, xyz: Sequence[float], rpy: Sequence[float], who: str) -> Frame:
        """A frame from its position and angles; angles of more than a turn are doubted, unless
        they are quarter turns.
        """
        if any(map(beyond_a_turn, rpy)):
            given = " ".join(f"{x:g}" for x in rpy)
            self.report.note(
                who,
                f"angles of {given} rad are more than a turn; if they are degrees, convert them",
                doubt=True,
            )
        return Frame(from_rpy(*rpy) if any(rpy) else np.eye(3), np.array(xyz))


def _advice(given: str) -> str:
    return (
        "; this is an expression of xacro: expand the file first (xacro robot.xacro > robot.urdf)"
        if re.search(r"\$[({]", given)
        else ""
    )


def shown(text: str) -> str:
    """A text as messages quote it, cut where it is long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def some(names: Iterable[str], most: int = 8) -> str:
    """A few names, and how many more there are."""
    given = list(names)
    return ", ".join(name[:60] for name in given[:most]) + (
        f" and {len(given) - most} more" if len(given) > most else ""
    )
