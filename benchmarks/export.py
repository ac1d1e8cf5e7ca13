"""Exported networks against torch: the difference of outputs for every name, speed at batch 1, the loss of int8.

    python benchmarks/export.py parity [PATTERN]      every registered name, its depth cut to two blocks a stage
    python benchmarks/export.py speed                 ViT, Mixer, gMLP and ResNet at 32 px, one input at a time
    python benchmarks/export.py int8                  small runs on the digits, trained here, their test accuracy
    python benchmarks/export.py all [PATTERN]         speed, int8, parity, and a table at the end

Speed wants a machine that does nothing else. Results go to standard output, a line of JSON each. Wanted: outputs within
1e-4 (of the largest, where that is above 1), one input at least 1.3 times as fast as torch, and the loss of int8 told.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import weft
from weft.export.graph import onnx_graph
from weft.export.onnx_export import export_onnx
from weft.export.parity import difference, speed, trials
from weft.export.quantisation import int8
from weft.networks.base.network import Network
from weft.networks.registry import REGISTRY, list_models
from weft.training.inference.onnx_file import OnnxNetwork

FAST = ("vit_nano_p4_32", "mixer_nano_p4_32", "gmlp_nano_p4_32", "resnet20_cifar", "resnet18_cifar")
TRAINED: dict[str, dict[str, Any]] = {
    "vit_pico_p4_32": {"patch_size": 2},
    "mixer_pico_p4_32": {"patch_size": 2},
    "gmlp_pico_p4_32": {"patch_size": 2},
    "resnet20_cifar": {},
}
ROUNDS = 200
WITHIN, FASTER = 1e-4, 1.3
LARGE = 100_000_000  # parameters above which a name is left out, and told so


Verdict = tuple[bool, str]  # whether what is wanted was met, and what was measured


def main(what: str = "", pattern: str = "*") -> None:
    torch.manual_seed(0)
    parts = {"speed": speeds, "int8": losses, "parity": lambda: parity(pattern)}
    found = {name: parts[name]() for name in (parts if what == "all" else (what,))}
    for name, (met, said) in found.items():
        print(f"{name:<7} {'met' if met else 'NOT MET':<8} {said}")
    sys.exit(not all(met for met, _ in found.values()))


def print_facts(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def parity(pattern: str) -> Verdict:
    """The largest difference for each name, with weights away from their special start."""
    worst, compared, left = 0.0, 0, []
    for name in list_models(pattern):
        with torch.device("meta"):  # nothing is allocated to find out that it is too large
            size = sum(value.numel() for value in weft.create_model(name, **cut(name)).parameters())
        if size > LARGE:
            left.append(name)
            print_facts(name=name, left_out="too large for this machine's memory")
            continue
        network = shaken(weft.create_model(name, **cut(name)))
        off, largest = difference(network, graph_of(network), trials(network.config))
        worst, compared = max(worst, off / max(1.0, largest)), compared + 1
        print_facts(name=name, difference=off, largest=largest)
    return (
        worst <= WITHIN,
        f"{compared} networks within {worst:.1e}; too large and left out: {', '.join(left) or 'none'}",
    )


def cut(name: str) -> dict[str, Any]:
    """Two blocks in all, or one a stage: what is repeated has been seen."""
    config: Any = REGISTRY[name]
    if hasattr(config, "depth"):
        return {"depth": min(2, config.depth)}
    return {"layers": tuple(1 for _ in config.layers)} if hasattr(config, "layers") else {}


def shaken(network: Network) -> Network:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)
    return network.eval()


def graph_of(network: Network, eight_bits: bool = False) -> OnnxNetwork:
    model = onnx_graph(network)
    content = (int8(model) if eight_bits else model).SerializeToString()
    return OnnxNetwork(network.config, content, Path(f"{network.config.family}.onnx"))


def speeds() -> Verdict:
    """Pairs of one input each, torch and the graph in turn; the ratio is the median of the pairs' ratios."""
    ratios: dict[str, list[str]] = {}
    least = float("inf")
    for threads in dict.fromkeys((1, torch.get_num_threads())):
        torch.set_num_threads(threads)
        for name in FAST:
            network = shaken(weft.create_model(name))
            for eight_bits in (False, True):
                found = speed(network, graph_of(network, eight_bits), network.config, ROUNDS)
                print_facts(name=name, int8=eight_bits, **dataclasses.asdict(found))
                if not eight_bits:
                    least = min(least, found.ratio)
                    ratios.setdefault(name, []).append(f"{found.ratio:.2f}")
    threads_used = " and ".join(str(count) for count in dict.fromkeys((1, torch.get_num_threads())))
    said = ", ".join(f"{name} {' and '.join(each)}" for name, each in ratios.items())
    return least >= FASTER, f"{said} × torch ({threads_used} threads)"


def losses() -> Verdict:
    """Runs of a few hundred steps, exported with weights of eight bits."""
    lost = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, network in TRAINED.items():
            path = Path(folder) / name
            weft.train("digits", model=name, network=network, steps=400, output=path)
            found = export_onnx(path, path / "model-int8.onnx", eight_bits=True)
            assert found.loss is not None
            print_facts(name=name, bytes=found.size, speed=found.speed.ratio, **dataclasses.asdict(found.loss))
            lost[name] = f"{100 * found.loss.before:.2f} → {100 * found.loss.after:.2f} %"
    return len(lost) == len(TRAINED), ", ".join(f"{name} {said}" for name, said in lost.items())


if __name__ == "__main__":
    main(*sys.argv[1:])
