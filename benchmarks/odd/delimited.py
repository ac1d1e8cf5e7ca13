"""CSV and TSV files."""

from __future__ import annotations

from typing import Any

from odd.case import Case, Content, Ends
from odd.making import but, fifo, folder, link, photos, points, reviews, table

FINE = {0: "2 classes"}
GOOD = table()
MISSING = {"an empty label": "", "the label NA": "NA", "the label null": "null", "the label NaN": "NaN"}


def show(name: str, content: Content, ends: Ends, flags: str = "", **more: Any) -> Case:
    """`weft data show` of one file."""
    return Case(name, {"a.csv": content}, f"weft data show a.csv {flags}".strip(), ends, **more)


CASES = (
    show("as it should be", GOOD, FINE),
    # encodings and delimiters: recognised, or named in the sentence
    show("a byte-order mark", GOOD.encode("utf-8-sig"), FINE),
    show("UTF-16 with a mark", GOOD.encode("utf-16"), {0: "2 classes", 2: "UTF-16"}),
    show("UTF-16 without a mark", GOOD.encode("utf-16-be"), {0: "2 classes", 2: "a.csv"}),
    show("UTF-32", GOOD.encode("utf-32"), {0: "2 classes", 2: "a.csv"}),
    show("Latin-1", GOOD.replace("film", "Käsefilm").encode("latin-1"), {0: "2 classes", 2: ("a.csv", "UTF-8")}),
    show("one line of Latin-1", GOOD.encode() + "schön,pos\n".encode("latin-1"), {0: "2 classes", 2: "line 42"}),
    show("semicolons", table(mark=";"), {0: "2 classes", 2: ";"}),
    show("tabs in a .csv", table(mark="\t"), {0: "2 classes", 2: "tab"}),
    show("bars", table(mark="|"), {0: "2 classes", 2: "|"}),
    show("lines that end with CR LF", table(end="\r\n"), FINE),
    show("lines that end with CR alone", table(end="\r"), FINE),
    # rows
    show("a ragged row", table(but(reviews(), 5, "only one cell")), {2: ("a.csv", "line 7")}),
    show("a ragged row, skipped", table(but(reviews(), 5, "only one cell")), {0: "line 7"}, "--on-bad skip"),
    show("a quotation mark that is never closed", table(but(reviews(), 5, '"open', "pos")), {2: "a.csv"}),
    show("a zero byte in a cell", table(but(reviews(), 5, "a\0b", "pos")), {0: "", 2: "line 7"}),
    show("random bytes", bytes(range(256)) * 8, {2: "a.csv"}),
    show("a head and no rows", "text,label\n", {2: "a.csv"}),
    show("no byte at all", b"", {2: ("a.csv", "empty")}),
    show("blank lines only", "\n\n\n", {2: ("a.csv", "empty")}),
    show("blanks only", "   \n  \n", {2: "a.csv"}),
    show("two rows", table(reviews(rows=2)), {2: "rows"}),
    show("texts of blanks", table([("  ", row[1]) for row in reviews()]), {2: "line 3: the text is empty"}),
    show("a cell of two million letters", table(but(reviews(), 1, "x" * 2_000_000, "pos")), {2: "line 3"}),
    show("no head, numbers only", table([(n, n * n % 5, n % 2) for n in range(40)], "0,0,0"), {2: "--target"}),
    show("two columns of one name", table([(a, a, b) for a, b in reviews()], "text,text,label"), {2: "'text'"}),
    show("a column without a name", table([(n, *row) for n, row in enumerate(reviews())], ",text,label"), FINE),
    show(
        "five thousand columns",
        table([[*range(5000), n % 2] for n in range(12)], ",".join(f"c{n}" for n in range(5000)) + ",label"),
        {0: ""},
    ),
    # labels
    show("one class", table(reviews(("pos",))), {2: "'pos'"}),
    *(show(name, table(but(reviews(), 3, "what is it", label)), {2: "line 5"}) for name, label in MISSING.items()),
    *(
        show(f"{name}, skipped", table(but(reviews(), 3, "what is it", label)), FINE, "--on-bad skip")
        for name, label in MISSING.items()
    ),
    show("labels that differ in case", table(reviews(("Pos", "pos", "neg"))), {0: ("Pos", "case")}),
    show("every label once", table([(text, f"l{n}") for n, (text, _) in enumerate(reviews())]), {2: ""}),
    show("a row of each of two classes", table(reviews(rows=2)), {2: ""}),
    show(
        "labels that look like markup",
        table(reviews(("[/b]", "[red]", "[link=x]"))),
        {0: ("[/b]", "[red]", "[link=x]")},
    ),
    show(
        "labels with codes for terminals",
        table(reviews(("\x1b[31mred", "\x1b]0;title\x07", "\x9b2J"))),
        {0: "3 classes"},
    ),
    show("labels that turn the writing", table(reviews(("a\u202egnp", "b\u2066c", "d\u200f"))), {0: "3 classes"}),
    show("labels that are formulas", table(reviews(("=1+1", "@SUM(A1)"))), {0: "=1+1"}),
    show("texts with codes for terminals", table([(f"\x1b[2J\x1b[H{a}", b) for a, b in reviews()]), FINE),
    show("a label of ten thousand letters", table(reviews(("x" * 10_000, "y"))), FINE),
    # numbers
    show("inf", table(but(points(), 4, "inf", 1, "a"), "u,v,label"), {2: ("line 6", "inf")}),
    show("nan", table(but(points(), 4, "nan", 1, "a"), "u,v,label"), {2: "line 6"}),
    show("a number beyond all floats", table(but(points(), 4, "1e400", 1, "a"), "u,v,label"), {2: "line 6"}),
    show("a number of thirty digits", table(but(points(), 4, "9" * 30, 1, "a"), "u,v,label"), {0: "", 2: "line 6"}),
    show("a word among numbers", table(but(points(), 4, "many", 1, "a"), "u,v,label"), {2: ("line 6", "many")}),
    show("a hole among numbers", table(but(points(), 4, "", 1, "a"), "u,v,label"), {2: "line 6"}),
    show(
        "decimal commas",
        table([(f"0,{n}", n % 7, "ab"[n % 2]) for n in range(40)], "u,v,label", ";"),
        {0: "2 classes", 2: "a.csv"},
    ),
    # columns
    show("a target that is not there", GOOD, {2: ("'lable'", "label")}, "--target lable"),
    show("an input that is not there", GOOD, {2: ("'txt'", "text")}, "--inputs txt"),
    show("one column as input and target", GOOD, {2: "input"}, "--inputs label --target label"),
    show("a group that is not there", GOOD, {2: "'who'"}, "--group who"),
    # names and places
    Case("a file named like markup", {"[red].csv": GOOD}, "weft data show '[red].csv'", {0: "[red].csv"}),
    Case("a file named with codes for terminals", {"a\x1b[31m.csv": GOOD}, "weft data show a*.csv", FINE),
    Case("a file named in no encoding", {"a\udcff.csv": GOOD}, "weft data show a*.csv", FINE),
    Case("a file named with a line break", {"a\nb.csv": table(reviews(("pos",)))}, "weft data show a*.csv", {2: ""}),
    Case("an ending in capitals", {"a.CSV": GOOD}, "weft data show a.CSV", FINE),
    Case("an ending of no known kind", {"a.xlsx": GOOD}, "weft data show a.xlsx", {2: ("a.xlsx", "CSV")}),
    Case("a compressed table", {"a.csv.gz": b"\x1f\x8b"}, "weft data show a.csv.gz", {2: "a.csv.gz"}),
    Case("a folder named as a file", {"a.csv": folder}, "weft data show a.csv", {2: "a.csv"}),
    Case("a link to itself", {"a.csv": link("a.csv")}, "weft data show a.csv", {2: "a.csv"}),
    Case("a named pipe", {"a.csv": fifo}, "weft data show a.csv", {2: "a.csv"}, seconds=20),
    Case("a device", {}, "weft data show /dev/zero", {2: "/dev/zero"}, seconds=20),
    Case(
        "tables of unlike columns",
        {"d/train.csv": GOOD, "d/test.csv": table(head="words,label")},
        "weft data show d",
        {2: "test.csv"},
    ),
    Case(
        "a table beside pictures",
        {**photos("d"), "d/labels.csv": GOOD},
        "weft data show d",
        {0: "", 2: "d"},
        writes=("*.png",),
    ),
    Case("an empty test split", {"d/train.csv": GOOD, "d/test.csv": "text,label\n"}, "weft data show d", {2: "test"}),
    Case(
        "quotation marks in a .tsv",
        {"a.tsv": table(but(reviews(), 5, 'say "yes', "pos"), mark="\t")},
        "weft data show a.tsv",
        FINE,
    ),
    Case("a link to nothing", {"b.csv": link("gone.csv")}, "weft data show b.csv", {2: "b.csv"}),
)
