"""Masked-language modelling against Hugging Face: the same BERT-mini, batch, length and vocabulary, tokens a second.

    python benchmarks/pretraining.py [--threads 2] [--rounds 7] [--steps 2] [--batch 32] [--length 128]

Hugging Face is `BertForMaskedLM` with torch's fused AdamW and clipping, on batches that are ready; weft is the step of
`weft pretrain`, the making of its batches included. Both have dropout of 0.1 after each branch and none on attention
(weft has none there); `its dropout` is Hugging Face's default, 0.1 on attention too. weft keeps freed memory in the
process; `memory kept` lends that to Hugging Face, so that what is left is due to the computation.
Parameters are checked to be equal in number. Every contestant has a process of its own and they take turns; a ratio is
the median over rounds of the other's time over weft's. Peak memory is that of each process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft import machine
from weft.data.corpus.config import TokenizingConfig
from weft.data.transform.tokenizer import MARKERS
from weft.training.config import ExecutionConfig, OptimisationConfig
from weft.training.loop.display import Silent
from weft.training.loop.loop import update
from weft.training.loop.progress import Progress
from weft.training.pretraining.config import PretrainConfig
from weft.training.run.context import Run
from weft.training.run.distributed import SingleProcess
from weft.training.run.inputs import open_inputs
from weft.training.run.lifecycle import assemble
from weft.training.storage.run_folder import RunFolder

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import import_transformers

VOCABULARY = 30522
CONTESTANTS = ("transformers", "transformers, its dropout", "transformers, memory kept", "weft")


def corpus(folder: Path) -> tuple[Path, Path]:
    """A text whose words are as frequent as Zipf has them, and its vocabulary of one entry a word."""
    words = [*MARKERS, *(f"w{number}" for number in range(VOCABULARY - len(MARKERS)))]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(words) + "\n")
    draws = np.random.default_rng(0).zipf(1.2, size=600_000) % (VOCABULARY - len(MARKERS))
    text = folder / "corpus.txt"
    text.write_text("\n\n".join(" ".join(f"w{n}" for n in draws[at : at + 300]) for at in range(0, len(draws), 300)))
    return text, vocabulary


def configuration(folder: Path, arguments: argparse.Namespace) -> PretrainConfig:
    """What `weft pretrain` would be asked. A pooler is of no use here, and Hugging Face's network has none."""
    text, vocabulary = corpus(folder)
    return PretrainConfig(
        source=str(text),
        model="bert_mini",
        network={"pooler": False},
        transform=TokenizingConfig(tokenizer=str(vocabulary), max_length=arguments.length),
        optimisation=OptimisationConfig(batch_size=arguments.batch, lr=1e-4),
        execution=ExecutionConfig(threads=arguments.threads),
    )


def weft_run(arguments: argparse.Namespace, folder: Path) -> Run:
    """What `weft pretrain` works with at step 0."""
    config = configuration(folder, arguments)
    (folder / "run").mkdir()
    return assemble(RunFolder(folder / "run"), config, None, SingleProcess(), open_inputs(config), Silent())


def huggingface(arguments: argparse.Namespace, attention_dropout: float) -> nn.Module:
    """BERT-mini as `transformers` has it, without the pooler, which masked words do not use."""
    transformers = import_transformers()
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=arguments.length,
        attention_probs_dropout_prob=attention_dropout,
    )
    torch.manual_seed(0)
    network: nn.Module = transformers.BertForMaskedLM(config)
    return network


def plain_step(net: nn.Module, optimiser: torch.optim.Optimizer, ids: Tensor, labels: Tensor) -> None:
    """The step of a plain loop, with clipping as weft has by default."""
    net.train()
    loss = net(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimiser.step()


def contestant(name: str, arguments: argparse.Namespace, folder: Path) -> tuple[Callable[[], Any], int]:
    """What a contestant does in one step, and its number of parameters."""
    if name == "weft":
        run, progress = weft_run(arguments, folder), Progress()
        ours = run.train.range(0, 10**9)
        return (lambda: update(run, next(ours), 0, progress.scaling)), sum(p.numel() for p in run.core.parameters())
    batches = open_inputs(configuration(folder, arguments)).batches("train")
    ready = [batches[step].inputs for step in range(8)]
    pairs = [(part["x"], part["answers"].masked_fill(part["answers"] < 0, -100)) for part in ready]
    if "memory kept" in name:
        machine.keep_freed_memory()
    net = huggingface(arguments, 0.1 if "its dropout" in name else 0.0)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    turn = iter(range(10**9))
    return (lambda: plain_step(net, optimiser, *pairs[next(turn) % len(pairs)])), sum(
        p.numel() for p in net.parameters()
    )


def play(connection: Connection, name: str, arguments: argparse.Namespace) -> None:
    """A contestant's process: on each number of steps answers seconds a step and its peak memory in MB."""
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        step, parameters = contestant(name, arguments, Path(folder))
        torch.set_num_threads(arguments.threads)
        step()
        connection.send(parameters)
        while steps := connection.recv():
            started = time.perf_counter()
            for _ in range(steps):
                step()
            taken = (time.perf_counter() - started) / steps
            connection.send((taken, machine.memory_peak() / 2**20))


def contest(arguments: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    """What each contestant answered in each round."""
    context = multiprocessing.get_context("spawn")
    lines: dict[str, Connection] = {}
    parameters: dict[str, int] = {}
    for name in CONTESTANTS:
        lines[name], theirs = context.Pipe()
        context.Process(target=play, args=(theirs, name, arguments), daemon=True).start()
        theirs.close()  # so that a contestant that fails is not waited for
        parameters[name] = lines[name].recv()
    assert len(set(parameters.values())) == 1, parameters
    print(f"{parameters['weft']:,} parameters each, batch {arguments.batch}, length {arguments.length}")
    answers: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTESTANTS}
    for _ in range(arguments.rounds):
        for name, line in lines.items():
            line.send(arguments.steps)
            answers[name].append(line.recv())
    for line in lines.values():
        line.send(0)
    return answers


def main() -> None:
    """Play, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag, value in {"threads": 2, "rounds": 7, "steps": 2, "batch": 32, "length": 128}.items():
        parser.add_argument(f"--{flag}", type=int, default=value)
    arguments = parser.parse_args()
    answers = contest(arguments)
    tokens = arguments.batch * arguments.length
    print("\n| step of | ms | tokens/s | weft's speed over it | peak memory, MB |\n|---|---|---|---|---|")
    for name, found in answers.items():
        median = statistics.median(taken for taken, _ in found)
        ratio = statistics.median(a / b for (a, _), (b, _) in zip(found, answers["weft"], strict=True))
        print(f"| {name} | {1000 * median:.0f} | {tokens / median:,.0f} | {ratio:.2f} | {found[-1][1]:,.0f} |")


if __name__ == "__main__":
    main()
