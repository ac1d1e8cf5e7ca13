"""A chart as a file of its own: the same picture with the style that the page would have given it."""

from __future__ import annotations

import re

from weft.report.page import chart_style


def standalone(svg: str) -> str:
    """An SVG file that follows the viewer's light or dark colours, from a chart made for a page."""
    box = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    if box is None:
        raise ValueError("the chart has no viewBox")
    width, height = box.groups()
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
    ground = f'<rect width="{width}" height="{height}" style="fill: var(--card)"/>'
    opening, _, content = svg.removeprefix("<svg ").partition(">")
    return f"{head}{opening}><style>{chart_style()}</style>{ground}{content}\n"
