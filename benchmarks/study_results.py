"""The published tables as studies have measured them, kept in docs/results: records first, pages drawn from them.

    python benchmarks/study_results.py keep e2 studies/e2-cpu     # docs/results/e2.json: what a study's folder holds
    python benchmarks/study_results.py draw                       # docs/results/NAME.md of every record there is

Of e2 the record has every timing; of e3 and e8 what the records of their runs come to, without the answers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from weft.studies.experiments.speed_tables import speed_drawing
from weft.studies.experiments.speed_tables.measure_row import MeasuredRow
from weft.studies.experiments.transfer_tables import transfer_drawing

RESULTS = Path(__file__).parent.parent / "docs" / "results"
STUDIES = ("e2", "e3", "e8")


def record_of(name: str, folder: Path) -> dict[str, Any]:
    """What is kept of a study's folder."""
    if name != "e2":
        return transfer_drawing.summarise_transfer(folder)
    rows = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "rows").glob("*.json"))}
    return {"study": json.loads((folder / "study.json").read_text()), "rows": rows}


def page(name: str, record: dict[str, Any]) -> str:
    """The page of a record."""
    if name != "e2":
        return transfer_drawing.markdown(record)
    rows = TypeAdapter(dict[str, MeasuredRow]).validate_python(record["rows"])
    return speed_drawing.markdown(speed_drawing.summary_of(record["study"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("keep", "draw"))
    parser.add_argument("name", nargs="?", choices=STUDIES)
    parser.add_argument("folder", nargs="?", type=Path)
    asked = parser.parse_args()
    if asked.action == "keep":
        if asked.folder is None:
            parser.error("say which study, and its folder: keep e2 studies/e2-cpu")
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(record_of(asked.name, asked.folder), indent=1, ensure_ascii=False)
        (RESULTS / f"{asked.name}.json").write_text(text + "\n")
        return
    for path in (RESULTS / f"{name}.json" for name in STUDIES):
        if path.exists():
            path.with_suffix(".md").write_text(page(path.stem, json.loads(path.read_text())))
            print(path.with_suffix(".md"))


if __name__ == "__main__":
    main()
