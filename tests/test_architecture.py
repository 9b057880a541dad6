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
    {"identify", "optimal"},
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


SWEEP = "a step of the sweeps of one algorithm, read in the module of that algorithm"
TASK = "a task of the dynamics by another published recursion, called as module.task"
SHARED_NAMES = {
    "inward": SWEEP,
    "outward": SWEEP,
    "climb": SWEEP,
    "inverse_dynamics": TASK,
    "forward_dynamics": TASK,
    "mass_matrix": TASK,
    "bias_forces": TASK,
    "tree_of": "the tree of a robot for the recursions of ramify and for those of the book",
    "kernel": "public: a compiled function of a robot, and rf.contact.kernel of a robot on a ground",
    "make": "a function of a robot for one library of interop, found by the name of the library",
    "save": "public: the writer of a robot file, for YAML and for URDF",
}
"""Names of functions that several modules define: the same operation for another kind of thing."""

QUERIES = {"kernels/queries.py", "kernels/floating.py", "loops/closed_dynamics.py"}
"""Their functions may have the name of a text in ``dynamics``: they answer it for arrays."""


def is_command(function: ast.FunctionDef) -> bool:
    """Whether users type the name of a function on the command line."""
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    return any(word in decorators for word in (".command", ".default"))


def ambiguous_functions(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Public functions that several modules define, with the paths of these modules."""
    named: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not (
                node.name.startswith("_") or is_command(node)
            ):
                named.setdefault(node.name, []).append(path)
    shared = {name: paths for name, paths in named.items() if len(paths) > 1}
    for name, paths in list(shared.items()):
        texts = [path for path in paths if path.startswith("dynamics/")]
        answered = len(paths) == 2 and len(texts) == 1 and QUERIES & set(paths)
        if name in SHARED_NAMES or answered:
            del shared[name]
    return shared


def test_no_function_name_stands_for_two_things() -> None:
    """Whoever reads ``load(…)`` need not look up at the imports what it loads."""
    trees = {path.relative_to(PACKAGE).as_posix(): tree_of(path) for path in FILES}
    assert not ambiguous_functions(trees)
    defined = [n.name for t in trees.values() for n in t.body if isinstance(n, ast.FunctionDef)]
    assert all(defined.count(name) > 1 for name in SHARED_NAMES), "a name is not shared any more"


def test_ambiguous_functions_are_noticed() -> None:
    trees = {
        "core/a.py": ast.parse("def load(): ...\ndef _load(): ...\ndef kernel(): ..."),
        "files/b.py": ast.parse("def load(): ...\ndef energy(): ...\ndef kernel(): ..."),
        "cli/c.py": ast.parse("@app.command(name='x')\ndef plot(): ...\ndef _load(): ..."),
        "view/d.py": ast.parse("def plot(): ...\ndef udu(): ..."),
        "dynamics/e.py": ast.parse("def energy(): ...\ndef udu(): ...\ndef bias(): ..."),
        "kernels/queries.py": ast.parse("def udu(): ...\ndef bias(): ..."),
    }
    assert set(ambiguous_functions(trees)) == {"load", "energy", "udu"}


def users_of(*names: str) -> set[str]:
    """The modules that load one of these names or attributes."""
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    }


def test_one_class_has_a_program_and_its_code() -> None:
    """``CompiledProgram``; whoever needs a straight-line program with code has one of these."""
    assert users_of("unrolled_ir") == {"runtime/compiled_program.py"}


THREADS = {
    "runtime/batch_pool.py": "the pool of compiled batches",
    "runtime/piece_workers.py": "work that Python hands out: steps in time, derivatives of them",
    "runtime/kernel.py": "compiles in the background",
    "studies/work.py": "ends a study's worker with its parent",
    "view/live.py": "plays, watches the robot's file and simulates while the viewer answers",
    "view/live_run.py": "computes a run while the viewer answers",
}
"""Modules that start threads."""


def test_batches_are_shared_by_one_pool() -> None:
    assert users_of("Thread", "ThreadPoolExecutor", "start_new_thread") == set(THREADS)
    assert users_of("pool_ir") == {"runtime/batch_pool.py"}


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


STEPPERS = {"step", "steps", "stepper", "solver", "forward", "recorder", "tangents", "segment"}
"""Names of what makes steps, or gives a function that does."""
STEP_FUNCTIONS = {"text_step", "runge_kutta_step", "march", "backward"}
DRIVERS = {
    "integrate/driver.py drive": "runs, rollouts, replays and the live viewer",
    "integrate/rollout_states.py _first_bad": "the step at which a state failed, by ever fewer steps",
    "sensitivity/sensitivity.py _adjoint_of": "forward in segments, then backward",
}
"""The loops over time steps that there are, and what for."""


def name_of(node: ast.expr) -> str:
    """The last name of an expression: of ``self.a.solver`` it is ``solver``."""
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_")
    return node.id.lstrip("_") if isinstance(node, ast.Name) else ""


def makes_steps(call: ast.Call) -> bool:
    """Whether a call makes one step or several: ``solver.step()``, ``steps.advance()``,
    ``stepper.run(y, …)``, ``text_step(…)``.
    """
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("step", "advance", "run"):
        return name_of(call.func.value) in STEPPERS
    return name_of(call.func) in STEP_FUNCTIONS


def drivers(tree: ast.Module) -> Iterator[str]:
    """Functions in which a ``for`` or ``while`` makes steps, itself or through a function of the
    same file that does nothing else in a loop.
    """
    functions = [
        x for x in ast.walk(tree) if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    for function in functions:
        loops = [x for x in ast.walk(function) if isinstance(x, (ast.For, ast.While))]
        inner = [x for loop in loops for x in ast.walk(loop) if isinstance(x, ast.Call)]
        if any(makes_steps(call) for call in inner):
            yield function.name


def test_loops_over_steps_are_noticed() -> None:
    code = (
        "def one(solver):\n    while solver.status:\n        solver.step()\n"
        "def two(self, y):\n    for k in range(3):\n        y = self._stepper.run(y, k)\n"
        "def three(rates):\n    for _ in range(3):\n        y = text_step(rates)\n"
        "def fine(solver, env):\n    solver.step()\n    for a in env.actions:\n        env.step(a)\n"
    )
    assert [*drivers(ast.parse(code))] == ["one", "two", "three"]


def test_there_is_one_driver() -> None:
    """Beside it only what is not a run: the search for a failure, and the adjoint."""
    names = [
        f"{path.relative_to(PACKAGE)} {name}" for path in FILES for name in drivers(tree_of(path))
    ]
    assert sorted(names) == sorted(DRIVERS)
    assert len(DRIVERS) <= 4


def calls_of(name: str) -> list[str]:
    """The functions that call a name, with their files."""
    return [
        f"{path.relative_to(PACKAGE)} {function.name}"
        for path in FILES
        for function in ast.walk(tree_of(path))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
    ]


def test_runs_and_their_balances_are_built_in_one_place() -> None:
    """The recorder makes runs: of states, and of states alone, to be drawn or completed by
    ``replace``. There is one energy balance.
    """
    assert calls_of("Run") == ["runs/recorder.py record_run", "runs/recorder.py drawn_run"]
    assert calls_of("EnergyBalance") == ["runs/run_record.py energy_balance"]


def test_the_net_force_is_summed_in_one_place() -> None:
    """Whoever needs it takes it from there: viscous friction is subtracted nowhere else in runs."""
    users = {name.split()[0] for name in calls_of("with_friction_and_loads")}
    assert users == {"plant/right_hand_side.py", "plant/implicit_rates.py"}
    for path in FILES:
        if path.parent.name in {"plant", "integrate", "runs", "view", "studies", "envs"}:
            products = [
                node
                for node in ast.walk(tree_of(path))
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
                if isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Mult)
                if "damping" in ast.dump(node.right)
            ]
            assert not products, f"{path}:{products[0].lineno}"


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
