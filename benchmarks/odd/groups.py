"""All groups, in the order in which they are told."""

from __future__ import annotations

import sys
from pathlib import Path

from odd import archives, arguments, delimited, environments, folders, jsonl, parquet, pictures, studies, targets
from odd.case import Case

FUZZ = Path(__file__).with_name("fuzz.py")
STORAGE = {"HYPOTHESIS_STORAGE_DIRECTORY": "{root}/tmp/hypothesis"}  # else it leaves a folder where it is started
FORMS = ("csv_tables", "csv_bytes", "tsv_tables", "jsonl_objects", "jsonl_bytes", "txt_bytes")
GROUPS: dict[str, tuple[Case, ...]] = {
    "delimited": delimited.CASES,
    "jsonl": jsonl.CASES,
    "parquet": parquet.CASES,
    "pictures": pictures.CASES,
    "archives": archives.CASES,
    "targets": targets.CASES,
    "arguments": arguments.CASES,
    "environments": environments.CASES,
    "folders": folders.CASES,
    "studies": studies.CASES,
    "fuzz": tuple(
        Case(form, {}, f"{sys.executable} {FUZZ} {form}", {0: ""}, env=STORAGE, seconds=600) for form in FORMS
    ),
}
