"""A study of payloads: sixteen of its runs in this process, a table, and one run made again from
its row.
"""

import tempfile
from pathlib import Path

import numpy as np

import ramify as rf

file = Path(__file__).with_suffix(".yaml")
with tempfile.TemporaryDirectory() as folder:
    study = rf.study(file, ledger=Path(folder) / "payloads.db")
    print(study)
    few = rf.study(
        name="few",
        scenario="kuka_free_fall",
        set={"t_end": 0.5},
        vary={"payload.link6.mass": {"uniform": [0.1, 5]}},
        points={"design": "latin_hypercube", "runs": 16, "seed": 1},
        metrics=["max_speed", "energy_error"],
        ledger=Path(folder) / "few.db",
    )
    count = few.run(engine="serial")
    print(f"{count.done} of {count.planned} runs done")
    table = few.table()
    for mass, speed in sorted(zip(table["payload.link6.mass"], table["max_speed"], strict=True))[
        ::5
    ]:
        print(f"{mass:5.2f} kg: {speed:6.2f} rad/s at most")
    heaviest = int(np.argmax(table["payload.link6.mass"]))
    again = few.result(heaviest)
    print(
        f"run {heaviest} made again, equal bit for bit: "
        f"{np.abs(again.v).max() == table['max_speed'][heaviest]}"
    )
