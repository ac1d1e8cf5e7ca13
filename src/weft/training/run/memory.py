"""How much memory a step will take, found from two tiny batches before the real one is tried, and how much there is."""

from __future__ import annotations

import os

import torch
from torch import nn

from weft import machine
from weft.data.batch.loader import Batch
from weft.errors import WeftError
from weft.nn.activations import kept_for_backward
from weft.nn.noise import example_noise

CPU = torch.device("cpu")
MARGIN = 1.15  # buffers of the backward pass and the allocator's waste, beyond what autograd keeps


def bytes_per_example(net: nn.Module, batch: Batch) -> float:
    """Growth of the saved activations with each example, from the first two and the first four of a batch."""

    def kept(count: int) -> int:
        inputs = {name: value[:count].clone().to(device_of(net)) for name, value in batch.inputs.items()}
        noise = example_noise(0, 0, batch.index[:count].to(device_of(net)))  # as in training
        with noise, kept_for_backward() as found:
            net(**inputs)
        return sum(found.values())

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
    return int(resident() + weights * (1 + states) + max(step, saving(weights, states)))


def saving(weights: int, states: int) -> int:
    """Bytes of a checkpoint on its way to the disk: all but the best weights are copied, and then safetensors copies
    everything twice."""
    return weights * (1 + states + 2 * (2 + states))


def require_room(family: str, count: int, states: int) -> None:
    """Refuse, before anything is allocated, a network of `count` parameters that could not be trained with no examples
    at all: weights, best weights, states and a checkpoint of them."""
    need, have = 4 * count * (2 + states) + saving(4 * count, states), available()
    if need > have:
        raise WeftError(
            f"to train a {family} network of {count:,} parameters takes {gigabytes(need)} at least and "
            f"{gigabytes(have)} are free; choose a smaller one"
        )


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
        f"keep the batch and use --grad-accum-steps {-(-examples * parts // fitting)}"
    )


def resident(device: torch.device = CPU) -> int:
    """Bytes of memory that this process occupies now, of the GPU's where it is on one."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else machine.memory_resident()


def available(device: torch.device = CPU) -> int:
    """Bytes that can still be had. Processes of one run on one machine share its memory."""
    if device.type == "cuda":  # what torch has set aside and not given out is free too
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    return machine.memory_available() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def gigabytes(number: float) -> str:
    return f"{number / 2**30:.2f} GiB"
