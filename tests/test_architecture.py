"""The direction of dependence: who may import whom, what ``import ramify`` loads, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parent.parent / "src"
FILES = sorted((SRC / "ramify").rglob("*.py"))
MECHANICS = {"model", "dynamics", "spatial", "formulations"}
MOST_LINES = 450


@dataclass(frozen=True)
class Import:
    """An import of one of our modules: by whom (package below ramify), of what, on which line, and whether inside a function."""

    by: str
    path: Path
    line: int
    module: str
    inside: bool

    @property
    def part(self) -> str:
        """The first level below ``ramify``."""
        return self.module.split(".")[1] if "." in self.module else ""

    def __str__(self) -> str:
        return f"{self.path.relative_to(SRC)}:{self.line} imports {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    """The imports that run; those under TYPE_CHECKING never do."""
    relative = path.relative_to(SRC).with_suffix("").parts
    by = relative[1] if len(relative) > 1 else ""
    package = relative[:-1]

    def visit(node: ast.AST, inside: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            children: list[ast.AST] = list(node.orelse)
        else:
            children = list(ast.iter_child_nodes(node))
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            root = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*root, *([node.module] if node.module else [])])
            names = [base] if base != "ramify" else [f"ramify.{alias.name}" for alias in node.names]
        for name in names:
            if name == "ramify" or name.startswith("ramify."):
                yield Import(by, path, node.lineno, name, inside)  # type: ignore[attr-defined]
        for child in children:
            yield from visit(child, inside or isinstance(node, (ast.FunctionDef, ast.Lambda)))

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


IMPORTS = [item for path in FILES for item in imports_of(path)]


def broken(rule: Iterator[Import]) -> str:
    return "\n".join(map(str, rule))


def test_the_parser_sees_imports() -> None:
    assert any(i.by == "dynamics" and i.module == "ramify.core.spatial" and not i.inside for i in IMPORTS)
    assert any(i.by == "model" and i.module == "ramify.kernels.compute" and i.inside for i in IMPORTS)


def test_dynamics_knows_neither_graphs_nor_compilers() -> None:
    assert not broken(i for i in IMPORTS if i.by == "dynamics" and i.part in {"trace", "codegen", "compute", "cli", "io", "view"})


def test_the_texts_of_loops_know_neither_graphs_nor_compilers() -> None:
    texts = {"closure", "constraints", "forward", "inverse", "linear", "project", "rows"}
    above = {"trace", "codegen", "compute", "algorithms", "sim", "cli", "io", "view"}
    assert not broken(i for i in IMPORTS if i.by == "loops" and i.path.stem in texts and i.part in above)
    assert not broken(i for i in IMPORTS if i.by == "model" and i.part == "loops" and not i.inside)


def test_trace_knows_no_mechanics() -> None:
    assert not broken(i for i in IMPORTS if i.by == "trace" and i.part in MECHANICS | {"codegen", "compute"})


def test_codegen_knows_no_mechanics() -> None:
    assert not broken(i for i in IMPORTS if i.by == "codegen" and i.part in MECHANICS)


def test_model_reaches_kernels_only_through_compute_and_late() -> None:
    assert not broken(i for i in IMPORTS if i.by == "model" and i.part in {"trace", "codegen", "dynamics"})
    assert not broken(i for i in IMPORTS if i.by == "model" and i.part == "compute" and not i.inside)


def test_scalars_and_vectors_stand_at_the_bottom() -> None:
    assert not broken(i for i in IMPORTS if i.by in {"scalar", "errors"})
    assert not broken(i for i in IMPORTS if i.by == "spatial" and i.part != "scalar")


def test_nobody_imports_the_command_line() -> None:
    assert not broken(i for i in IMPORTS if i.part == "cli" and i.by not in {"__main__", "cli"})


def test_views_are_imported_late() -> None:
    assert not broken(i for i in IMPORTS if i.part == "view" and i.by != "view" and not i.inside)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC / "ramify")))
def test_files_can_be_read_in_one_go(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def loaded_by(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after running some code."""
    code += "\nimport sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light() -> None:
    heavy = {"llvmlite", "matplotlib", "pydantic", "ruamel", "scipy", "sympy", "casadi", "cyclopts", "rich", "numba", "jax"}
    assert not loaded_by("import ramify") & heavy


def test_a_model_built_in_python_needs_no_compiler_yet() -> None:
    code = "import ramify as rf\nm = rf.Builder('one').link('rod', mass=1, com=(1, 0, 0)).model()\nassert m.nv == 1"
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
