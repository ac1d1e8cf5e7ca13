"""weft answers, on your own images or text: which network should I train, and is attention, or convolution, needed?

The public names below are loaded on first use, so `import weft` costs nothing and torch comes only when needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "WeftError": "weft.errors",
    "Classifier": "weft.estimators",
    "Regressor": "weft.estimators",
    "create_model": "weft.networks.registry",
    "list_models": "weft.networks.registry",
    "load": "weft.training.inference.predictor",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'weft' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
