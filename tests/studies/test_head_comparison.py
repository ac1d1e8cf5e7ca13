"""M7: the networks on a frozen encoder as one study, whose table says what a fair verdict is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.encoders import configure, make_encoder
from weft.errors import WeftError
from weft.studies import head_comparison
from weft.studies.head_comparison import finetune_all, head_configs, networks_of, show_table
from weft.training.embeddings.heads import CONTROLS, HEADS
from weft.training.finetuning.prepare import open_finetuning

pytestmark = pytest.mark.usefixtures("quick_workers")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


def test_every_head_stands_on_the_encoder(encoder: Path) -> None:
    """M7: gMLP, multiplicative gMLP, tMLP, aMLP, attention, identity and the linear probe."""
    configs = head_configs(configure(encoder, frozen=True, network={"dim": 16}))
    assert len(configs) == 7 and set(CONTROLS) < set(configs)
    networks = {name: open_finetuning(config).network for name, config in configs.items()}
    assert all(network.encoder is not None and network.dim == 16 for network in networks.values())
    assert networks["gmlp"].gate == "split" and networks["multiplicative gmlp"].gate == "multiplicative"
    assert networks["tmlp"].gate_weight == "toeplitz" and networks["amlp"].tiny_attention == 64
    assert networks["attention"].mixer == "attention" and networks["identity"].mixer == "identity"
    assert networks["linear probe"].depth == 0


def test_heads_and_seeds_become_one_table(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of the heads, two seeds; the same call again runs nothing; leads are over both controls."""
    chosen = {name: HEADS[name] for name in ("tmlp", *CONTROLS)}
    monkeypatch.setattr(head_comparison, "HEADS", chosen)
    config = configure(encoder, steps=6, frozen=True, network={"dim": 16})
    study = finetune_all(config, heads=True, seeds=2, folder=tmp_path / "heads")
    assert len(study.jobs) == 6 and all(study.finished(job) for job in study.jobs)
    said: list[str] = []
    finetune_all(config, heads=True, seeds=2, folder=tmp_path / "heads", say=said.append)
    assert any("6 of 6 runs are finished already" in line for line in said)
    rows, _ = networks_of(tmp_path / "heads")
    assert [row.name for row in rows] == list(chosen) and all(len(row.scores) == 2 for row in rows)
    lead = rows[0].lead(rows[1])
    expected = sum(rows[0].scores) / 2 - sum(rows[1].scores) / 2
    assert lead.mean == pytest.approx(expected) and lead.low <= lead.mean <= lead.high
    capsys.readouterr()
    show_table(tmp_path / "heads")
    table = capsys.readouterr().out
    assert "lead over identity" in table and "lead over linear probe" in table
    assert "The encoder attends already" in table


def test_seeds_of_one_network(encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A4: several seeds with mean and spread, and runs at chance are named."""
    finetune_all(configure(encoder, steps=2, lr=1e-6), heads=False, seeds=2, folder=tmp_path / "seeds")
    show_table(tmp_path / "seeds")
    table = capsys.readouterr().out
    assert "±" in table and "lead" not in table and "not learnt anything" in table
    records = [json.loads(path.read_text()) for path in (tmp_path / "seeds").rglob("record.json")]
    assert sorted(record["config"]["seed"] for record in records) == [0, 1]
    assert all(record["config"]["model"] == encoder.name for record in records)


def test_other_weights_to_start_from_are_other_runs(tmp_path: Path) -> None:
    """The same folder with new weights in it: nothing that stands in the study's folder is taken for done."""
    folder = make_encoder(tmp_path / "encoder")
    config = configure(folder, steps=2)
    first = finetune_all(config, heads=False, seeds=1, folder=tmp_path / "study")
    make_encoder(folder, depth=2)
    second = finetune_all(config, heads=False, seeds=1, folder=tmp_path / "study")
    assert first.jobs[0].name != second.jobs[0].name and second.finished(second.jobs[0])


def test_a_start_that_is_not_there_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="there is no file or folder"):
        finetune_all(configure(tmp_path / "nowhere"), heads=False, seeds=2, folder=tmp_path / "study")
    assert not (tmp_path / "study").exists()
