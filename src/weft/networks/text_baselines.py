"""Older text networks as baselines: a bidirectional LSTM and Kim's convolutional classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.networks.base.network import Network, check_text, make_head
from weft.networks.config import LSTMConfig, TextConvConfig
from weft.networks.registry import Sizes
from weft.nn.blocks import mask_tokens
from weft.nn.convolution import ConvBlock1d
from weft.nn.embeddings import WordEmbed
from weft.nn.initialisation import initialise
from weft.nn.noise import Dropout, number_streams


def real_tokens(ids: Tensor, mask: Tensor | None) -> Tensor:
    return torch.ones_like(ids, dtype=torch.bool) if mask is None else mask


def _real_first(mask: Tensor) -> Tensor:
    """The place of each token, (batch, tokens), when real ones come first, wherever the padding stands."""
    real = mask.long()
    return torch.where(mask, real.cumsum(1) - 1, real.sum(1, keepdim=True) + (1 - real).cumsum(1) - 1)


def _take(vectors: Tensor, order: Tensor) -> Tensor:
    """The tokens of (batch, tokens, channels) in another order, (batch, tokens)."""
    return vectors.gather(1, order[..., None].expand_as(vectors))


class LSTM(Network):
    """Word vectors → bidirectional LSTM → maximum over real tokens → head (Conneau et al. 2017's pooling)."""

    config: LSTMConfig

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__(config)
        self.embed = WordEmbed(config.vocab_size, config.dim)
        self.drop = Dropout(config.drop_rate)
        self.lstm = nn.LSTM(
            config.dim, config.hidden_dim, num_layers=config.depth, bidirectional=True, batch_first=True
        )
        self.head_drop = Dropout(config.drop_rate)
        initialise(self, "bert")
        self.head = make_head(self.head_inputs, config.num_classes)
        number_streams(self)

    def forward_features(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Ids (batch, tokens) → (batch, tokens, 2·hidden). Padding is packed away before the recurrence."""
        check_text(x, mask, self.config.max_length, self.config.vocab_size)
        vectors = self.drop(self.embed(x))
        if mask is None or x.shape[0] == 0:
            return self.lstm(vectors)[0]
        place = _real_first(mask)
        order = torch.zeros_like(place).scatter(1, place, torch.arange(x.shape[1], device=x.device).expand_as(place))
        return _take(self.recur(_take(vectors, order), mask.sum(1)), place)

    def recur(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """The recurrence over the first `lengths` tokens of each row; zeros after them."""
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
        total = vectors.shape[1]
        return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=total)[0]

    def forward_head(self, features: Tensor, mask: Tensor | None = None, *, pre_logits: bool = False) -> Tensor:
        if mask is not None:
            features = features.masked_fill(~mask[..., None], float("-inf"))
        pooled = features.amax(1)
        return pooled if pre_logits else self.head(self.head_drop(pooled))

    def forward(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.forward_head(self.forward_features(x, mask, segments), mask)

    @property
    def head_inputs(self) -> int:
        return 2 * self.config.hidden_dim


class TextConv(Network):
    """Kim 2014: convolutions with windows of several sizes over word vectors, maximum over time, head."""

    config: TextConvConfig

    def __init__(self, config: TextConvConfig) -> None:
        super().__init__(config)
        self.embed = WordEmbed(config.vocab_size, config.dim)
        self.convolutions = nn.ModuleList(
            ConvBlock1d(config.dim, config.channels, kernel, padding=kernel - 1, norm=False)
            for kernel in config.kernels
        )
        self.drop = Dropout(config.drop_rate)
        initialise(self, "he")
        self.head = make_head(self.head_inputs, config.num_classes)
        number_streams(self)

    def forward_features(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Ids (batch, tokens) → (batch, 1, kernels·channels), the maximum over windows that hold a real token."""
        check_text(x, mask, self.config.max_length, self.config.vocab_size)
        vectors = mask_tokens(self.embed(x), mask).transpose(1, 2)
        real = real_tokens(x, mask)
        layers = zip(self.convolutions, self.config.kernels, strict=True)
        return torch.cat([self._maximum(conv(vectors), real, kernel) for conv, kernel in layers], dim=1)[:, None]

    @staticmethod
    def _maximum(responses: Tensor, real: Tensor, kernel: int) -> Tensor:
        """(batch, channels, windows) → (batch, channels). Window w covers the tokens w−k+1…w, k being `kernel`."""
        window = torch.ones(1, 1, kernel, device=real.device)
        touched = nn.functional.conv1d(real[:, None].float(), window, padding=kernel - 1)  # real tokens in each
        return responses.masked_fill(touched == 0, float("-inf")).amax(2)

    def forward_head(self, features: Tensor, mask: Tensor | None = None, *, pre_logits: bool = False) -> Tensor:
        pooled = features.squeeze(1)
        return pooled if pre_logits else self.head(self.drop(pooled))

    def forward(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.forward_head(self.forward_features(x, mask, segments), mask)

    @property
    def head_inputs(self) -> int:
        return len(self.config.kernels) * self.config.channels


def sizes() -> Sizes:
    yield "lstm_text", LSTMConfig(num_classes=2)
    yield "conv_text", TextConvConfig(num_classes=2)
