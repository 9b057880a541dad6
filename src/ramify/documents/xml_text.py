"""XML from files that nobody vouches for: UTF-8 text without a DTD, so there are no entities to
expand and nothing to fetch.

libxml2's own guards stay on: nesting below 256 levels, texts below 10 MB, no network, damaged
documents refused.
"""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from ramify.core.errors import ModelError

_PROLOG: Final = re.compile(
    r"(?:\s|<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->)*+<!DOCTYPE", re.DOTALL
)
"""Everything that may stand before a document type declaration, and the declaration's first word.
"""


def parse_xml(data: bytes, file: str) -> etree._Element:
    """The root element of a document; ``file`` is its name in messages. Raises ModelError with
    file, line and column.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ModelError(
            f"{file}:{line}: byte 0x{data[error.start]:02x} is not UTF-8 text; save the file as "
            "UTF-8"
        ) from None
    if declared := _PROLOG.match(text):
        line = text.count("\n", 0, declared.end()) + 1
        raise ModelError(
            f"{file}:{line}: a document type declaration (DTD, entities) is not accepted; remove "
            "<!DOCTYPE …>"
        )
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, attribute_defaults=False,
        huge_tree=False, recover=False, remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(text.encode(), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        line, column = getattr(error, "position", None) or (1, 1)
        said = re.sub(r",? ?line \d+, column \d+.*", "", " ".join(str(error).split()))
        raise ModelError(
            f"{file}:{max(line, 1)}:{max(column, 1)}: not well-formed XML: "
            f"{said[:200] or 'empty document'}"
        ) from None
    if root.getroottree().docinfo.doctype:
        raise ModelError(
            f"{file}: a document type declaration (DTD, entities) is not accepted; remove "
            "<!DOCTYPE …>"
        )
    return root
