"""NetCDF-3 files (classic and with 64-bit offsets) read within bounds: every length in the header
is compared with the size of the file before anything is read, so no file takes more memory than
twice its own size.

Read are the attributes of the file that are text or a whole number, and the arrays of float64.
Dimensions without a fixed length are refused: ``Result.save`` writes none.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import IO, Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array

_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}
_TEXT, _WHOLE, _DOUBLE = 2, 4, 6
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_MOST: Final = 10_000
"""Dimensions, variables or attributes in one list, and dimensions of a variable."""
_BLOCK: Final = 2**20
"""Bytes that are read at once for a digest."""


class NetCDF(NamedTuple):
    """Attributes of a file, and its arrays."""

    texts: Mapping[str, str]
    wholes: Mapping[str, int]
    arrays: Mapping[str, Array]


class _ArrayInFile(NamedTuple):
    name: str
    dimensions: tuple[int, ...]
    begin: int


def read_netcdf(stream: IO[bytes], size: int) -> NetCDF:
    """A file of ``size`` bytes. Raises ValueError where it is not what its header says."""
    header = _Header(stream, size)
    lengths = header.dimensions()
    texts, wholes = header.attributes()
    places = [place for place in header.places() if place is not None]
    if len({place.name for place in places}) < len(places):
        raise ValueError("two variables have the same name")
    arrays, left = {}, size
    for place in places:
        if any(k >= len(lengths) or lengths[k] == 0 for k in place.dimensions):
            raise ValueError(f"the dimensions of {place.name!r} have no fixed length")
        shape = tuple(lengths[k] for k in place.dimensions)
        wide = 8 * math.prod(shape)
        left -= wide
        if left < 0 or place.begin < 0 or place.begin + wide > size:
            raise ValueError(f"{place.name!r} is larger than the file")
        stream.seek(place.begin)
        arrays[place.name] = np.frombuffer(stream.read(wide), ">f8").reshape(shape).astype("<f8")
    return NetCDF(texts, wholes, arrays)


def file_digest(stream: IO[bytes], size: int, name: str) -> tuple[str, int]:
    """SHA-256 over all bytes of a file of ``size`` bytes, and the place of the digest in it: the
    bytes of the attribute ``name``, which count as zeros ("0"). Raises ValueError where the file
    has no such text.
    """
    header = _Header(stream, size)
    header.dimensions()
    header.attributes()
    if name not in header.text_places:
        raise ValueError(f"the attribute {name!r} is missing")
    place, digest = header.text_places[name], hashlib.sha256()
    blank = b"0" * (2 * digest.digest_size)
    stream.seek(0)
    digest.update(stream.read(place))
    digest.update(blank)
    stream.seek(place + len(blank))
    while block := stream.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest(), place


class _Header:
    """The header of a file, from its beginning on."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self.stream, self.left, self.size = stream, size, size
        self.text_places: dict[str, int] = {}
        stream.seek(0)
        if self.take(3) != b"CDF" or (version := self.take(1)[0]) not in (1, 2):
            raise ValueError("it is not a NetCDF-3 file")
        self.offset_width = 8 if version == 2 else 4
        self.number()  # of records, of which there are none

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise ValueError("its header is cut off")
        self.left -= count
        data = self.stream.read(count)
        if len(data) < count:
            raise ValueError("its header is cut off")
        return data

    def number(self, width: int = 4) -> int:
        return int.from_bytes(self.take(width), "big", signed=True)

    def padded(self, count: int) -> bytes:
        data = self.take(count)
        self.take(-count % 4)
        return data

    def name(self) -> str:
        return self.padded(self.number()).decode("utf-8")

    def several(self, tag: int) -> range:
        """The numbers of the entries of a list, which has its tag unless it is empty."""
        first, count = self.number(), self.number()
        if (first, count) != (0, 0) and (first != tag or not 0 <= count <= _MOST):
            raise ValueError("its header is damaged")
        return range(count)

    def dimensions(self) -> list[int]:
        """The lengths of the dimensions."""
        return [(self.name(), self.number())[1] for _ in self.several(_DIMENSIONS)]

    def attributes(self) -> tuple[dict[str, str], dict[str, int]]:
        """Attributes that are text, and those that are one whole number."""
        texts, wholes = {}, {}
        for _ in self.several(_ATTRIBUTES):
            name, kind, count = self.name(), self.number(), self.number()
            if kind not in _SIZES or count < 0:
                raise ValueError(f"the attribute {name!r} is damaged")
            place, value = self.size - self.left, self.padded(count * _SIZES[kind])
            if kind == _TEXT:
                self.text_places[name] = place
                texts[name] = value.rstrip(b"\0").decode("utf-8")
            elif kind == _WHOLE and count == 1:
                wholes[name] = int.from_bytes(value, "big", signed=True)
        return texts, wholes

    def places(self) -> list[_ArrayInFile | None]:
        """Where the arrays of float64 are; None for any other variable."""
        arrays: list[_ArrayInFile | None] = []
        for _ in self.several(_VARIABLES):
            name, count = self.name(), self.number()
            if not 0 <= count <= _MOST:
                raise ValueError(f"the variable {name!r} is damaged")
            dimensions = tuple(self.number() for _ in range(count))
            self.attributes()
            kind, _ = self.number(), self.number()
            place = _ArrayInFile(name, dimensions, self.number(self.offset_width))
            if min(dimensions, default=0) < 0:
                raise ValueError(f"the variable {name!r} is damaged")
            arrays.append(place if kind == _DOUBLE else None)
        return arrays
