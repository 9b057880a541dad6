"""XML from untrusted files: UTF-8 text without a DTD, so there are no entities to
expand and nothing to fetch.

libxml2's own guards stay on: nesting of at most 256 levels, texts below 10 MB, no network, damaged
documents refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from lxml import etree

from ramify.core.errors import ModelError

_PROLOG: Final = re.compile(
    r"(?:\s|<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->)*+<!DOCTYPE", re.DOTALL
)
"""Everything that may stand before a document type declaration, and the declaration's first word.
"""


_DTD: Final = "a document type declaration (DTD, entities) is not accepted; remove <!DOCTYPE …>"
_DECLARATION: Final = re.compile(r"(\s*)<\?xml\b((?:(?!\?>).)*+)\?>", re.DOTALL)
_VERSION: Final = re.compile(r"\bversion\s*=\s*['\"]([^'\"]*)")

OnRemark = Callable[[int, str], None]
"""Takes the line and a description of a fault that was passed over."""


def parse_xml(data: bytes, file: str, remark: OnRemark | None = None) -> etree._Element:
    """The root element of a document; ``file`` is its name in messages. Raises ModelError with
    file, line and column.

    With ``remark``, faults that leave no doubt about the document are reported to it and passed
    over: an XML version that does not exist, blanks before the declaration, prefixes of namespaces
    that are not declared (tags keep them as ``prefix:name``).
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        raise ModelError(
            f"{file}:{line}: {byte} is not UTF-8 text; save the file as UTF-8"
        ) from None
    if declared := _PROLOG.match(text):
        line = text.count("\n", 0, declared.end()) + 1
        raise ModelError(f"{file}:{line}: {_DTD}")
    if remark is not None:
        text = _without_declaration(text, remark)
    root, faults = _parsed(text, recover=False)
    if remark is not None and faults and all(_is_prefix(fault) for fault in faults):
        root, faults = _parsed(text, recover=True)
        if root is not None and all(_is_prefix(fault) for fault in faults):
            said = faults[0].message.strip()
            remark(faults[0].line, f"{said}; its elements are read as they are")
            faults = []
    if root is None or faults:
        at, said = "1:1", "empty document"
        if faults:
            at = f"{max(faults[0].line, 1)}:{max(faults[0].column, 1)}"
            said = " ".join(faults[0].message.split())[:200] or said
        raise ModelError(f"{file}:{at}: not well-formed XML: {said}")
    if root.getroottree().docinfo.doctype:
        raise ModelError(f"{file}: {_DTD}")
    return root


def _parsed(text: str, recover: bool) -> tuple[etree._Element | None, list[Any]]:
    """The root, if there is one, and the parser's errors."""
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except (etree.XMLSyntaxError, ValueError):
        root = None
    return root, list(parser.error_log)


def _is_prefix(fault: Any) -> bool:
    return fault.type == etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE


def _without_declaration(text: str, remark: OnRemark) -> str:
    """The text without its XML declaration, which says nothing that the reader needs; lines keep
    their numbers.
    """
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    if declaration[1]:
        remark(1, "blanks before the XML declaration")
    version = _VERSION.search(declaration[2])
    if version is None or version[1] not in ("1.0", "1.1"):
        remark(1, f"XML version {version[1][:20] if version else ''!r} does not exist; read as 1.0")
    return "\n" * declaration[0].count("\n") + text[declaration.end() :]
