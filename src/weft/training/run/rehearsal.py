"""What is chosen by trying it is tried in a process of its own, once a machine, and the answer is remembered.

A number format or a compiler may kill the process that tries it: some virtual machines advertise instructions that
they do not let through. It may also hang, or compute wrong numbers. Here each of these is an answer, "not here", and
the run goes on in float32. Answers lie in the cache under a digest of the processor, its flags, torch's version and
what was tried. The process is `training/run/trial.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from weft import machine
from weft.data.read.cache import Cache, digest
from weft.disk import Damaged, read_object, validated, write_json
from weft.errors import WeftError
from weft.training.config import Precision
from weft.training.run.distributed import AUTOCAST
from weft.training.run.narrow import autocast

if TYPE_CHECKING:
    from weft.training.run.context import Run

ROUNDS, STEPS = 3, 4  # rounds, and steps of each form in a round, after one to warm up
LIMITS = {"format": 60.0, "eager": 300.0, "compiled": 900.0}  # seconds that a child may take
TOLERANCE = {"float32": 1e-3, "bf16": 0.05, "fp16": 0.05}  # relative: formats have 8 and 11 bits of fraction
PREFIX = "tried-"  # of the files in the cache
LONGEST = 1 << 20  # bytes of such a file
WAY = 5  # of trying: one more whenever a trial looks closer, so that answers of before are asked for again
KERNELS = ("ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA")  # in the environment, bound instructions
STRIDES = "strides"  # the word for networks that have convolutions with a stride
TIMES = 8  # that memory is asked for what was left in it, where it cannot be spoilt: once in forty nothing showed


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Answer:
    """How a trial ended. `ratio` is the time of a product or an eager step in a format to that in float32, and of a
    compiled step to that of an eager one in the same format."""

    works: bool
    ratio: float = 1.0
    first: float = 0.0
    """seconds of the first step, in which a compiler works"""
    why: str = ""
    """what went wrong"""
    lasting: bool = True
    """whether it would be the same another time: not where somebody ended the trial, or its run could not be read"""


def try_format(
    precision: Precision,
    device: str = "cpu",
    remember: bool = True,
    net: nn.Module | None = None,
    within: float = math.inf,
) -> Answer:
    """Whether a format computes what float32 does on this machine, and how fast a product of matrices is in it.

    With `net`, in the kinds of layer that it has; `within` so many seconds.
    """
    strides = [STRIDES] if net is None or any(map(overlaps, net.modules())) else []
    return ask(["format", precision, device, *strides], LIMITS["format"], remember=remember, within=within)


def overlaps(layer: nn.Module) -> bool:
    """Whether a layer is a convolution with a stride whose windows overlap, unlike patches."""
    return isinstance(layer, nn.Conv2d) and 1 < max(layer.stride) < max(layer.kernel_size)


def try_steps(
    folder: Path,
    precision: Precision,
    compiled: bool,
    device: str,
    threads: int,
    shape: Any,
    within: float = math.inf,
) -> Answer:
    """Steps of the run in `folder` in another form, `within` so many seconds. `shape` is what decides their speed:
    network, batch, optimiser."""
    form = "compiled" if compiled else "eager"
    words = ["step", str(folder.resolve()), precision, form, device, str(threads)]
    return ask(words, LIMITS[form], about=["step", precision, form, device, threads, shape], within=within)


def require_format(precision: Precision, device: str, net: nn.Module) -> None:
    """Refuse a format that does not work on this machine for a network, before it can end or spoil the run."""
    if precision == "float32":
        return
    answer = try_format(precision, device, net=net)
    if not answer.works:
        raise WeftError(f"{precision} does not work on this machine ({answer.why}); use --precision float32")


def ask(words: list[str], limit: float, about: Any = None, remember: bool = True, within: float = math.inf) -> Answer:
    """The remembered answer, or that of a child process; unless it is to `remember`, it is asked anew.

    A child has `limit` seconds, or as many as the run can spare, `within`: that it needs more of these tells nothing of
    the machine, and is not remembered.
    """
    if not remember:
        return child(words, limit)
    stored = Cache().folder / f"{PREFIX}{digest(json.dumps([identity(), about or words], sort_keys=True))}.json"
    with contextlib.suppress(Damaged):
        return answer_in(read_object(stored, LONGEST).get("answer"))
    if within <= 0:
        return Answer(False, why="no time was left to try it", lasting=False)
    answer = child(words, limit) if within >= limit else child(words, within, False)
    if answer.lasting:
        with contextlib.suppress(OSError, WeftError):  # a cache that cannot be written only costs the next run time
            stored.parent.mkdir(parents=True, exist_ok=True)
            content = {"tried": about or words, "machine": identity(), "answer": dataclasses.asdict(answer)}
            write_json(stored, content)
    return answer


def answer_in(values: Any) -> Answer:
    """The answer that stored or printed values are; `Damaged` where they are none."""
    found = cast(Answer, validated(Answer, values, "the answer of a trial"))
    if not math.isfinite(found.ratio + found.first):
        raise Damaged("the answer of a trial has times that are no numbers; it is tried again")
    return found


def identity() -> dict[str, Any]:
    """What an answer holds for: this processor, the part of it that may be used, this torch, this way of trying."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    cpu, flags = machine.cpu_model(), machine.cpu_flags()
    allowed = {name: os.environ[name] for name in KERNELS if os.environ.get(name)}
    return {"cpu": cpu, "flags": flags, "allowed": allowed, "gpu": gpu, "torch": torch.__version__, "way": WAY}


def remembered() -> list[str]:
    """The answers kept for this machine, a sentence each, with the day."""
    found = []
    for path in sorted(Cache().folder.glob(f"{PREFIX}*.json")):
        with contextlib.suppress(OSError, Damaged, TypeError, KeyError):
            content = read_object(path, LONGEST)
            answer, tried = answer_in(content["answer"]), content["tried"]
            what = " ".join(str(word) for word in tried if isinstance(word, str))
            if content["machine"] == json.loads(json.dumps(identity())):
                day = time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime))
                found.append(f"{what}: {f'{answer.ratio:.2f} × the time' if answer.works else answer.why} ({day})")
    return found


def child(words: list[str], limit: float, lasting: bool = True) -> Answer:
    """Try something in a process of its own; whatever happens to that is an answer, and that it took longer than the
    `limit` a `lasting` one or not."""
    try:
        return answered(words, limit, lasting)
    except OSError as error:  # no room for its output, or no further process
        return Answer(False, why=f"it could not be tried: {error.strerror or error}", lasting=False)


def answered(words: list[str], limit: float, lasting: bool) -> Answer:
    command = [sys.executable, "-P", "-m", "weft.training.run.trial", str(os.getpid()), *words]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return Answer(False, why=f"it did not answer within {limit:.0f} s", lasting=lasting)
        finally:
            stop(process)
        errors.seek(0)
        return reply(process.returncode, output.decode(errors="replace"), errors.read().decode(errors="replace"))


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child and what it has started (compilers start workers)."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, machine.KILL)
    process.kill()
    process.wait()


def reply(code: int, output: str, errors: str) -> Answer:
    if code < 0:
        ended = -code in (machine.KILL, signal.SIGTERM, signal.SIGINT)
        return Answer(False, why=f"a trial of it died by {machine.death(code)}", lasting=not ended)
    if code > 0:
        return Answer(False, why=(errors.strip().splitlines() or ["a trial of it failed"])[-1][:200], lasting=False)
    try:
        return answer_in(json.loads(output.strip().splitlines()[-1]))
    except (ValueError, IndexError, Damaged):
        return Answer(False, why="a trial of it gave no answer")


# In the child


def attempt(words: list[str]) -> Answer:
    """The answer to what `child` was asked."""
    if words[0] == "format":
        return format_answer(cast(Precision, words[1]), torch.device(words[2]), STRIDES in words)
    folder, precision, form, device, threads = words[1:]
    return step_answer(Path(folder), cast(Precision, precision), form == "compiled", device, int(threads))


def format_answer(precision: Precision, device: torch.device, strides: bool) -> Answer:
    """Compare what a small network of every kind of layer computes in both formats, and time a product."""
    kind = AUTOCAST[precision]
    assert kind is not None
    times = 1 if machine.spoil_fresh_memory() else TIMES
    error = difference(exercise, device, kind)
    if not error < TOLERANCE[precision]:
        return Answer(False, why=f"its numbers differ from those of float32 by {error:.0%}")
    if strides and not all(difference(shrink, device, kind) < TOLERANCE[precision] for _ in range(times)):
        return Answer(False, why="its gradients of convolutions with a stride are wrong")
    machine.leave_fresh_memory()
    return Answer(True, ratio=product(kind, device) / product(torch.float32, device))


def difference(compute: Callable[[torch.device, torch.dtype | None], Tensor], device: Any, kind: Any) -> float:
    """How far numbers in a narrow format are from those of float32, relative to these; nan if they are none."""
    wide, narrow = compute(device, None), compute(device, kind)
    return float((wide - narrow).norm() / wide.norm())


def shrink(device: torch.device, kind: torch.dtype | None) -> Tensor:
    """Gradients of convolutions that end on maps of one pixel.

    On some processors oneDNN leaves a part of these unwritten in bf16 (see `narrow`), and may elsewhere in what nobody
    has met yet: what was in memory before shows through. It is spoilt beforehand, or, where the C library cannot do
    that, filled here with what cannot be overlooked.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Sequential(*(nn.Conv2d(16, 16, 3, stride=2, padding=1, bias=False) for _ in range(4)))
        images = torch.randn(4, 16, 8, 8)
    layers, images = layers.to(device), images.to(device)
    stale = [torch.full((size,), torch.nan, device=device) for size in (1 << power for power in range(9, 17))]
    del stale
    with autocast(device.type, kind):
        outputs = layers(images)
    outputs.float().square().sum().backward()
    return torch.cat([p.grad.flatten() / p.grad.norm() for p in layers.parameters() if p.grad is not None])


def exercise(device: torch.device, kind: torch.dtype | None) -> Tensor:
    """Outputs and gradients of a convolution, a norm, attention and products, one after the other."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.ModuleList([nn.Conv2d(3, 32, 3, padding=1), nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 8)])
        images = torch.randn(4, 3, 8, 8)
    layers, images = layers.to(device), images.to(device)
    conv, norm, project, head = layers
    with autocast(device.type, kind):
        tokens = norm(conv(images).flatten(2).transpose(1, 2))
        query, key, value = project(tokens).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        outputs = head(nn.functional.gelu(tokens + mixed)).mean(1)
    outputs.float().square().sum().backward()
    gradients = [p.grad.flatten() for p in layers.parameters() if p.grad is not None]
    return torch.cat([outputs.detach().float().flatten(), *gradients])


def product(kind: torch.dtype, device: torch.device) -> float:
    """Seconds of a product of matrices."""
    x = torch.ones(256, 256, device=device, dtype=kind)
    return min(timed(lambda: (x @ x).sum().item()) for _ in range(5))


def timed(action: Any) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def step_answer(folder: Path, precision: Precision, compiled: bool, device: str, threads: int) -> Answer:
    """Time steps of the run in the other form by turns with those that it would replace, eager ones in float32 or, for
    a compiled form, in its own format; and compare its first loss with that of eager float32."""
    from weft.training.run import probe

    run = rehearsed(folder, device, threads)
    before = first_loss(run, "float32")
    if compiled:
        run.core.compile()
    first = timed(lambda: probe.mean_step(run, precision, steps=1, skipped=0)) + timed(lambda: probe.evaluate_once(run))
    after = first_loss(run, precision)
    error = abs(after - before) / max(abs(before), 1e-6)
    if not error < TOLERANCE[precision]:
        return Answer(False, why=f"its loss is {after:.4g} where that of eager float32 is {before:.4g}")
    form, replaced = run.core._compiled_call_impl, precision if compiled else "float32"
    ratios = []
    for _ in range(ROUNDS):  # a moment's disturbance then meets both
        run.core._compiled_call_impl = None
        plain = probe.mean_step(run, replaced, STEPS, skipped=1)
        run.core._compiled_call_impl = form
        ratios.append(probe.mean_step(run, precision, STEPS, skipped=1) / plain)
    return Answer(True, ratio=statistics.median(ratios), first=first)


def rehearsed(folder: Path, device: str, threads: int) -> Run:
    """The run in `folder` as it begins, in this process alone; nothing is written there."""
    from weft.training.loop.display import Silent
    from weft.training.run import lifecycle
    from weft.training.run.distributed import join
    from weft.training.run.inputs import open_inputs
    from weft.training.storage.run_folder import RunFolder, open_run

    config = open_run(folder).config()
    execution = dataclasses.replace(
        config.execution, strategy="auto", threads=threads, precision="float32", compile=False
    )
    config = dataclasses.replace(config, execution=execution)
    team = join(device, "auto")
    with tempfile.TemporaryDirectory() as path:
        return lifecycle.assemble(RunFolder(Path(path)), config, None, team, open_inputs(config, folder), Silent())


def first_loss(run: Run, precision: Precision) -> float:
    """The loss of the first batch, before the optimiser moves anything."""
    from weft.training.loop.loop import update
    from weft.training.run.distributed import scaling_for

    run.team.use(precision)
    for group in run.optimiser.param_groups:
        group["lr"] = 0.0
    loss, _, _ = update(run, run.train[0], 0, scaling_for(precision))
    return float(loss)
