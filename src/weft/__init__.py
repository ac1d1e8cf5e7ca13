"""weft answers, on your own images or text: which network should I train, and is attention, or convolution, needed?

The public names below are loaded on first use, so `import weft` costs nothing and torch comes only when needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.api import Comparison as Comparison
    from weft.api import Run as Run
    from weft.api import compare as compare
    from weft.api import open_source as open_source
    from weft.api import probe as probe
    from weft.api import train as train
    from weft.errors import WeftError as WeftError
    from weft.estimators import Classifier as Classifier
    from weft.estimators import Regressor as Regressor
    from weft.networks.registry import create_model as create_model
    from weft.networks.registry import list_models as list_models
    from weft.networks.registry import register_mixer as register_mixer
    from weft.studies.probe.outcome import Probe as Probe
    from weft.training.inference.predictor import load as load

__version__ = "0.1.0"

_PUBLIC = {
    "WeftError": "weft.errors",
    "Classifier": "weft.estimators",
    "Regressor": "weft.estimators",
    "Comparison": "weft.api",
    "Probe": "weft.studies.probe.outcome",
    "Run": "weft.api",
    "compare": "weft.api",
    "open_source": "weft.api",
    "probe": "weft.api",
    "train": "weft.api",
    "create_model": "weft.networks.registry",
    "list_models": "weft.networks.registry",
    "load": "weft.training.inference.predictor",
    "register_mixer": "weft.networks.registry",
}

__all__ = ["__version__", *_PUBLIC]


if not TYPE_CHECKING:  # for a type checker, a name that is not above is an error

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'weft' has no attribute {name!r}; it has {', '.join(__all__)}")
        return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
