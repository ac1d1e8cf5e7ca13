"""`weft data`: the sources there are, what a source holds, its augmentations on a sheet, the cache."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft import terminal
from weft.data.config import SourceConfig
from weft.disk import write_bytes
from weft.errors import WeftError
from weft.terminal import for_terminal, how_many

if TYPE_CHECKING:  # torch comes only with a source
    from weft.data.open.source import Source
    from weft.data.show.summary import Summary

SOURCES = {
    "digits": "1,797 images of 8 × 8, 10 classes (scikit-learn)",
    "breast_cancer": "569 vectors of 30 features, binary (scikit-learn)",
    "diabetes": "442 vectors of 10 features, regression (scikit-learn)",
    "pydocs": "docstrings of this Python's standard library, by package",
    "FOLDER of images": "a sub-folder a class, below train, val and test or not",
    "FILE or FOLDER .parquet": "Hugging Face layout; streamed when larger than memory",
    "FILE or FOLDER .csv .tsv .jsonl .txt": "text, text pairs, vectors",
    "FOLDER of IDX files": "as of MNIST, also .gz",
    "FILE or FOLDER .tar": "WebDataset shards; streamed when larger than memory",
    "hub:NAME[:CONFIGURATION]": "the Hugging Face Hub (pip install 'weft[hub]')",
}
FEW = 40  # classes that are listed one by one
BAD = 20  # bad rows that are listed one by one
STOPS, SKIPPED = ": a run stops at the first of them", ", left out"


COMMON = {
    "what": ("action", "source"),
    "how it is read": ("target", "inputs", "task", "on_bad", "val_fraction", "test_fraction"),
    "what is shown": ("output", "rows", "clear"),
}


@dataclass(frozen=True)
class Arguments:
    """Sources of data: list them, show what one holds, see its images augmented, look after the cache."""

    action: tyro.conf.Positional[Literal["list", "show", "augment", "cache"]] = "list"
    """list: the kinds of source; show: what SOURCE holds; augment: a sheet of SOURCE's images under each augmentation;
    cache: what the cache holds."""
    source: tyro.conf.Positional[str] = ""
    """Name of an embedded source (digits, pydocs, …), a path, or hub:NAME."""
    reading: Annotated[SourceConfig, tyro.conf.arg(name="")] = field(default_factory=SourceConfig)
    output: Path | None = None
    """File of the contact sheet; by default a PNG in this folder, named after the source. Where it is given, a page
    with pictures of sizes and classes is written as well (.html). No file but one that weft drew is overwritten."""
    rows: int = 5
    """Sample rows that `show` prints of text and vectors."""
    clear: bool = False
    """With `cache`: remove all entries."""


def run(arguments: Arguments) -> None:
    """Do what the first word asks."""
    if arguments.rows < 0:
        raise WeftError(f"--rows {arguments.rows}: give a number of rows, 0 for none")
    console = terminal.console()
    if arguments.action == "list":
        list_sources(console)
    elif arguments.action == "cache":
        show_cache(console, arguments.clear)
    else:
        if not arguments.source:
            raise WeftError(
                f"weft data {arguments.action} needs a source, for instance: {', '.join(list(SOURCES)[:4])}"
            )
        from weft.data import open_source

        try:
            source = open_source(arguments.source, arguments.reading)
            (show if arguments.action == "show" else augment)(console, source, arguments)
        except WeftError:
            if arguments.action == "show":
                show_refused(console, arguments)
            raise


def show_refused(console: Console, arguments: Arguments) -> None:
    """What a source that was refused holds beside its bad rows, and all of these, as far as it can be opened."""
    from weft.data.open.source import Opening
    from weft.data.sources.find import read

    asked = arguments.reading.on_bad
    with suppress(WeftError):
        config = replace(arguments.reading, on_bad="skip")
        opening = Opening(read(arguments.source, config), arguments.source, config)
        try:
            source = opening.source(opening.cut())
        except WeftError:  # too little is left without them
            print_bad(console, opening.ledger.found, STOPS if asked == "fail" else SKIPPED)
            return
        if source.bad and asked == "fail":  # else it was shown, and what was refused is something else
            show(console, source, arguments, f"{STOPS}; left out here")


def list_sources(console: Console) -> None:
    """Everything that `open_source` understands."""
    table = Table("source", "what it is", box=None, header_style="bold")
    for name, what in SOURCES.items():
        table.add_row(name, what)
    console.print(table)


def describe(console: Console, source: Source, of_bad: str) -> Summary:
    """Splits, counts, balance, sizes, duplicates, notes, bad rows; writes no file."""
    from weft.data.show.summary import summarize
    from weft.data.sources.table import Ledger

    summary = summarize(source)
    about = f": {source.modality}, {of_target(source)}, fingerprint {source.fingerprint}"
    console.print(Text.assemble((for_terminal(source.name), "bold"), about), soft_wrap=True)
    print_splits(console, summary)
    print_balance(console, source, summary)
    listed = Ledger("skip", source.bad).notes()  # as they are one by one below
    for note in [*summary.shared_notes(), *(note for note in source.notes if note not in listed), *summary.warnings]:
        console.print(f"• {note}", soft_wrap=True)
    print_bad(console, source.bad, of_bad)
    return summary


def show(console: Console, source: Source, arguments: Arguments, of_bad: str = SKIPPED) -> None:
    """All that is known of a source; then a contact sheet or sample rows. What is refused leaves only files that were
    asked for."""
    summary = describe(console, source, of_bad)
    if source.modality != "image":
        print_samples(console, source, arguments.rows)
    elif of_bad == SKIPPED or arguments.output is not None:
        from weft.data.show.contact_sheet import class_sheet, sheet_path

        path = sheet_path(_name(arguments.source), arguments.output)
        class_sheet(source, path)
        console.print(f"contact sheet: {path}", soft_wrap=True)
    if arguments.output is not None:
        page = write_page(source, summary, arguments.output)
        console.print(f"sizes and classes as pictures: {page}", soft_wrap=True)


def write_page(source: Source, summary: Summary, output: Path) -> Path:
    """The same as a page with pictures, beside the sheet; no file is overwritten but a page of weft's."""
    from weft.data.show.contact_sheet import mark_own
    from weft.report.source import SIGNED, render_source

    def is_free(path: Path) -> bool:
        return not os.path.lexists(path) or (path.is_file() and SIGNED.encode() in path.read_bytes()[:1000])

    base = output.with_suffix("")
    names = itertools.chain([base.name], (f"{base.name}-{number}" for number in itertools.count(2)))
    path = next(path for name in names if is_free(path := base.with_name(f"{name}.html")))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, render_source(as_page(source, summary)).encode("utf-8", "backslashreplace"))
    mark_own(source, path)
    return path


def as_page(source: Source, summary: Summary) -> dict[str, Any]:
    """What the page is drawn from."""
    balance = summary.splits["train"].balance if source.classes else {}
    return {
        "source": source.name,
        "about": f"{source.modality}, {of_target(source)}, fingerprint {source.fingerprint}",
        "splits": [{"name": name, **asdict(split)} for name, split in summary.splits.items()],
        "measures": [asdict(measure) for measure in summary.measures],
        "balance": {name: int(count) for name, count in balance.items()},
        "notes": [*summary.shared_notes(), *source.notes, *summary.warnings],
        "bad": source.bad,
    }


def of_target(source: Source) -> str:
    """What is to be predicted, in words."""
    return f"{len(source.classes)} classes" if source.classes else source.task


def print_splits(console: Console, summary: Summary) -> None:
    """A line a split."""
    pictures = any(split.picture for split in summary.splits.values())
    table = Table("split", "rows", "inputs", *(["distribution"] if pictures else []), "from", box=None)
    table.header_style = "bold"
    for name, split in summary.splits.items():
        picture = [split.picture] if pictures else []
        table.add_row(name, f"{split.rows:,}", split.sizes, *picture, split.origin)
    console.print(table)


def print_bad(console: Console, bad: list[tuple[str, str]], said: str) -> None:
    """The bad rows, one by one; of many the first, and the others counted by what is wrong with them."""
    if not bad:
        return
    console.print(f"{how_many(len(bad), 'bad row')}{said}", style="yellow", soft_wrap=True)
    for place, why in bad[:BAD]:
        console.print(f"  {place}: {why}", soft_wrap=True)
    for why, count in Counter(why for _, why in bad[BAD:]).most_common(BAD):
        console.print(f"  and {count:,} more: {why}", soft_wrap=True)


def print_balance(console: Console, source: Source, summary: Summary) -> None:
    """Rows of each class in each split; of many classes, only the rarest and the commonest."""
    splits = {name: split.balance for name, split in summary.splits.items() if split.balance}
    if not splits:
        return
    words = list(splits["train"])
    if len(words) > FEW:
        words = sorted(words, key=splits["train"].__getitem__)
        words = [*words[:3], *words[-3:]]
    table = Table("class" if source.classes else "target", *splits, box=None, header_style="bold")
    for word in words:
        table.add_row(word, *(f"{balance[word]:,.6g}" for balance in splits.values()))
    console.print(table)


def print_samples(console: Console, source: Source, rows: int) -> None:
    """Some training rows with their targets."""
    from weft.data.show.summary import samples, target_name

    for raw, target in samples(source, "train", rows):
        text = (
            raw
            if isinstance(raw, str)
            else " ‖ ".join(f"{part:.4g}" if source.modality == "vector" else part for part in raw)
        )
        name = target_name(source, target)
        line = (f"[{name}] " if name else "") + " ".join(text.split())
        console.print(line if len(line) <= 160 else line[:159] + "…", soft_wrap=True)


def augment(console: Console, source: Source, arguments: Arguments) -> None:
    """The same images under each augmentation."""
    from weft.data.show.contact_sheet import augment_sheet, sheet_path

    path = sheet_path(_name(arguments.source) + "-augment", arguments.output)
    augment_sheet(source, path, arguments.reading.split_seed)
    console.print(f"augmentation sheet: {path}", soft_wrap=True)


def show_cache(console: Console, clear: bool) -> None:
    """Entries with size and age; or remove them."""
    from weft.data.read.cache import Cache

    cache = Cache()
    if clear:
        console.print(f"removed {cache.clear() / 1e6:,.1f} MB from {cache.folder}", soft_wrap=True)
        return
    table = Table("MB", "last used", "entry", box=None, header_style="bold")
    for entry in cache.entries():
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        table.add_row(f"{entry.size / 1e6:,.1f}", used, entry.about)
    console.print(table)
    total = sum(entry.size for entry in cache.entries())
    console.print(f"{total / 1e6:,.1f} MB of {cache.limit / 1e6:,.0f} in {cache.folder}", soft_wrap=True)


def _name(source: str) -> str:
    """What files about a source are called."""
    return Path(source.replace(":", "-")).name or Path(source).resolve().name or "source"
