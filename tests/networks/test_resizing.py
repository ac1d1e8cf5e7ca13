"""Resizing: what it keeps, held against timm, against the formulas, and against results that must not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import weft
from oracles import import_timm
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.weights import load_weights, save_weights
from weft.networks.weights.resizing import GridMove, LengthMove
from weft.nn.blocks import Layout
from weft.nn.spatial import Toeplitz2dSpatial

Grid = tuple[int, int]
grids = st.tuples(st.integers(1, 9), st.integers(1, 9))
quick = settings(max_examples=40, deadline=None)


def image_network(name: str, grid: Grid, **changes: Any) -> Network:
    sizes: dict[str, Any] = {"img_size": (4 * grid[0], 4 * grid[1]), "dim": 8, "hidden_dim": 16, "depth": 2, "heads": 2}
    return randomised(weft.create_model(name, **sizes, **changes))


def text_network(name: str, length: int) -> Network:
    network = weft.create_model(name, max_length=length, dim=8, hidden_dim=16, depth=2, vocab_size=30)
    return randomised(network).double().eval()


def randomised(network: Network) -> Network:
    generator = torch.Generator().manual_seed(len(network.state_dict()))
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return network


def carried(old: Network, new: Network, folder: Path) -> Network:
    """`old`, saved to a file with its configuration and loaded into `new`."""
    save_weights(old, folder / "old.safetensors")
    load_weights(new, folder / "old.safetensors")
    return new


def move(old: Grid, new: Grid, extra: int = 0) -> GridMove:
    return GridMove(Layout(old, extra), Layout(new, extra))


# --- images ---------------------------------------------------------------------------------------------------------


@quick
@given(old=grids, new=grids)
def test_a_constant_field_stays_constant_and_its_sums_keep_their_size(old: Grid, new: Grid) -> None:
    change, tokens = move(old, new), old[0] * old[1]
    weight = torch.full((tokens, tokens), 3.0, dtype=torch.float64)
    moved = change.dense(weight)
    torch.testing.assert_close(moved, torch.full_like(moved, 3.0 * tokens / (new[0] * new[1])))
    torch.testing.assert_close(moved.sum(1), torch.full_like(moved[0], 3.0 * tokens))


@quick
@given(old=grids, new=grids, extra=st.integers(0, 1))
def test_each_target_keeps_its_own_sum_over_sources(old: Grid, new: Grid, extra: int) -> None:
    """W with equal weights along each row: the row sums are a field over targets, and only that is interpolated."""
    change, tokens = move(old, new, extra), old[0] * old[1]
    rows = torch.randn(tokens + extra, 1, dtype=torch.float64)
    weight = torch.cat([torch.zeros(tokens + extra, extra, dtype=torch.float64), rows.expand(-1, tokens)], dim=1)
    moved = change.dense(weight)
    torch.testing.assert_close(moved.sum(1), change.target(tokens * rows)[:, 0])


@quick
@given(old=st.tuples(st.integers(4, 8), st.integers(4, 8)), factor=st.integers(2, 3))
def test_a_plane_is_followed_where_the_border_is_far(old: Grid, factor: int) -> None:
    """Patches are squares, not points: the centre of new patch r is (r + ½) / factor − ½ in old patches."""
    new = (old[0] * factor, old[1] * factor)

    def plane(grid: Grid, scale: float) -> Tensor:
        row, column = ((torch.arange(side, dtype=torch.float64) + 0.5) / scale for side in grid)
        return (2 * row[:, None] - 3 * column).flatten()

    moved = move(old, new).target(plane(old, 1)).view(new)
    inner = slice(2 * factor, -2 * factor)
    torch.testing.assert_close(moved[inner, inner], plane(new, factor).view(new)[inner, inner])


@quick
@given(old=grids, new=grids)
def test_positions_are_resized_as_timm_does_and_the_class_token_is_kept(old: Grid, new: Grid) -> None:
    import_timm()
    from timm.layers.pos_embed import resample_abs_pos_embed

    table = torch.randn(1 + old[0] * old[1], 6)
    moved = move(old, new, extra=1).target(table)
    torch.testing.assert_close(moved, resample_abs_pos_embed(table[None], list(new), list(old))[0])
    assert torch.equal(moved[0], table[0])


NAMES = [f"{kind}_nano_p4_32" for kind in ("vit", "mixer", "gmlp", "amlp", "tmlp", "tmlp2d")]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_size_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    old, new = image_network(name, (3, 5)), image_network(name, (3, 5))
    before = old.state_dict()
    for key, tensor in carried(old, new, tmp_path).state_dict().items():
        assert torch.equal(tensor, before[key]), key


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tmlp_nano_p4_32"])
def test_a_network_loads_at_another_size_and_runs(name: str, tmp_path: Path) -> None:
    network = carried(image_network(name, (3, 5)), image_network(name, (6, 4)), tmp_path).eval()
    assert network(torch.randn(2, 3, 24, 16)).isfinite().all()


def test_mixer_weights_are_moved_along_the_right_axes(tmp_path: Path) -> None:
    """M1: W₁ reads the tokens (scaled), W₂ and its bias write them (not scaled), b₁ knows nothing of them."""
    old, new = (image_network("mixer_nano_p4_32", grid) for grid in ((3, 5), (6, 4)))
    before, after, change = old.state_dict(), carried(old, new, tmp_path).state_dict(), move((3, 5), (6, 4))
    mixer = "blocks.1.mixer"
    torch.testing.assert_close(after[f"{mixer}.fc1.weight"], change.target(before[f"{mixer}.fc1.weight"].T).T * 15 / 24)
    torch.testing.assert_close(after[f"{mixer}.fc2.weight"], change.target(before[f"{mixer}.fc2.weight"]))
    torch.testing.assert_close(after[f"{mixer}.fc2.bias"], change.target(before[f"{mixer}.fc2.bias"]))
    assert torch.equal(after[f"{mixer}.fc1.bias"], before[f"{mixer}.fc1.bias"])


@quick
@given(old=grids, new=grids)
def test_2d_toeplitz_offsets_are_carried_exactly_and_new_ones_are_zero(old: Grid, new: Grid) -> None:
    """M5: the weight from one patch to another depends on their offset alone, at any size."""
    before, after = Toeplitz2dSpatial(Layout(old)), Toeplitz2dSpatial(Layout(new))
    before.weight.data = torch.randn(before.weight.shape)
    after.weight.data = move(old, new).toeplitz2d(before.weight.data)
    w, v = before.matrix(old[0] * old[1]).view(*old, *old), after.matrix(new[0] * new[1]).view(*new, *new)
    rows, columns = min(old[0], new[0]), min(old[1], new[1])
    assert torch.equal(v[:rows, :columns, :rows, :columns], w[:rows, :columns, :rows, :columns])
    far = torch.ones_like(after.weight, dtype=torch.bool)
    middle = far[new[0] - rows : new[0] + rows - 1, new[1] - columns : new[1] + columns - 1]
    middle.fill_(False)
    assert not after.weight[far].any()


def test_a_1d_toeplitz_over_images_refuses_and_says_why(tmp_path: Path) -> None:
    """An offset in reading order is no offset of rows and columns."""
    old, new = (image_network("tmlp_nano_p4_32", grid) for grid in ((3, 5), (6, 4)))
    with pytest.raises(WeftError, match=r"mixes rows and columns.*toeplitz2d"):
        carried(old, new, tmp_path)


def test_a_class_token_is_known_by_configuration_not_by_a_square_number(tmp_path: Path) -> None:
    """13×15 patches and a class token are 196 rows, which 14×14 patches without one are too."""
    old, new = (image_network("vit_nano_p4_32", grid) for grid in ((13, 15), (4, 4)))
    table = old.state_dict()["positions.table"]
    assert len(table) == 14 * 14
    moved = carried(old, new, tmp_path).state_dict()["positions.table"]
    assert torch.equal(moved[0], table[0])
    torch.testing.assert_close(moved, move((13, 15), (4, 4), extra=1).target(table))
    headless = image_network("vit_nano_p4_32", (14, 14), class_token=False, pool="mean")
    with pytest.raises(WeftError, match="class_token"):
        load_weights(headless, tmp_path / "old.safetensors")


def test_another_grid_of_as_many_patches_is_resized_too(tmp_path: Path) -> None:
    """The stored configuration tells 4×9 from 6×6."""
    old, new = (image_network("gmlp_nano_p4_32", grid) for grid in ((4, 9), (6, 6)))
    weight = old.state_dict()["blocks.0.gate.spatial.weight"]
    moved = carried(old, new, tmp_path).state_dict()["blocks.0.gate.spatial.weight"]
    torch.testing.assert_close(moved, move((4, 9), (6, 6)).dense(weight))


def test_a_grid_that_is_not_square_and_not_told_must_be_given() -> None:
    old, new = (image_network("mixer_nano_p4_32", grid) for grid in ((3, 5), (4, 4)))
    with pytest.raises(WeftError, match="15 patches form no square"):
        load_weights(new, old.state_dict())
    with pytest.raises(WeftError, match="15 patches, not 4×4"):
        load_weights(new, old.state_dict(), grid=(4, 4))
    load_weights(new, old.state_dict(), grid=(3, 5))


def test_timm_weights_are_resized(tmp_path: Path) -> None:
    """timm itself refuses a Mixer at another size."""
    import_timm()
    from timm.models.mlp_mixer import MlpMixer

    theirs = MlpMixer(img_size=16, patch_size=4, num_blocks=2, embed_dim=8, mlp_ratio=(2, 2), num_classes=10)
    network = weft.create_model("mixer_nano_p4_32", dim=8, hidden_dim=16, token_dim=16, depth=2)
    load_weights(network, theirs.state_dict())
    assert network(torch.randn(1, 3, 32, 32)).shape == (1, 10)


# --- text -----------------------------------------------------------------------------------------------------------

TEXTS = ["bert_tiny", "gmlp_text_tiny", "tmlp_text_tiny", "amlp_text_tiny", "mixer_text_tiny"]


@pytest.mark.parametrize("new_length", [5, 9, 16])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.filterwarnings("ignore:.*starts fresh")
def test_a_text_that_fits_both_lengths_gives_the_same_result(name: str, new_length: int, tmp_path: Path) -> None:
    old, new = text_network(name, 9), text_network(name, new_length)
    ids = torch.randint(0, 30, (3, 5))
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    want = old(ids, mask=mask)  # type: ignore[call-arg]
    got = carried(old, new, tmp_path)(ids, mask=mask)  # type: ignore[call-arg]
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_growing_says_that_longer_texts_meet_fresh_weights(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="at most 9 tokens"):
        carried(text_network("tmlp_text_tiny", 9), text_network("tmlp_text_tiny", 12), tmp_path)


@quick
@given(old=st.integers(1, 9), new=st.integers(1, 9))
def test_text_toeplitz_keeps_every_offset(old: int, new: int) -> None:
    offsets = torch.arange(1.0 - old, old) + 100
    moved = LengthMove(Layout((old,)), Layout((new,))).toeplitz(offsets)
    kept = (torch.arange(1.0 - new, new).abs() < old).float()
    assert torch.equal(moved, (torch.arange(1.0 - new, new) + 100) * kept)
