"""Hugging Face's layout of BERT and ViT, with the `config.json` that tells what the tensors cannot."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from weft.errors import WeftError
from weft.networks.config import ImageTokensConfig, NetworkConfig, TextTokensConfig
from weft.networks.weights.files import Checkpoint
from weft.networks.weights.rules import BATCHED, STACKED, TOKEN, Adapter, NoPlace, Row, row
from weft.networks.weights.timm import is_vit, reads_class_token

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
USUAL: dict[str, Any] = {"act": "gelu", "norm_eps": 1e-12}
LAYER = "encoder.layer.{n}"


def is_bert(config: NetworkConfig) -> bool:
    """An encoder as published: post-norm attention, segments, and a norm over the embeddings."""
    return (
        isinstance(config, TextTokensConfig)
        and config.family == "bert"
        and (config.block, config.mixer, config.positions) == ("mixed", "attention", "learned")
        and (config.norm_first, config.embed_norm, config.final_norm) == (False, True, False)
        and config.segments > 0
    )


def is_bert_classifier(config: NetworkConfig) -> bool:
    """One whose head reads the pooler, as transformers' does, or that has none."""
    return isinstance(config, TextTokensConfig) and (
        config.num_classes == 0 or (config.pool == "token" and config.pooler)
    )


def plain_name(name: str) -> str:
    """Without the prefix that a model with a head puts before its encoder; older files call a norm's weights gamma."""
    name = re.sub(r"^(bert|vit)\.", "", name)
    return re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))


def prefixed(name: str, prefix: str) -> str:
    """The way back, for a model with a head."""
    return name if name.startswith("classifier.") else f"{prefix}.{name}"


def queries_keys_values(foreign: str) -> Row:
    parts = (f"{LAYER}.{foreign}.{part}.{{p}}" for part in ("query", "key", "value"))
    return row("blocks.{n}.mixer.qkv.{p}", *parts, form=STACKED)


def shape(fields: dict[str, Any]) -> dict[str, Any]:
    """What BERT's and ViT's config.json share, in weft's words."""
    act = ACTIVATIONS.get(fields.get("hidden_act", "gelu"))
    if act is None:
        raise WeftError(f"weft has no activation {fields['hidden_act']!r}; it reads {', '.join(ACTIVATIONS)}")
    return {
        "dim": fields["hidden_size"],
        "depth": fields["num_hidden_layers"],
        "heads": fields["num_attention_heads"],
        "hidden_dim": fields["intermediate_size"],
        "norm_eps": fields.get("layer_norm_eps", 1e-12),
        "act": act,
    }


def bert_facts(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of weft's configuration that a BERT's config.json determines."""
    kind = fields.get("position_embedding_type", "absolute")
    if kind != "absolute" or fields.get("is_decoder"):
        raise WeftError(f"weft reads BERT encoders with absolute positions, not {kind!r} ones nor decoders")
    return {
        **shape(fields),
        "vocab_size": fields["vocab_size"],
        "max_length": fields["max_position_embeddings"],
        "segments": fields["type_vocab_size"],
    }


def vit_facts(fields: dict[str, Any]) -> dict[str, Any]:
    """The same for a ViT."""
    if not fields.get("qkv_bias", True):
        raise WeftError("weft's attention has biases; this ViT has none (qkv_bias is false)")
    side = fields.get("image_size", 224)
    return {
        **shape(fields),
        "img_size": (side, side) if isinstance(side, int) else tuple(side),
        "patch_size": fields.get("patch_size", 16),
        "in_chans": fields.get("num_channels", 3),
    }


def known(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a config.json tells. RoBERTa, for one, has BERT's tensors but counts its positions from two: refuse it."""
    kind = checkpoint.config.get("model_type")
    if kind is None:
        return {}
    if kind not in FACTS:
        raise WeftError(f"{checkpoint.origin} is a {kind!r}; of Hugging Face's models weft reads {' and '.join(FACTS)}")
    return FACTS[kind](checkpoint.config)


FACTS = {"bert": bert_facts, "vit": vit_facts}


def bert_config(fields: dict[str, Any], names: Collection[str], classes: int) -> TextTokensConfig:
    """A network for a BERT-type encoder; `names` tell whether it has a pooler."""
    drop = fields.get("hidden_dropout_prob", 0.1)
    head_drop = fields.get("classifier_dropout")
    return TextTokensConfig(
        family="bert",
        **bert_facts(fields),
        positions="learned",
        pool="token",
        norm_first=False,
        embed_norm=True,
        final_norm=False,
        pooler="pooler.dense.weight" in names,
        drop_rate=drop,
        head_drop_rate=drop if head_drop is None else head_drop,
        num_classes=classes,
    )


def vit_config(fields: dict[str, Any], names: Collection[str], classes: int) -> ImageTokensConfig:
    """A network for a ViT, which reads its class token."""
    return ImageTokensConfig(
        family="vit",
        **vit_facts(fields),
        positions="learned",
        class_token=True,
        pool="token",
        drop_rate=fields.get("hidden_dropout_prob", 0.0),
        num_classes=classes,
    )


CONFIGS = {"bert": bert_config, "vit": vit_config}


def config_json(config: NetworkConfig) -> dict[str, Any]:
    """The config.json with which transformers reads what weft wrote."""
    assert isinstance(config, ImageTokensConfig | TextTokensConfig)
    acts = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    if config.act not in acts:
        raise NoPlace(f"transformers has no activation for {config.act!r}", "save in weft's own layout")
    fields: dict[str, Any] = {
        "hidden_size": config.dim,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.heads,
        "intermediate_size": config.hidden_dim,
        "layer_norm_eps": config.norm_eps,
        "hidden_act": acts[config.act],
        "hidden_dropout_prob": config.drop_rate,
        "attention_probs_dropout_prob": 0.0,
    }
    if config.num_classes:
        fields["id2label"] = {str(label): f"LABEL_{label}" for label in range(config.num_classes)}
        fields["label2id"] = {name: int(label) for label, name in fields["id2label"].items()}
    return {**fields, **(bert_json(config) if isinstance(config, TextTokensConfig) else vit_json(config))}


def bert_json(config: TextTokensConfig) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification" if config.num_classes else "BertModel"],
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.max_length,
        "type_vocab_size": config.segments,
        "classifier_dropout": config.head_drop_rate,
    }


def vit_json(config: ImageTokensConfig) -> dict[str, Any]:
    height, width = config.img_size
    return {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification" if config.num_classes else "ViTModel"],
        "image_size": height if height == width else [height, width],
        "patch_size": config.patch_size,
        "num_channels": config.in_chans,
        "qkv_bias": True,
    }


BERT = Adapter(
    layout="Hugging Face",
    holds="BERT",
    marks=frozenset({"embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.weight"}),
    fits=is_bert,
    faithful=is_bert_classifier,
    known=known,
    usual=USUAL,
    rename=plain_name,
    head=("classifier.weight", "classifier.bias"),
    extras={r"position_ids$": "", r"^cls\.": "heads of pre-training", r"^pooler\.": "the pooler"},
    table=(
        row("embed.words.weight", "embeddings.word_embeddings.weight"),
        row("embed.segments.weight", "embeddings.token_type_embeddings.weight"),
        row("positions.table", "embeddings.position_embeddings.weight"),
        row("embed_norm.norm.{p}", "embeddings.LayerNorm.{p}"),
        queries_keys_values("attention.self"),
        row("blocks.{n}.mixer.out.{p}", f"{LAYER}.attention.output.dense.{{p}}"),
        row("blocks.{n}.norm1.{p}", f"{LAYER}.attention.output.LayerNorm.{{p}}"),
        row("blocks.{n}.channels.fc1.{p}", f"{LAYER}.intermediate.dense.{{p}}"),
        row("blocks.{n}.channels.fc2.{p}", f"{LAYER}.output.dense.{{p}}"),
        row("blocks.{n}.norm2.{p}", f"{LAYER}.output.LayerNorm.{{p}}"),
        row("pooler.0.{p}", "pooler.dense.{p}"),
        row("head.{p}", "classifier.{p}"),
    ),
)

VIT = Adapter(
    layout="Hugging Face",
    holds="ViT",
    marks=frozenset({"embeddings.patch_embeddings.projection.weight", "embeddings.cls_token"}),
    fits=is_vit,
    faithful=reads_class_token,
    known=known,
    usual=USUAL,
    rename=plain_name,
    head=("classifier.weight", "classifier.bias"),
    extras={r"^pooler\.": "the pooler", r"mask_token$": "the mask token"},
    table=(
        row("embed.{p}", "embeddings.patch_embeddings.projection.{p}"),
        row("class_token", "embeddings.cls_token", form=TOKEN),
        row("positions.table", "embeddings.position_embeddings", form=BATCHED),
        queries_keys_values("attention.attention"),
        row("blocks.{n}.mixer.out.{p}", f"{LAYER}.attention.output.dense.{{p}}"),
        row("blocks.{n}.norm1.{p}", f"{LAYER}.layernorm_before.{{p}}"),
        row("blocks.{n}.norm2.{p}", f"{LAYER}.layernorm_after.{{p}}"),
        row("blocks.{n}.channels.fc1.{p}", f"{LAYER}.intermediate.dense.{{p}}"),
        row("blocks.{n}.channels.fc2.{p}", f"{LAYER}.output.dense.{{p}}"),
        row("norm.{p}", "layernorm.{p}"),
        row("head.{p}", "classifier.{p}"),
    ),
)

ADAPTERS = (BERT, VIT)
