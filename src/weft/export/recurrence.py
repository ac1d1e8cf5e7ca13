"""The LSTM as one operator of ONNX, which takes the length of each text: torch's packed sequences cannot be traced."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from weft.networks.text_baselines import LSTM


class OnnxLSTM(LSTM):
    """The same network with the same weights, for tracing alone."""

    def recur(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """The recurrence over the first `lengths` tokens of (batch, tokens, channels); zeros after them."""
        x = vectors.transpose(0, 1)  # (tokens, batch, channels), as the operator wants it
        for layer in range(self.lstm.num_layers):
            x = bidirectional(self.lstm, layer, x, lengths.int())
        return x.transpose(0, 1)


def bidirectional(lstm: nn.LSTM, layer: int, x: Tensor, lengths: Tensor) -> Tensor:
    """One layer: (tokens, batch, channels) → (tokens, batch, 2·hidden), both directions side by side."""
    tokens, batch, hidden = x.shape[0], x.shape[1], lstm.hidden_size
    ways = [f"l{layer}", f"l{layer}_reverse"]
    kernels = [torch.stack([gates(getattr(lstm, f"weight_{part}_{way}")) for way in ways]) for part in ("ih", "hh")]
    biases = [torch.cat([gates(getattr(lstm, f"bias_{part}_{way}")) for part in ("ih", "hh")]) for way in ways]
    found = torch.onnx.ops.symbolic(
        "LSTM",
        (x, *kernels, torch.stack(biases), lengths),
        {"hidden_size": hidden, "direction": "bidirectional"},
        dtype=x.dtype,
        shape=(tokens, 2, batch, hidden),
    )
    return found.transpose(1, 2).flatten(2)


def gates(weights: Tensor) -> Tensor:
    """(4·hidden, …) with the gates in ONNX's order, input, output, forget and cell, from torch's i, f, c, o."""
    i, f, c, o = weights.chunk(4)
    return torch.cat([i, o, f, c])
