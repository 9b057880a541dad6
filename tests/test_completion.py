"""Completion by the shell, and the examples in the help of every command."""

from __future__ import annotations

import io
import shlex
import shutil
from pathlib import Path

import pytest

from ramify.cli import app, main
from ramify.cli.examples import EXAMPLES


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert not stop.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_installed_for_each_shell(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    path = Path(said(["--install-completion", "--shell", shell], capsys).split()[1])
    assert home in path.parents
    script = path.read_text("utf-8")
    for word in ("simulate", "export", "sweep", "format", "fmu", "__complete"):
        assert word in script
    if shell == "fish":  # the quickest
        shutil.rmtree(home)
        other = tmp_path / "script"
        said(["--install-completion", "--shell", shell, "--out", str(other)], capsys)
        assert other.read_text("utf-8") == script
        assert not home.exists(), "with --out, nothing else is written"


def test_names_and_files_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my[arm].urdf").touch()
    (tmp_path / "robots").mkdir()
    monkeypatch.chdir(tmp_path)
    robots = said(["__complete", "info", "my["], capsys).split("\n")
    assert {"kuka_kr5", "my[arm].urdf"} <= set(robots)
    both = said(["__complete", "simulate", ""], capsys).split("\n")
    assert {"kuka_kr5", "kuka_free_fall", "robots/"} <= set(both)
    option = said(["__complete", "export", "kuka_kr5", "--scenario", ""], capsys).split("\n")
    assert {"kuka_free_fall", "robots/"} <= set(option)
    assert "kuka_kr5" not in option


def commands() -> list[str]:
    found = []
    for name in app:
        if name in (*app.help_flags, *app.version_flags):
            continue
        found.append(name)
        found += [f"{name} {inner}" for inner in app[name] if not inner.startswith("-")]
    return found


def test_every_command_has_examples_that_it_can_read() -> None:
    assert sorted(EXAMPLES) == sorted(commands())
    for command, lines in EXAMPLES.items():
        for line in lines:
            assert line.startswith(command)
            app.parse_args(shlex.split(line), exit_on_error=False, print_error=False)


def test_help_shows_them() -> None:
    from rich.console import Console

    page = io.StringIO()
    app.help_print(["sweep", "export"], console=Console(file=page, width=100))
    assert "ramify sweep export payload_study.db --out runs.csv" in page.getvalue()
