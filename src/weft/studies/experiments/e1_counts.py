"""Study e1: specifications and exact parameter counts of Mixer and gMLP, beside the published tables 1 and 4.

Nothing is trained: counts are closed forms, held against torch by the tests of the networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.networks.config import TokenConfig
from weft.networks.measure.cost import total_macs, total_parameters
from weft.networks.registry import configured

# name, changes, parameters in the publication (millions, as printed): Tolstikhin et al. 2021 table 1; Liu et al. 2021
PUBLISHED: list[tuple[str, dict[str, Any], float | None]] = [
    ("mixer_s32_224", {}, 19.0),
    ("mixer_s16_224", {}, 18.0),
    ("mixer_b32_224", {}, 60.0),
    ("mixer_b16_224", {}, 59.0),
    ("mixer_l32_224", {}, 206.0),
    ("mixer_l16_224", {}, 207.0),
    ("mixer_h14_224", {}, 431.0),
    ("mixer_small_p4_32", {}, None),
    ("gmlp_ti16_224", {}, 6.0),
    ("gmlp_s16_224", {}, 20.0),
    ("gmlp_b16_224", {}, 73.0),
    ("tmlp_s16_224", {}, None),
    ("amlp_s16_224", {}, None),
]


@dataclass(frozen=True)
class Specification:
    """A line of the table."""

    name: str
    depth: int
    patch: int
    tokens: int
    channels: int
    hidden: int  # D_C, or gMLP's expanded width
    token_hidden: int | None  # D_S
    parameters: int
    without_head: int
    macs: int
    published: float | None

    @property
    def agrees(self) -> bool | None:
        """Whether the count, with or without the head, is the published number to its printed digits."""
        if self.published is None:
            return None
        return any(abs(count / 1e6 - self.published) <= 0.6 for count in (self.parameters, self.without_head))


def specifications() -> list[Specification]:
    """All lines of the table."""
    return [specification(name, changes, published) for name, changes, published in PUBLISHED]


def specification(name: str, changes: dict[str, Any], published: float | None) -> Specification:
    config: Any = configured(name, **changes)
    assert isinstance(config, TokenConfig)
    return Specification(
        name=name,
        depth=config.depth,
        patch=config.patch_size,  # type: ignore[attr-defined]
        tokens=config.grid[0] * config.grid[1],  # type: ignore[attr-defined]
        channels=config.dim,
        hidden=config.hidden_dim,
        token_hidden=config.token_width if config.mixer == "token_mlp" and config.block == "mixed" else None,
        parameters=total_parameters(config),
        without_head=total_parameters(config.replaced(num_classes=0)),
        macs=total_macs(config),
        published=published,
    )
