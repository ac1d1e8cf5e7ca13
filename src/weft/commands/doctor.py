"""`weft doctor`: what this machine is and can do, as one pastes it into a bug report. It touches nothing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from weft import __version__, machine

SETS = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16")
ARM_SETS = ("asimd", "asimdhp", "sve", "sve2", "bf16", "i8mm")
USUAL = {"avx512f": 160.0, "avx2": 90.0}  # GFLOP/s of a float32 product on one core of two kinds of cloud machine
SPEED_SECONDS = 2.0
SECRETS = ("TOKEN", "SECRET", "PASSWORD", "KEY")  # in the names of environment variables
SLOW = 0.5  # of the usual speed: a neighbour is busy, or the clock is throttled


@dataclass(frozen=True)
class Arguments:
    """Tell what this machine is and can do: cores, memory, instruction sets, number formats, speed, extras, cache."""

    json: bool = False
    """Print JSON."""


def run(arguments: Arguments) -> int:
    """Print what was found."""
    found = examine()
    if arguments.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    for section, values in found.items():
        print(section)
        width = max(map(len, values), default=0) + 2
        for name, value in values.items():
            print(f"  {name:<{width}}{shown(value)}")
    return 0


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def examine() -> dict[str, dict[str, Any]]:
    """Everything, section by section; plain values only."""
    return {
        "weft": software(),
        "machine": hardware(),
        "number formats": formats(),
        "speed": speed(),
        "extras": extras(),
        "cache": cache(),
    }


def software() -> dict[str, Any]:
    import torch

    return {
        "weft": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "torch": torch.__version__,
        "torch's threads": torch.get_num_threads(),
        "torch's CPU kernels": torch.backends.cpu.get_cpu_capability(),
        "compiler for torch.compile": os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or "none",
        "environment": [f"{name}={public(name, value)}" for name, value in sorted(os.environ.items()) if telling(name)],
    }


def telling(name: str) -> bool:
    """Environment variables that change what is computed, or how fast."""
    return name.startswith(("WEFT_", "OMP_", "MKL_", "ONEDNN_", "DNNL_", "ATEN_", "TORCH_", "CUDA_", "KMP_"))


def public(name: str, value: str) -> str:
    """What a bug report may say of a variable: of a secret only that it is set."""
    return "(set, not shown)" if any(word in name for word in SECRETS) else value


def hardware() -> dict[str, Any]:
    import torch

    flags = set(machine.cpu_flags())
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {
        "system": platform.platform(),
        "processor": machine.cpu_model(),
        "instruction sets": [name for name in (*SETS, *ARM_SETS) if name in flags],
        "cores": f"{machine.cores()} allowed of {machine.all_cores()}",
        "memory": f"{machine.memory_available() / 2**30:.1f} GiB free of {machine.memory_total() / 2**30:.1f}",
        "GPUs": gpus,
        "freed memory": "kept in the process" if machine.keep_freed_memory() else "returned to the system",
        "locks": machine.lock_kind(),
    }


def formats() -> dict[str, Any]:
    """Each narrow format, tried in a process of its own, in products first and then in all kinds of layer."""
    import torch
    from torch import nn

    from weft.training.run.rehearsal import try_format

    device = "cuda" if torch.cuda.is_available() else "cpu"
    found: dict[str, Any] = {"float32": "works"}
    for precision in ("bf16", "fp16"):
        answer = try_format(precision, device, remember=False, net=nn.Identity())
        whole = try_format(precision, device, remember=False) if answer.works else answer
        but = "" if whole.works else f"; not for all networks: {whole.why}"
        speed = f"works, a product takes {answer.ratio:.2f} × the time of float32{but}"
        found[precision] = speed if answer.works else f"not here: {answer.why}"
    return found


def speed() -> dict[str, Any]:
    """Products of matrices for two seconds, on all cores that may be used."""
    import torch

    flags = set(machine.cpu_flags())
    kind = next((name for name in USUAL if name in flags), None)
    size, done = 1024, 0
    x = torch.ones(size, size)
    x @ x
    started = time.perf_counter()
    while (taken := time.perf_counter() - started) < SPEED_SECONDS:
        x @ x
        done += 1
    rate = 2 * size**3 * done / taken / 1e9
    found: dict[str, Any] = {"float32 product": f"{rate:.0f} GFLOP/s on {torch.get_num_threads()} threads"}
    if kind is not None:
        share = rate / (USUAL[kind] * machine.cores())
        words = "; slow: is the machine busy, or throttled?" if share < SLOW else ""
        found["against the usual"] = f"{share:.2f} × of {USUAL[kind] * machine.cores():.0f} for {kind}{words}"
    return found


def extras() -> dict[str, Any]:
    """The optional parts: installed, or what installs them."""
    found: dict[str, Any] = {}
    for line in distribution():
        package, _, condition = line.partition(";")
        if "extra ==" not in condition:
            continue
        extra = condition.partition("extra ==")[2].strip(" '\")")
        name = "".join(letter if letter.isalnum() or letter in "-_." else " " for letter in package).split()[0]
        if extra == "test":
            continue
        state = installed(name) or f"missing: pip install 'weft[{extra}]'"
        found[f"{extra}: {name}"] = state
    return found


def distribution() -> list[str]:
    try:
        return requires("weft") or []
    except PackageNotFoundError:  # run from a checkout that was never installed
        return []


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return "there" if find_spec(name.replace("-", "_")) else None


def cache() -> dict[str, Any]:
    """Where it is, how large, and what was tried on this machine."""
    from weft.data.read.cache import Cache
    from weft.training.run.rehearsal import remembered

    store = Cache()
    size = sum(entry.size for entry in store.entries()) if store.folder.is_dir() else 0
    return {
        "folder": str(store.folder),
        "size": f"{size / 1e6:,.1f} of {store.limit / 1e6:,.0f} MB",
        "writable": is_writable(store.folder),
        "tried before": remembered(),
    }


def is_writable(folder: Path) -> bool:
    """Whether entries can be stored, judged without writing."""
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)
