"""What each candidate learnt from: how many training rows, and whether their texts were cut.

In a given time a baseline, or what starts from a trained network, may learn from a part of the rows. A reader has to
know that before scores are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.studies.compare.candidates import Candidate
from weft.studies.results.load import Collection
from weft.training.config import FITTED_ROWS, trained_start


def learnt_rows(collection: Collection) -> dict[str, int]:
    """The training rows that each candidate learnt from at most; empty where nobody knows how many there are.

    Shares are of the whole source, of which all candidates may have been given a part alone: then the largest share
    stands for the rows that the study counts.
    """
    total = collection.study["facts"].get("rows")
    shares: dict[str, float] = {}
    for result in collection.results:
        shares[result.candidate] = max(result.share, shares.get(result.candidate, 0.0))
    whole = max(shares.values(), default=1.0)
    known = [candidate for candidate in collection.candidates if total and candidate.name in shares]
    return {each.name: rows_at_most(each, round(shares[each.name] / whole * total)) for each in known}


def rows_at_most(candidate: Candidate, rows: int) -> int:
    """What a candidate takes of so many rows: a classical baseline has its limit."""
    return min(rows, FITTED_ROWS) if candidate.fixed and not trained_start(candidate.model) else rows


def not_from_all(rows: list[dict[str, Any]], in_time: bool) -> list[str]:
    """Who learnt from fewer rows than others, or from texts that were cut, in a sentence; `in_time` says that more
    time would give them more."""
    known = [row for row in rows if row.get("training_rows")]
    total = max((row["training_rows"] for row in known), default=0)
    groups: dict[str, list[str]] = {}
    for row in known:
        if row["training_rows"] < total or row["length"]:
            groups.setdefault(of_which(row, total), []).append(row["name"])
    if not groups:
        return []
    told = "; ".join(f"{', '.join(names)} from {words}" for words, names in groups.items())
    limited = [row["name"] for row in known if row["training_rows"] == FITTED_ROWS < total and not row["length"]]
    told += f" ({FITTED_ROWS:,} are the most that {limited[0]} takes)" if limited and len(groups) > 1 else ""
    more = sum(map(len, groups.values())) > len(limited)
    remedy = f" More --time gives {'the others' if limited else 'them'} more." if in_time and more else ""
    return [f"Not all candidates learnt from the whole {total:,} training rows: {told}.{remedy}"]


def of_which(row: dict[str, Any], total: int) -> str:
    """The rows of a candidate in words, with their image side or length where these are its own."""
    count = "all of them" if row["training_rows"] == total else f"{row['training_rows']:,}"
    side = f", images at {row['side']} px" if row["side"] else ""
    return f"{count}{side}" + (f", texts cut at {row['length']} tokens" if row["length"] else "")


def unequal_rows(first: str, second: str, learnt: Mapping[str, int]) -> str:
    """What a verdict on two candidates adds where one learnt from fewer rows than the other."""
    if first not in learnt or second not in learnt or learnt[first] == learnt[second]:
        return ""
    return f"; {first} learnt from {learnt[first]:,} training rows, {second} from {learnt[second]:,}"
