"""The plan of a comparison by time: laid out before the first run, told, and cut where runs take longer."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import chain
from statistics import median

from weft.errors import WeftError
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.run_configs import EPOCHS, SHARES, run_config
from weft.studies.compare.timed.clock import as_duration, in_words
from weft.studies.compare.timed.layout import SHORTER, Room, Stages, fits, lay_out, rungs
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.sizes import other_side
from weft.studies.compare.trained import heads
from weft.studies.engine import tasks
from weft.studies.engine.study import Job
from weft.terminal import how_many
from weft.training.config import OptimisationConfig, seconds

EARLY = 0.2  # of the time, within which the first leaderboard is there
FIXED_EARLY = 0.5  # of that time may go into runs that no seed changes; others of them come later
PASSES = 100  # epochs of a run, at most
SETTINGS = 6  # of each candidate, by default
DECODING = 0.05  # of the time may go into reading all images once more, at another side
THOROUGH = 5  # seeds of what is called a thorough answer
MOST_LATE = 0.5  # of the networks, whose full runs may be late, before the leaderboard stays that of short runs
ROOMIER = 1.2  # times the least that would do, which is named where a time is too short


def planned(session: Session) -> Stages:
    """The lengths of runs that fit into the time; refused where not even a step of each does.

    For the same time they are as they were, and where it is spent. With more time the settings that were chosen are
    kept, and runs get longer, or there are more of them.
    """
    state, before = session.state, session.state.stages
    if before is not None and state.total == session.clock.total and session.asked.amount is None:
        return before
    stages = laid_out(session)
    if stages is None and state.probes and not state.chosen:  # rather an answer without them than none
        leave_probes(session)
        stages = laid_out(session)
    if stages is None:
        if before is None or not state.chosen:
            raise too_short(session)
        tell_spent(session, before)
        return before
    if before is not None and state.chosen:
        stages = further_seeds(session, stages, before) or replace(
            stages, first=before.first, full=max(stages.full, before.full), settings=before.settings
        )
    state.stages, state.total, state.adapted = stages, session.clock.total, False
    session.save()
    return stages


def further_seeds(session: Session, longer: Stages, before: Stages) -> Stages | None:
    """The runs of before with as many seeds as are asked for now, if there is time for those that are not there yet and
    not for as many of `longer` runs."""
    wanted = session.asked.seeds
    if not max(before.seeds, longer.seeds) < wanted:
        return None
    rest = replace(before, seeds=max(0, wanted - session.before), settings=1)
    return replace(before, seeds=wanted) if fits(session.paces(), rest, room_in(session)) else None


def laid_out(session: Session) -> Stages | None:
    """The longest runs that fit into what is left of the time; None where not even a step of each does."""
    asked, state = session.asked, session.state
    if asked.amount is not None:
        return stages_of_amount(asked, asked.amount)
    paces, probes = session.paces(), state.probes or []
    above = [head for probe in probes for head in heads(session.study.facts, probe)]
    further = 0 if state.chosen else len(probes) + len(above)
    longer = [max(paces, key=lambda pace: pace.step)] * further  # as if they were fine-tuned, too
    embedding = sum(probe.seconds for probe in probes if above and not probe.layers)  # the same rows once more
    fixed = session.predicted(job for jobs in early_fixed(session).values() for job in jobs)
    room = room_in(session)
    room = replace(
        room,
        left=room.left - embedding / session.together,
        first_by=until_early(session) - fixed / session.workers,
    )
    return lay_out(paces + longer, room, asked.seeds, 1 if state.chosen else settings_of(asked))


def settings_of(asked: ComparisonConfig) -> int:
    """How many are tried for each candidate, its usual ones included, where there is time."""
    return (SETTINGS if asked.trials is None else asked.trials) or 1


def stages_of_amount(asked: ComparisonConfig, amount: str) -> Stages:
    """The stages where it was said how long every run trains."""
    full = seconds(amount)
    return Stages(full / SHORTER, full, settings_of(asked), asked.seeds)


def leave_probes(session: Session) -> None:
    """Go on without the trained networks, which are looked for again where there is more time."""
    for probe in session.state.probes or []:
        session.tell(f"left out: {probe.candidate.start}: there is no time for it; give more --time")
    names = {probe.candidate.name for probe in session.state.probes or []}
    kept = [candidate for candidate in session.study.candidates if candidate.name not in names]
    session.study, session.state.probes = replace(session.study, candidates=kept), []


def too_short(session: Session) -> WeftError:
    """The sentence for a time in which not even a step of each candidate fits."""
    paces = session.paces()
    several = f" of each of {len(paces)} candidates" if len(paces) > 1 else ""
    return WeftError(
        f"--time {session.asked.time} is too short for a step{several}; give at least "
        f"{as_duration(ROOMIER * session.until(0.0, seeds=2))}{', or fewer --models' if several else ''}"
    )


def tell_spent(session: Session, before: Stages) -> None:
    """That earlier sessions have used the time up, and with how much more there would be a further seed."""
    more = as_duration(ROOMIER * session.until(before.full))
    session.tell(f"{in_words(session.clock.spent())} are spent already: this is what there is; --time {more} goes on")


def until_early(session: Session) -> float:
    """Seconds until the first leaderboard is to be there, less what it takes to draw it."""
    return EARLY * session.clock.total - session.clock.spent() - session.clock.reserve


def early_room(session: Session) -> float:
    """The same, and never less than what drawing takes: nobody minds that much."""
    return max(session.clock.reserve, until_early(session))


def early_fixed(session: Session) -> dict[str, list[Job]]:
    """The runs for the first leaderboard that no seed changes, the shortest first: those that leave time for the runs
    of networks. The others come with the full runs."""
    every = session.fixed()
    if session.asked.time is None:
        return every
    room = early_room(session)
    found: dict[str, list[Job]] = {}
    taken = 0.0
    for name, jobs in sorted(every.items(), key=lambda item: session.predicted(item[1])):
        taken += session.predicted(jobs)
        if max(taken / session.workers / FIXED_EARLY, *(session.predicted([job]) for job in jobs)) <= room:
            found[name] = jobs
    return found


def room_in(session: Session) -> Room:
    """What runs have to fit into from now on."""
    longest = PASSES * session.epoch * max(pace.step for pace in session.paces())
    shares = 1 + len(SHARES) * session.asked.learning_curve
    begun = session.state.stages.first if session.state.stages and session.state.chosen else None
    left = (session.clock.left() - session.pending() / session.workers) / max(1.0, session.clock.slowness())
    return Room(left, math.inf, session.workers, longest, shares, session.runs.folds, begun, session.batch)


def adapted(session: Session, stages: Stages) -> Stages:
    """The stages with fewer settings, seeds or steps where the first runs took longer than was predicted.

    Once a plan: after an interruption, trials that are done would be counted as if they were still to come.
    """
    if session.asked.time is None or session.state.adapted:
        return stages
    session.state.adapted = True
    session.save()
    room = replace(room_in(session), longest=stages.full, begun=stages.first)
    found = lay_out(session.paces(), room, stages.seeds, stages.settings)
    if found is None:
        found = replace(stages, full=stages.first, settings=1, seeds=1)
    return changed(session, stages, found)


def shortened(session: Session, stages: Stages) -> Stages:
    """The stages with full runs that every candidate can make once in the time that is left.

    Where there is no such length, that at which most of them have one already, if there is; so what is finished stays
    the leaderboard however often the command is repeated.
    """
    if session.asked.time is None:
        return stages
    settings = [setting for name, setting in session.state.chosen.items() if name in session.names]
    slowness, each = max(1.0, session.clock.slowness()), max(0.0, session.clock.left())  # seconds of a worker
    left = max(0.0, each * session.workers - session.pending())
    lengths = list(rungs(stages.full, stages.first))

    def missing(full: float) -> list[Job]:
        jobs = [job for setting in settings for job in session.runs.seed(setting, 0, full)]
        return [job for job in jobs if not session.study.done(job)]

    def late(full: float) -> float:
        return len({job.candidate for job in missing(full)}) / len(settings)

    def timely(full: float) -> bool:
        longest = max((session.runs.predicted(job) for job in missing(full)), default=0.0)
        return session.predicted(missing(full)) * slowness <= left and longest * slowness <= each

    fitting = (full for full in lengths if timely(full))
    mostly = (full for full in lengths if late(full) <= MOST_LATE)
    return changed(session, stages, replace(stages, full=next(chain(fitting, mostly), stages.full)))


def changed(session: Session, before: Stages, after: Stages) -> Stages:
    """Keep and tell what had to be changed."""
    if after != before:
        settings = f", {after.settings} settings" if after.settings > 1 else ", usual settings alone"
        settings = settings if before.settings > 1 else ""
        seeds = how_many(after.seeds, "seed")
        session.tell(f"less time is left than was planned for: {seeds} of {in_words(after.full)} each{settings}")
        session.state.stages = after
        session.save()
    return after


def announce(session: Session, stages: Stages) -> None:
    """The plan: what each candidate gets, when it ends, and what more would take."""
    count, workers = len(session.learnt), session.workers
    beside = f", {workers} side by side" if workers > 1 else ""
    if session.asked.amount is None:
        ends = datetime.now().astimezone() + timedelta(seconds=session.clock.until_end())
        session.tell(f"plan for {in_words(session.clock.total)}, until {ends:%H:%M:%S}:")
    if session.state.chosen:
        session.tell(f"  settings are kept as they were chosen before; {reusable(session, stages)}")
    else:
        networks = f"{count} network{'s' if count > 1 else ''}"
        length = f"{in_words(stages.first)} of training each{beside}"
        session.tell(f"  a first leaderboard: {networks}, {length}{late(session)}")
        if stages.settings > 1:
            what = "rates, sizes and image sides" if trial_side(session, stages) else "rates and sizes"
            session.tell(f"  then up to {stages.settings} settings of each ({what}), judged on validation")
    if session.runs.folds > 1:
        folds = session.runs.folds
        session.tell(f"  every seed is a cross-validation: {folds} runs, each row tested by one that never saw it")
    seeds, length = how_many(stages.seeds, "seed"), in_words(stages.full)
    session.tell(f"  then {seeds} of each, {length} of training a run; more while time is left")
    session.tell(f"  steps of a run: {steps_in_words(session, stages)}")
    if narrow := [each.name for each, pace in zip(session.learnt, session.paces(), strict=True) if is_narrow(pace)]:
        session.tell(f"  in bf16, which is faster here: {', '.join(narrow)} (--precision float32 for all alike)")
    if moved := moved_otherwise(session):
        session.tell(f"  {moved} is of networks from scratch alone; trained networks are fine-tuned as is usual")
    if longer_than(stages, session):
        said = f"  a thorough answer ({EPOCHS} epochs, {THOROUGH} seeds) would take {in_words(thorough(session))}"
        session.tell(said)


def late(session: Session) -> str:
    """That the first leaderboard cannot be there early, where what came before the plan took long."""
    if session.asked.time is None or until_early(session) > 0:
        return ""
    return f"; late, as {in_words(session.clock.spent())} went into reading the data and timing steps"


def moved_otherwise(session: Session) -> str:
    """What was asked about how weights are moved that is not for trained networks, where there are such."""
    asked, usual = session.asked.optimisation, OptimisationConfig(opt="muon")
    changed = [field.name for field in fields(usual) if getattr(asked, field.name) != getattr(usual, field.name)]
    follows = asked.opt == "adamw" and asked.lr is not None  # from the rate, which is one of AdamW where given alone
    left = {"batch_size", "opt"} if follows else {"batch_size"}
    flags = [f"--{name.replace('_', '-')}" for name in changed if name not in left]
    return ", ".join(flags) if session.state.probes else ""


def reusable(session: Session, stages: Stages) -> str:
    """How many runs of an earlier session are among those that are planned now."""
    settings = [setting for name, setting in session.state.chosen.items() if name in session.names]
    planned = [job for jobs in session.fixed().values() for job in jobs]
    for seed in range(max(stages.seeds, session.before)):
        planned += [job for setting in settings for job in session.runs.seed(setting, seed, stages.full)]
    count = sum(session.study.finished(job) for job in planned)
    return f"{how_many(count, 'run')} of before can be used again"


def is_narrow(pace: Pace) -> bool:
    return pace.precision not in ("auto", "float32")


def steps_in_words(session: Session, stages: Stages) -> str:
    """What each network gets: its size, image side where there are images, and steps."""
    pairs = zip(session.learnt, session.paces(), strict=True)
    each = ", ".join(f"{candidate.name} {pace.steps(stages.full):,}" for candidate, pace in pairs)
    sizes = sorted(candidate.count.get("params", 0) for candidate in session.learnt if not candidate.start)
    return f"{each} ({sizes[len(sizes) // 2]:,} parameters at first)" if sizes and sizes[0] else each


def trial_side(session: Session, stages: Stages) -> int | None:
    """The image side that is tried beside the usual one, where photographs are large and enough settings are tried."""
    if stages.settings < SETTINGS or session.natural_side is None:
        return None
    asked, facts = session.asked, session.study.facts
    rows = facts.rows + (asked.reading.validation_rows or 0) + (asked.reading.test_rows or 0)
    reading = session.pool.first(tasks.decoding_seconds, run_config(asked, None, 0, facts.rows))
    if reading * rows > DECODING * session.clock.total:
        return None
    return other_side(session.natural_side, stages.full, median(pace.step for pace in session.paces()))


def longer_than(stages: Stages, session: Session) -> bool:
    """Whether runs of a thorough answer are longer than those that are planned, for most of the networks."""
    return median(EPOCHS * session.epoch * pace.step for pace in session.paces()) > stages.full


def thorough(session: Session) -> float:
    """Seconds of a comparison of many epochs and seeds."""
    runs = THOROUGH * session.runs.folds
    full = session.state.stages.full if session.state.stages else 0.0
    each = [runs * pace.seconds(max(full, EPOCHS * session.epoch * pace.step)) for pace in session.paces()]
    return sum(each) / session.workers
