"""Identification: identify, identify plan, identify payload."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, app, load_model
from ramify.cli.output import print_error, print_json, print_line

if TYPE_CHECKING:
    from ramify.identify import Fit

FrictionKind = Literal["none", "viscous", "coulomb", "asymmetric", "stribeck"]
Logs = Annotated[list[Path], Parameter(consume_multiple=True, negative="")]
Units = Annotated[Literal["rad", "deg"] | None, Parameter(help="Unit of the angles.")]

identify = App(
    name="identify",
    help="Identify a robot from logs of its motion; plan such a motion; weigh a payload.",
)
app.command(identify)


@identify.default
def fit(
    log: Path,
    robot: RobotName,
    /,
    *,
    more: Logs | None = None,
    validate: Path | None = None,
    friction: FrictionKind = "coulomb",
    band: float | None = None,
    units: Units = None,
    report: Path | None = None,
    save: Path | None = None,
    settings: Settings = None,
    json: AsJson = False,
) -> int:
    """Identify the parameters of a robot from a log of t, q and tau. The exit code is 1 where a
    verdict says that the numbers are not to be trusted.

    Args:
        log: The log: .csv, .npz or .parquet with columns t, q_JOINT, tau_JOINT.
        more: Further logs, each with its own noise.
        validate: Another log, on which the fit is tried.
        friction: What friction is unknown.
        band: Cutoff of the filter in Hz; by default the widest that the encoders allow.
        report: Page of the fit, .html.
        save: File of the identified robot, .yaml or .urdf.
    """
    answer = _fit(robot, [log, *(more or [])], settings, friction, band, units)
    files: dict[str, str] = {}
    held_out = None if validate is None else answer.validate(validate, units)
    if report is not None:
        files["report"] = str(answer.report(report, validate))
    if save is not None and answer.passed:
        answer.robot.save(save)
        files["robot"] = str(save)
    if json:
        data = _data(answer) | {"files": files}
        if held_out is not None:
            data["validation"] = [x._asdict() for x in held_out]
        print_json(data)
    else:
        print_line(str(answer))
        if held_out is not None:
            print_line(f"on {validate}:\n{held_out}")
        for what, path in files.items():
            print_line(f"{what}: {path}")
    if not answer.passed:
        print_error("the fit is not to be trusted: see the verdicts")
    return 0 if answer.passed else 1


@identify.command
def plan(
    robot: RobotName,
    /,
    *,
    out: Path = Path("motion.csv"),
    period: float = 10.0,
    repeats: int = 2,
    rate: float = 1000.0,
    friction: FrictionKind = "coulomb",
    seed: int = 0,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Plan a motion within the robot's limits that shows its parameters, and predict their errors.

    Args:
        out: File of the motion, .csv with t, q, v and a.
        period: Seconds after which the motion repeats.
        repeats: Periods in the file.
        rate: Samples a second.
        seed: Of the random motions that the search starts with.
    """
    m = load_model(robot, settings)
    motion = rf.identify.excite(
        m, period, friction=friction, rate=rate, repeats=repeats, seed=seed,
        progress=sys.stderr.isatty(),
    )  # fmt: skip
    motion.save(out)
    if json:
        reached = {key: x.tolist() for key, x in motion.reached.items()}
        print_json(
            {
                "file": str(out),
                "reached": reached,
                "predicted": [x._asdict() for x in motion.predicted],
            }
        )
        return
    print_line(str(motion))
    print_line(f"motion: {out}")


@identify.command
def payload(
    log: Path,
    empty: Path,
    robot: RobotName,
    /,
    *,
    link: str,
    friction: FrictionKind = "coulomb",
    band: float | None = None,
    units: Units = None,
    settings: Settings = None,
    json: AsJson = False,
) -> int:
    """Identify what a link carries, from a log with the payload and one without it.

    Args:
        log: The log with the payload.
        empty: The log without it.
        link: The link or frame that carries it, in whose frame it is given.
    """
    answer = rf.identify.payload(
        _fit(robot, [empty], settings, friction, band, units), log, link, units
    )
    if json:
        print_json(
            {
                "link": link, "mass": answer.mass, "mass_error": answer.mass_error,
                "com": answer.com.tolist(), "com_error": answer.com_error.tolist(),
                "inertia": answer.inertia.tolist(), "inertia_error": answer.inertia_error.tolist(),
                "passed": answer.passed, "verdicts": [str(x) for x in answer.verdicts],
            }
        )  # fmt: skip
    else:
        print_line(str(answer))
    return 0 if answer.passed else 1


def _fit(
    robot: str, logs: list[Path], settings: list[str] | None, friction: Any, band: float | None,
    units: str | None,
) -> Fit[Any]:  # fmt: skip
    return rf.identify.fit(
        load_model(robot, settings), logs, friction=friction, band=band, units=units
    )


def _data(answer: Fit[Any]) -> dict[str, Any]:
    return {
        "robot": answer.nominal.name,
        "passed": answer.passed,
        "band": answer.band,
        "delay": answer.delay.value,
        "delay_error": answer.delay.error,
        "verdicts": [
            {"level": x.level, "code": x.code, "where": x.where, "message": x.message}
            for x in answer.verdicts
        ],
        "parameters": [x._asdict() for x in answer.parameters],
        "noise": answer.noise,
    }
