"""Which settings each candidate is trained with: as many are tried for all, by halving on the validation split."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from weft.errors import WeftError
from weft.report.columns import scaled
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.run_configs import run_config
from weft.studies.compare.timed.layout import KEPT, Stages
from weft.studies.compare.timed.members import measure_paces
from weft.studies.compare.timed.plan import trial_side
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.sizes import other_settings
from weft.studies.compare.timed.state import Setting
from weft.studies.engine import tasks
from weft.studies.engine.study import Job, why_missing

READING = 0.25  # of the time that is left may go into reading all images at a larger side

Tried = dict[str, list[tuple[Setting, Job]]]  # by candidate


def choose_settings(session: Session, stages: Stages, candidates: list[Candidate]) -> None:
    """For each candidate the setting with the best validation score: many in short runs, few in longer ones."""
    others = settings_beside(session, stages, candidates)
    if any(len(settings) > KEPT for settings in others.values()):
        tried = run_trials(session, others, stages.short)
        others = {name: [setting for setting, _ in best_first(session, pairs)[:KEPT]] for name, pairs in tried.items()}
    untried = {c.name: session.usual(c) for c in candidates if c.start or stages.retried}  # no first run as long
    several = {name: [untried[name], *each] if name in untried and each else each for name, each in others.items()}
    last = run_trials(session, several, stages.trial)
    for candidate in candidates:
        usual, entries = session.usual(candidate), last.get(candidate.name, [])
        if candidate.name not in untried:
            entries = [(usual, session.runs.seed(usual, 0, stages.first)[0]), *entries]
        best = best_first(session, entries)
        session.state.chosen[candidate.name] = best[0][0] if best else usual
    if others:
        tell_choice(session, stages, candidates)
    session.save()
    if others and session.study.jobs and session.has_time():
        session.keep()
        session.show_so_far()


def settings_beside(session: Session, stages: Stages, candidates: list[Candidate]) -> dict[str, list[Setting]]:
    """The settings of each candidate that are tried beside its usual ones, their steps timed."""
    if stages.settings < 2:
        return {}
    side, facts = trial_side(session, stages), session.study.facts
    found = {c.name: other_settings(session.asked, c, facts, stages.settings, side) for c in candidates}
    several, known = [setting for settings in found.values() for setting in settings], session.state.paces
    read_larger(session, [setting.candidate for setting in several if setting.size not in known])
    measure_paces(session, several)
    return {name: [each for each in settings if each.size in known] for name, settings in found.items()}


def read_larger(session: Session, candidates: list[Candidate]) -> None:
    """Read all images once at the side of those that take larger ones: that is no part of the time of a step."""
    sides = {candidate.img_size: candidate for candidate in candidates if candidate.img_size and not candidate.start}
    within = None if session.asked.time is None else READING * session.clock.left()
    for candidate in sides.values():
        config = run_config(session.asked, candidate, 0, session.study.facts.rows)
        with suppress(WeftError):  # which timing its steps will say
            session.pool.first(tasks.look, config, within=within)


def run_trials(session: Session, settings: dict[str, list[Setting]], length: float) -> Tried:
    """A trial of each setting, which leaves the test split alone."""
    usual = {candidate.name: candidate for candidate in session.learnt}

    def trial(setting: Setting) -> Job:
        job = session.runs.trained(setting, 0, length, tested=False)
        return replace(job, size=other_size(setting.candidate, usual[job.candidate]))

    tried = {name: [(setting, trial(setting)) for setting in several] for name, several in settings.items()}
    pairs = [pair for several in tried.values() for pair in several]
    left = session.run([job for _, job in pairs], "settings") if pairs else []
    known = {job.name for job in [*session.study.trials, *left]}
    ended = [(setting, job) for setting, job in pairs if job.name not in known]
    new = [(setting, job) for setting, job in ended if session.study.done(job)]
    for _, job in (pair for pair in ended if pair not in new):  # its process died: another setting is chosen
        session.tell(f"not tried: {job.candidate}, {job.which}: {why_missing(session.study.folder, job.name).reason}")
    session.study = replace(session.study, trials=[*session.study.trials, *(job for _, job in new)])
    session.state.tried += [(setting, length) for setting, _ in new]
    session.save()
    return tried


def other_size(candidate: Candidate, usual: Candidate) -> str:
    """Parameters and image side of a candidate in words, where they are not its usual ones."""
    own, known = (scaled(each.count.get("params", 0)) for each in (candidate, usual))
    side = f" at {candidate.img_size} px" if candidate.img_size != usual.img_size else ""
    return f" with {own} parameters{side}" if own != known else side


def best_first(session: Session, pairs: list[tuple[Setting, Job]]) -> list[tuple[Setting, Job]]:
    return sorted(pairs, key=lambda pair: -session.validation(pair[1]))


def tell_choice(session: Session, stages: Stages, candidates: list[Candidate]) -> None:
    """The settings that won."""
    chosen = session.state.chosen
    told = ", ".join(f"{candidate.name} {in_words(chosen[candidate.name])}" for candidate in candidates)
    session.tell(f"settings chosen on validation: {told}")
    session.state.notes = [f"up to {stages.settings} settings were tried for every candidate"]
    session.study = replace(session.study, notes=session.state.notes)


def in_words(setting: Setting) -> str:
    candidate = setting.candidate
    side = f", {candidate.img_size} px" if candidate.img_size else ""
    side = f", texts of {candidate.max_length} tokens" if candidate.max_length else side
    size = f" with {candidate.count['params']:,} parameters" if candidate.count else ""  # a trained network has its own
    return f"at {setting.lr:g}{size}{side}"
