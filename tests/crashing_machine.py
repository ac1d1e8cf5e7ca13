"""A machine whose narrow number formats cannot be used, simulated: products in bf16 and fp16 end the process.

Some virtual machines advertise AMX or AVX-512 units that they do not let through: the first narrow product is an
illegal instruction. `environment(folder)` is what a child process needs to believe that it runs on such a machine;
its own children inherit it.

    subprocess.run([sys.executable, "-m", "weft", "train", "digits"], env=os.environ | environment(tmp_path))

`how="hang"` makes such a product last for ever, `how="wrong"` makes its numbers wrong.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

How = Literal["crash", "hang", "wrong"]
PRODUCTS = {  # where Python enters torch's products
    "": ("matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "conv1d", "conv2d"),
    "Tensor": ("__matmul__", "__rmatmul__", "matmul", "mm", "bmm", "addmm", "baddbmm"),
    "nn.functional": ("linear", "conv1d", "conv2d", "scaled_dot_product_attention"),
    "_VF": ("lstm", "gru"),
}
SITECUSTOMIZE = """\
import importlib.util
spec = importlib.util.spec_from_file_location("crashing_machine", {path!r})
machine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(machine)
machine.install({how!r})
"""


def environment(folder: Path, how: How = "crash") -> dict[str, str]:
    """Variables for a child process; `folder` receives the `sitecustomize.py` that Python runs as it starts."""
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE.format(path=str(Path(__file__).resolve()), how=how))
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def install(how: How) -> None:
    """Replace torch's products in this process as soon as it imports torch."""
    sys.meta_path.insert(0, Torch(how))


class Torch(MetaPathFinder):
    """Finds torch as Python does, and replaces its products once it is imported."""

    def __init__(self, how: How) -> None:
        self.how = how

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "torch" else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                replace_products(module, self.how)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def replace_products(torch: Any, how: How) -> None:
    """Every entry to a product looks at its number format first."""
    for place, names in PRODUCTS.items():
        owner = torch
        for part in filter(None, place.split(".")):
            owner = getattr(owner, part)
        for name in names:
            setattr(owner, name, guarded(torch, getattr(owner, name), how))


def guarded(torch: Any, product: Callable[..., Any], how: How) -> Callable[..., Any]:
    """`product`, but for narrow numbers."""

    def compute(*values: Any, **options: Any) -> Any:
        if not is_narrow(torch, values):
            return product(*values, **options)
        if how == "wrong":  # computed in wide numbers: on some real machines narrow ones would crash
            with torch.autocast("cpu", enabled=False):
                wide = {name: widened(torch, value) for name, value in options.items()}
                return product(*(widened(torch, value) for value in values), **wide).to(torch.bfloat16) * 0
        if how == "hang":
            time.sleep(3600)
        os.kill(os.getpid(), signal.SIGILL)
        return None

    return compute


def widened(torch: Any, value: Any) -> Any:
    """A tensor of narrow numbers in float32; all else as it is."""
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def is_narrow(torch: Any, values: tuple[Any, ...]) -> bool:
    """Whether the CPU would compute in bf16 or fp16: such tensors are given, or autocast makes such of them."""
    narrow = (torch.bfloat16, torch.float16)
    if torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") in narrow:
        return True
    return any(isinstance(value, torch.Tensor) and value.is_cpu and value.dtype in narrow for value in values)
