"""Environments: terminals, encodings, folders, streams and limits of the system."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from typing import Any

from odd.case import Case, Ended, Ends
from odd.making import made, photos, reviews, table
from odd.place import Place

FILES = {"a.csv": table(reviews(("schön", "schlecht")))}
FINE = {0: "2 classes"}
SHOW = "weft data show a.csv"
TRAIN = "weft train digits --model mlp --steps 2 --output RUN"
PICTURE = "photo/cat/0.png"
RUN = {"RUN": made("digits"), **photos("photo", 1)}


def show(name: str, ends: Ends, command: str = SHOW, **more: Any) -> Case:
    """`weft data show` of a small table."""
    return Case(name, FILES, command, ends, **more)


def train(name: str, ends: Ends, command: str = TRAIN, **more: Any) -> Case:
    """Two steps on the digits."""
    return Case(name, {}, command, ends, **{"writes": ("RUN/*",) if 0 in ends else (), **more})


def env(name: str, ends: Ends = FINE, foreign: str = r"(?!)", **variables: str) -> Case:
    """`weft data show` with other variables."""
    return show(name, ends, env=variables, foreign=foreign)


def predict(name: str, ends: Ends, command: str, **more: Any) -> Case:
    """A trained network is asked."""
    return Case(name, RUN, command, ends, **more)


def terminal(place: Place) -> Iterator[tuple[Ended, Ends]]:
    """Nothing is given and standard input is a terminal: it waits, as `cat` does, until the terminal's end of file."""
    ours, theirs = pty.openpty()
    running = place.start(f"weft predict RUN < {os.ttyname(theirs)}")
    os.write(ours, b"\x04")
    yield running.end(), {0: "input", 2: ""}
    os.close(ours)
    os.close(theirs)


CASES = (
    env("output in ASCII", PYTHONIOENCODING="ascii"),
    env("output in Latin-1", PYTHONIOENCODING="latin-1"),
    env("the locale C", LANG="C", LC_ALL="C"),
    env("the locale C without UTF-8 mode", LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
    env("a locale that is not there", foreign="setlocale", LANG="xx_YY.UTF-8", LC_ALL="xx_YY.UTF-8"),
    env("a dumb terminal", TERM="dumb"),
    env("one column", COLUMNS="1"),
    env("twenty columns", COLUMNS="20"),
    env("a million columns", COLUMNS="1000000"),
    env("no columns", COLUMNS="0"),
    env("columns that are no number", COLUMNS="wide"),
    env("a home that is not there", HOME="/no/such/home"),
    env("a home that is no folder", HOME="/dev/null"),
    show("no home", FINE, f"env -u HOME {SHOW}"),
    show("no home and no cache", FINE, f"env -u HOME -u WEFT_CACHE {SHOW}", env={"XDG_CACHE_HOME": "{root}/tmp"}),
    show(
        "an empty environment but for the path",
        FINE,
        f'env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" WEFT_CACHE="$WEFT_CACHE" ODD_CASE="$ODD_CASE" {SHOW}',
    ),
    env("threads that are no number", foreign="libgomp", OMP_NUM_THREADS="abc"),
    env("no threads", foreign="libgomp", OMP_NUM_THREADS="0"),
    train(
        "threads that are no number, in training", {0: "finished"}, env={"OMP_NUM_THREADS": "abc"}, foreign="libgomp"
    ),
    env("no folder for temporary files", TMPDIR="/no/such/folder"),
    train("no folder for temporary files, in training", {0: "finished"}, env={"TMPDIR": "/no/such/folder"}),
    # the cache
    train("a cache that cannot be written", {0: "finished"}, env={"WEFT_CACHE": "/proc/weft"}),
    train("a cache that is a file", {0: "finished"}, "touch $TMPDIR/c && WEFT_CACHE=$TMPDIR/c " + TRAIN),
    train(
        "a cache full of rubbish",
        {0: "finished"},
        f"for n in a b c; do echo rubbish > $WEFT_CACHE/$n.safetensors; done; {TRAIN}",
    ),
    Case(
        "a cache with rubbish, listed",
        {"c/a.safetensors": "rubbish", "c/b": "x"},
        "WEFT_CACHE=$PWD/c weft data cache",
        {0: ""},
    ),
    Case(
        "a cache with foreign files, cleared",
        {"c/diary.txt": "dear", "c/x/y": "z"},
        "WEFT_CACHE=$PWD/c weft data cache --clear",
        {0: ""},
    ),
    Case(
        "a cache with foreign weights, cleared",
        {"c/mine.safetensors": "dear", "c/a.lock": "b"},
        "WEFT_CACHE=$PWD/c weft data cache --clear",
        {0: ""},
    ),
    Case("a cache that is not there, cleared", {}, "WEFT_CACHE=$PWD/c weft data cache --clear", {0: ""}),
    train(
        "a limit of the cache that is no number",
        {0: "finished", 2: ("WEFT_CACHE_LIMIT", "abc")},
        env={"WEFT_CACHE_LIMIT": "abc"},
    ),
    env(
        "such a limit where nothing is cached", {0: "2 classes", 2: ("WEFT_CACHE_LIMIT", "abc")}, WEFT_CACHE_LIMIT="abc"
    ),
    show("such a limit, listed", {2: ("WEFT_CACHE_LIMIT", "abc")}, "weft data cache", env={"WEFT_CACHE_LIMIT": "abc"}),
    train("a limit below zero", {0: "finished", 2: "WEFT_CACHE_LIMIT"}, env={"WEFT_CACHE_LIMIT": "-1"}),
    Case("the doctor", {}, "weft doctor --json", {0: "cores"}),
    Case(
        "the doctor where nothing can be written",
        {},
        "weft doctor",
        {0: ""},
        env={"WEFT_CACHE": "/proc/x", "HOME": "/dev/null"},
    ),
    # streams
    show("output that is closed", {0: "", 1: "", 2: ""}, f"{SHOW} >&-"),
    show("output to a full device", {1: "", 2: ""}, f"{SHOW} > /dev/full"),
    show(
        "errors to a full device",
        {2: ""},
        "weft data show nothing 2> /dev/full; test $? = 2 && { echo 'weft: give a file' >&2; exit 2; }",
    ),
    show(
        "errors that are closed",
        {2: ""},
        "weft data show nothing 2>&-; test $? = 2 && { echo 'weft: give a file' >&2; exit 2; }",
    ),
    show("a reader who has seen enough", {0: "a.csv"}, f"{SHOW} | head -1"),
    show("a reader who sees nothing", {0: ""}, f"{SHOW} | true"),
    show("input that is closed", FINE, f"{SHOW} <&-"),
    show(
        "all streams closed",
        {0: "", 1: "", 2: ""},
        f"{SHOW} <&- >&- 2>&-; code=$?; [ $code = 0 ] || echo 'weft: give a stream' >&2; exit $code",
    ),
    train("training with output closed", {0: ""}, f"{TRAIN} >&-"),
    train("training for a reader who has seen enough", {0: ""}, f"{TRAIN} | head -1"),
    predict("no input to predict", {0: "input", 2: ""}, "weft predict RUN < /dev/null"),
    predict("input that is closed, to predict", {0: "input", 2: ""}, "weft predict RUN <&-"),
    predict("bytes as input to predict", {2: ""}, r"printf '\xff\xfe\n' | weft predict RUN"),
    predict(
        "a path that is not there, to predict",
        {2: "no/such.png"},
        "echo no/such.png | weft predict RUN",
    ),
    predict("a folder to predict", {0: "", 2: "photo"}, "weft predict RUN photo"),
    predict("a named pipe to predict", {0: "", 2: "p"}, "mkfifo $TMPDIR/p; weft predict RUN $TMPDIR/p", seconds=30),
    predict("predictions for a reader who has seen enough", {0: "input"}, f"weft predict RUN {PICTURE} | head -1"),
    predict("predictions to a full device", {1: "", 2: ""}, f"weft predict RUN {PICTURE} > /dev/full"),
    predict("a terminal as input", {}, terminal, seconds=30),
    # places and limits
    show(
        "a folder that is deleted meanwhile",
        {2: ""},
        f"mkdir $TMPDIR/gone && cd $TMPDIR/gone && rmdir $TMPDIR/gone && {SHOW}",
        foreign="^sh: ",
    ),
    train(
        "training in a folder that is deleted",
        {2: ""},
        f"mkdir $TMPDIR/gone && cd $TMPDIR/gone && rmdir $TMPDIR/gone && {TRAIN}",
        foreign="^sh: ",
    ),
    show("few open files", {0: "2 classes", 1: "", 2: ""}, f"ulimit -n 24; {SHOW}"),
    train("few open files, in training", {0: "finished", 1: "", 2: ""}, f"ulimit -n 32; {TRAIN}", writes=("RUN/*",)),
    train("small files only", {1: "", 2: ""}, f"ulimit -f 40; {TRAIN}", writes=("RUN/*",)),
    show("little memory", {0: "2 classes", 1: "", 2: ""}, f"ulimit -v 900000; {SHOW}"),
    show("hardly any memory", {1: "memory", 2: "memory"}, f"ulimit -v 300000; {SHOW}"),
)
