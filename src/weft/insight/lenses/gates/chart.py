"""One chart for all families: how local (across) and how shift-invariant (up) the layers of several networks are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.report.chart import WIDTH, Plane, Scale, picture
from weft.report.charts import Box, colour, label
from weft.report.columns import share
from weft.report.words import text
from weft.terminal import for_page

LEGEND = "● a layer", "◆ mean of a network", "○ its mean with rows shuffled"


@dataclass(frozen=True)
class Marks:
    """A network: a point a layer (locality, shift-invariance, words), and the same with shuffled rows."""

    name: str
    layers: Sequence[tuple[float, float, str]]
    controls: Sequence[tuple[float, float]]


def families_chart(networks: Sequence[Marks], said: str) -> str:
    """Layers as small dots, the mean of a network as a diamond with its name, the mean of its controls as a ring."""
    width, height = WIDTH, 380.0
    least = min([x for marks in networks for x, _ in marks.controls] + [x for m in networks for x, _, _ in m.layers])
    across = Scale(min(-0.08, least - 0.04), 1.06, 62, width - Plane.right)
    frame = Plane(across, Scale(-0.04, 1.06, height - Plane.bottom, Plane.top), width, height, left=62)
    titles = "locality: 0 spread evenly, 1 on the diagonal", "share in the nearest Toeplitz matrix"
    parts = [frame.axes(*titles, lambda value: f"{value:g}".replace("-", "−"), lambda value: share(value)[:-4] + " %")]
    middles = [centre([(x, y) for x, y, _ in marks.layers]) for marks in networks]
    taken = [diamond_box(frame.x(x), frame.y(y)) for x, y in middles]
    for number, marks in enumerate(networks):
        parts.append(dots(frame, marks, colour(number)))
    for number, marks in enumerate(networks):
        parts.append(middle(frame, marks, colour(number), taken))
    parts.append(text(10, height + 14, "   ".join(LEGEND[:2]), "start") + text(10, height + 31, LEGEND[2], "start"))
    return picture(width, height + 40, "".join(parts), said)


def dots(frame: Plane, marks: Marks, tint: str) -> str:
    """A network's layers, and its control."""
    found = [
        f'<circle class="dot {tint}" opacity=".55" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="4">'
        f"<title>{for_page(f'{words}: locality {x:.2f}, Toeplitz {share(y)}')}</title></circle>"
        for x, y, words in marks.layers
    ]
    x, y = centre(marks.controls)
    words = for_page(f"{marks.name}, rows shuffled: locality {x:.2f}, Toeplitz {share(y)}")
    ring = (
        f'<circle class="line {tint}" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="5"><title>{words}</title></circle>'
    )
    return "".join(found) + ring


def middle(frame: Plane, marks: Marks, tint: str, taken: list[Box]) -> str:
    """The mean of a network's layers, with its name where there is room."""
    x, y = centre([(x, y) for x, y, _ in marks.layers])
    at = frame.x(x), frame.y(y)
    words = for_page(f"{marks.name}, mean of {len(marks.layers)} layers: locality {x:.2f}, Toeplitz {share(y)}")
    shape = f"M{at[0]:.1f} {at[1] - 9:.1f}l9 9l-9 9l-9 -9z"
    return f'<g><title>{words}</title><path class="dot {tint}" d="{shape}"/>{label(frame, *at, marks.name, taken)}</g>'


def diamond_box(x: float, y: float) -> Box:
    """Where no name may stand: the middle of a mean's diamond."""
    return x - 7, y - 6, x + 7, y + 6


def centre(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean of some points."""
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
