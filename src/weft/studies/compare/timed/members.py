"""Who takes part in a comparison by time besides the networks from scratch, and how fast each of them is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from weft.errors import WeftError, WorkFailed
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.run_configs import run_config
from weft.studies.compare.timed.clock import Gate, as_duration, in_words
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.runs import GROWN
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.sizes import IN_RUNS
from weft.studies.compare.timed.state import Setting
from weft.studies.compare.trained import Probe, finetuned, heads, trained_probes
from weft.studies.engine import tasks
from weft.studies.engine.runner import TooLate
from weft.training.config import seconds
from weft.training.finetuning.config import PROBED_ROWS

PROBING = 0.04  # of the time goes into timing steps, about; after that no further sizes are timed
TIMING = 0.2  # of the time, after which candidates that have not been timed are left out
LATEST_TIMING = 0.5  # of the time, after which those are ended that are being timed at first
NARROW_FROM = 300.0  # seconds of a comparison, from which on networks may be trained in a narrower number format
LEAST_TIMING = 10.0  # seconds that go into it however short the time
PROBE_SHARE = 0.16  # of the time may go into the features of a trained network, at most
READERS = 2  # times as much of a trained encoder of texts, as networks stand on what it reads, too
REFITTED = 2.0  # times the time that probes were fitted for, from which on they are fitted anew
BACKWARD, FINETUNING_BATCH = 3, 32  # times a forward pass that a step takes, and its examples
EMBEDDING = 0.25  # of the time that is left may go into the embeddings of a trained network, at most
FEATURES_LATE = 1.5  # times what they are predicted to take may the features take that a head starts from
FINETUNING_STEPS = 8  # of a trained network, below which it is not fine-tuned
MOST_JUDGED, LONG_RUN = 4, 0.05  # times its training, or share of the time, that a run of it may take when judged


def add_probes(session: Session) -> None:
    """Set trained networks beside the others, each a linear probe with a candidate's share of the time; an encoder of
    texts, on which several candidates stand, has two.

    Those that there was no time for are looked for again where there is more of it; where there is twice as much, the
    others are given more rows or larger images.
    """
    state, clock = session.state, session.clock
    changed = forget_changed(session)
    if state.probes is None or changed or clock.total > state.total:
        of_each = IN_RUNS * clock.total * session.workers / (len(session.learnt) + 2)
        shares = READERS if session.study.facts.modality == "text" else 1
        within = shares * min(PROBE_SHARE * clock.total, of_each)  # a probe is one run, on one worker
        if session.asked.time is None:
            within = seconds(session.asked.amount or "1s") * (session.asked.seeds + 1)
        anew = clock.total >= REFITTED * state.probed
        here = set() if anew else {probe.candidate.start for probe in state.probes or []}
        for found in trained_probes(session.of_trained, session.study.facts, session.pool, within, session.tell, here):
            take_in(session, found)
        state.probes, state.probed = state.probes or [], clock.total if anew else state.probed
        session.save()
    probes = [probe.candidate for probe in state.probes]
    session.study = replace(session.study, candidates=[*session.study.candidates, *probes])
    known = {sentence for _, sentence in state.story}
    for probe in probes:
        words = f"{probe.name}: a linear probe of a trained network, {learns_from(session, probe)}"
        (session.say if words in known else session.tell)(words)  # the report has it once, not by every session


def learns_from(session: Session, candidate: Candidate) -> str:
    """The rows that a trained network is given, and their image side or length, in words."""
    side = f", images at {candidate.img_size} px" if candidate.img_size else ""
    side = f", texts cut at {candidate.max_length} tokens" if candidate.max_length else side
    return f"{round(candidate.share * session.study.facts.rows):,} training rows{side}"


def take_in(session: Session, probe: Probe) -> None:
    """One more probe, or one of more rows or larger images in the place of another."""
    state, start = session.state, probe.candidate.start
    known = {each.candidate.start: each for each in state.probes or []}
    if start in known and not is_more(probe.candidate, known[start].candidate):
        return
    weights = session.pool.first(tasks.weights_digest, start)
    known[start] = replace(probe, candidate=replace(probe.candidate, weights=weights))
    state.probes = list(known.values())


def is_more(probe: Candidate, before: Candidate) -> bool:
    """Whether a probe is worth to be fitted again: on larger images, longer texts, or many more rows."""
    side, known = extent(probe), extent(before)
    return side > known or (side == known and probe.share >= GROWN * before.share)


def extent(candidate: Candidate) -> float:
    """How large the images, or how long the texts are that a trained network reads."""
    return candidate.img_size or candidate.max_length or math.inf


def forget_changed(session: Session) -> bool:
    """Try trained networks anew whose weights are others than in an earlier session; whether there are any."""
    state = session.state
    changed = {probe.candidate.start for probe in state.probes or [] if is_changed(session, probe.candidate)}
    for start in sorted(changed):
        session.tell(f"{start} has changed since the last session: what was made of it is made anew")
    if changed:
        state.probes, state.probed = [each for each in state.probes or [] if each.candidate.start not in changed], 0.0
    state.chosen = {name: each for name, each in state.chosen.items() if each.candidate.start not in changed}
    state.fitted = {name: candidate for name, candidate in state.fitted.items() if candidate.start not in changed}
    state.tried = [(setting, length) for setting, length in state.tried if setting.candidate.start not in changed]
    session.study = replace(session.study, trials=session.trials())
    return bool(changed)


def is_changed(session: Session, candidate: Candidate) -> bool:
    """Whether the network that a candidate starts from has other weights by now; what is gone, or a session that did
    not note its weights, cannot tell."""
    try:
        return (
            bool(candidate.weights) and session.pool.first(tasks.weights_digest, candidate.start) != candidate.weights
        )
    except WeftError:
        return False


def add_finetuned(session: Session, stages: Stages) -> None:
    """The trained networks, all of their weights moving, and networks on the embeddings of texts, where there is time
    for some steps. Those of an earlier session follow their probe to more rows and larger images."""
    settings = []
    for number, probe in enumerate(session.state.probes or []):
        settings += embedded(session, number, probe)
        whole = finetuned(probe.candidate)
        expected = stages.full / (BACKWARD * FINETUNING_BATCH * probe.each)
        if is_there(session, whole):
            continue
        if expected < FINETUNING_STEPS / 2:
            tell_late(session, [whole], f"about {max(1, expected):.0f} steps only; give more --time")
        elif not features_are_there(session, probe):
            tell_late(session, [whole], "the features that its head starts from take too long; give more --time")
        else:
            settings.append(as_chosen(session, whole))
    measure_paces(session, settings)
    for setting in settings:
        pace = session.state.paces.get(setting.size)
        if pace is None:
            continue
        if (steps := pace.steps(stages.full)) < FINETUNING_STEPS:
            longer = as_duration(max(session.clock.total, session.clock.spent()) * FINETUNING_STEPS / steps)
            tell_late(session, [setting.candidate], f"{steps} steps only; --time {longer} would do")
        elif (took := pace.seconds(stages.full)) > max(MOST_JUDGED * stages.full, LONG_RUN * session.clock.total):
            told = f"a run takes {in_words(took)} for {in_words(stages.full)} of training, the rest is judging"
            tell_late(session, [setting.candidate], f"{told}; give more --time, or fewer --test-rows")
        elif setting.candidate.name in session.names:
            follow(session, setting, stages)
        else:
            session.add(setting.candidate)
    session.save()


def features_are_there(session: Session, probe: Probe) -> bool:
    """Whether the head of a fine-tuned image network can start from features that are computed already. Where they are
    not, the probe that reads them is run now: while steps are timed, nobody would end it."""
    facts = session.study.facts
    jobs = session.runs.seed(Setting(probe.candidate, 0.0), 0, 0.0)
    if facts.modality != "image" or probe.candidate.share * facts.rows > PROBED_ROWS:  # then its head is drawn
        return True
    if all(session.study.done(job) for job in jobs):
        return True
    clock = session.clock
    end = clock.spent() + FEATURES_LATE * clock.slowness() * session.predicted(jobs)
    return not session.run(jobs, "features", Gate(clock, session.runs.predicted, end))


def follow(session: Session, setting: Setting, stages: Stages) -> None:
    """Have a network of an earlier session go on with the rows and images of its probe, if there is time for a run."""
    if all(session.admits(job) for job in session.runs.seed(setting, 0, stages.full)):
        session.add(setting.candidate)
        session.state.chosen[setting.candidate.name] = setting
        session.tell(f"{setting.candidate.name} goes on with {learns_from(session, setting.candidate)}")
    else:
        tell_late(session, [setting.candidate], "there is no time for a full run; give more --time")


def is_there(session: Session, candidate: Candidate) -> bool:
    """Whether a network is trained already, on as many rows, and images as large or texts as long."""
    known = {each.name: each for each in session.learnt}.get(candidate.name)
    return known is not None and (known.share, extent(known)) == (candidate.share, extent(candidate))


def as_chosen(session: Session, candidate: Candidate) -> Setting:
    """A network at the rate that was chosen for it, on fewer rows perhaps, or else at its usual one."""
    usual = session.usual(candidate)
    return replace(session.state.chosen.get(candidate.name, usual), candidate=candidate)


def tell_late(session: Session, candidates: list[Candidate], why: str) -> None:
    """That there is no time for some networks, or none for more rows than they had."""
    names = ", ".join(candidate.name for candidate in candidates)
    known = all(candidate.name in session.names for candidate in candidates)
    session.tell(f"{names}: rows and images as before: {why}" if known else f"left out: {names}: {why}")


def embedded(session: Session, number: int, probe: Probe) -> list[Setting]:
    """Networks on the embeddings of a trained encoder; these are computed first, once for all runs."""
    facts = session.study.facts
    wanted = [head for head in heads(facts, probe) if not is_there(session, head)]
    if wanted and not probe.layers:
        names, took = ", ".join(head.name for head in wanted), embedding_seconds(session, probe)
        if took * session.clock.slowness() > EMBEDDING * session.clock.left():
            tell_late(session, wanted, f"embeddings take {in_words(took)}; give more --time")
            return []
        rows = learns_from(session, probe.candidate)
        session.tell(f"computing the embeddings of {rows} for {names}: about {in_words(took)}")
        config, probes = run_config(session.asked, finetuned(probe.candidate), 0, facts.rows), session.state.probes
        assert probes is not None
        threads = session.together * session.pool.threads
        within = None if session.asked.time is None else EMBEDDING * session.clock.left()
        try:
            layers = session.pool.first(tasks.embed, config, threads, len(probes), within=within)
        except WeftError as error:
            tell_late(session, wanted, str(error))
            return []
        probes[number] = probe = replace(probe, layers=layers)
        session.save()
    return [as_chosen(session, head) for head in heads(facts, probe) if not is_there(session, head)]


def embedding_seconds(session: Session, probe: Probe) -> float:
    """What the embeddings of the rows of a probe take, with all cores of a machine for them."""
    return probe.seconds / session.together


def time_baseline(session: Session) -> None:
    """How long the classical baseline takes, from a few rows, so that it takes no more than its share; it is left out
    where not even these are done soon."""
    classical = [each for each in session.study.candidates if each.fixed and not each.start]
    if session.state.baseline is not None or not classical or session.asked.time is None:
        return
    config = run_config(session.asked, classical[0], 0, session.study.facts.rows)
    within = timing_limit(session, first=True)
    try:
        session.state.baseline = session.pool.first(tasks.baseline_seconds, config, session.pool.threads, within=within)
    except TooLate as error:
        names = {each.name for each in classical}
        session.tell(f"left out: {', '.join(sorted(names))}: {error}")
        session.without(names)
    except WeftError:  # which its run will say again
        session.state.baseline = 0.0


def measure_paces(session: Session, settings: list[Setting]) -> None:
    """Time the steps of what has not been timed before, with all workers busy."""
    state, rows = session.state, session.study.facts.rows
    wanted = {setting.size: setting for setting in settings if setting.size not in state.paces}
    if not wanted:
        return
    duration = min(1.0, PROBING * session.clock.total * session.workers / len(wanted) / 4)  # timed twice
    trouble: dict[str, WeftError] = {}
    usual = {session.usual(candidate).size for candidate in session.learnt}
    began, sizes = session.clock.spent(), sorted(wanted, key=lambda size: size not in usual)
    for first in range(0, len(sizes), session.workers):
        these = sizes[first : first + session.workers]
        share = (TIMING if these[0] in usual else PROBING) * session.clock.total
        within = max(LEAST_TIMING, min(share, session.clock.left()))
        if session.asked.time is not None and session.clock.spent() - began > within:
            answers: list[Any] = [WeftError("there is no time to time its steps; give more --time")] * len(these)
        else:
            configs = [run_config(session.asked, wanted[size].candidate, 0, rows) for size in these]
            asked = [(each, session.pool.threads, duration, *narrow_formats(session)) for each in configs]
            answers = session.pool.each(tasks.pace, asked, within=timing_limit(session, these[0] in usual))
        for size, answer in zip(these, answers, strict=True):
            name = wanted[size].candidate.name
            if not isinstance(answer, WeftError):
                state.paces[size] = Pace(*answer)
                continue
            other = size not in usual and name in session.names
            session.tell(f"a setting of {name} is not tried: {answer}" if other else f"left out: {name}: {answer}")
            if size in usual:
                trouble[name] = answer
    if session.asked.time is None or session.clock.spent() - began <= PROBING * session.clock.total:
        time_again(session, {size: wanted[size] for size in sizes if size in state.paces}, duration)
    session.save()
    leave_out(session, trouble)


def time_again(session: Session, settings: dict[str, Setting], duration: float) -> None:
    """Time quick steps once more, and keep what is lower: a machine that was disturbed for a moment would give a
    network fewer steps than its time allows."""
    state, rows = session.state, session.study.facts.rows
    asked, quick = [], [size for size in settings if state.paces[size].step < duration]
    for size in quick:
        config = run_config(session.asked, settings[size].candidate, 0, rows)
        execution = replace(config.execution, precision=session.runs.precision(state.paces[size]))
        asked.append((replace(config, execution=execution), session.pool.threads, duration))
    answers = session.pool.each(tasks.pace, asked, within=timing_limit(session, first=False)) if asked else []
    for size, answer in zip(quick, answers, strict=True):
        if not isinstance(answer, WeftError):
            state.paces[size] = state.paces[size].at_most(*answer[:3])


def narrow_formats(session: Session) -> list[tuple[str, ...]]:
    """The argument for number formats to try beside float32: bf16 where it is left open, and time enough to find out
    whether it works. Predicted numbers would be rounded to eight bits."""
    left_open = session.asked.execution.precision == "auto" and session.study.facts.task in ("classes", "binary")
    alike = not session.pool.settled or bool(session.pool.processor)  # what works on one machine works on all
    return [("bf16",)] if left_open and alike and session.clock.total >= NARROW_FROM else []


def timing_limit(session: Session, first: bool) -> float | None:
    """Seconds after which steps that are still being timed are left alone. Before the first networks are timed images
    are decoded, once for all; before a trained one its head is solved, which takes long where classes are many."""
    if session.asked.time is None:
        return None
    share = LATEST_TIMING if first else TIMING
    return max(LEAST_TIMING, min(share * session.clock.total, session.clock.left()))


def leave_out(session: Session, trouble: dict[str, WeftError]) -> None:
    """Go on without the candidates that cannot be trained here; where none can and processes died, that is a failure
    of the work rather than of what was asked for."""
    deaths = [error for error in trouble.values() if isinstance(error, WorkFailed)]
    if deaths and session.names <= trouble.keys():
        names = ", ".join(trouble)
        raise WorkFailed(f"stopped: no candidate can be trained here ({names}); the last one: {deaths[-1]}")
    session.without(set(trouble))
