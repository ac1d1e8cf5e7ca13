"""Pre-training heads on every token network: BERT (A4), gMLP in four gates (M3, M4), tMLP (M5), aMLP (M6), Mixer, …"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from oracles import import_transformers
from weft.networks.registry import configured, list_models
from weft.nn.noise import example_noise
from weft.training.pretraining.network import HITS, MASKED, NEXT, Pretraining, create_pretraining
from weft.training.pretraining.objective import WordObjective

WORDS, LENGTH = 40, 24
SMALL = {"dim": 16, "depth": 2, "hidden_dim": 32, "vocab_size": WORDS, "max_length": LENGTH, "num_classes": 0}
GATES = ("linear", "additive", "multiplicative", "split")
NETWORKS: dict[str, dict[str, Any]] = {
    "bert_tiny": {"heads": 2},
    **{f"gmlp_text_tiny {gate}": {"gate": gate} for gate in GATES},
    "tmlp_text_tiny": {},
    "amlp_text_tiny": {"tiny_attention": 8},
    "mixer_text_tiny": {"token_dim": 12},
    **{name: {} for name in list_models("control_*_text_tiny")},
}


def network(name: str, drop: float = 0.0, next_sentence: bool = True, seed: int = 0) -> Pretraining:
    """A small one, moved away from its start so that gates are not near zero."""
    changes = {**SMALL, **NETWORKS[name], "drop_rate": drop}
    net = create_pretraining(
        configured(name.split()[0], **changes),  # type: ignore[arg-type]
        seed,
        masked=True,
        next_sentence=next_sentence,
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return net


def question(rows: int, length: int, lengths: list[int], seed: int = 0) -> dict[str, Tensor]:
    """Rows of some lengths below `length`, a few places of each asked for."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(5, WORDS, (rows, LENGTH), generator=generator)
    asked = torch.rand(rows, LENGTH, generator=generator) < 0.3
    asked[:, 0] = True
    real = torch.arange(LENGTH) < torch.tensor(lengths)[:, None]
    answers = torch.where(asked & real, torch.randint(5, WORDS, (rows, LENGTH), generator=generator), -1)
    segments = (torch.arange(LENGTH) >= torch.tensor(lengths)[:, None] // 2) & real
    follows = torch.randint(2, (rows,), generator=generator)
    cut = {"x": x.where(real, 0), "answers": answers, "mask": real, "segments": segments.long()}
    return {**{key: value[:, :length] for key, value in cut.items()}, "follows": follows}


def loss_and_gradients(net: Pretraining, inputs: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    net.train()
    net.zero_grad()
    with example_noise(0, 3, torch.arange(len(inputs["x"]))):
        outputs = net(**inputs)
    outputs[:, [MASKED, NEXT]].sum().backward()
    return outputs.detach(), {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", NETWORKS)
@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(2, 14), min_size=1, max_size=3), st.integers(0, 10), st.integers(0, 1000))
def test_neither_content_nor_amount_of_padding_changes_training_or_prediction(
    name: str, lengths: list[int], more: int, seed: int
) -> None:
    """Losses and every gradient, with dropout, and the features of an evaluation."""
    net = network(name, drop=0.1)
    shorter = question(len(lengths), max(lengths), lengths, seed)
    longer = question(len(lengths), max(lengths) + more, lengths, seed)
    longer["x"] = longer["x"].where(longer["mask"], torch.randint(WORDS, longer["x"].shape))
    longer["segments"] = longer["segments"].where(longer["mask"], 1)
    one, other = loss_and_gradients(net, shorter), loss_and_gradients(net, longer)
    torch.testing.assert_close(one[0], other[0], rtol=1e-4, atol=1e-5)
    for parameter, gradient in one[1].items():
        torch.testing.assert_close(other[1][parameter], gradient, rtol=1e-3, atol=1e-4, msg=f"{parameter} differs")
    net.eval()
    with torch.no_grad():
        kinds = [{key: part[key] for key in ("x", "mask", "segments")} for part in (shorter, longer)]
        features = [net.encoder.forward_features(**kind) for kind in kinds]
        real = shorter["mask"]
        torch.testing.assert_close(features[1][:, : real.shape[1]][real], features[0][real], rtol=1e-4, atol=1e-5)


def test_an_even_guess_loses_the_same_on_every_batch() -> None:
    objective = WordObjective(WORDS, next_sentence=True)
    targets = torch.tensor([[3.0, 1.0], [0.0, 1.0], [5.0, 1.0]])
    count = objective.count(targets, 3, lambda total: total)
    parts = objective.chance(targets[:1], count) + objective.chance(targets[1:], count)
    assert float(parts) == pytest.approx(objective.guess)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_token_network_learns_masked_words_and_next_sentences(name: str) -> None:
    """M3, M4, A4: some steps of AdamW lower the loss, and every parameter gets a gradient."""
    net, objective = network(name), WordObjective(WORDS, next_sentence=True)
    inputs = question(16, 12, [12] * 16)
    targets = torch.stack([(inputs["answers"] >= 0).sum(1), torch.ones(16)], 1).float()
    optimiser = torch.optim.AdamW(net.parameter_groups(0.01), lr=3e-3)
    losses = []
    for _ in range(30):
        outputs = net(**inputs)
        loss = objective.share(outputs, targets, objective.count(targets, 16, lambda total: total))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    idle = [name for name, p in net.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert idle == [] or name.startswith("control_identity")


def test_losses_are_those_of_all_logits() -> None:
    """The masked positions alone, in pieces, give what the whole table of logits gives."""
    net = network("gmlp_text_tiny split").eval()
    inputs = question(5, 20, [20, 7, 13, 2, 20])
    outputs = net(**inputs)
    features = net.encoder.forward_features(inputs["x"], inputs["mask"], inputs["segments"])
    logits = net.heads.word_logits(features)
    answers = inputs["answers"]
    losses = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=-1, reduction="none")
    torch.testing.assert_close(outputs[:, MASKED], losses.view(answers.shape).sum(1))
    assert torch.equal(outputs[:, HITS], ((logits.argmax(-1) == answers) & (answers >= 0)).sum(1).float())


def test_word_vectors_are_tied_counted_once_and_saved_once() -> None:
    net = network("gmlp_text_tiny split")
    assert net.heads.words is net.encoder.embed.words.weight
    assert [name for name in net.state_dict() if "words" in name] == ["encoder.embed.words.weight"]
    grouped = [p for group in net.parameter_groups(0.1) for p in group["params"]]
    assert len({id(p) for p in grouped}) == len(grouped) == len(list(net.parameters()))


@pytest.mark.parametrize(("masked", "next_sentence"), [(True, False), (False, True), (True, True)])
def test_tasks_together_or_apart(masked: bool, next_sentence: bool) -> None:
    """What a task leaves idle asks for no gradient: several processes would wait for it."""
    config = configured("bert_tiny", **{**SMALL, "heads": 2})
    net = create_pretraining(config, 0, masked=masked, next_sentence=next_sentence)  # type: ignore[arg-type]
    outputs = net(**question(3, 10, [10, 4, 6]))
    outputs[:, [MASKED, NEXT]].sum().backward()
    wanting = {name for name, p in net.named_parameters() if p.requires_grad and p.grad is None}
    assert wanting == set()
    assert bool(outputs[:, MASKED].any()) == masked and bool(outputs[:, NEXT].any()) == next_sentence


def test_the_loss_is_that_of_transformers() -> None:
    """A4: the same weights in Hugging Face's BertForMaskedLM give the same loss."""
    transformers = import_transformers()
    net = network("bert_tiny", next_sentence=False).eval()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    theirs = transformers.BertForMaskedLM(
        transformers.BertConfig(vocab_size=WORDS, max_position_embeddings=LENGTH, **sizes)
    ).eval()
    theirs.load_state_dict(renamed(net), strict=True)
    inputs = question(4, 18, [18, 9, 5, 18])
    outputs = net(**inputs)
    labels = inputs["answers"].masked_fill(inputs["answers"] < 0, -100)
    expected = theirs(
        input_ids=inputs["x"], attention_mask=inputs["mask"].long(), token_type_ids=inputs["segments"], labels=labels
    ).loss
    torch.testing.assert_close(outputs[:, MASKED].sum() / (labels >= 0).sum(), expected, rtol=1e-5, atol=1e-5)


def renamed(net: Pretraining) -> dict[str, Tensor]:
    """weft's weights under the names of BertForMaskedLM."""
    words, pre = net.encoder.embed.words.weight, "bert.encoder.layer"
    assert net.encoder.embed.segments is not None
    names = {
        "bert.embeddings.word_embeddings.weight": words,
        "bert.embeddings.token_type_embeddings.weight": net.encoder.embed.segments.weight,
        "bert.embeddings.position_embeddings.weight": net.encoder.positions.table,
        "cls.predictions.bias": net.heads.bias,
        "cls.predictions.decoder.weight": words,
        "cls.predictions.decoder.bias": net.heads.bias,
    }
    layers: dict[str, Any] = {
        "bert.embeddings.LayerNorm": net.encoder.embed_norm.norm,
        "cls.predictions.transform.dense": net.heads.transform,
        "cls.predictions.transform.LayerNorm": net.heads.norm,
    }
    for number, block in enumerate(net.encoder.blocks):
        for name, weight, bias in zip(
            ("query", "key", "value"), block.mixer.qkv.weight.chunk(3), block.mixer.qkv.bias.chunk(3), strict=True
        ):
            names[f"{pre}.{number}.attention.self.{name}.weight"] = weight
            names[f"{pre}.{number}.attention.self.{name}.bias"] = bias
        layers |= {
            f"{pre}.{number}.attention.output.dense": block.mixer.out,
            f"{pre}.{number}.attention.output.LayerNorm": block.norm1,
            f"{pre}.{number}.intermediate.dense": block.channels.fc1,
            f"{pre}.{number}.output.dense": block.channels.fc2,
            f"{pre}.{number}.output.LayerNorm": block.norm2,
        }
    for name, layer in layers.items():
        names |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
    return {name: value.detach() for name, value in names.items()}
