"""Files that are either the old or the new version, whole, whenever the machine stops: write aside, fsync, rename."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import reprlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from weft import machine
from weft.errors import WeftError

_under_way: set[int] = set()  # writes that have begun and not ended, by the number of their object


def writing() -> bool:
    """Whether a file, or a checkpoint, is being written right now: the wrong moment to end this process."""
    return bool(_under_way)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at `path`, atomically and durably."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with explained(path, aside):
        aside.unlink(missing_ok=True)  # of a process that had our number, or a link that leads to another file
        with aside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        note(path, content)
        aside.replace(path)
        sync_folder(path.parent)


def write_json(path: Path, content: Any) -> None:
    """Replace the JSON file at `path`, atomically and durably."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # as JSON writes halves of characters, of file names


def user_path(name: str | Path) -> Path:
    """A path as the user writes it, where `~` and `~somebody` stand for home folders."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise WeftError(
            f"{name}: no home folder is known for this user; write the path out, or ./{name} for a file of this name"
        ) from error


def cache_folder() -> Path:
    """Where what is slow to make is kept: $WEFT_CACHE, or .cache/weft in the home folder."""
    try:
        return Path(os.environ.get("WEFT_CACHE") or Path.home() / ".cache" / "weft")
    except RuntimeError as error:
        raise WeftError("this user has no home folder for the cache; set WEFT_CACHE to a folder for it") from error


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut; Windows opens no folders, and needs no such thing."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class explained:
    """A failed write removes what it left behind and becomes a sentence: what, why, and that nothing was lost."""

    def __init__(self, target: Path, aside: Path, remove: Callable[[Path], None] = Path.unlink) -> None:
        self.target, self.aside, self.remove = target, aside, remove

    def __enter__(self) -> None:
        _under_way.add(id(self))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _under_way.discard(id(self))
        if not isinstance(error, OSError):
            return
        if self.aside.exists():
            self.remove(self.aside)
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        reason = "the disk is full" if full else str(error.strerror or error)
        raise WeftError(
            f"could not write {self.target}: {reason}; what was there before is intact, so make room and resume"
        ) from error


# ---- Files that weft, or someone else, stored, back from the disk: bounded in size, and any damage is one sentence.

LIMIT = 256 << 20  # bytes of a file that is read whole: records with long curves, tokenizers with large vocabularies

_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


class Damaged(WeftError):
    """A stored file whose content is not what was written, or what can be used."""


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """The content of a file, which must be a plain one and no longer than `limit`."""
    try:
        require_plain(path)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(size + 1) if size <= limit else b""
    except OSError as error:
        raise Damaged(f"cannot read {path}: {error.strerror}; give a file that can be read") from error
    if max(size, len(content)) > limit:
        raise Damaged(f"{path} has more than the {limit >> 20} MiB that such a file may have; restore it")
    return content


def require_plain(path: Path) -> None:
    """Refuse a pipe or a device, to open or to read which may never end."""
    if path.exists() and not path.is_file():
        raise Damaged(f"{path} is not a plain file; remove it, or restore the file that was there")


def read_text(path: Path, limit: int = LIMIT) -> str:
    """The text of a file in UTF-8."""
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(f"{path} is damaged: byte {error.start} is not UTF-8; restore it") from error


def read_object(path: Path, limit: int = LIMIT) -> dict[str, Any]:
    """The JSON object in a file."""
    return parse_object(read_text(path, limit), path)


def parse_object(text: str, path: Path) -> dict[str, Any]:
    """The JSON object that a text from the file `path` is."""
    content = parse(text, path)
    if not isinstance(content, dict):
        raise Damaged(f"{path} is damaged (it holds no JSON object); restore it")
    return content


def parse(text: str, path: Path) -> Any:
    """The JSON that a text from the file `path` is."""
    try:
        content = json.loads(text)
        if "\\ud" in text.lower():
            json.dumps(content, ensure_ascii=False).encode()  # half a letter cannot be written or shown
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged ({brief(error)}); restore it") from error
    return content


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number, which true and false are for Python as well."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def validated(kind: Any, values: Any, where: object) -> Any:
    """The `values` as a dataclass or typed dictionary; what does not fit is a sentence with the field's name."""
    try:
        return adapter(kind).validate_python(values)
    except ValidationError as error:
        raise Damaged(f"{where}: {complaint(error)}") from error
    except (WeftError, RecursionError, OverflowError) as error:
        raise Damaged(f"{where}: {brief(error)}") from error


def adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks values of a kind; making one takes longer than using it, so they are kept."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def complaint(error: ValidationError) -> str:
    """The first complaint of pydantic as one line: which field, what is wrong, what it was given."""
    first = error.errors(include_url=False)[0]
    place = ".".join(
        str(part) for part in first["loc"] if not str(part).startswith(("constrained", "literal", "function"))
    )
    reason = first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason} (given: {reprlib.repr(first['input'])})" if place else reason


def brief(error: BaseException) -> str:
    """The first line of an error's message, cut where it is long."""
    line = (str(error).strip() or type(error).__name__).partition("\n")[0]
    return line if len(line) <= 200 else f"{line[:199]}…"


# ---- Folders belong to the user: what in them weft wrote, and may therefore replace, delete, and not take for data.

MARK, WHOLE = ".weft", "."
NOTED = re.compile(r"(.+)\t([0-9a-f]{32})")  # a line of the mark: a name, and the digest of what was written under it
RUN, STUDY = "run.yaml", "study.json"
PAGES = ("report.html", "tuning.html")  # of a study, and of a search
LOCK = ".lock"  # of a run or a study
WRITTEN = {"format": "pt", "writer": "weft"}  # metadata of all weights that weft writes
METADATA = "weft"  # where a .safetensors file of weft's own keeps its configuration
LOCKS = (LOCK, f"{LOCK}.owner")


def is_output(folder: Path) -> bool:
    """Whether a folder is one that weft made for what comes out."""
    return is_run(folder) or is_study(folder) or WHOLE in written(folder)


def is_run(folder: Path) -> bool:
    """Whether a folder holds the run.yaml of a run; other programs have files of this name too."""
    with suppress(Damaged):
        content = read_bytes(folder / RUN, 1 << 20) if (folder / RUN).is_file() else b""
        return all(re.search(line, content, re.MULTILINE) for line in (rb"^format: \d", rb"^config:"))
    return False


def is_study(folder: Path) -> bool:
    """Whether a folder holds the study.json of a study."""
    with suppress(Damaged):
        return (folder / STUDY).is_file() and {"format", "runs", "candidates"} <= read_object(folder / STUDY).keys()
    return False


def written(folder: Path) -> set[str]:
    """The names that a folder's mark holds."""
    return set(claims(folder))


def claims(folder: Path) -> dict[str, set[str]]:
    """The same, and for each name the digests of what weft has written under it, where they are known."""
    try:
        require_plain(folder / MARK)
        with (folder / MARK).open("rb") as file:
            lines = file.read(1 << 20).decode(errors="replace").splitlines()
    except (OSError, Damaged):
        return {}
    found: dict[str, set[str]] = {}
    for line in lines:
        noted = NOTED.fullmatch(line)
        found.setdefault(noted[1] if noted else line, set()).update([noted[2]] if noted else [])
    return found


def note(path: Path, content: bytes) -> None:
    """Keep the digest of what is written under a claimed name: what is found there later may be someone else's."""
    known = claims(path.parent).get(path.name)
    digest = blake2b(content, digest_size=16).hexdigest()
    if known is not None and digest not in known:
        with machine.open_own(path.parent / MARK) as file:
            file.write(f"{path.name}\t{digest}\n")


def is_changed(path: Path, known: set[str]) -> bool:
    """Whether a file is none of those that weft has written under its name; where these are not known, it is not."""
    if path.is_symlink() or not known or not path.is_file():
        return path.is_symlink()
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: blake2b(digest_size=16)).hexdigest() not in known


def mark(folder: Path, name: str = WHOLE) -> None:
    """Note that weft writes the file `name` into a folder, or that the whole of it is weft's."""
    folder.mkdir(parents=True, exist_ok=True)
    if name not in written(folder):
        with machine.open_own(folder / MARK) as file:
            file.write(f"{name}\n")


def require_output(folder: Path, flag: str = "--output") -> None:
    """Refuse a folder for what comes out that holds someone else's files."""
    if not folder.exists() or (folder.is_dir() and is_output(folder)):
        return
    if not folder.is_dir():
        raise WeftError(f"{folder} is a file, not a folder; choose another {flag}")
    if found := strangers(folder, LOCKS):
        raise WeftError(f"{folder} exists and weft did not make it (it holds {found[0].name}); choose another {flag}")


def claim(path: Path, remedy: str = "move it away") -> Path:
    """The path, for writing a file that is new or that weft wrote before; others' files are refused."""
    own = claims(path.parent)
    if path.name in PAGES and (WHOLE in own or is_study(path.parent)):
        return path
    if path.name in own:
        if is_changed(path, own[path.name]):
            raise WeftError(f"{path} is not what weft wrote there; {remedy}")
        return path
    if path.exists() or path.is_symlink():
        raise WeftError(f"{path} exists and weft did not write it; {remedy}")
    try:
        mark(path.parent, path.name)
    except OSError as error:
        raise WeftError(f"cannot write to {path.parent}: {error.strerror}; {remedy}") from error
    return path


def require_own(weights: Path, *others: Path) -> None:
    """Refuse to write where weights stand that weft did not write, or files beside them without any."""
    if weights.name == "model.safetensors" and is_output(weights.parent):
        return
    if weights.is_file() and holds_own_weights(weights):
        return
    if found := [path for path in (weights, *others) if path.exists() or path.is_symlink()]:
        raise WeftError(f"{found[0]} exists and weft did not write it; move it away or choose another place")


def holds_own_weights(weights: Path) -> bool:
    """Whether weft wrote a file of weights."""
    from safetensors import SafetensorError, safe_open

    try:
        require_plain(weights)
        with safe_open(weights, framework="pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError, Damaged):
        return False
    return METADATA in metadata or metadata.get("writer") == WRITTEN["writer"]


def strangers(folder: Path, names: Collection[str]) -> list[Path]:
    """What a folder holds beside the files of these names, and beside what a kill left of writing them."""
    return [path for path in sorted(folder.iterdir()) if whole_name(path.name) not in names]


def whole_name(name: str) -> str:
    """The name of the file that is written aside under this name first; others are their own."""
    found = re.fullmatch(r"\.(.+)\.\d+", name)
    return found[1] if found else name


def discard(folder: Path, names: Collection[str]) -> None:
    """Delete the files of these names, and the folder if then it is empty. What a link leads to stays as it is."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if whole_name(path.name) in names and (path.is_symlink() or not path.is_dir()):
            with suppress(OSError):  # what cannot be deleted stays
                path.unlink()
    with suppress(OSError):
        folder.rmdir()


def find_below(folder: Path, name: str) -> list[Path]:
    """All files called `name` in a folder and below it, by path; folders behind symbolic links too, each once."""
    found, seen = [], set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        found += [Path(place) / name] if name in files else []
    return sorted(found)


def data_files(root: Path, left_out: list[Path] | None = None) -> list[Path]:
    """All files below a folder, sorted, but those that weft wrote; links to folders are not followed.

    The folders below it that are weft's own are appended to `left_out`.
    """
    return sorted(iterate_data(root, left_out))


def iterate_data(root: Path, left_out: list[Path] | None = None) -> Iterator[Path]:
    """The same, as they are found."""
    for place, folders, names in os.walk(root):
        own = written(Path(place)) if MARK in names else set()
        if Path(place) != root and not {MARK, RUN, STUDY}.isdisjoint(names) and is_output(Path(place)):
            folders.clear()
            if left_out is not None:
                left_out.append(Path(place))
            continue
        yield from (Path(place, name) for name in names if name not in own and name != MARK)


def missing_folders(folder: Path) -> list[Path]:
    """The folders that making a new one makes, the innermost first."""
    return [found for found in (folder, *folder.parents) if not found.exists()]
