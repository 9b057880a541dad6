"""The summary as a picture: how many times faster than each peer, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _LEFT, _ROW, _HEAD = 860, 260, 18, 30
_MOST = 100.0


def svg(gains: Mapping[str, Sequence[tuple[str, float]]]) -> str:
    """Bars in groups; a line at 1, where both are equally fast."""
    scale = (_WIDTH - _LEFT - 60) / math.log10(_MOST)

    def along(gain: float) -> float:
        return _LEFT + scale * math.log10(min(max(gain, 0.1), _MOST))

    parts, y = [], 24
    for group, rows in gains.items():
        parts.append(f'<text x="8" y="{y}" class="group">Times faster: {escape(group)}</text>')
        y += 10
        for title, gain in rows:
            start, end = sorted((along(1.0), along(gain)))
            kind = "win" if gain >= 1.0 else "loss"
            length = max(end - start, 1.0)
            parts += [
                f'<text x="{_LEFT - 8}" y="{y + 13}" class="name">{escape(title)}</text>',
                f'<rect x="{start:.1f}" y="{y + 2}" width="{length:.1f}" height="13" '
                f'class="{kind}"/>',
                f'<text x="{end + 6:.1f}" y="{y + 13}">{gain:.3g}×</text>',
            ]
            y += _ROW
        y += _HEAD
    ticks = [
        f'<line x1="{along(tick):.1f}" y1="30" x2="{along(tick):.1f}" y2="{y - _HEAD}"/>'
        for tick in (1, 3, 10, 30, 100)
    ]
    style = (
        "text{font:12px sans-serif;fill:#333}.group{font-weight:600}.name{text-anchor:end}"
        "rect.win{fill:#2a78b5}rect.loss{fill:#c1442e}line{stroke:#ccc;stroke-width:1}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}line{stroke:#444}}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" role="img">'
    title = "<title>ramify against its peers: times faster</title>"
    return "\n".join([head, title, f"<style>{style}</style>", *ticks, *parts, "</svg>", ""])
