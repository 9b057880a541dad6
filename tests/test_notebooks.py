"""Notebooks run cell by cell with only the extras that they name, and everything in them shows
itself; what shows itself is escaped, bounded and plays in a browser.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import chromium, until, visit

import ramify as rf
from ramify.core.bar import Bar
from ramify.view import report

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "examples/notebooks").glob("*.ipynb"))
EXTRAS = {
    "plot": ("matplotlib", "PIL"), "symbolic": ("sympy",), "casadi": ("casadi",), "mjcf": ("mujoco",),
    "data": ("xarray", "pandas"), "export": ("pyarrow", "zarr"), "study": ("joblib",),
    "cluster": ("distributed",), "ray": ("ray",), "stiff": ("sksundae",), "view": ("viser",),
    "gym": ("gymnasium",), "video": ("PIL", "imageio_ffmpeg"), "xacro": ("xacro",),
}  # fmt: skip
"""What each extra brings that the tests' environment has."""


def shown(value: Any) -> str:
    """A value as a notebook shows it."""
    for how in ("_repr_html_", "_repr_latex_"):
        found = getattr(value, how, lambda: None)()
        if found:
            return str(found)
    return repr(value)


def run(cells: list[dict[str, Any]]) -> list[str]:
    """The outputs of code cells, run one after the other."""
    space: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with redirect_stdout(io.StringIO()) as said:
            exec(compile(tree, cell["id"], "exec"), space)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), space)
                if value is not None:
                    said.write(shown(value))
        outputs.append(said.getvalue())
    return outputs


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    named = book["metadata"]["ramify"]["extras"]
    brought = {module for extra in named for module in EXTRAS[extra]}
    for module in {module for modules in EXTRAS.values() for module in modules} - brought:
        monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    for extra in named:
        assert f"ramify[{extra}]" in "".join(book["cells"][0]["source"])
    outputs = run(code)
    assert all(outputs), "every cell shows something"


def test_a_result_plays_in_a_notebook(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    page = tmp_path / "page.html"
    shows = rf.simulate(m, 0.2, [0.3, 0.2, 0.1])._repr_html_()
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>n</title>{shows}", "utf-8")
    with chromium() as browser, visit(browser, page.as_uri()) as tab:
        frame = tab.frames[1]
        frame.wait_for_selector("#play")
        assert frame.locator("#nogl").is_hidden()
        assert frame.locator("#tabs button").count() >= 4
        frame.locator("#time").evaluate("x => { x.value = 1; x.dispatchEvent(new Event('input')) }")
        until(frame, "document.getElementById('clock').textContent === '0.20 s'")
        assert not frame.locator(".cards").is_visible()
        rows = rf.rollout(m, [0.3, 0.2, 0.1], np.zeros(3), steps=20, dt=0.01, every=1)
        tab.set_content(f"<title>n</title>{rows._repr_html_()}")
        frame = tab.frames[1]
        frame.wait_for_selector("#play")
        assert frame.locator("#nogl").is_hidden()
        assert frame.locator(".charts").is_hidden()


def test_a_large_player_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    r = rf.simulate(rf.load("planar_3r"), 0.05)
    monkeypatch.setattr(report, "MOST_CHARACTERS", 1000)
    assert "<iframe" not in r._repr_html_()
    assert "too large" in r._repr_html_()


def test_rollouts_scenarios_and_equations_show_themselves() -> None:
    m = rf.load("planar_3r")
    q0 = np.linspace(-1.0, 1.0, 12).reshape(2, 2, 3)
    history = rf.rollout(m, q0, 0.0 * q0, steps=20, dt=1e-3, every=5)
    page = history._repr_html_()
    assert page.partition("<iframe")[0].count("<svg") == 3
    assert "state 0, 0:" in page
    assert page.partition("<iframe")[0].count("<polyline") == 9
    assert "joint3" in page
    assert "2 × 2 states" in repr(history)
    last = rf.rollout(m, q0[0], 0.0 * q0[0], steps=2, dt=1e-3)
    assert "<svg" not in last._repr_html_()
    assert "<iframe" not in last._repr_html_()
    middle = f"{np.median(last.q[:, 0]):.4g}"
    assert middle in last._repr_html_()
    assert "Quadruped" in rf.scenario("quadruped_fall")._repr_html_().partition("<iframe")[0]
    short, long = (rf.formulations.equations(rf.load(x)) for x in ("planar_3r", "kuka_kr5"))
    assert "\\begin{align*}" in str(short._repr_latex_())
    assert long._repr_latex_() is None


def test_a_study_shows_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "name: <b>falls\nscenario: planar_3r_free_fall\nset: {t_end: 0.05}\n"
        "vary: {robot.links.link3.mass: [0.5, 1.0]}\nkeep: {metrics: [max_speed]}\n"
    )
    study = rf.study(path)
    assert "not run yet" in study._repr_html_()
    study.run(engine="serial")
    page = study._repr_html_()
    assert "done 2" in page
    assert "max_speed" in page
    assert "<b>" not in page


def test_progress_in_a_notebook_needs_no_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[str] = []
    handle = types.SimpleNamespace(update=lambda page: states.append(page.data))
    display = types.ModuleType("IPython.display")
    display.HTML = lambda text: types.SimpleNamespace(data=text)  # type: ignore[attr-defined]
    display.display = lambda page, display_id: (states.append(page.data), handle)[1]  # type: ignore[attr-defined]
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    bar = Bar("<b>run", 4.0, transient=True)
    bar.update(1.0, "t = 1 s")
    assert 'value="0.250"' in states[-1]
    assert "<b>" not in states[-1]
    bar.close()
    assert states[-1] == ""
