"""weft's BERT (A4) and ViT (A3) are Hugging Face's: equal outputs and gradients, and folders that go both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import weft
from oracles import import_transformers
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.config import NetworkConfig
from weft.networks.registry import build
from weft.networks.weights import load_weights, network_from_folder, save_weights

transformers = import_transformers()

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
LENGTH, WORDS = 12, 50
SHAPE: dict[str, Any] = {
    "num_hidden_layers": 3,
    "hidden_size": 24,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "num_labels": 3,
}


def bert_config(**changes: Any) -> Any:
    """Without dropout, so that training mode would change nothing either."""
    sizes: dict[str, Any] = {"vocab_size": WORDS, "max_position_embeddings": LENGTH}
    drop: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return transformers.BertConfig(**{**SHAPE, **sizes, **drop, **changes})


def vit_config(**changes: Any) -> Any:
    sizes: dict[str, Any] = {"image_size": 16, "patch_size": 4, "num_channels": 2}
    return transformers.ViTConfig(**{**SHAPE, **sizes, **changes})


def randomise(network: nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        scale = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.3
        values = scale * torch.randn(parameter.shape, generator=generator) + (parameter.ndim == 1)
        parameter.data.copy_(values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "model"


def saved(network: Any, folder: Path) -> Any:
    """Random weights, written as transformers writes them."""
    randomise(network)
    network.save_pretrained(folder)
    return network.eval()


def text() -> dict[str, Tensor]:
    """Four sentence pairs, the last three with padding at the end."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([LENGTH, 9, 5, 2])
    mask = torch.arange(LENGTH) < lengths[:, None]
    ids = torch.randint(1, WORDS, (4, LENGTH), generator=generator) * mask
    return {"ids": ids, "mask": mask, "segments": (torch.arange(LENGTH) >= 4).long() * mask}


def loaded(config: NetworkConfig, folder: Path, dtype: torch.dtype) -> Network:
    """A network of that precision, so that float64 weights are not rounded on the way in."""
    network = build(config).to(dtype).eval()
    load_weights(network, folder)
    return network


def gradients_like(ours: Network, theirs: Any, folder: Path) -> dict[str, Tensor]:
    """Their gradients by weft's names: saved and loaded as if they were weights."""
    for parameter in theirs.parameters():
        parameter.data = parameter.grad
    theirs.save_pretrained(folder / "gradients")
    return dict(loaded(ours.config, folder / "gradients", next(ours.parameters()).dtype).named_parameters())


def assert_same_gradients(theirs: Any, ours: Network, folder: Path, dtype: torch.dtype) -> None:
    wanted = gradients_like(ours, theirs, folder)
    largest = max(gradient.abs().max() for gradient in wanted.values())
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad - wanted[name]).abs().max() < TOLERANCE[dtype] * largest, name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bert_equals_transformers(folder: Path, dtype: torch.dtype) -> None:
    """Post-norm, ε 1e-12, padding and segments: the logits, and the gradient of every weight."""
    theirs = saved(transformers.BertForSequenceClassification(bert_config()).to(dtype), folder)
    ours = loaded(network_from_folder(folder).config, folder, dtype)
    x = text()
    want = theirs(x["ids"], attention_mask=x["mask"].long(), token_type_ids=x["segments"]).logits
    got = ours(x["ids"], mask=x["mask"], segments=x["segments"])
    assert (got - want).abs().max() < TOLERANCE[dtype] * want.abs().max()
    for y in (want, got):
        y.square().mean().backward()
    assert_same_gradients(theirs, ours, folder, dtype)


def test_bert_features_equal_transformers_at_every_real_token(folder: Path) -> None:
    theirs = saved(transformers.BertModel(bert_config()).double(), folder)
    ours = loaded(network_from_folder(folder).config, folder, torch.float64)
    x = text()
    want = theirs(x["ids"], attention_mask=x["mask"].long(), token_type_ids=x["segments"]).last_hidden_state
    got = ours.forward_features(x["ids"], mask=x["mask"], segments=x["segments"])  # type: ignore[call-arg]
    assert (got - want)[x["mask"]].abs().max() < 1e-12 * want.abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vit_equals_transformers(folder: Path, dtype: torch.dtype) -> None:
    theirs = saved(transformers.ViTForImageClassification(vit_config()).to(dtype), folder)
    ours = loaded(network_from_folder(folder).config, folder, dtype)
    x = torch.randn(3, 2, 16, 16, generator=torch.Generator().manual_seed(1)).to(dtype)
    want, got = theirs(x).logits, ours(x)
    assert (got - want).abs().max() < TOLERANCE[dtype] * want.abs().max()
    for y in (want, got):
        y.square().mean().backward()
    assert_same_gradients(theirs, ours, folder, dtype)


def test_transformers_reads_what_weft_writes(folder: Path) -> None:
    sizes: dict[str, Any] = {"depth": 2, "vocab_size": WORDS, "max_length": LENGTH, "num_classes": 3}
    bert = weft.create_model("bert_tiny", **sizes).eval()
    vit = weft.create_model("vit_nano_p4_32", depth=2, act="gelu_tanh").eval()
    for network in (bert, vit):
        randomise(network)
        save_weights(network, folder / network.config.family, "huggingface")
    x = text()
    theirs = transformers.BertForSequenceClassification.from_pretrained(folder / "bert").eval()
    want = theirs(x["ids"], attention_mask=x["mask"].long(), token_type_ids=x["segments"]).logits
    torch.testing.assert_close(bert(x["ids"], mask=x["mask"], segments=x["segments"]), want, rtol=1e-4, atol=1e-4)
    pictures = torch.randn(2, 3, 32, 32)
    theirs = transformers.ViTForImageClassification.from_pretrained(folder / "vit").eval()
    torch.testing.assert_close(vit(pictures), theirs(pictures).logits, rtol=1e-4, atol=1e-4)


def test_an_encoder_with_pretraining_heads_becomes_a_classifier(folder: Path) -> None:
    """The heads of pre-training are left out and the new head is fresh, and both are said."""
    theirs = saved(transformers.BertForPreTraining(bert_config()), folder)
    with pytest.warns(UserWarning) as said:
        ours = network_from_folder(folder, num_classes=2, max_length=8)
    sentences = " ".join(str(warning.message) for warning in said)
    assert "heads of pre-training" in sentences and "no classes" in sentences
    torch.testing.assert_close(ours.embed.words.weight, theirs.bert.embeddings.word_embeddings.weight)  # type: ignore[union-attr]


def test_a_masked_language_model_without_a_pooler_becomes_a_classifier(folder: Path) -> None:
    saved(transformers.BertForMaskedLM(bert_config()), folder)
    with pytest.warns(UserWarning, match="heads of pre-training"), pytest.warns(UserWarning, match="starts fresh"):
        ours = network_from_folder(folder, num_classes=2)
    assert ours(text()["ids"]).shape == (4, 2)
    with pytest.raises(WeftError, match="no place for a bert network"):
        save_weights(ours, folder / "again", "huggingface")  # transformers' classifier always reads a pooler


def test_an_encoder_of_minilm_shape_keeps_its_heads_and_eps(folder: Path) -> None:
    """M7's encoders: 6 layers of 384 channels and 12 heads, without a classifier, with names that bear no prefix."""
    shape: dict[str, Any] = {"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12}
    saved(transformers.BertModel(bert_config(**shape, intermediate_size=1536)), folder)
    config: Any = network_from_folder(folder).config
    assert (config.depth, config.dim, config.heads, config.norm_eps, config.act) == (6, 384, 12, 1e-12, "gelu")
    assert (config.num_classes, config.pooler, config.max_length) == (0, True, LENGTH)


@pytest.mark.parametrize("change", [{"heads": 2}, {"norm_eps": 1e-6}, {"act": "gelu_tanh"}])
def test_a_network_that_would_compute_otherwise_is_refused(folder: Path, change: dict[str, Any]) -> None:
    """The shapes agree, the numbers would not."""
    saved(transformers.ViTForImageClassification(vit_config()), folder)
    with pytest.raises(WeftError, match=next(iter(change))):
        network_from_folder(folder, **change)


def test_shards_with_an_index_are_read(folder: Path) -> None:
    theirs = transformers.BertModel(bert_config())
    randomise(theirs)
    theirs.save_pretrained(folder, max_shard_size="20KB")
    assert not (folder / "model.safetensors").exists()
    ours = network_from_folder(folder)
    torch.testing.assert_close(ours.embed.words.weight, theirs.embeddings.word_embeddings.weight)  # type: ignore[union-attr]
    next(folder.glob("model-00002*")).unlink()
    with pytest.raises(WeftError, match=r"model-00002.* not beside it"):
        network_from_folder(folder)
