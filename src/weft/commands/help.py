"""The help of a verb, drawn from its dataclass of arguments: the options that people use, or every one.

A verb names the former in `COMMON`, a dictionary from a heading to names of fields; one without it shows everything.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tyro.conf import Positional, Suppress

WIDTH = 80
COLUMN = 26  # where the explanations begin
UNITS: dict[Any, str] = {int: "N", float: "X", str: "TEXT", Path: "PATH"}
METAVARS = {  # by the name of a field: one name is one thing in every verb
    "model": "NAME",
    "models": "NAME,NAME",
    "recipe": "NAME",
    "time": "TIME",
    "pretrain_time": "TIME",
    "amount": "AMOUNT",
    "target": "COLUMN",
    "inputs": "COLUMN …",
    "group": "COLUMN",
    "column": "COLUMN",
    "resume": "RUN",
    "runs": "RUN RUN",
    "source": "SOURCE",
    "tasks": "SOURCE …",
    "encoder": "FOLDER",
    "split": "SPLIT",
    "test_split": "SPLIT",
    "storage": "ADDRESS",
    "space": "NAME,NAME",
    "host": "ADDRESS",
    "folders": "FOLDER",
}


@dataclasses.dataclass(frozen=True)
class Option:
    """A flag or a positional word of a verb."""

    path: tuple[str, ...]  # of fields, from the arguments down
    section: str
    kind: Any  # its type, without annotations
    metadata: tuple[Any, ...]
    owner: type  # the dataclass that it is a field of

    @property
    def field(self) -> str:
        return self.path[-1]

    @property
    def text(self) -> str:
        """What it is for; read from the source, and so not before it is shown."""
        return docstrings(self.owner).get(self.field, "")

    @property
    def positional(self) -> bool:
        return Positional in self.metadata or bool(choices(self.kind))

    @property
    def word(self) -> str:
        """As it is typed: --img-size, or SOURCE where its place alone tells what it is."""
        if self.positional:
            return self.field.upper() if choices(self.kind) or "|" not in self.metavar else self.metavar
        name = next((name for meta in self.metadata if (name := getattr(meta, "name", None))), self.field)
        return "--" + str(name).replace("_", "-")

    @property
    def switch(self) -> bool:
        return set(members(self.kind)) == {bool}

    @property
    def undecided(self) -> bool:
        """Whether it is a switch with a third state, for which the default stands."""
        return self.switch and self.kind is not bool

    @property
    def metavar(self) -> str:
        named = next((name for meta in self.metadata if (name := getattr(meta, "metavar", None))), None)
        return str(named or METAVARS.get(self.field) or value_of(self.kind))

    @property
    def shown(self) -> str:
        """The word with what follows it."""
        if self.positional:
            return self.word
        if self.switch:
            return f"{self.word}, --no-{self.word[2:]}"
        return f"{self.word} {self.metavar}"


def members(kind: Any) -> tuple[Any, ...]:
    """The types of a union but for None; any other type alone."""
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    return tuple(member for member in get_args(kind) if member is not NoneType)


def choices(kind: Any) -> dict[str, tuple[Any, str]]:
    """Of a union of dataclasses, of which a word chooses one: word -> the class and what it is for."""
    found = {}
    for member in members(kind):
        bare, metadata = stripped(member)
        if dataclasses.is_dataclass(bare) and metadata:
            found[metadata[0].name] = (bare, metadata[0].description)
    return found


def stripped(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its annotations, and these."""
    return (get_args(kind)[0], kind.__metadata__) if get_origin(kind) is Annotated else (kind, ())


def value_of(kind: Any) -> str:
    """What stands for a value: N, X, PATH, or the words to choose from."""
    kind, metadata = stripped(kind)
    if named := next((name for meta in metadata if (name := getattr(meta, "metavar", None))), None):
        return str(named)
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        first, *rest = get_args(kind)
        return f"{value_of(first)} …" if rest == [...] else " ".join(map(value_of, get_args(kind)))
    found = members(kind)
    return "|".join(map(value_of, found)) if len(found) > 1 else UNITS.get(found[0]) or value_of(found[0])


@cache
def docstrings(kind: type) -> dict[str, str]:
    """Field -> the string below it in the source."""
    found: dict[str, str] = {}
    for base in reversed([base for base in kind.__mro__ if dataclasses.is_dataclass(base)]):
        body: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        for first, second in zip(body.body, body.body[1:], strict=False):
            if isinstance(first, ast.AnnAssign) and isinstance(second, ast.Expr):
                value: Any = second.value
                found[getattr(first.target, "id", "")] = " ".join(str(value.value).split())
    return found


def options(arguments: Any, path: tuple[str, ...] = (), section: str = "") -> Iterator[Option]:
    """All options of a dataclass of arguments and of those inside of it."""
    hints = get_type_hints(arguments, include_extras=True)
    for field in dataclasses.fields(arguments):
        kind, metadata = stripped(hints[field.name])
        if Suppress in metadata:
            continue
        if dataclasses.is_dataclass(kind):
            heading = section if metadata and getattr(metadata[0], "name", None) == "" else field.name
            yield from options(kind, (*path, field.name), heading)
        else:
            yield Option((*path, field.name), section, kind, metadata, arguments)


def spelled_out(words: list[str], arguments: Any) -> list[str]:
    """Switches that have a third state, as tyro reads them: --no-stream becomes --stream=False."""
    undecided = {option.word for option in options(arguments) if option.undecided}
    on = {word: f"{word}=True" for word in undecided}
    off = {f"--no-{word[2:]}": f"{word}=False" for word in undecided}
    return [(on | off).get(word, word) for word in words]


def render(arguments: Any, verb: str, words: list[str], defaults: Any, common: dict[str, tuple[str, ...]]) -> str:
    """The whole text. `defaults` are the arguments before the flags, where they are known: from a recipe, say."""
    every = list(options(arguments))
    places = " ".join(f"[{o.word}]" if has_default(arguments, o) else o.word for o in every if o.positional)
    lines = [f"usage: weft {verb} {places} [options]".replace("  ", " "), "", *about(arguments)]
    few = common and "--help-all" not in words
    for heading, members in (chosen(every, common) if few else sections(every)).items():
        lines += ["", heading, *(line for option in members for line in entry(option, defaults))]
    lines += [line for option in every for line in subcommands(option, words)]
    if few:
        lines += ["", f"`weft {verb} --help-all` has {len(every) - sum(map(len, common.values()))} more options."]
    return "\n".join(lines)


def chosen(every: list[Option], common: dict[str, tuple[str, ...]]) -> dict[str, list[Option]]:
    """The options that people use, by heading."""
    by_name = {option.field: option for option in every}
    return {heading: [by_name[name] for name in names] for heading, names in common.items()}


def sections(every: list[Option]) -> dict[str, list[Option]]:
    """All options by the section of the configuration that they are in, as run.yaml has it."""
    found: dict[str, list[Option]] = {}
    for option in sorted(every, key=lambda option: not option.positional):
        found.setdefault(option.section or "options", []).append(option)
    return found


def about(arguments: Any) -> list[str]:
    """The docstring: its first line as it stands, the others filled."""
    first, _, rest = inspect.cleandoc(arguments.__doc__ or "").partition("\n\n")
    lines = textwrap.wrap(first, WIDTH, break_on_hyphens=False)
    return [*lines, "", *textwrap.wrap(" ".join(rest.split()), WIDTH, break_on_hyphens=False)] if rest else lines


def entry(option: Option, defaults: Any) -> list[str]:
    """An option and what it does, in two columns."""
    text = option.text + default_text(option, defaults)
    return two_columns(option.shown, text)


def two_columns(left: str, right: str) -> list[str]:
    """A word, and beside it, or below it where it is long, what it means."""
    lines = textwrap.wrap(right, WIDTH - COLUMN, break_on_hyphens=False) or [""]
    if len(left) > COLUMN - 4:
        return [f"  {left}", *(" " * COLUMN + line for line in lines)]
    return [f"  {left}".ljust(COLUMN) + lines[0], *(" " * COLUMN + line for line in lines[1:])]


def default_text(option: Option, defaults: Any) -> str:
    """The default in brackets; nothing where it is nothing, or the explanation says what it is."""
    value = defaults
    for name in option.path:
        value = getattr(value, name, None)
    if value is None or value is False or value in ("", (), {}):
        return ""
    if value is True:
        return " (default: on)"
    spec = next((meta for meta in option.metadata if hasattr(meta, "str_from_instance")), None)
    words = spec.str_from_instance(value) if spec else value if isinstance(value, tuple) else [value]
    return f" (default: {' '.join(f'{word:g}' if isinstance(word, float) else str(word) for word in words)})"


def field_defaults(arguments: Any) -> SimpleNamespace:
    """The defaults of a dataclass that cannot be made without values for some of its fields."""
    found = SimpleNamespace()
    for field in dataclasses.fields(arguments):
        if field.default_factory is not dataclasses.MISSING:
            setattr(found, field.name, field.default_factory())
        elif field.default is not dataclasses.MISSING:
            setattr(found, field.name, field.default)
    return found


def has_default(arguments: Any, option: Option) -> bool:
    """Whether a positional word may be left out."""
    if len(option.path) > 1:
        return True
    field = next(field for field in dataclasses.fields(arguments) if field.name == option.field)
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def subcommands(option: Option, words: list[str]) -> list[str]:
    """What a word may choose from; or, where it is among the words, the options of what it chooses."""
    known = choices(option.kind)
    picked = next((word for word in words if word in known), None)
    if picked is None:
        lines = [line for name, (_, what) in known.items() for line in two_columns(name, what)]
        return ["", f"{option.word} is one of", *lines] if known else []
    kind, what = known[picked]
    heading = textwrap.wrap(f"{picked}: {what}", WIDTH)
    return ["", *heading, *(line for one in options(kind) for line in entry(one, kind()))]
