"""One backbone for all token networks: embed → blocks → norm → pool → head.

ViT, MLP-Mixer, BERT and the controls differ in the mixer alone; gMLP's block puts the mixer inside its gate. Images
enter through patches, text through word vectors; everything after is shared.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.networks.config import ImageTokensConfig, TextTokensConfig, TokenConfig
from weft.networks.encoder import TrainedEncoder
from weft.networks.network import Network, check_image, check_segments, check_text, check_vectors, make_head
from weft.networks.resnet import ResNetTrunk
from weft.nn.attention import TinyAttention
from weft.nn.blocks import Block, ChannelMLP, GatedBlock
from weft.nn.embeddings import NormAndDrop, PatchEmbed, WordEmbed, positions
from weft.nn.gates import SpatialGate
from weft.nn.initialisation import initialise
from weft.nn.mixers import MIXERS, Socket
from weft.nn.noise import Dropout, number_streams, rising_rates
from weft.nn.spatial import Layout


def mixed_block(config: TokenConfig, layout: Layout, drop_path: float) -> Block:
    """A mixer and a channel MLP, each in a residual branch: a Transformer's block, or a Mixer's."""
    socket = Socket(layout, config.dim, heads=config.heads, token_dim=config.token_width, act=config.act)
    return Block(
        config.dim,
        MIXERS[config.mixer](socket),
        ChannelMLP(config.dim, config.hidden_dim, config.act),
        norm_first=config.norm_first,
        eps=config.norm_eps,
        drop=config.drop_rate,
        drop_path=drop_path,
    )


def gated_block(config: TokenConfig, layout: Layout, drop_path: float) -> GatedBlock:
    """A channel MLP with a spatial gate in the middle: gMLP's block; Toeplitz makes it tMLP, tiny attention aMLP."""
    gate = SpatialGate(config.hidden_dim, layout, form=config.gate, weight=config.gate_weight)
    tiny = TinyAttention(config.dim, config.tiny_attention, gate.outputs) if config.tiny_attention else None
    return GatedBlock(
        config.dim,
        config.hidden_dim,
        gate,
        tiny=tiny,
        norm_first=config.norm_first,
        act=config.act,
        eps=config.norm_eps,
        drop=config.drop_rate,
        drop_path=drop_path,
    )


class TokenNetwork(Network):
    """The part that images and text share. `layout` says how the tokens lie."""

    config: TokenConfig
    layout: Layout

    def add_body(self, layout: Layout, final_norm: bool = True) -> None:
        """Blocks with drop path that rises with depth, and the norm after them."""
        config, self.layout = self.config, layout
        make_block = gated_block if config.block == "gated" else mixed_block
        rates = rising_rates(config.drop_path_rate, config.depth)
        self.blocks = nn.ModuleList(make_block(config, layout, rate) for rate in rates)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if final_norm else nn.Identity()
        self.head_drop = Dropout(config.head_drop_rate)

    def add_head(self) -> None:
        """Initialise all that was built, then put the head on."""
        initialise(self, self.config.init)
        self.head = self.fresh_head()
        number_streams(self)

    def fresh_head(self) -> nn.Module:
        return make_head(self.head_inputs, self.config.num_classes, zero=self.config.zero_head)

    def run_blocks(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)

    def pooled(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, tokens, channels) → (batch, channels): the first real token, or the mean over real tokens."""
        if mask is None:
            return features[:, 0] if self.config.pool == "token" else features.mean(1)
        if self.config.pool == "token":
            first = mask.int().argmax(1)  # not 0 where the padding stands on the left
            return features[torch.arange(len(mask), device=mask.device), first]
        real = mask[..., None].to(features.dtype)
        return (features * real).sum(1) / real.sum(1)

    @property
    def head_inputs(self) -> int:
        return self.config.dim


class ImageTokens(TokenNetwork):
    """A token network on patches: ViT (A3), MLP-Mixer (M1), gMLP (M2), tMLP, aMLP, the controls, the hybrid (A5)."""

    config: ImageTokensConfig

    def __init__(self, config: ImageTokensConfig) -> None:
        super().__init__(config)
        layout = Layout(config.grid, extra=int(config.class_token))
        if config.family == "hybrid":
            self.trunk: nn.Module = ResNetTrunk(
                config.in_chans, config.stem_layers, config.stem_widths, stem=config.stem
            )
            self.embed = PatchEmbed(config.stem_widths[len(config.stem_layers) - 1], config.dim, 1)
        else:
            self.trunk = nn.Identity()
            self.embed = PatchEmbed(config.in_chans, config.dim, config.patch_size)
        if config.class_token:
            self.class_token = nn.Parameter(torch.zeros(config.dim))
        self.positions = positions(config.positions, layout.tokens, config.dim)
        self.drop = Dropout(config.drop_rate)
        self.add_body(layout)
        self.add_head()

    def forward_features(self, x: Tensor) -> Tensor:
        """Images (batch, channels, height, width) → (batch, tokens, channels), a class token first if there is one."""
        check_image(x, self.config.in_chans, self.config.img_size)
        x = self.embed(self.trunk(x))
        if self.config.class_token:
            x = torch.cat([self.class_token.expand(x.shape[0], 1, -1), x], dim=1)
        return self.run_blocks(self.drop(self.positions(x)))

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        pooled = self.pooled(features)
        return pooled if pre_logits else self.head(self.head_drop(pooled))


class TextTokens(TokenNetwork):
    """A token network on word ids: BERT (A4), gMLP for text (M4), tMLP, aMLP, Mixer and the controls.

    It has word vectors in `embed`; or, standing on a trained encoder (M7), a linear layer `project` in their place.
    """

    config: TextTokensConfig

    def __init__(self, config: TextTokensConfig) -> None:
        super().__init__(config)
        if config.encoder is None:
            self.embed = WordEmbed(config.vocab_size, config.dim, config.segments)
        else:
            self.encoder = TrainedEncoder(config.encoder)
            self.project = nn.Linear(config.encoder.dim, config.dim)
        self.positions = positions(config.positions, config.max_length, config.dim)
        drop = config.drop_rate
        self.embed_norm = NormAndDrop(config.dim, config.norm_eps, drop) if config.embed_norm else Dropout(drop)
        self.add_body(Layout((config.max_length,)), final_norm=config.final_norm)
        self.pooler = nn.Sequential(nn.Linear(config.dim, config.dim), nn.Tanh()) if config.pooler else nn.Identity()
        self.add_head()

    def forward_features(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Ids (batch, tokens) → (batch, tokens, channels). `mask` is true for real tokens; padding never matters.

        A network on a trained encoder also takes the encoder's embeddings themselves, (batch, tokens, channels).
        """
        if self.config.encoder is not None and x.is_floating_point():
            check_vectors(x, mask, self.config.max_length, self.config.encoder.dim)
            return self.encode(self.project(x), mask)
        check_text(x, mask, self.config.max_length, self.config.vocab_size)
        if self.config.encoder is not None:
            return self.encode(self.project(self.encoder(x, mask, segments)), mask)
        check_segments(x, segments, self.config.segments)
        return self.encode(self.embed(x, segments), mask)

    def encode(self, vectors: Tensor, mask: Tensor | None = None) -> Tensor:
        """What follows the word vectors, for vectors that come from elsewhere: (batch, tokens, channels) in and out."""
        return self.run_blocks(self.embed_norm(self.positions(vectors)), mask)

    def forward_head(self, features: Tensor, mask: Tensor | None = None, *, pre_logits: bool = False) -> Tensor:
        pooled = self.pooler(self.pooled(features, mask))
        return pooled if pre_logits else self.head(self.head_drop(pooled))

    def forward(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.forward_head(self.forward_features(x, mask, segments), mask)
