"""What the algorithms cost: count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import ramify as rf
from ramify.cli.common import COUNTED, AsJson, Settings, Words, app, load_model
from ramify.cli.output import print_error, print_json, print_line, print_table

if TYPE_CHECKING:
    from ramify.api.model import Model


@app.command
def count(
    *robots: str,
    algorithm: Words = None,
    how: Literal["compiled", "written"] = "compiled",
    general: int | None = None,
    plot: Path | None = None,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Count the operations of the algorithms, algorithm by robot, beside what the literature
    publishes.

    Args:
        robots: Built-in names or robot files; by default all built-in robots.
        algorithm: Which algorithms to count.
        how: After folding and sharing for the robot at hand; or as the text has it, on a general
            robot with its joints.
        general: Count every formulation on a general robot of this number of revolute joints.
        plot: Plot of the growth with n (figs. 6.15, 6.16, 7.30, 7.31): .svg, .png or .pdf.
    """
    if general is not None:
        given = {"robots": robots, "--algorithm": algorithm, "--how": how != "compiled"}
        for name, value in {**given, "--set": settings}.items():
            if value:
                text = "--general counts all formulations on general robots"
                raise rf.RamifyError(f"{text}; leave out {name}")
    if plot is not None:
        from ramify.view.formulation_plots import plot_growth

        plot_growth(plot)
    if general is not None:
        _general(general, json)
    elif robots or algorithm or how != "compiled" or plot is None:
        _by_robot(_chosen_robots(robots, settings, how), algorithm, how, json)
    if plot is not None and not json:
        print_line(f"growth with n: {plot}")


def _chosen_robots(robots: tuple[str, ...], settings: Settings, how: str) -> list[Model]:
    """The robots by name, or all built-in ones; of these, closed loops are left out, and this is
    said, as written.
    """
    models = [load_model(robot, settings) for robot in robots or rf.robots()]
    closed = [m.name for m in models if m.loops] if how == "written" and not robots else []
    if closed:
        print_error(f"left out because of their closed loops: {', '.join(closed)}")
    return [m for m in models if m.name not in closed]


def _by_robot(
    models: list[Model], names: list[str] | None, how: Literal["compiled", "written"], json: bool
) -> None:
    from ramify.formulations.counting.literature import (
        ALGORITHM,
        PUBLISHED,
        has_floating_base,
        joint_counts,
        tasks_of,
        why_not_comparable,
    )

    data: list[dict[str, Any]] = []
    tasks = set()
    alone: dict[str, str] = {}
    for m in models:
        if why := why_not_comparable(m):
            alone[m.name] = why
        task_of = {} if why else {ALGORITHM[task]: task for task in tasks_of(m)}
        tasks |= set(task_of.values())
        for name in names or (*COUNTED, *(["hybrid_dynamics"] if has_floating_base(m) else [])):
            c = m.op_count(name, how)
            row = {"robot": m.name, "nv": m.nv, "algorithm": name, "how": how}
            row |= {"mul": c.mul, "add": c.add, "div": c.div, "sqrt": c.sqrt, "sincos": c.sincos}
            found = [(x, x.at(joint_counts(m))) for x in PUBLISHED if x.task == task_of.get(name)]
            published = [{"who": x.who, "mul": mul, "add": add} for x, (mul, add) in found]
            data.append(row | {"published": published})
    if json:
        print_json(data)
        return
    columns = ("robot", "dof", "algorithm", "x", "+", "/", "sqrt", "sin & cos")
    shown = ("robot", "nv", "algorithm", "mul", "add", "div", "sqrt", "sincos")
    rows = [(*(row[key] for key in shown), *_best(row)) for row in data]
    print_table(f"Operations, as {how}", (*columns, "fewest published", "fewer by"), rows)
    for robot, why in alone.items():
        print_line(f"{robot} is compared with nothing: {why}")
    printed = [(x.task, x.who, x.mul, x.add) for x in PUBLISHED if x.task in tasks]
    if printed:
        title = "Published; n1, n2, n3 joint variables of joints with one, two, three axes"
        print_table(title, ("task", "who", "x and /", "+"), printed)


def _best(row: dict[str, Any]) -> tuple[str, str]:
    """The published count with the fewest operations, and the share of it that ours does without, M
    + A.
    """
    from ramify.formulations.counting.literature import best_of, fewer_by

    if not row["published"]:
        return "", ""
    who, best = best_of([(x["who"], (x["mul"], x["add"])) for x in row["published"]])
    share = fewer_by((row["mul"] + row["div"], row["add"]), best)
    return f"{best[0]}M {best[1]}A, {who}", f"{share:.0%}"


def _general(n: int, json: bool) -> None:
    from ramify.formulations import FORMULATIONS, crossover, general_count, published_count

    data: list[dict[str, Any]] = []
    for name, row in FORMULATIONS.items():
        ours, paper = general_count(name, n), published_count(name, n)
        about = {"formulation": name, "what": row.what, "n": n, "mul": ours.mul, "add": ours.add}
        printed = paper and {"mul": paper.mul, "add": paper.add, "source": row.source}
        data.append(about | {"published": printed})
    if json:
        print_json(data)
        return
    columns = ("formulation", "", "x and /", "+", "published x", "+", "where")
    rows = [
        [x[k] for k in ("formulation", "what", "mul", "add")]
        + list((x["published"] or dict.fromkeys(("mul", "add", "source"), "")).values())
        for x in data
    ]
    print_table(f"A general robot of {n} revolute joints, as written", columns, rows)
    for cheaper, dearer in (
        ("lin_inertia", "renaud_inertia"),
        ("denoc_inverse", "ridim"),
        ("denoc_forward", "rfdsim"),
    ):
        start = crossover(cheaper, dearer)
        if start is not None:
            print_line(f"{cheaper} takes fewer operations than {dearer} from n = {start} on")
