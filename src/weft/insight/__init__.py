"""What a network does inside, one lens a file: a subject (network and data) in, a finding (pictures, table) out.

    from weft import insight
    subject = insight.open_subject("RUN")                 # or a network's name, with source="digits"
    finding = insight.look(subject, "field", examples=64)
    finding.save("insight")                               # pictures, field.csv, field.json

May import nn, networks, data, training and report. `options` and `lenses` load no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    "Finding": "weft.insight.finding",
    "LENSES": "weft.insight.registry",
    "Picture": "weft.insight.finding",
    "Subject": "weft.insight.subject",
    "Table": "weft.insight.finding",
    "Unfit": "weft.insight.finding",
    "look": "weft.insight.registry",
    "look_through_all": "weft.insight.registry",
    "open_subject": "weft.insight.subject",
    "render": "weft.insight.page",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'weft.insight' has no attribute {name!r}; it has {', '.join(_PUBLIC)}")
    return getattr(import_module(_PUBLIC[name]), name)
