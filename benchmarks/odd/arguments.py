"""Arguments: verbs, flags and values that make no sense."""

from __future__ import annotations

from odd.case import Case, Ends
from odd.making import photos, table

TRAIN = "weft train digits --model mlp --steps 2"
COMPARE = "weft compare digits --steps 2 --seeds 1"


def typed(command: str, ends: Ends) -> Case:
    """A line that needs no files; it is its own name."""
    return Case(command, {}, command, ends)


REFUSED: dict[str, str | tuple[str, ...]] = {  # line -> what the sentence names
    # verbs
    "weft trian": ("'trian'", "train"),
    "weft ''": "",
    "weft ναι": "ναι",
    "weft --nonsense": "--nonsense",
    # flags and their values
    "weft data show digits --nonsense": "--nonsense",
    "weft data show digits --rows": "--rows",
    "weft data show digits --rows many": "many",
    "weft data show breast_cancer --rows -5": "--rows",
    "weft data shwo digits": "shwo",
    "weft data show": "source",
    "weft data show ''": "empty",
    "weft data show no/such/file.csv": "no/such/file.csv",
    "weft data show digitz": ("digitz", "digits"),
    "weft data show digits --test-fraction 2": "test",
    "weft data show digits --val-fraction -0.5": "--val-fraction",
    "weft data show digits --split-seed 1.5": "1.5",
    "weft data show digits --memory -1": "memory",
    "weft data show digits digits": "digits",
    "weft data augment breast_cancer": "image",
    "weft data show hub:": "hub",
    "weft data show hub:no/such": "hub",
    "weft describe nonsense": "nonsense",
    "weft models nonsense": "nonsense",
    "weft predict": "",
    "weft predict no/such": "no/such",
    "weft predict no/such --top 0": "--top",
    "weft eval no/such": "no/such",
    "weft verify no/such": "no/such",
    "weft runs no/such": "no/such",
    "weft runs a b c": "one folder",
    "weft leaderboard no/such": "no/such",
    "weft inspect no/such field": "no/such",
    "weft inspect no/such nonsense": "nonsense",
    "weft study run nonsense": "nonsense",
    "weft tokenizer no/such --output v.txt": "no/such",
    # training
    "weft train": "SOURCE",
    "weft train digits --model ''": "empty",
    "weft train digits --model nonsense --steps 2": "nonsense",
    "weft train digits --model '[/b]' --steps 2": "[/b]",
    f"{TRAIN} --epochs 2": ("--steps", "--epochs"),
    f"{TRAIN} --time 2m": ("--steps", "--time"),
    f"{TRAIN} --batch-size 0": "batch",
    f"{TRAIN} --batch-size 100000000": "batch",
    f"{TRAIN} --lr -1": "lr",
    f"{TRAIN} --class-weights 1 2": "class",
    f"{TRAIN} --threads 0": "threads",
    f"{TRAIN} --workers -1": "workers",
    f"{TRAIN} --processes 0": "processes",
    f"{TRAIN} --device cuda": "CUDA",
    f"{TRAIN} --precision int4": "int4",
    f"{TRAIN} --eval-every 0": "eval",
    f"{TRAIN} --img-size 0": "size",
    f"{TRAIN} --img-size 100000": "size",
    f"{TRAIN} --crop 0": "crop",
    f"{TRAIN} --train-fraction 0": "--train-fraction",
    f"{TRAIN} --seed {10**30}": "seed",
    f"{TRAIN} --network width": "width",
    f"{TRAIN} --network nonsense=1": "nonsense",
    f"{TRAIN} --network hidden=[0]": "hidden",
    f"{TRAIN} --network hidden=[1000000000,1000000000]": "hidden",
    f"{TRAIN} --network 'hidden=!!python/object/apply:os.system [id]'": "hidden",
    f"{TRAIN} --resume no/such": "no/such",
    f"{TRAIN} --recipe digits/mixer --config x.yaml": ("--recipe", "--config"),
    f"{TRAIN} --config no/such.yaml": "no/such.yaml",
    f"{TRAIN} --output /proc/run": "/proc/run",
    f"{TRAIN} --output /dev/null/run": "/dev/null/run",
    f"{TRAIN} --output ''": "empty",
    "weft train digits --model mlp --steps 0": "steps",
    "weft train digits --model mlp --steps 1e3": "1e3",
    "weft train digits --model mlp --epochs nan": "epochs",
    "weft train digits --model mlp --time -3m": "-3m",
    "weft train digits --model mlp --time soon": "soon",
    "weft train digits --model bert_tiny --steps 2": "bert_tiny",
    "weft finetune no/such digits": "no/such",
    "weft finetune digits digits": "digits",
    "weft pretrain no/such --model gmlp_text_tiny": "no/such",
    "weft tune digits --model nonsense": "nonsense",
    "weft tune digits --model mlp --trials 0": "trials",
    # comparisons
    f"{COMPARE} --models nonsense": "nonsense",
    f"{COMPARE} --models ''": "empty",
    f"{COMPARE} --models mlp,,mlp": "models",
    f"{COMPARE} --amount 3": "3",
    f"{COMPARE} --amount -1M": "-1M",
    f"{COMPARE} --match time --amount 2m": ("--match time", "--steps"),
    "weft compare digits --seeds 1 --match time --amount 1M": "1M",
    f"{COMPARE} --jobs 0": "jobs",
    "weft compare digits --steps 2 --seeds 0": "seeds",
    "weft compare --runs no/such none": "no/such",
    "weft compare no/such": "no/such",
}
FINE = {"weft": "usage", "weft --help": "usage", "weft --version": "weft", "weft data": "digits", "weft models": "mlp"}
CONFIGS = {
    "a list": "- 1\n",
    "not YAML": "a: [",
    "a wrong name": "modle: mlp\n",
    "an object of Python": "!!python/object/apply:os.system [id]\n",
    "a wrong type": "model: {a: 1}\n",
    "bytes": "\x00\x01",
}
CASES = (
    *(typed(line, {0: word}) for line, word in FINE.items()),
    *(typed(line, {2: words}) for line, words in REFUSED.items()),
    *(
        Case(f"a configuration that is {what}", {"x.yaml": text}, "weft train digits --config x.yaml", {2: "x.yaml"})
        for what, text in CONFIGS.items()
    ),
    Case("an argument in no encoding", {}, "weft data show $'\\xff\\xfe'", {2: ""}),
    Case("a verb in no encoding", {}, "weft $'\\xff'", {2: ""}),
    Case("an argument of a hundred thousand letters", {}, "weft data show $(printf 'x%.0s' {1..100000})", {2: ""}),
    Case("a seed below zero", {}, f"{TRAIN} --seed -1 --output RUN", {0: "finished", 2: "seed"}, writes=("RUN/*",)),
    Case("output into a folder of the user", {"mine/diary.txt": "dear"}, f"{TRAIN} --output mine", {2: "mine"}),
    Case("output where a file is", {"mine": "dear"}, f"{TRAIN} --output mine", {2: "mine"}),
    Case("output below a file", {"mine": "dear"}, f"{TRAIN} --output mine/run", {2: "mine"}),
    Case(
        "output into the source",
        {"p/x": "y", **photos("p")},
        "weft train p --model mlp --steps 2 --batch-size 4 --output p",
        {2: "p"},
    ),
    Case(
        "a comparison into a folder of the user",
        {"mine/diary.txt": "dear"},
        f"{COMPARE} --models mlp --output mine",
        {2: "mine"},
    ),
    Case("a comparison where a file is", {"mine": "dear"}, f"{COMPARE} --models mlp --output mine", {2: "mine"}),
    Case(
        "a source that is a folder of programs",
        {"p/a.py": "x = 1", "p/b.o": b"\x7fELF"},
        "weft data show p",
        {2: ("p", ".py")},
    ),
    Case(
        "a text for a network of tables",
        {"a.csv": table()},
        "weft train a.csv --model resnet18 --steps 2",
        {2: "resnet18"},
    ),
)
