"""The graph of a mechanism, drawn: as text for a terminal, and as SVG."""

from __future__ import annotations

from html import escape

from ramify.model.mechanism_graph import BASE, Edge, SpanningTree, Way


def spanning_tree_text(tree: SpanningTree) -> str:
    """The tree, a body a line with its joint and cumulative degree of freedom; cut joints below."""
    lines = [BASE]
    children = _children(tree)
    waiting = [(way, "", way is children[None][-1]) for way in reversed(children.get(None, []))]
    while waiting:
        way, margin, last = waiting.pop()
        fork, deeper = ("└─", "   ") if last else ("├─", "│  ")
        lines.append(f"{margin}{fork} {way.body}  [{_told(way.joint)}; CDOF {way.cdof}]")
        below = children.get(way.body, [])
        waiting += [(other, margin + deeper, other is below[-1]) for other in reversed(below)]
    if tree.cut:
        lines.append(f"cut ({tree.chosen}):")
        for edge in tree.cut:
            lines.append(f"  {_end(edge.first)} ✂ {_end(edge.second)}  [{_told(edge)}]")
    return "\n".join(lines)


def _told(edge: Edge) -> str:
    return f"{edge.name}: {edge.kind}" + (", driven" if edge.actuated else "")


def _end(body: str | None) -> str:
    return BASE if body is None else body


_ROW, _COLUMN, _EDGE, _RADIUS = 86, 138, 46, 17
_STYLE = (
    "text{font:13px sans-serif;fill:#223}.cdof,.cut{text-anchor:middle}"
    ".joint{font-size:11px;fill:#567}.cut{fill:#b3261e}"
    ".joint{paint-order:stroke;stroke:#fff;stroke-width:4px}"
    "circle{fill:#eef3fa;stroke:#34506e;stroke-width:1.6}.base{fill:#34506e}line{stroke:#34506e;stroke-width:1.8}"
    "path{stroke:#b3261e;stroke-width:1.8;stroke-dasharray:6 5;fill:none}.driven{stroke-width:4.2}"
)


def as_svg(tree: SpanningTree) -> str:
    """The base on top, bodies below with their CDOF, joints as lines, cut dashed, driven bold."""
    place = _positions(tree)
    width = max(x for x, _ in place.values()) + _COLUMN // 2 + _EDGE
    height = max(y for _, y in place.values()) + _EDGE + 26
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">',
        f"<style>{_STYLE}</style>",
    ]
    for edge in tree.cut:
        (x1, y1), (x2, y2) = place[edge.first], place[edge.second]
        bow = 0.0 if abs(x1 - x2) > _COLUMN / 2 and y1 != y2 else 44.0
        xm = (x1 + x2) / 2 + (bow if y1 != y2 else 0.0)
        ym = (y1 + y2) / 2 + (bow if y1 == y2 else 0.0)
        parts.append(
            f'<path d="M{x1:.0f} {y1:.0f} Q{xm:.0f} {ym:.0f} {x2:.0f} {y2:.0f}"{_bold(edge)}/>'
        )
        xt, yt = (x1 + x2) / 4 + xm / 2, (y1 + y2) / 4 + ym / 2
        parts.append(
            f'<text class="joint cut" x="{xt:.0f}" y="{yt - 4:.0f}">{escape(edge.name)}</text>'
        )
    for way in tree.ways:
        (x1, y1), (x2, y2) = place[way.parent], place[way.body]
        parts.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"{_bold(way.joint)}/>'
        )
        if way.joint.name != way.body:
            x, y = (x1 + x2) / 2 + 4, (y1 + y2) / 2
            name = escape(way.joint.name)
            parts.append(f'<text class="joint" x="{x:.0f}" y="{y:.0f}">{name}</text>')
    for body, (x, y) in place.items():
        mark = "" if body is not None else _of("base")
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS}"{mark}/>')
        cdof = ""
        if body is not None:
            cdof = f'<text class="cdof" x="{x:.0f}" y="{y + 5:.0f}">{tree.cdof(body)}</text>'
        parts.append(
            f'{cdof}<text x="{x + _RADIUS + 5:.0f}" y="{y + 5:.0f}">{escape(_end(body))}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _bold(edge: Edge) -> str:
    return _of("driven") if edge.actuated else ""


def _of(name: str) -> str:
    return f' class="{name}"'


def _children(tree: SpanningTree) -> dict[str | None, list[Way]]:
    children: dict[str | None, list[Way]] = {}
    for way in tree.ways:
        children.setdefault(way.parent, []).append(way)
    return children


def _positions(tree: SpanningTree) -> dict[str | None, tuple[float, float]]:
    """Where each body is drawn: leaves side by side, a parent above the middle of its children."""
    children = _children(tree)
    order: list[tuple[str | None, int]] = []  # depth first
    waiting: list[tuple[str | None, int]] = [(None, 0)]
    while waiting:
        body, depth = waiting.pop()
        order.append((body, depth))
        waiting += [(way.body, depth + 1) for way in reversed(children.get(body, []))]
    x: dict[str | None, float] = {}
    for body, _ in order:
        if body not in children:
            x[body] = _EDGE + _COLUMN * (len(x) + 0.25)
    for body, _ in reversed(order):
        if body in children:
            x[body] = (x[children[body][0].body] + x[children[body][-1].body]) / 2
    return {body: (x[body], float(_EDGE - 10 + _ROW * depth)) for body, depth in order}
