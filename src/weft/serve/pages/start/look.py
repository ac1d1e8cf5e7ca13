"""A look at a source in a process of its own: `python -P -m weft.serve.pages.start.look PARENT SOURCE FOLDER`.

Writes look.json into the folder, and sheet.png where the source holds pictures. Whatever the source does to the
process, the server lives on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from weft import machine
from weft.disk import brief, write_json
from weft.errors import WeftError

FILE, SHEET = "look.json", "sheet.png"
SAMPLES, LETTERS, BAD, CLASSES = 6, 300, 20, 200


def main(parent: int, source: str, folder: Path) -> None:
    """Look, and write down what was seen or why nothing was."""
    machine.ends_with_parent(machine.KILL, parent)
    try:
        found = looked_at(source, folder)
    except WeftError as error:
        found = {"error": brief(error)}
    except MemoryError:
        found = {"error": "there is not enough memory to look at it"}
    write_json(folder / FILE, found)


def looked_at(name: str, folder: Path) -> dict[str, Any]:
    """What a source holds, as `weft data show` says it."""
    from weft.data import open_source
    from weft.data.config import SourceConfig
    from weft.data.show.summary import summarize

    source = open_source(name, SourceConfig(on_bad="skip"))
    summary = summarize(source)
    if source.modality == "image":
        from weft.data.show.contact_sheet import class_sheet

        class_sheet(source, folder / SHEET)
    return {
        "modality": source.modality,
        "task": source.task,
        "classes": source.classes[:CLASSES],
        "class_count": len(source.classes),
        "fingerprint": source.fingerprint,
        "splits": {name: vars(split) for name, split in summary.splits.items()},
        "notes": [*source.notes, *summary.shared_notes()],
        "warnings": summary.warnings,
        "bad": [f"{place}: {why}" for place, why in source.bad[:BAD]],
        "bad_count": len(source.bad),
        "samples": samples_of(source),
    }


def samples_of(source: Any) -> list[dict[str, str]]:
    """Some rows with their targets; pictures have their sheet."""
    from weft.data.show.summary import samples, target_name

    if source.modality == "image":
        return []
    found = []
    for raw, target in samples(source, "train", SAMPLES):
        parts = [raw] if isinstance(raw, str) else [f"{x:.4g}" if source.modality == "vector" else str(x) for x in raw]
        found.append({"text": " ‖ ".join(parts)[:LETTERS], "target": target_name(source, target)})
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
