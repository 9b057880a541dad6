"""Settings of the documentation: `make docs` builds it into out/docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy.typing


class ArrayLike:
    """Stands for NumPy's union of that name, so that signatures do not show its many members."""


ArrayLike.__module__ = "numpy.typing"
numpy.typing.ArrayLike = ArrayLike  # before ramify imports it

import ramify  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))

project = "ramify"
author = "The ramify developers"
copyright = "The ramify developers"
release = version = ramify.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_gallery"]
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_preserve_defaults = True
ALIASES = (
    "Array ArrayLike ControlForces ControlLike Event Functions GroundLike Maybe Named Scalars "
    "Texts Wrenches"
)
autodoc_type_aliases = {name: name for name in ALIASES.split()}
add_module_names = False
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"ramify {version}"
html_static_path = ["_static", "pictures", "_gallery"]
html_css_files = ["ramify.css"]
html_js_files = ["ramify.js"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app: Any) -> None:
    """Draw the gallery before the pages are read; ``-D gallery=planar_3r`` draws one robot."""
    app.add_config_value("gallery", "", "env")
    app.connect("config-inited", _draw_gallery)
    app.connect("autodoc-process-signature", _plain_names)


def _plain_names(app: Any, what: str, name: str, *rest: Any) -> tuple[str, ...]:
    """Names of aliases inside unions, and classes without their modules."""
    _, _, signature, returns = rest
    plain = r"TypeAliasForwardRef\('(\w+)'\)|\b(?:ramify|collections|numpy|typing)(?:\.\w+)*\.(\w+)"
    return tuple(
        text and re.sub(plain, lambda found: found[1] or found[2], text)
        for text in (signature, returns)
    )


def _draw_gallery(app: Any, config: Any) -> None:
    import gallery

    gallery.write(
        Path(__file__).parent / "_gallery",
        config.gallery.split(",") if config.gallery else ramify.robots(),
    )
