"""What is put on a trained encoder's embeddings: the gated networks, and the controls that they are judged by.

The encoder attends already. What a network on top of it adds is its lead over the identity mixer, which sees each
token alone, and over the linear probe, which is no network at all. No torch here.
"""

from __future__ import annotations

from typing import Any

PROBE: dict[str, Any] = {"depth": 0, "positions": "none", "final_norm": False}

HEADS: dict[str, tuple[str, dict[str, Any]]] = {  # name: network and changes to it
    "gmlp": ("gmlp_text_tiny", {}),
    "multiplicative gmlp": ("gmlp_text_tiny", {"gate": "multiplicative"}),  # not split
    "tmlp": ("tmlp_text_tiny", {}),
    "amlp": ("amlp_text_tiny", {}),
    "attention": ("mixer_text_tiny", {"mixer": "attention", "heads": 2, "positions": "learned"}),
    "identity": ("control_identity_text_tiny", {}),
    "linear probe": ("control_identity_text_tiny", PROBE),
}

CONTROLS = ("identity", "linear probe")  # what a fair verdict is against

NOTE = (
    "The encoder attends already, so the accuracies above are mostly its own: what a network on top adds is its lead "
    "over the identity mixer and the linear probe."
)
