"""The lens `positions`: the sinusoidal table and its rotation, learned positions, and how similar they are.

A shift by φ rotates each pair of the sinusoidal table by a fixed angle, so the product of two positions depends on
their offset alone: the table's products form an exactly Toeplitz matrix. How Toeplitz those of learned positions are
says how far training has found something of the kind.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from weft.insight import toeplitz as offsets
from weft.insight.drawing.raster import DIVERGING, SEQUENTIAL, Key, embedded, shaded, signed
from weft.insight.drawing.tiles import Tile, sheet
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.options import PositionsOptions
from weft.insight.subject import Subject
from weft.insight.toeplitz import Grid
from weft.nn.embeddings import LearnedPositions, SinusoidalPositions, sinusoidal_table
from weft.report.chart import WIDTH, brief, picture
from weft.report.curves import curves

COLUMNS = [
    "table", "tokens", "channels", "Toeplitz", "Toeplitz, 1-D", "Toeplitz, shuffled", "Toeplitz, noise",
    "rows + columns", "length",
]  # fmt: skip
COSINE = Key(DIVERGING, "cosine −1", "cosine 1")
MANY = 12  # positions along a side whose similarity is drawn, each as a picture of the grid


@dataclass(frozen=True)
class Places:
    """Figures of a table: how Toeplitz its similarity is, and the share of it that a vector a row and one a column,
    added, explain (None for texts)."""

    toeplitz: float | None
    line: float | None
    shuffled: float | None
    noise: float
    additive: float | None
    length: float


def positions(subject: Subject, asked: PositionsOptions) -> Finding:
    """The network's own table beside the sinusoidal one of its size."""
    layer = getattr(subject.network, "positions", None)
    if not isinstance(layer, LearnedPositions | SinusoidalPositions):
        raise Unfit(
            f"{subject.name} has no positions: it tells places apart by its weights, which the lens gates shows; "
            "the lens positions fits ViT, BERT, and any token network with positions=learned or sinusoidal"
        )
    layout: Any = subject.network.layout
    own = layer.table.detach()[layout.extra :]
    reference = sinusoidal_table(len(own), own.shape[1] + own.shape[1] % 2)
    tables = {"learned": own} if isinstance(layer, LearnedPositions) else {}
    tables["sinusoidal"] = reference
    figures = {name: places(table, layout.grid) for name, table in tables.items()}
    turned = rotation_error(reference)
    rows: list[list[Cell]] = [[name, *tables[name].shape, *asdict(each).values()] for name, each in figures.items()]
    record = {"tables": {name: asdict(each) for name, each in figures.items()}, "rotation error": turned}
    return Finding(
        "positions", "Positions", sentence(subject, figures, turned), pictures(tables, layout.grid),
        Table(COLUMNS, rows), record,
    )  # fmt: skip


def similarity(table: Tensor) -> Tensor:
    """Cosine of each two positions: (tokens, tokens)."""
    unit = torch.nn.functional.normalize(table.double(), dim=1)
    return unit @ unit.T


def between_others(alike: Tensor) -> Tensor:
    """The similarity less its mean, and zero on the diagonal: every position is like itself, whatever was learnt."""
    count = len(alike)
    mean = (alike.sum() - alike.diagonal().sum()) / (count * (count - 1))
    return (alike - mean).fill_diagonal_(0)


def toeplitz_share_of_noise(grid: Grid) -> float:
    """What the similarity of unrelated positions scores: offsets, each with its opposite, over pairs, less the mean."""
    tokens = prod(grid)
    return ((offsets.count_offsets(grid) - 1) / 2 - 1) / (tokens * (tokens - 1) / 2 - 1)


def rotation_error(table: Tensor, base: float = 10000.0) -> float:
    """How far, at most, a position's pairs, each turned by φ·base^{−2i/d}, are from the position φ further on."""
    tokens, dim = table.shape
    sine, cosine = table.double().unflatten(1, (-1, 2)).unbind(2)  # (tokens, pairs)
    rates = base ** (-torch.arange(0, dim, 2, dtype=torch.double) / dim)
    worst = 0.0
    for shift in range(tokens):
        angle = shift * rates
        turned = sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()
        for found, wanted in zip(turned, (sine, cosine), strict=True):
            worst = max(worst, float((found[: tokens - shift] - wanted[shift:]).abs().max()))
    return worst


def places(table: Tensor, grid: Grid) -> Places:
    """The figures of a table (tokens, channels)."""
    alike = between_others(similarity(table))
    found, control = offsets.structure(alike, grid), offsets.structure_of_shuffled(alike, grid)
    return Places(
        toeplitz=None if found is None else found.shift_invariance,
        line=None if found is None else found.line,
        shuffled=None if control is None else control.shift_invariance,
        noise=toeplitz_share_of_noise(grid),
        additive=additive_share(table, grid) if len(grid) == 2 else None,
        length=float(table.norm(dim=1).mean()),
    )


def additive_share(table: Tensor, grid: Grid) -> float:
    """Share of the table's variance that a_row + b_column explains: the two main effects of a table over a grid.

    Normal noise scores (H + W − 2)/(HW − 1).
    """
    cells = table.double().unflatten(0, grid)
    rest = cells - cells.mean((0, 1))
    rows, columns = rest.mean(1, keepdim=True), rest.mean(0, keepdim=True)
    return float((rows + columns).square().sum() / rest.square().sum().clamp(min=1e-300))


def sentence(subject: Subject, figures: dict[str, Places], turned: float) -> str:
    """How Toeplitz the similarity is, and the rotation."""
    reference = figures["sinusoidal"]
    rotation = f"in the sinusoidal table a shift is a rotation of each pair, to within {turned:.0e}"
    own = figures.get("learned")
    if own is None or own.toeplitz is None or own.shuffled is None:
        return f"{subject.name} adds the sinusoidal table: {rotation}."
    return (
        f"{100 * own.toeplitz:.0f} % of the similarity of the learned positions depends on their offset alone (rows "
        f"shuffled: {100 * own.shuffled:.0f} %; sinusoidal: {100 * (reference.line or 0):.0f} %); {rotation}."
    )


def pictures(tables: dict[str, Tensor], grid: Grid) -> dict[str, Picture]:
    """Each table, and the similarity of its positions."""
    found = {}
    for name, table in tables.items():
        found[name] = Picture(table_picture(name, table), f"The {name} table: position by channel")
    if len(grid) == 2 and "learned" in tables:
        found["grid"] = grid_sheet(tables["learned"], grid)
    said = "Cosine of each two positions, white where it is 0, red where it is 1"
    tiles: list[Tile] = [(name, signed(similarity(table).numpy(), 1.0)) for name, table in tables.items()]
    found["similarity"] = sheet(tiles, said, "Similarity of positions: cosine of each two", columns=2, key=COSINE)
    found["offsets"] = Picture(offset_chart(tables), "Similarity by offset along the tokens")
    return found


def table_picture(name: str, table: Tensor, width: float = WIDTH) -> str:
    """A table as pixels."""
    height = max(80.0, min(280.0, width * len(table) / table.shape[1]))
    said = f"The {name} table of {len(table)} positions (down) and {table.shape[1]} channels (across)"
    reach = float(table.abs().max())
    pixels = embedded(signed(table.numpy(), reach), 8, 8, width - 16, height, said)
    key = Key(DIVERGING, brief(-reach), brief(reach)).svg(height + 16, width)
    return picture(width, height + 36, pixels + key, said)


def grid_sheet(table: Tensor, grid: Grid) -> Picture:
    """A tile a position, where it lies: its similarity to every position of the grid (Dosovitskiy et al., figure 7)."""
    alike = similarity(table).unflatten(0, grid)
    rows, columns = (torch.linspace(0, side - 1, min(side, MANY)).round().long().unique() for side in grid)
    tiles: list[Tile] = [("", shaded(alike[r, c].reshape(grid).numpy(), -1, 1)) for r in rows for c in columns]
    said = f"Similarity of {len(tiles)} positions to all others, each tile at its position"
    caption = "Learned: each position's similarity to all others, a tile a position, where it lies"
    key = Key(SEQUENTIAL, "cosine −1", "cosine 1")
    return sheet(tiles, said, caption, columns=len(columns), together=len(columns), key=key)


def offset_chart(tables: dict[str, Tensor]) -> str:
    """Mean similarity of positions that lie φ tokens apart in reading order."""
    series = {}
    for name, table in tables.items():
        alike = similarity(table)
        shifts = range(len(alike))
        series[name] = (list(shifts), [float(alike.diagonal(shift).mean()) for shift in shifts])
    return curves(
        series, ("offset in tokens", "mean cosine"), "Mean similarity of positions by their offset", whole=True
    )
