"""Without its library, every interface says in one line what to install."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ramify as rf

STUDY = """
name: falls
scenario: planar_3r_free_fall
set: {t_end: 0.01}
vary: {robot.links.link3.mass: [0.5, 1.0]}
keep: {metrics: [max_speed]}
"""
MJCF = "<mujoco><worldbody><body><joint/><geom size='0.1'/></body></worldbody></mujoco>"
XACRO = (
    """<robot name="a" xmlns:xacro="http://ros.org/wiki/xacro"><link name="${1 + 1}"/></robot>"""
)


@pytest.fixture(scope="module")
def result() -> rf.Result:
    return rf.simulate(rf.load("planar_3r"), 0.01)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> rf.Study:
    path = tmp_path_factory.mktemp("study") / "study.yaml"
    path.write_text(STUDY)
    made = rf.study(path)
    made.run(engine="serial")
    return made


def loaded(text: str, name: str) -> rf.Model:
    Path(name).write_text(text)
    return rf.load(name)


USES: dict[tuple[str, str], Callable[[rf.Result, rf.Study], Any]] = {
    ("jax", "jax"): lambda r, s: r.model.jax("bias"),
    ("torch", "torch"): lambda r, s: r.model.torch("bias"),
    ("casadi", "casadi"): lambda r, s: r.model.casadi("bias"),
    ("mujoco", "mjcf"): lambda r, s: loaded(MJCF, "a.xml"),
    ("xacro", "xacro"): lambda r, s: loaded(XACRO, "a.urdf.xacro"),
    ("matplotlib", "plot"): lambda r, s: r.plot(),
    ("PIL", "video"): lambda r, s: r.animate("a.gif"),
    ("imageio_ffmpeg", "video"): lambda r, s: r.animate("a.mp4"),
    ("viser", "view"): lambda r, s: rf.view(r.model),  # type: ignore[operator]
    ("xarray", "data"): lambda r, s: r.to_xarray(),
    ("pandas", "data"): lambda r, s: r.to_pandas(),
    ("joblib", "study"): lambda r, s: s.run(jobs=2),
    ("joblib", "ray"): lambda r, s: s.run(engine="ray"),
    ("ray", "ray"): lambda r, s: s.run(engine="ray"),
    ("distributed", "cluster"): lambda r, s: s.run(engine="dask", scheduler="tcp://127.0.0.1:1"),
    ("pyarrow", "export"): lambda r, s: s.export("a.parquet"),
    ("zarr", "export"): lambda r, s: s.export("a.zarr"),
    ("sksundae", "stiff"): lambda r, s: rf.simulate(r.model, 0.01, method="cvode"),
    ("sympy", "symbolic"): lambda r, s: rf.formulations.equations(r.model).M,
    ("ziglang", "fmi"): lambda r, s: rf.to_fmu(r.model, "a.fmu", platforms=["aarch64-darwin"]),
}
"""By library and extra, what needs them."""


@pytest.mark.parametrize(("library", "extra"), USES, ids=[f"{a}-{b}" for a, b in USES])
def test_one_line_says_what_to_install(
    library: str,
    extra: str,
    result: rf.Result,
    study: rf.Study,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    known = [name for name in sys.modules if name.startswith(f"{library}.")]
    for name in (library, *known):  # other tests may have imported parts of it
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    with pytest.raises(rf.RamifyError) as caught:
        USES[library, extra](result, study)
    message = str(caught.value)
    assert f"pip install 'ramify[{extra}]'" in message
    assert "\n" not in message
