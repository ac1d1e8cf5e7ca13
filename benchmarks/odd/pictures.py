"""Folders of pictures."""

from __future__ import annotations

from typing import Any

from odd.case import Case, Content, Ends
from odd.making import animation, declared, fifo, folder, link, photos, picture

FINE = {0: "2 classes"}
PHOTO = picture(48, form="JPEG")
SKIP = "weft data show p --on-bad skip"
TRAIN = "weft train p --model mlp --steps 2 --batch-size 4 --output RUN"


def show(name: str, more: dict[str, Content], ends: Ends, command: str = "weft data show p", **rest: Any) -> Case:
    """Two folders of six good pictures, and what else is put there; a contact sheet may be drawn where it ends well."""
    sheet = ("p*.png",) if 0 in ends else ()
    return Case(name, {**photos("p"), **more}, command, ends, **{"writes": sheet, **rest})


def only(name: str, files: dict[str, Content], ends: Ends, **rest: Any) -> Case:
    """A folder that holds these files alone."""
    return Case(name, files, "weft data show p", ends, **{"writes": ("p*.png",) if 0 in ends else (), **rest})


CASES = (
    show("as it should be", {}, FINE),
    # files that are no good pictures
    show("a JPEG that is cut", {"p/cat/x.jpg": PHOTO[: len(PHOTO) // 2]}, {2: "cat/x.jpg"}),
    show("a JPEG that is cut, skipped", {"p/cat/x.jpg": PHOTO[: len(PHOTO) // 2]}, FINE, SKIP),
    show("a JPEG that is cut, trained on", {"p/cat/x.jpg": PHOTO[: len(PHOTO) // 2]}, {2: "cat/x.jpg"}, TRAIN),
    show("a PNG that is cut", {"p/cat/x.png": picture(40)[:-30]}, {2: "cat/x.png"}),
    show("two bad files", {"p/cat/x.png": b"x", "p/dog/y.png": b"y"}, {2: "cat/x.png"}),
    show("9,000 × 9,000 pixels declared", {"p/cat/x.png": declared(9000, 9000)}, {2: ("cat/x.png", "pixels")}),
    show("2³¹ − 1 pixels a side declared", {"p/cat/x.png": declared(2**31 - 1, 2**31 - 1)}, {2: "cat/x.png"}),
    show("no pixels declared", {"p/cat/x.png": declared(0, 0)}, {2: "cat/x.png"}),
    show("no byte at all", {"p/cat/x.png": b""}, {2: "cat/x.png"}),
    show("text in a .png", {"p/cat/x.png": "hello"}, {2: "cat/x.png"}),
    show("a PNG in a .jpg", {"p/cat/x.jpg": picture(8)}, {0: "2 classes", 2: "cat/x.jpg"}),
    show("SVG in a .png", {"p/cat/x.png": "<svg xmlns='http://www.w3.org/2000/svg'/>"}, {2: "cat/x.png"}),
    # good pictures of a rarer kind
    show("an animation", {"p/cat/x.gif": animation()}, FINE),
    show("CMYK", {"p/cat/x.jpg": picture(8, form="JPEG", mode="CMYK")}, FINE),
    show("16 bits", {"p/cat/x.png": picture(8, mode="I;16")}, FINE),
    show("one bit", {"p/cat/x.png": picture(8, mode="1")}, FINE),
    show("a palette with transparency", {"p/cat/x.png": picture(8, mode="P", transparency=0)}, FINE),
    show("one pixel", {"p/cat/x.png": picture(1)}, FINE),
    show(
        "one pixel, trained on",
        {"p/cat/x.png": picture(1)},
        {0: "finished"},
        f"{TRAIN} --img-size 8",
        writes=("RUN/*",),
    ),
    only("only pictures of one pixel", dict(photos("p", side=1)), FINE),
    show("pictures of unlike sizes", {"p/cat/x.png": picture(30), "p/dog/y.png": picture(19)}, FINE),
    # folders
    only("an empty folder", {"p": folder}, {2: "p"}),
    only("folders of classes without pictures", {"p/cat": folder, "p/dog": folder}, {2: "p"}),
    show("one empty folder of a class", {"p/bird": folder}, {2: "bird"}),
    only("one class", dict(photos("p", names=["cat"])), {2: "'cat'"}),
    only("one picture a class", dict(photos("p", 1)), {2: "p"}),
    only("one picture a class, of many", dict(photos("p", 1, [f"c{n}" for n in range(120)])), {2: "p"}),
    only("pictures without classes", {f"p/{n}.png": picture(shade=n) for n in range(12)}, {0: "", 2: "p"}),
    only("classes below classes", {**photos("p/animals"), **photos("p/things", names=("cup", "jug"))}, FINE),
    only(
        "a test split without a class", {**photos("p/train"), **photos("p/test", names=["cat"])}, {0: "", 2: "test/dog"}
    ),
    only("a training split alone, of one picture", {"p/train/cat/0.png": picture()}, {2: "p"}),
    show("files of the desktop", {"p/.DS_Store": b"\0", "p/cat/Thumbs.db": b"\0", "p/.git/x": "y"}, FINE),
    # names
    show(
        "names with blanks and signs",
        {"p/a b & c/é ü.png": picture(9), "p/a b & c/-x.png": picture(10)},
        {0: "a b & c"},
    ),
    show("names like markup", {"p/[red]/0.png": picture(9), "p/[red]/[/b].png": picture(10)}, {0: "[red]"}),
    show(
        "names in no encoding",
        {"p/\udcff\udcfe/\udcfd.png": picture(9), "p/\udcff\udcfe/b.png": picture(10)},
        {0: "3 classes"},
    ),
    show(
        "names with line breaks and codes",
        {"p/a\nb\x1b[31m/0.png": picture(9), "p/a\nb\x1b[31m/1.png": picture(1)},
        {0: "3 classes"},
    ),
    show("a bad file with such a name", {"p/cat/a\nb\x1b[31m\udcff.png": b"x"}, {2: "cat/a"}),
    show("a bad file named like markup", {"p/cat/[/b].png": b"x"}, {2: "cat/[/b].png"}),
    # links and pipes
    show("a link that leads out", {"out.png": picture(9), "p/cat/x.png": link("../../out.png")}, {2: "cat/x.png"}),
    show("a folder that leads out", {**photos("q"), "p/bird": link("../q/cat")}, {0: "2 classes", 2: "bird"}),
    show("a link to nothing", {"p/cat/x.png": link("gone.png")}, {2: "cat/x.png"}),
    show("a link to itself", {"p/cat/x.png": link("x.png")}, {2: "cat/x.png"}),
    show("a folder that holds itself", {"p/cat/again": link("..")}, {0: "2 classes", 2: "again"}),
    show("a named pipe", {"p/cat/x.png": fifo}, {0: "2 classes", 2: "cat/x.png"}, seconds=30),
    show("a folder named as a picture", {"p/cat/x.png": folder}, {0: "2 classes", 2: "cat/x.png"}),
    # the contact sheet
    show("a picture that is called as the sheet would be", {"p.png": picture(9)}, FINE),
    show(
        "a sheet over a file of the user",
        {"mine.png": "dear diary"},
        {2: "mine.png"},
        "weft data show p --output mine.png",
    ),
    show(
        "a sheet into the folder of pictures",
        {},
        {0: "", 2: "p/cat"},
        "weft data show p --output p/cat/s.png",
        writes=("p/cat/s.png", "p/cat/s.html", "p/cat/.weft"),
    ),
    show(
        "a sheet into a folder that is missing",
        {},
        {0: "", 2: "no/such"},
        "weft data show p --output no/such/s.png",
        writes=("no/such/s.png", "no/such/s.html"),
    ),
    show("a sheet where a folder is", {"s.png": folder}, {2: "s.png"}, "weft data show p --output s.png"),
    show("a sheet that cannot be written", {}, {2: "/proc/s.png"}, "weft data show p --output /proc/s.png"),
    show(
        "the folder itself, twice",
        {},
        FINE,
        "cd p && weft data show . && weft data show .",
        writes=("p/*.png", "p*.png", "p/.weft"),  # the mark by which the sheet is no picture of the source
    ),
    show(
        "trained on where one stands, twice",
        {},
        {0: "finished"},
        "cd p && for n in 1 2; do weft train . --model mlp --steps 2 --batch-size 4; done",
        writes=("p/runs/*",),
    ),
)
