"""Study e9, figure 5 of the ViT slides: accuracy against the cost of training, several sizes of each family.

Convolution, attention, the hybrid of both, and the two MLPs; every network sees equally many examples, so that its
cost grows with its size. The report draws the front, accuracy with its interval against measured cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate, Facts, default_budget, families, make_candidate
from weft.studies.compare.comparison import by_size, measure_speeds, plan_comparison, pool_for, steps_words
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.progress import unwatched
from weft.studies.compare.run_configs import run_config, with_batch
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.runner import Pool
from weft.studies.engine.study import Study
from weft.studies.experiments.families.scales import FamilyScale

FAMILIES = ("resnet", "vit", "mixer", "gmlp")  # of those that a comparison has, beside the hybrid
SMALL_SIDE = 64  # px up to which the hybrid has a small stem
Say = Callable[[str], None]


def run_front(asked: ComparisonConfig, scale: FamilyScale, folder: Path, command: str, say: Say) -> Study:
    """Train every size of every family that is not trained yet; everything is on the disk when this returns."""
    with driving(folder), pool_for(asked, folder, True, say) as pool:  # costs are compared: machines of one kind
        asked, study = plan_front(asked, scale, folder, command, pool)
        study = replace(study, processor=pool.processor)
        for note in study.facts.notes:
            say(note)
        study = by_size(asked, study, pool, say, unwatched, carried_rates(study.candidates))
        measure_speeds(study, pool, say)
        study.save()
    return study


def plan_front(
    asked: ComparisonConfig, scale: FamilyScale, folder: Path, command: str, pool: Pool
) -> tuple[ComparisonConfig, Study]:
    """The question with what follows from the data, and all of its runs."""
    facts: Facts = pool.first(tasks.look, run_config(asked, None, 0, 1))
    if facts.modality != "image":
        raise WeftError(f"e9 is about images; {facts.name} holds {facts.modality}s: use e10, or weft compare")
    asked = with_batch(asked, facts.rows)
    notes = list(facts.notes)
    candidates = front_candidates(facts, scale, asked.count(), notes)
    facts = replace(facts, notes=notes)
    study = plan_comparison(asked, folder, command, facts, candidates)
    counts = [candidate.count["macs"] for candidate in candidates]
    budget = f"{min(counts):,} to {max(counts):,} multiply-adds, {steps_words(asked, facts.rows)}"
    return asked, replace(study, match="none", budget=budget)


def carried_rates(candidates: list[Candidate]) -> dict[str, str]:
    """The larger sizes of every family, with the smallest, whose rate they have: it alone is tuned, for all families
    alike, and e10 has the same trials."""
    smallest: dict[str, str] = {}
    for candidate in candidates:  # in the order of their sizes
        smallest.setdefault(candidate.name.partition("×")[0], candidate.name)
    tried = {candidate.name: smallest[candidate.name.partition("×")[0]] for candidate in candidates}
    return {name: least for name, least in tried.items() if name != least}


def front_candidates(
    facts: Facts, scale: FamilyScale, amount: float | None, notes: list[str] | None = None
) -> list[Candidate]:
    """Every family at every size; the first size is that of e10. One that cannot be had for these data is told of in
    `notes`; refused only where none is left."""
    least = amount or default_budget(facts, "macs")
    named = [(name, model, changes) for name, model, changes in families(facts) if name in FAMILIES]
    candidates, told, refusals = [], [] if notes is None else notes, []
    for name, model, changes in [*named, hybrid(facts)]:
        for mark, share in scale.sizes.items():
            try:
                candidates.append(make_candidate(facts, f"{name}{mark}", model, changes, "macs", share * least))
            except WeftError as error:
                refusals.append(error)
                told.append(f"left out: {error}")
    if not candidates:
        raise refusals[0]
    return candidates


def hybrid(facts: Facts) -> tuple[str, str, dict[str, Any]]:
    """A ResNet's feature map as the tokens of a ViT, its stem one that leaves room for the ViT."""
    if facts.side > SMALL_SIDE:
        return "hybrid", "vit_small_resnet18_224", {}
    return "hybrid", "vit_nano_resnet20_32", {"stem_layers": (1, 1, 1), "stem_widths": (8, 16, 32)}
