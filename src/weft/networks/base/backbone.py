"""One backbone for all token networks: embed → blocks → norm → pool → head.

The blocks of ViT, MLP-Mixer, BERT and the controls differ in the mixer alone; gMLP's have a gate over tokens in its
place. Images enter through patches, text through word vectors; everything after is shared.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.errors import WeftError
from weft.networks.base.encoder import TrainedEncoder
from weft.networks.base.network import Network, check_image, check_segments, check_text, check_vectors, make_head
from weft.networks.config import ImageTokensConfig, TextTokensConfig, TokenConfig
from weft.networks.registry import mixer_class
from weft.nn.blocks import Block, ChannelMLP, Layout, MixerContext, make_mixer, takes_mask
from weft.nn.embeddings import NormAndDrop, PatchEmbed, WordEmbed, positions
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams, rising_rates


class TokenNetwork(Network):
    """The part that images and text share. `layout` says how the tokens lie."""

    config: TokenConfig
    layout: Layout
    block: type[Block] = Block  # of mixer and channel MLP; a family may have one of its own

    @staticmethod
    def mixer_context(config: TokenConfig, layout: Layout) -> MixerContext:
        """What a mixer may know of the network."""
        return MixerContext(layout, config.dim, heads=config.heads, token_dim=config.token_width, act=config.act)

    @classmethod
    def make_block(cls, config: TokenConfig, layout: Layout, drop_path: float = 0.0) -> nn.Module:
        """A mixer and a channel MLP, each in a residual branch; or gMLP's block, for `block="gated"`."""
        if config.block == "gated":
            from weft.networks.gmlp import gated_block  # a family, which stands on this file

            return gated_block(config, layout, drop_path)
        return cls.block(
            config.dim,
            make_mixer(mixer_class(config.mixer), cls.mixer_context(config, layout)),
            ChannelMLP(config.dim, config.hidden_dim, config.act),
            norm_first=config.norm_first,
            eps=config.norm_eps,
            drop=config.drop_rate,
            drop_path=drop_path,
        )

    def add_body(self, layout: Layout, final_norm: bool = True) -> None:
        """Blocks with drop path that rises with depth, and the norm after them."""
        config, self.layout = self.config, layout
        rates = rising_rates(config.drop_path_rate, config.depth)
        self.blocks = nn.ModuleList(self.make_block(config, layout, rate) for rate in rates)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if final_norm else nn.Identity()
        self.head_drop = Dropout(config.head_drop_rate)

    def add_head(self) -> None:
        """Initialise all that was built, then put the head on."""
        initialise(self, self.config.init)
        self.head = self.fresh_head()
        number_streams(self)

    def fresh_head(self) -> nn.Module:
        return make_head(self.head_inputs, self.config.num_classes, zero=self.config.zero_head)

    def run_blocks(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        first: int = 0,
        last: int | None = None,
        collect: dict[int, Tensor] | None = None,
    ) -> Tensor:
        """(batch, tokens, channels) through the blocks numbered from `first` up to `last`, and the norm after them all.

        `collect` is filled with what leaves each block, counted from 1; the last one's is taken behind the norm.
        """
        end = len(self.blocks) if last is None else last
        for number in range(first, end):
            x = self.blocks[number](x, mask)
            if collect is not None and number + 1 < len(self.blocks):
                collect[number + 1] = x
        if end < len(self.blocks):
            return x
        x = self.norm(x)
        if collect is not None:
            collect[end] = x
        return x

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
    """A token network on patches: ViT, MLP-Mixer, gMLP, tMLP, aMLP, the controls, the hybrid."""

    config: ImageTokensConfig

    def __init__(self, config: ImageTokensConfig) -> None:
        super().__init__(config)
        layout = Layout(config.grid, extra=config.extra)
        self.trunk, self.embed = self.make_stem()
        if config.class_token:
            self.class_token = nn.Parameter(torch.zeros(config.dim))
        self.positions = positions(config.positions, layout.tokens, config.dim)
        self.drop = Dropout(config.drop_rate)
        self.add_body(layout)
        self.add_head()

    def make_stem(self) -> tuple[nn.Module, PatchEmbed]:
        """What is done to the image before it is cut, and the embedding of its patches."""
        config = self.config
        return nn.Identity(), PatchEmbed(config.in_chans, config.dim, config.patch_size)

    def leading_tokens(self) -> list[Tensor]:
        """What stands before the patches, (channels,) each."""
        return [self.class_token] if self.config.class_token else []

    def embed_tokens(self, x: Tensor) -> Tensor:
        """Images (batch, channels, height, width) → what enters the blocks, (batch, tokens, channels)."""
        check_image(x, self.config.in_chans, self.config.img_size)
        x = self.embed(self.trunk(x))
        if tokens := self.leading_tokens():
            x = torch.cat([*(token.expand(x.shape[0], 1, -1) for token in tokens), x], dim=1)
        return self.drop(self.positions(x))

    def forward_features(self, x: Tensor) -> Tensor:
        """Images (batch, channels, height, width) → (batch, tokens, channels), a class token first if there is one."""
        return self.run_blocks(self.embed_tokens(x))

    def forward_head(self, features: Tensor, *, pre_logits: bool = False) -> Tensor:
        pooled = self.pooled(features)
        return pooled if pre_logits else self.head(self.head_drop(pooled))


class TextTokens(TokenNetwork):
    """A token network on word ids: BERT, gMLP for text, tMLP, aMLP, Mixer and the controls.

    It has word vectors in `embed`; or, standing on a trained encoder, a linear layer `project` in their place.
    """

    config: TextTokensConfig

    def __init__(self, config: TextTokensConfig) -> None:
        super().__init__(config)
        if config.block == "mixed" and not takes_mask(mixer_class(config.mixer)):
            raise WeftError(
                f"the mixer {config.mixer!r} takes no mask, so padding would change what a text means; give its "
                "forward a second argument `mask`, true for real tokens, or use it on images"
            )
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

    def embed_tokens(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Ids (batch, tokens) → what enters the blocks, (batch, tokens, channels).

        A network on a trained encoder also takes the encoder's embeddings themselves, (batch, tokens, channels).
        """
        return self.embed_norm(self.positions(self.word_vectors(x, mask, segments)))

    def word_vectors(self, x: Tensor, mask: Tensor | None, segments: Tensor | None) -> Tensor:
        if self.config.encoder is not None and x.is_floating_point():
            check_vectors(x, mask, self.config.max_length, self.config.encoder.dim)
            return self.project(x)
        check_text(x, mask, self.config.max_length, self.config.vocab_size)
        if self.config.encoder is not None:
            return self.project(self.encoder(x, mask, segments))
        check_segments(x, segments, self.config.segments)
        return self.embed(x, segments)

    def forward_features(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Ids (batch, tokens) → (batch, tokens, channels). `mask` is true for real tokens; padding never matters."""
        return self.run_blocks(self.embed_tokens(x, mask, segments), mask)

    def encode(self, vectors: Tensor, mask: Tensor | None = None) -> Tensor:
        """What follows the word vectors, for vectors that come from elsewhere: (batch, tokens, channels) in and out."""
        return self.run_blocks(self.embed_norm(self.positions(vectors)), mask)

    def forward_head(self, features: Tensor, mask: Tensor | None = None, *, pre_logits: bool = False) -> Tensor:
        pooled = self.pooler(self.pooled(features, mask))
        return pooled if pre_logits else self.head(self.head_drop(pooled))

    def forward(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.forward_head(self.forward_features(x, mask, segments), mask)
