"""How much memory a step will take, found from two tiny batches before the real one is tried, and how much there is."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor, nn

from weft.data.loader import Batch
from weft.errors import WeftError

CPU = torch.device("cpu")
MARGIN = 1.15  # buffers of the backward pass and the allocator's waste, beyond what autograd keeps


def saved_bytes(forward: Callable[[], Tensor]) -> int:
    """Bytes that autograd keeps for the backward pass of `forward()`."""
    seen: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    del result
    return sum(seen.values())


def bytes_per_example(net: nn.Module, batch: Batch) -> float:
    """Growth of the saved activations with each example, from the first two and the first four of a batch."""

    def kept(count: int) -> int:
        inputs = {name: value[:count].clone().to(device_of(net)) for name, value in batch.inputs.items()}
        return saved_bytes(lambda: net(**inputs))

    few, more = min(2, len(batch.index)), min(4, len(batch.index))
    return kept(more) / more if more == few else (kept(more) - kept(few)) / (more - few)


def device_of(net: nn.Module) -> torch.device:
    """Where a network is computed."""
    return next((parameter.device for parameter in net.parameters()), CPU)


def predicted(net: nn.Module, per_example: float, examples: int, states: int) -> int:
    """Peak bytes of this process: what it holds now, `states` tensors a weight and the best weights, and beside these
    the larger of a step (gradient, and activations of `examples`) and of a checkpoint on its way to the disk.

    On a GPU, of its memory: there best weights and checkpoints take none.
    """
    device = device_of(net)
    weights = sum(p.numel() * p.element_size() for p in net.parameters())
    step = weights + MARGIN * per_example * examples
    if device.type == "cuda":
        return int(resident(device) + weights * states + step)
    # all but the best weights are copied, and then safetensors copies everything twice
    saving = weights * (1 + states + 2 * (2 + states))
    return int(resident() + weights * (1 + states) + max(step, saving))


def check(net: nn.Module, per_example: float, examples: int, states: int, parts: int) -> int:
    """The predicted peak, or an error that names a batch size that would fit."""
    device = device_of(net)
    need, have = predicted(net, per_example, examples, states), resident(device) + available(device)
    if need <= have:
        return need
    halves = (2**power for power in reversed(range(examples.bit_length())))
    fitting = next((count for count in halves if predicted(net, per_example, count, states) <= have), 0)
    if fitting < 1:
        raise WeftError(
            f"this network needs {gigabytes(need)} and {gigabytes(have)} are free; even one example is too many: "
            f"choose a smaller network or image"
        )
    raise WeftError(
        f"a step needs about {gigabytes(need)} and {gigabytes(have)} are free; use --batch-size {fitting * parts}, or "
        f"keep the batch and use --accumulate {-(-examples * parts // fitting)}"
    )


def resident(device: torch.device = CPU) -> int:
    """Bytes of memory that this process occupies now."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak()


def peak() -> int:
    """Largest number of bytes that this process has occupied, since it began or since `forget_peak`."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """On Linux, give back what is free and begin anew: a process that does run after run tells each one's peak."""
    gc.collect()
    with suppress(OSError, TypeError, AttributeError):  # another system, or another C library
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")


def available(device: torch.device = CPU) -> int:
    """Bytes that can still be had: free memory of the machine, or of the container where that is less.

    Processes of one run on one machine share it.
    """
    if device.type == "cuda":  # what torch has set aside and not given out is free too
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    limits = [2**62]
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(int(lines["MemAvailable"].split()[0]) * 1024)
        group = Path("/sys/fs/cgroup")
        limits.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError, KeyError):
        pass  # no such file, or "max": no limit to be had from it
    return min(limits) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def gigabytes(number: float) -> str:
    return f"{number / 2**30:.2f} GiB"
