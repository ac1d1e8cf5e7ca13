"""What a network does inside, a file or folder for each lens: a subject (network, data) in, a finding (pictures) out.

    from weft import insight
    subject = insight.open_subject("RUN")                 # or a network's name, with source="digits"
    finding = insight.look(subject, "field", examples=64)
    finding.save("insight")                               # pictures, field.csv, field.json

May import nn, networks, data, training and report. `options` and `registry` load no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.insight.finding import Finding as Finding
    from weft.insight.finding import Picture as Picture
    from weft.insight.finding import Table as Table
    from weft.insight.finding import Unfit as Unfit
    from weft.insight.page import render as render
    from weft.insight.registry import LENSES as LENSES
    from weft.insight.registry import look as look
    from weft.insight.registry import look_through_all as look_through_all
    from weft.insight.subject import Subject as Subject
    from weft.insight.subject import open_subject as open_subject

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
