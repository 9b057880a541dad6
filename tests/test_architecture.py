"""The direction of dependence: who may import whom, and what ``import ramify`` loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SRC / "ramify"
FILES = sorted(PACKAGE.rglob("*.py"))

LAYERS = (
    {"core"},
    {"trace", "model", "documents"},
    {"dynamics", "emit", "files"},
    {"runtime"},
    {"kernels"},
    {"loops", "contact", "drives", "formulations"},
    {"motion", "lint"},
    {"control"},
    {"plant"},
    {"integrate"},
    {"sensitivity"},
    {"runs"},
    {"view", "interop", "fmi"},
    {"optimal"},
    {"api"},
    {"scenario_files"},
    {"studies", "envs"},
    {"cli"},
)
"""Packages from the bottom up. One may use those of lower layers and no other: see
docs/architecture.md.
"""

LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
TOP = {"", "__main__"}
"""``ramify`` itself, which only resolves public names, and ``python -m ramify``."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Import:
    """An import of one of our modules: by which package and file, of what, on which line."""

    by: str
    path: Path
    line: int
    module: str

    @property
    def package(self) -> str:
        """The first level below ``ramify``."""
        return self.module.split(".")[1] if "." in self.module else ""

    def __str__(self) -> str:
        return f"{self.path.relative_to(SRC)}:{self.line} imports {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    """All imports of a file, those inside functions and under TYPE_CHECKING too."""
    relative = path.relative_to(SRC).with_suffix("").parts
    by = relative[1] if len(relative) > 2 else relative[1].removeprefix("__init__")
    for node in ast.walk(tree_of(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are absolute"
            base = str(node.module)
            names = [f"ramify.{a.name}" for a in node.names] if base == "ramify" else [base]
        for name in names:
            if name == "ramify" or name.startswith("ramify."):
                yield Import(by, path, node.lineno, name)


@cache
def imports() -> list[Import]:
    """All imports of the package."""
    return [item for path in FILES for item in imports_of(path)]


def broken(rule: Iterator[Import]) -> str:
    return "\n".join(map(str, rule))


def test_every_package_has_its_layer() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert packages == set(LEVEL)
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "__main__"}


def test_imports_of_every_kind_are_seen(tmp_path: Path) -> None:
    code = (
        "from typing import TYPE_CHECKING\nimport ramify.plant.field\nfrom ramify import view\n"
        "if TYPE_CHECKING:\n    from ramify.api.model import Model\n"
        "def late():\n    from ramify.cli import main\n"
    )
    path = tmp_path / "ramify" / "core" / "odd.py"
    path.parent.mkdir(parents=True)
    path.write_text(code)
    global SRC
    kept, SRC = SRC, tmp_path
    try:
        found = {item.package for item in imports_of(path)}
    finally:
        SRC = kept
    assert found == {"plant", "view", "api", "cli"}


def test_packages_use_only_lower_layers() -> None:
    assert not broken(
        i
        for i in imports()
        if i.by not in TOP and i.package not in {i.by, ""} and LEVEL[i.package] >= LEVEL[i.by]
    )


def test_no_two_modules_need_each_other() -> None:
    """Inside a package, too: whoever reads a module need not read those that use it first."""
    names = {".".join(path.relative_to(SRC).with_suffix("").parts): path for path in FILES}
    needs: dict[str, set[str]] = {
        module: {i.module for i in imports() if i.path == path and i.module in names}
        for module, path in names.items()
    }
    while leaves := {module for module, used in needs.items() if not used}:
        needs = {m: used - leaves for m, used in needs.items() if m not in leaves}
    assert not needs


def test_nobody_asks_the_top() -> None:
    """``import ramify`` inside a package would make it depend on everything; the command line does."""
    assert not broken(i for i in imports() if i.by not in {*TOP, "cli"} and i.package == "")


def test_one_name_one_thing() -> None:
    """A module's name says what is inside wherever it is read, and so does a type's."""
    named: dict[str, list[str]] = {}
    aliases: list[tuple[str, str]] = []
    for path, tree in zip(FILES, map(tree_of, FILES), strict=True):
        where = str(path.relative_to(SRC))
        if not path.stem.startswith("__"):
            named.setdefault(f"module {path.stem}", []).append(where)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                named.setdefault(f"type {node.name.lstrip('_')}", []).append(where)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                aliases.append((f"type {node.targets[0].id.lstrip('_')}", where))
    for name, where in aliases:  # two aliases may share a name, but not an alias and a class
        if name in named:
            named[name].append(f"{where} (alias)")
    assert not {name: found for name, found in named.items() if len(found) > 1}


PRIVATE_WORDS = {
    "asked_for", "bent", "brief", "decided", "felt", "found", "freed", "given", "held", "kept", "known", "led_start",
    "lost", "made", "own", "parted", "placed", "seen", "suspect", "taut",
}  # fmt: skip
"""Words that say how a thing came about, not what it is."""

SHORT = 5
"""Lines over which a local variable may have such a name."""


def private_names(tree: ast.Module) -> Iterator[str]:
    """Functions, classes, parameters, fields, attributes and long-lived variables with a private word
    for a name, with their lines.
    """

    def private(name: str) -> bool:
        return name.lower().strip("_") in PRIVATE_WORDS

    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and private(
            node.name
        ):
            yield f"{node.lineno} {node.name}"
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and private(field.target.id)
                ):
                    yield f"{field.lineno} {node.name}.{field.target.id}"
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and private(node.attr)
        ):
            yield f"{node.lineno} .{node.attr}"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = node.args
            arguments = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
            yield from (f"{node.lineno} {node.name}({name})" for name in arguments if private(name))
            lines: dict[str, list[int]] = {}
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and private(inner.id) and inner.id not in arguments:
                    lines.setdefault(inner.id, []).append(inner.lineno)
            for name, where in lines.items():
                if max(where) - min(where) > SHORT:
                    yield f"{min(where)} {node.name}: {name}"


def test_private_words_as_names_are_noticed() -> None:
    code = (
        "class Seen:\n    kept: int\n    def __init__(self, given):\n        self._known = given\n"
        "def felt():\n    found = 1\n" + "    pass\n" * 6 + "    return found\n"
        "def fine(q):\n    found = q\n    return found\n"
    )
    assert {line.split(" ", 1)[1] for line in private_names(ast.parse(code))} == {
        "Seen", "Seen.kept", "__init__(given)", "._known", "felt", "felt: found",
    }  # fmt: skip


def test_names_say_what_a_thing_is() -> None:
    assert not [
        f"{path.relative_to(SRC)}:{name}" for path in FILES for name in private_names(tree_of(path))
    ]


def loaded_by(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after running some code."""
    code += "\nimport sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light() -> None:
    heavy = {"llvmlite", "matplotlib", "pydantic", "ruamel", "scipy", "sympy", "casadi", "cyclopts"}
    assert not loaded_by("import ramify") & (heavy | {"rich", "numba", "jax", "torch"})


def test_a_model_built_in_python_needs_no_compiler_yet() -> None:
    code = (
        "import ramify as rf\n"
        "m = rf.Builder('one').link('rod', mass=1, com=(1, 0, 0)).model()\nassert m.nv == 1"
    )
    assert not loaded_by(code) & {"llvmlite", "matplotlib", "pydantic"}


def test_the_command_line_starts_light() -> None:
    assert not loaded_by("import ramify.cli") & {"llvmlite", "matplotlib", "pydantic", "numpy"}


def test_public_names_exist() -> None:
    import ramify

    for name in ramify.__all__:
        assert getattr(ramify, name) is not None
        assert name in dir(ramify)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ramify.nonsense


def test_cached_properties_are_our_own() -> None:
    """Python 3.11 computes ``functools.cached_property`` under one lock for all objects of a class,
    which a child of ``fork`` may find taken for ever.
    """
    for path in set(FILES) - {PACKAGE / "core" / "cached.py"}:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "functools":
                assert all(name.name != "cached_property" for name in node.names), path
            if isinstance(node, ast.Attribute) and node.attr == "cached_property":
                raise AssertionError(f"{path}: use ramify.core.cached.cached_property")
