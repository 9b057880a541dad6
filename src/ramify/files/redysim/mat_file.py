"""ReDySim's ``inputs.mat``: the numeric variables of a MATLAB 5 file (save -v6 or -v7), read within
limits.

The file is a header of 128 bytes and a run of data elements, each a type, a size and that many
bytes padded to eight. A variable is an element of type *matrix* that holds elements in its turn:
flags, dimensions, name, real part. Such an element may be packed with zlib. Only plain real arrays
are wanted here, so everything else (cells, structures, texts, objects, sparse matrices) is passed
over unread.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.files.redysim.redysim_variables import VARIABLES

MAX_BYTES: Final = 1 << 20
"""Bytes of a file, and of all its variables unpacked."""

MAX_VARIABLES: Final = 1000
"""Variables of a file."""

_HDF5: Final = b"\x89HDF\r\n\x1a\n"
_NUMBERS: Final = dict(enumerate(["i1", "u1", "i2", "u2", "i4", "u4", "f4"], 1)) | {
    9: "f8",
    12: "i8",
    13: "u8",
}
_MATRIX: Final = 14
_PACKED: Final = 15
_REAL_CLASSES: Final = range(6, 16)  # double, single and the integers
_COMPLEX: Final = 0x08


class _DataElement(NamedTuple):
    """A data element: its type and its bytes."""

    kind: int
    data: bytes


def read_mat(data: bytes, file: str) -> dict[str, Array]:
    """The real numeric variables of a MATLAB 5 file by name, as arrays of their own shape. Raises
    ModelError for any other file.
    """
    if data[128:].startswith(_HDF5[:4]) or data.startswith(_HDF5):
        raise ModelError(f"{file}: a MATLAB 7.3 file (HDF5); write it with: save inputs.mat -v7")
    if len(data) < 128 or data[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
        raise ModelError(
            f"{file}: not a MATLAB 5 file, or cut off; write it with: save inputs.mat -v7"
        )
    try:
        return _variables(data, "<" if data[126:128] == b"IM" else ">", file)
    except (struct.error, zlib.error, ValueError, UnicodeDecodeError, OverflowError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{file}: damaged or cut off: {error}") from None


def _variables(data: bytes, order: str, file: str) -> dict[str, Array]:
    variables: dict[str, Array] = {}
    budget = MAX_BYTES
    for count, element in enumerate(_elements(data[128:], order)):
        if count >= MAX_VARIABLES:
            text = f"more than {MAX_VARIABLES} variables; a robot has some twenty"
            raise ModelError(f"{file}: {text}")
        inner = [element]
        if element.kind == _PACKED:
            unpacked = _unpacked(element.data, budget, file)
            budget -= len(unpacked)
            inner = list(_elements(unpacked, order))
        for variable in inner:
            if variable.kind != _MATRIX:
                kind = f"an element of type {variable.kind}"
                raise ValueError(f"{kind} found where a variable was expected")
            name, value = _array(variable.data, order)
            if value is not None:
                variables[name] = value
            elif name in VARIABLES:
                raise ModelError(f"{file}: {name} must be a real numeric array, not text or a cell")
    if not variables:
        text = "holds no numeric variable; it should hold n, alp, a, b, bt, m, ..."
        raise ModelError(f"{file}: {text}")
    return variables


def _unpacked(data: bytes, most: int, file: str) -> bytes:
    stream = zlib.decompressobj()
    out = stream.decompress(data, most + 1)
    if len(out) > most:
        text = f"its variables unpack to more than {MAX_BYTES / 1e6:.1f} MB"
        raise ModelError(f"{file}: {text}; a robot's take some thousand bytes")
    if not stream.eof:
        raise ValueError("packed data end too early")
    return out


def _elements(data: bytes, order: str) -> Iterator[_DataElement]:
    """The data elements of a run of bytes. A small one has its size in the upper half of the type,
    and its bytes right there.
    """
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        if kind >> 16:
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if size > 4:
                raise ValueError(f"a small element of {size} bytes")
        else:
            start = at + 8
            end = start + size + (-size % 8 if kind != _PACKED else 0)
        if start + size > len(data):
            raise ValueError(f"an element of {size} bytes goes beyond the end")
        yield _DataElement(kind, data[start : start + size])
        at = end
    if at < len(data):
        raise ValueError("bytes are left over at the end")


def _array(data: bytes, order: str) -> tuple[str, Array | None]:
    """Name and value of a variable; None for anything but a real numeric array."""
    parts = list(_elements(data, order))
    if len(parts) < 3 or len(parts[0].data) < 8:
        raise ValueError("a variable lacks its flags, dimensions or name")
    flags = struct.unpack_from(order + "I", parts[0].data)[0]
    shape = [int(x) for x in np.frombuffer(parts[1].data, order + "i4")]
    name = parts[2].data.decode("ascii")
    if (flags & 0xFF) not in _REAL_CLASSES or (flags >> 8) & _COMPLEX or len(parts) != 4:
        return name, None
    values = parts[3]
    if values.kind not in _NUMBERS:
        raise ValueError(f"variable {name!r} has numbers of type {values.kind}")
    numbers = np.frombuffer(values.data, order + _NUMBERS[values.kind]).astype(np.float64)
    if len(shape) < 2 or min(shape) < 0 or np.prod(shape, dtype=object) != numbers.size:
        counted = f"{numbers.size} numbers for the dimensions {shape[:8]}"
        raise ValueError(f"variable {name!r} has {counted}")
    return name, numbers.reshape(shape, order="F")
