"""Examples at the end of each command's help."""

from __future__ import annotations

from typing import Final

from cyclopts import App

EXAMPLES: Final = {
    "bench": ("bench ur5.urdf", "bench quadruped --states 1024 --threads 1"),
    "cache": ("cache --json", "cache --clear"),
    "check": ("check kuka_kr5", "check my_robot.yaml --json"),
    "compare": ("compare run.nc other.nc", "compare run.nc other.nc --report both.html"),
    "convert": ("convert ur5.urdf ur5.yaml", "convert inputs.m robot.yaml --base free"),
    "count": ("count kuka_kr5 stanford_arm", "count --general 12 --plot growth.svg"),
    "demo": ("demo --out out",),
    "equations": (
        "equations planar_3r --symbols",
        "equations planar_3r --part M g --format latex --out planar_3r.tex",
        "equations kuka_kr5 --steps forward_dynamics",
    ),
    "export": (
        "export kuka_kr5 --out robots",
        "export kuka_kr5 --format c --algorithm forward_dynamics --derivatives --dtype float",
        "export quadruped --format c --scenario quadruped_fall --step implicit_euler",
        "export quadruped --format fmu --scenario quadruped_fall --out units",
    ),
    "fd": ("fd planar_3r --q 0.1 0.2 0.3 --tau 1 0 0", "fd four_bar --json"),
    "id": ("id kuka_kr5", "id kuka_kr5 --out torques.csv --plot torques.svg"),
    "identify": ("identify log.csv arm.urdf --validate other.csv --report id.html --save id.yaml",),
    "identify plan": ("identify plan arm.urdf --period 10 --out motion.csv",),
    "identify payload": ("identify payload with_tool.csv empty.csv arm.urdf --link flange",),
    "info": ("info kuka_kr5", "info chain --set n=7", "info ur5.urdf --json"),
    "kinds": ("kinds", "kinds --json"),
    "loops": ("loops four_bar", "loops three_rrr --json"),
    "optimise": ("optimise reach.py --report reach.html", "optimise reach.py --json"),
    "robots": ("robots", "robots --json"),
    "scenarios": ("scenarios",),
    "simulate": (
        "simulate kuka_free_fall --audit",
        "simulate planar_3r --t-end 2 --initial 0.5 0 0 --out run.nc --report run.html",
        "simulate hexapod_tripod --control computed_torque --animate walk.mp4",
    ),
    "stability": ("stability",),
    "sweep": ("sweep payload_study.yaml --jobs 2", "sweep payload_study.yaml --check"),
    "sweep export": ("sweep export payload_study.db --out runs.csv",),
    "sweep plot": ("sweep plot payload_study.db --out runs.html",),
    "sweep report": ("sweep report payload_study.db 3 --out run3.html",),
    "sweep resume": ("sweep resume payload_study.db --failed",),
    "sweep serve": ("sweep serve payload_study.db --port 8000",),
    "sweep status": ("sweep status payload_study.db --check",),
    "view": ("view kuka_kr5", "view my_robot.yaml --port 9000 --no-browser"),
    "--install-completion": ("--install-completion", "--install-completion --shell zsh"),
}
"""Arguments of ``ramify`` by command, subcommands after their parent."""


def show_examples(app: App) -> None:
    """Add the examples to the help of the commands of an application."""
    for command, lines in EXAMPLES.items():
        found = app
        for word in command.split():
            found = found[word]
        found.help_epilogue = "Examples:\n\n" + "\n".join(f"- `ramify {line}`" for line in lines)
