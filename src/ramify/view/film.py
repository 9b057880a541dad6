"""Pictures and films of a run, made without a screen: PNG, GIF and MP4."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array, flag, one_number, whole
from ramify.core.bar import Bar
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.messages import shown
from ramify.core.names import one_of
from ramify.documents.writing import whole_path
from ramify.model.frame import align_z
from ramify.model.robot import Robot
from ramify.model.shape import rgb
from ramify.runs.recorder import drawn_run
from ramify.runs.run_record import Run
from ramify.view import raster
from ramify.view.folders import must_have_folder
from ramify.view.geometry import Triangles, arrow, join_triangles
from ramify.view.robot_solids import is_unattached, rest
from ramify.view.scene import make_scene
from ramify.view.surroundings import camera, contact_arrows, grounded

Picture = NDArray[np.uint8]
MOST_FRAMES: Final = 20_000
FORCE: Final = (0.88, 0.28, 0.24)


class Studio:
    """A robot before a camera. ``shoot`` gives the picture (h, w, 3) at one row of a run."""

    def __init__(
        self, result: Run, width: int, height: int, look: str = "light", trail: str | None = None
    ) -> None:
        one_of("theme", look, [*raster.LOOKS])
        self.result, self.width, self.height, self.look = result, width, height, raster.LOOKS[look]
        self.scene = make_scene(result.model)
        self.R, self.r = self.scene.poses(result.q)
        self.arrows = contact_arrows(result.contacts, self.scene.up)
        self.pushes = None if self.arrows is None else self.arrows.drawn(self.scene)
        low, high = self.scene.corners(self.R, self.r)
        self.scene, ground = grounded(self.scene, result, low, high)
        self.camera = camera(self.scene, low, high, ground)
        self.follows = is_unattached(result.model)
        self.way = self.r[:, 0] - self.r[0, 0] if self.follows else np.zeros((len(result), 3))
        self.way[:, 2] *= ground is None  # over a ground the camera keeps its height
        self.trail = self._trail(trail)
        self.canvas = raster.Canvas(width, height)
        self.labels: dict[str, Array] = {}

    def _trail(self, name: str | None) -> Array | None:
        if name is None:
            return None
        for point in self.scene.points:
            if isinstance(name, str) and point.name == name:
                way: Array = np.einsum("tij,j->ti", self.R[:, point.body], point.at)
                return way + self.r[:, point.body]
        some = ", ".join(point.name for point in self.scene.points[:12])
        raise RamifyError(
            f"{self.result.model.name} has no point {shown(name)} for a trail; there are {some}"
        )

    @cached_property
    def colours(self) -> Array:
        """A colour for every triangle, 0 … 1."""
        rows = [np.zeros((0, 3))]
        for part in self.scene.parts:
            colour = np.array(rgb(self.scene.colour(part))) / 255
            rows.append(np.tile(colour, (len(part.triangles.faces), 1)))
        return np.concatenate(rows)

    def triangles(
        self, row: int
    ) -> tuple[Array, Array, NDArray[np.int64], Array, NDArray[np.bool_]]:
        """Points, normals, faces and colours of everything at a row, and which faces cast shadows:
        all but those of the ground.
        """
        parts: list[Triangles] = []
        for part in self.scene.parts:
            R, r = self.scene.part_pose(part, self.R[row], self.r[row])
            drawn = part.triangles
            parts.append(Triangles(drawn.points @ R.T + r, drawn.normals @ R.T, drawn.faces))
        cast = [np.full(len(p.triangles.faces), p.kind != "ground") for p in self.scene.parts]
        colours = [self.colours]
        for at, force in self._forces(row):
            turn, size = align_z(force / np.linalg.norm(force)), np.linalg.norm(force)
            points, normals = _ARROW.points * size @ turn.T + at, _ARROW.normals @ turn.T
            parts.append(Triangles(points, normals, _ARROW.faces))
            colours.append(np.tile(FORCE, (len(_ARROW.faces), 1)))
            cast.append(np.ones(len(_ARROW.faces), dtype=np.bool_))
        whole = join_triangles(parts)
        shadows = np.concatenate([np.zeros(0, dtype=np.bool_), *cast])
        return whole.points, whole.normals, whole.faces, np.concatenate(colours), shadows

    def _forces(self, row: int) -> Iterator[tuple[Array, Array]]:
        """Where contact forces act at a row, and their arrows in m."""
        if self.arrows is None or self.pushes is None:
            return
        for at, push in zip(self.arrows.position[row], self.pushes[row], strict=True):
            if push.any():
                yield at, push

    def shoot(self, row: int, words: bool = True) -> Picture:
        """The picture at a row, with the time in a corner."""
        return self.frame(row, words)[..., :3]

    def frame(self, row: int, words: bool = True) -> Picture:
        """The picture at a row with four bytes per pixel (h, w, 4)."""
        c, look = self.camera, self.look
        target = np.array(c.target) + self.way[row]
        lens = raster.Lens.around(target, c.size, c.yaw, c.pitch, self.width, self.height)
        points, normals, faces, colours, cast = self.triangles(row)
        drawn = [raster.facets(lens, lens.pixels(points), faces, colours, normals)]
        if lens.eye[2] > c.floor:
            drawn.insert(0, raster.shadow(lens, points, faces[cast], c.floor, look))
        if self.trail is not None and row > 0:
            some = np.unique(np.linspace(0, row, min(row, 1500) + 1).astype(int))
            drawn.append(raster.ribbon(lens, self.trail[some], look.trail, 2.5))
        settings = raster.shading_settings(lens, look, target, c.size, c.floor, c.cell)
        picture = self.canvas.picture(settings, drawn)
        if words:
            self._write(picture, f"{self.result.t[row]:.2f} s")
        return picture

    def _write(self, picture: Picture, words: str) -> None:
        """Words in the upper left corner."""
        size = max(11, self.height // 26)
        if words not in self.labels:
            self.labels[words] = _letters(words, size)
        ink = self.labels[words][: self.height - size, : self.width - size, None]
        place = picture[size : size + ink.shape[0], size : size + ink.shape[1], :3]
        place[:] = (1.0 - ink) * place + ink * np.array(self.look.ink) * 255.0 + 0.5


def _letters(words: str, size: int) -> Array:
    """How much of every pixel words cover (h, w)."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size)
    image = Image.new("L", (round(font.getlength(words)) + 2, 2 * size))
    ImageDraw.Draw(image).text((0, 0), words, fill=255, font=font)
    return np.asarray(image) / 255.0


_ARROW: Final = arrow()


def animate(
    result: Run,
    path: str | Path,
    *,
    size: tuple[int, int] = (960, 540),
    fps: float | None = None,
    speed: float = 1.0,
    theme: str = "light",
    trail: str | None = None,
    progress: bool | None = None,
) -> Path:
    """See Result.animate."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".mp4", ".gif"):
        raise RamifyError(f"{path}: a film ends in .mp4 or .gif")
    must_have_folder(path)
    width, height = _size(size)
    for name, value in (("fps", 30.0 if fps is None else fps), ("speed", speed)):
        if not 1e-9 <= one_number(value) <= 1e9:
            raise RamifyError(f"{name} {shown(value)} must be a positive number")
    rate = float(fps) if fps is not None else (25.0 if kind == ".gif" else 30.0)
    _needs("PIL", "pillow")
    if kind == ".mp4":
        _needs("imageio_ffmpeg", "imageio-ffmpeg")
    count = max(1, round((float(result.t[-1]) - float(result.t[0])) * rate / speed))
    if count > MOST_FRAMES:
        raise RamifyError(
            f"{count} pictures are too many for a film; give a larger speed, or fewer fps"
        )
    times = np.linspace(result.t[0], result.t[-1], count + 1)
    rows = np.abs(np.searchsorted(result.t, times).clip(0, len(result) - 1))
    studio = Studio(result, width, height, theme, trail)
    shots: Iterable[Picture] = (studio.frame(int(row)) for row in rows)
    if sys.stderr.isatty() if progress is None else flag("progress", progress, RamifyError):
        shots = _with_progress(shots, len(rows), path.name)
    with whole_path(path) as passing:
        if kind == ".mp4":
            _mp4(passing, shots, (width, height), rate)
        else:
            sample = rows[np.linspace(0, len(rows) - 1, 4).astype(int)]
            some = np.concatenate([studio.shoot(int(row)) for row in sample])
            _gif(passing, shots, some, rate)
    return path


def _size(size: tuple[int, int]) -> tuple[int, int]:
    try:
        width, height = (whole("size", n, 0, RamifyError) for n in size)
    except (TypeError, ValueError):
        raise RamifyError(f"size {size!r} must be (width, height) in pixels") from None
    if not (32 <= width <= 4096 and 32 <= height <= 4096):
        raise RamifyError(f"size {width} x {height} is out of range; 32 to 4096 pixels a side")
    return width - width % 2, height - height % 2


def _needs(module: str, package: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise RamifyError(f"films need {package}; install it with: pip install 'ramify[video]'")


def _with_progress(shots: Iterable[Picture], count: int, name: str) -> Iterator[Picture]:
    bar = Bar(name, count)
    try:
        for k, shot in enumerate(shots):
            yield shot
            bar.update(k + 1, f"{k + 1}/{count}")
    finally:
        bar.close()


def _mp4(path: Path, shots: Iterable[Picture], size: tuple[int, int], rate: float) -> None:
    """H.264 by FFmpeg, which gets the pictures through a pipe; RamifyError with its own words where
    it does not end well: a full disk shows only there.
    """
    import imageio_ffmpeg

    width, height = size
    taken = ["-f", "rawvideo", "-pix_fmt", "rgb0", "-s", f"{width}x{height}", "-r", f"{rate:g}"]
    made = ["-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-preset", "veryfast", "-crf", "18"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error", *taken, "-i", "-", *made]
    command += ["-movflags", "+faststart", str(path)]
    with TemporaryFile() as complaints:
        film = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=complaints)
        assert film.stdin is not None
        try:
            with suppress(BrokenPipeError), film.stdin:
                for shot in shots:
                    film.stdin.write(np.ascontiguousarray(shot).data)
        except BaseException:
            film.kill()
            raise
        finally:
            ended = film.wait()
        complaints.seek(0)
        words = complaints.read().decode(errors="replace").strip()
    if ended != 0:
        raise OSError(words or f"FFmpeg ended with {ended}")  # whole_path names the file


def _gif(path: Path, shots: Iterable[Picture], sample: Picture, rate: float) -> None:
    """All pictures in the colours of a sample of them."""
    from PIL import Image

    palette = Image.fromarray(sample).quantize(224, method=Image.Quantize.MEDIANCUT)
    first, *others = (
        Image.fromarray(shot[..., :3]).quantize(palette=palette, dither=Image.Dither.NONE)
        for shot in shots
    )
    pause = max(20, round(100 / rate) * 10)  # ms, in the format's steps of 10
    first.save(path, save_all=True, append_images=others, duration=pause, loop=0, optimize=False)


def picture(
    result: Run,
    path: str | Path,
    *,
    time: float | None = None,
    size: tuple[int, int] = (960, 540),
    theme: str = "light",
) -> Path:
    """Write a picture (.png) of the robot at a time of a run, by default its middle."""
    from PIL import Image

    at = float(result.t[0] + result.t[-1]) / 2 if time is None else time
    row = int(np.abs(result.t - at).argmin())
    Image.fromarray(Studio(result, *_size(size), theme).shoot(row, words=False)).save(path)
    return Path(path)


def still(model: Robot, q: Any = None) -> Run:
    """A robot at rest as a run of one row, to be drawn."""
    q = rest(model) if q is None else np.asarray(q, dtype=np.float64)
    return drawn_run(model, np.zeros(1), q[None])
