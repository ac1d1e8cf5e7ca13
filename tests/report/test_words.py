"""Words where no browser lays them out: measured, broken between parts of names, and cut in the middle at the last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.report.words import breakable, shortened, width, wrapped


@given(st.text(st.characters(codec="ascii", exclude_categories=("C",)), max_size=60), st.floats(40, 300))
def test_lines_hold_all_letters_and_fit(words: str, room: float):
    lines = wrapped(words, room, most=1000)
    assert "".join("".join(lines).split()) == "".join(words.split())
    assert all(width(line) <= room + 1e-6 for line in lines)


def test_names_are_broken_behind_their_joints_and_never_within_a_number():
    assert wrapped("staffordshire_bull_terrier", 130) == ["staffordshire_bull_", "terrier"]
    assert str(breakable("blocks.0.mixer, 0.3721, 1e-04")) == "blocks.0.<wbr>mixer, 0.3721, 1e-04"
    assert str(breakable("mlp 1,024, from 12:00:00")) == "mlp 1,024, from 12:00:00"
    assert str(breakable("a_<b>")) == "a_<wbr>&lt;b&gt;"


def test_what_does_not_fit_loses_its_middle():
    lines = wrapped("staffordshire_bull_terrier_outdoors_in_bright_light", 100, most=2)
    assert len(lines) == 2 and "…" in lines[1] and lines[1].endswith("light")
    assert shortened("short", 100) == "short" and width(shortened("x" * 90, 80)) <= 80
