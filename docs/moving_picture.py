"""The moving picture of README and home page (docs/pictures/robots.webp), from four real runs.

Run ``python docs/moving_picture.py`` to draw it again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import ramify as rf
from ramify.view.film import Studio

TARGET = Path(__file__).resolve().parent / "pictures" / "robots.webp"
SCENARIOS = ("quadruped_trot", "kuka_motion", "robotic_leg_turn", "hexapod_tripod")
WIDTH, HEIGHT, FRAMES, SECONDS = 320, 190, 24, 3.6


def panel(name: str) -> np.ndarray:
    """The frames of one run (FRAMES, HEIGHT, WIDTH, 3), there and back where it does not repeat."""
    run = rf.scenario(name).run()
    studio = Studio(run, WIDTH, HEIGHT)
    share = np.linspace(0.0, 1.0, FRAMES, endpoint=False)
    if name == "kuka_motion":
        share = 1.0 - np.abs(2.0 * share - 1.0)
    rows = np.searchsorted(run.t, share * run.t[-1]).clip(0, len(run) - 1)
    return np.stack([studio.shoot(int(row), words=False) for row in rows])


def main() -> None:
    a, b, c, d = (panel(name) for name in SCENARIOS)
    frames = np.concatenate([np.concatenate([a, b], 2), np.concatenate([c, d], 2)], 1)
    first, *rest = (Image.fromarray(frame) for frame in frames)
    first.save(
        TARGET,
        save_all=True,
        append_images=rest,
        duration=round(1000 * SECONDS / FRAMES),
        loop=0,
        quality=45,
        method=2,
    )
    print(TARGET, TARGET.stat().st_size)


if __name__ == "__main__":
    main()
