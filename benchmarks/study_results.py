"""The published tables as studies have measured them, kept in docs/results: records first, pages drawn from them.

python benchmarks/study_results.py keep e2 studies/e2-cpu     # docs/results/e2.json: the records of a study's folder
python benchmarks/study_results.py draw                       # docs/results/NAME.md of every record there is
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from weft.studies.experiments.speed_tables.measure_row import MeasuredRow
from weft.studies.experiments.speed_tables.speed_drawing import markdown, summary_of

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def records_of(folder: Path) -> dict[str, Any]:
    """What a study's folder holds: the study, and a record a row."""
    rows = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "rows").glob("*.json"))}
    return {"study": json.loads((folder / "study.json").read_text()), "rows": rows}


def page(record: dict[str, Any]) -> str:
    """The page of a record."""
    rows = TypeAdapter(dict[str, MeasuredRow]).validate_python(record["rows"])
    return markdown(summary_of(record["study"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("keep", "draw"))
    parser.add_argument("name", nargs="?", choices=("e2",))
    parser.add_argument("folder", nargs="?", type=Path)
    arguments = parser.parse_args()
    if arguments.action == "keep":
        RESULTS.mkdir(exist_ok=True)
        text = json.dumps(records_of(arguments.folder), indent=1, ensure_ascii=False)
        (RESULTS / f"{arguments.name}.json").write_text(text + "\n")
        return
    for path in (RESULTS / "e2.json",):
        if path.exists():
            path.with_suffix(".md").write_text(page(json.loads(path.read_text())))
            print(path.with_suffix(".md"))


if __name__ == "__main__":
    main()
