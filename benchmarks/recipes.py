"""The runs behind the recipes: keep them as evidence, and draw the page of results.

    python benchmarks/recipes.py record cifar10/mixer RUN … --note "what mattered"
    python benchmarks/recipes.py draw            # docs/results/recipes.md and its charts, from what is kept

A RUN is the folder of a finished run of that recipe, one a seed: `weft train SOURCE --recipe NAME --seed N`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from weft.errors import WeftError
from weft.report.curves import curves
from weft.report.standalone import standalone
from weft.training.recipes import find, recipe
from weft.training.recipes.evidence import Evidence, evidence_of, write_evidence
from weft.training.storage.record import read_record

RESULTS = Path(__file__).parent.parent / "docs" / "results"
HEAD = """# What the recipes reach

`weft train SOURCE --recipe NAME --seed N`, judged once on the split named, which no choice was made on. Drawn by
`python benchmarks/recipes.py draw` from the runs that are kept with the recipes; `weft recipes check NAME` repeats one.
Times are those of the training loop and its evaluations, in processor time of one core.

| recipe | network, parameters | split | figure | seeds | epochs | core time | processor |
|---|---|---|---|---|---|---|---|"""


def record(name: str, folders: list[Path], note: str) -> None:
    """Keep the runs, which must be of this recipe."""
    asked = recipe(name)
    found = [read_record(folder / "record.json") for folder in folders]
    for folder, content in zip(folders, found, strict=True):
        if content["status"] != "finished" or content["config"]["model"] != asked.model:
            raise WeftError(f"{folder} holds no finished run of {asked.model}; train it with --recipe {name}")
    print(write_evidence(name, found, note).figure())


def draw() -> None:
    """The page and a chart for each recipe that has evidence."""
    known = {name: found for name in find() if (found := evidence_of(name)) is not None}
    lines = [HEAD, *(row(name, found) for name, found in known.items())]
    for name, found in known.items():
        file = f"recipe-{name.replace('/', '-')}.svg"
        (RESULTS / file).write_text(standalone(chart(found)))
        lines += ["", f"## {name}", "", found.note, "", f"![Validation scores of {name} over its epochs]({file})"]
    (RESULTS / "recipes.md").write_text("\n".join(lines) + "\n")


def row(name: str, found: Evidence) -> str:
    """The line of a recipe."""
    first, model = found.runs[0], recipe(name).model
    scores = ", ".join(f"{100 * score:.2f}" for score in found.scores)
    cells = [f"`{name}`", f"{model}, {first.parameters:,}", found.split, found.figure(), scores]
    return f"| {' | '.join(cells)} | {first.epochs:.3g} | {found.core_time()} | {first.processor} |"


def chart(found: Evidence) -> str:
    """Scores on validation, a line a seed."""
    each = {run.seed: run.steps / run.epochs for run in found.runs}
    series = {
        f"seed {run.seed}": ([step / each[run.seed] for step, _ in run.curve], [value for _, value in run.curve])
        for run in found.runs
    }
    return curves(series, ("epoch", f"{found.metric} on validation"), f"{found.recipe}: {found.figure()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "draw"))
    parser.add_argument("name", nargs="?")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--note", default="")
    asked = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if asked.what == "record":
        record(asked.name, asked.runs, asked.note)
    draw()


if __name__ == "__main__":
    main()
