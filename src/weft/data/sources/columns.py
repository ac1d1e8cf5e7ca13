"""Which columns of a table are the input and which is the target: guessed only when that is unambiguous."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from weft.data.config import Modality, SourceConfig
from weft.errors import WeftError, nearest

TARGETS = ("label", "labels", "target", "class")
TEXTS = ("text", "sentence", "content", "review", "document", "body")
FEW, TIMES = 100, 5  # different words that are classes, at most, and rows of each that there must be
GROUPS = ("group", "group_id", "title", "document_id", "patient_id")
PAIRS = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"), ("question", "sentence"),
    ("text_a", "text_b"), ("text1", "text2"), ("query", "passage"),
)  # fmt: skip


STATED = b"weft"  # metadata of a schema that states what is input and what is target
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)


@dataclass(frozen=True)
class Columns:
    """The meaning of a table's columns."""

    modality: Modality
    inputs: tuple[str, ...]
    target: str | None
    names: list[str] | None = None  # class names, where the file states them
    group: str | None = None
    notes: tuple[str, ...] = ()
    rows: bool = False  # whether the one input holds a whole row of numbers, whose features have no names
    spare: tuple[str, ...] = ()  # columns of words or numbers that are used for nothing

    @property
    def features(self) -> list[str]:
        """Names of what a network takes, where they have names."""
        return [] if self.rows else list(self.inputs)

    @property
    def wanted(self) -> list[str]:
        extra = [name for name in (self.target, self.group) if name is not None]
        return [*self.inputs, *extra]


Variety = Callable[[str], tuple[int, int]]  # of a column: different values, and values


def variety(column: pa.ChunkedArray) -> tuple[int, int]:
    """Different values, and values, of a column."""
    found = column.drop_null()
    return len(found.unique()), len(found)


def columns_of(schema: pa.Schema, config: SourceConfig, where: str, values: Variety) -> Columns:
    """Read the meaning off names, types and the metadata that `datasets` writes, and off `values` where these do not
    tell what is to be predicted; `config` has the last word."""
    name, count = Counter(schema.names).most_common(1)[0] if schema.names else ("", 0)
    if count != 1:
        fault = (
            f"{count} columns called {name!r}; give each a name of its own"
            if count
            else "no columns; give a file with an input and a target"
        )
        raise WeftError(f"{where} has {fault}")
    config = with_statement(schema, config)
    kinds = {field.name: _kind(field.type) for field in schema}
    for wish in [config.target, config.group, *(config.inputs or ())]:
        if wish is not None and wish not in kinds:
            meant = nearest(wish, kinds)
            raise WeftError(
                f"{where} has no column {wish!r}; {f'{meant} It' if meant else 'it'} has {', '.join(kinds)}"
            )
    names, notes = class_names(schema)
    target = None if config.task == "none" else config.target or _guess_target(kinds, names, where)
    if target is None and config.task != "none" and (found := _few_words(kinds, config, values)):
        target, count = found
        notes.append(f"the column {target!r}, which has {count} different words, is taken for the target (--target)")
    if target is not None and kinds[target] not in {"text", "number"}:
        raise WeftError(
            f"{where}: the column {target!r} holds {_said(schema.field(target).type)}, which is no label; "
            "choose another with --target, or use --task none"
        )
    taken = {target, *(config.inputs or ())}
    group = config.group or next((name for name in GROUPS if name in kinds and name not in taken), None)
    free = {name: kind for name, kind in kinds.items() if name not in {target, group}}
    modality, inputs = _guess_inputs(free, config.inputs, where)
    if modality == "vector" and target is None and config.task != "none":
        if STATED in (schema.metadata or {}):
            raise WeftError("rows of numbers without labels: give y, one label a row, or task='none'")
        raise WeftError(f"{where}: which column is to be predicted? Choose with --target: {', '.join(kinds)}")
    rows = modality == "vector" and len(inputs) == 1 and kinds[inputs[0]] == "list"
    used = {target, group, *inputs}
    spare = tuple(name for name, kind in kinds.items() if kind in {"text", "number"} and name not in used)
    return Columns(modality, inputs, target, names.get(target or ""), group, tuple(notes), rows, spare)


def with_statement(schema: pa.Schema, config: SourceConfig) -> SourceConfig:
    """The configuration, with what the schema states of input and target where it leaves them open."""
    try:
        told = json.loads((schema.metadata or {}).get(STATED, b"{}"))
        inputs, target = told.get("inputs"), told.get("target")
    except (ValueError, AttributeError, RecursionError):
        return config
    if config.inputs is None and isinstance(inputs, list) and all(name in schema.names for name in inputs):
        config = replace(config, inputs=tuple(inputs))
    if config.target is None and isinstance(target, str) and target in schema.names:
        config = replace(config, target=target)
    return config


def class_names(schema: pa.Schema) -> tuple[dict[str, list[str]], list[str]]:
    """Column -> class names, from the Hugging Face metadata of a schema, and a note where they cannot be read."""
    stored = (schema.metadata or {}).get(b"huggingface")
    found = {}
    try:
        features = json.loads(stored).get("info", {}).get("features", {}) if stored else {}
        for column, feature in features.items():
            names = feature.get("names") if isinstance(feature, dict) else None
            if isinstance(names, dict):  # {"0": "cat", "1": "dog"}
                names = [names[key] for key in sorted(names, key=int)]
            if isinstance(names, list) and names and column in schema.names:
                found[column] = [str(name) for name in names]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}, ["the Hugging Face metadata is damaged, so that labels are known by their numbers alone"]
    return found, []


def _said(kind: pa.DataType) -> str:
    """An Arrow type in words."""
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return "records of several values"
    if pa.types.is_null(kind):
        return "nothing, or neither words nor numbers"
    if _kind(kind) in {"list", "image"}:
        return "lists" if _kind(kind) == "list" else "bytes"
    return f"values of the type {kind}"


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):  # pandas' categories
        return _kind(kind.value_type)
    if pa.types.is_struct(kind) and any(field.name == "bytes" for field in kind):
        return "image"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "image"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if any(is_kind(kind) for is_kind in _NUMBERS):
        return "number"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list" if _kind(kind.value_type) == "number" else "other"
    return "other"


def _guess_target(kinds: dict[str, str], names: dict[str, list[str]], where: str) -> str | None:
    """A column named as targets are, else `y`, else the only one with class names, else the only number beside text."""
    called = [name for name in kinds if name.lower() in TARGETS] or [name for name in kinds if name == "y"]
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    beside = numbers if len(numbers) < len(kinds) else []
    for candidates in (called, list(names), beside):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise WeftError(f"{where}: which column is to be predicted? Choose with --target: {', '.join(candidates)}")
    return None


def _few_words(kinds: dict[str, str], config: SourceConfig, values: Variety) -> tuple[str, int] | None:
    """The one column of words that repeat, beside an image or a text that does not, and how many different ones."""
    if config.inputs is not None or set(kinds.values()) - {"text", "image"}:
        return None
    words = [name for name, kind in kinds.items() if kind == "text" and name.lower() not in {*GROUPS, *TEXTS}]
    if any({*pair} <= {*kinds} for pair in PAIRS):
        return None
    found = {name: values(name) for name in words}
    few = [name for name, (distinct, rows) in found.items() if 2 <= distinct <= FEW and distinct * TIMES <= rows]
    return (few[0], found[few[0]][0]) if len(few) == 1 and len(kinds) == 2 else None


def _guess_inputs(kinds: dict[str, str], wish: tuple[str, ...] | None, where: str) -> tuple[Modality, tuple[str, ...]]:
    of_kind = {kind: [name for name in wish or kinds if kinds.get(name) == kind] for kind in set(kinds.values())}
    if len(images := of_kind.get("image", [])) == 1:
        return "image", (images[0],)
    if texts := _guess_texts(of_kind.get("text", []), wish):
        return ("pair" if len(texts) == 2 else "text"), texts
    numbers = of_kind.get("number", []) or of_kind.get("list", [])
    if numbers and not of_kind.get("text"):
        return "vector", tuple(numbers)
    raise WeftError(
        f"{where}: which columns are the input? Choose with --inputs: {', '.join(kinds)} (and what is to be predicted "
        "with --target)"
    )


def _guess_texts(texts: list[str], wish: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if wish and len(texts) in {1, 2}:
        return tuple(texts)
    for pair in PAIRS:
        if set(pair) <= set(texts):
            return pair
    if len(texts) == 1:
        return (texts[0],)
    called = [name for name in texts if name.lower() in TEXTS]
    return (called[0],) if len(called) == 1 else None
