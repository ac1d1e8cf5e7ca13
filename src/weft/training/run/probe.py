"""Some steps before the run: how long it will take, how much memory, at what cost, and in which form it is fastest.

What is found here is stored in the plan before step 0; the weights are put back afterwards. Where a time was asked for,
a few examples are timed first, then whole steps for a tenth of that time at most, and the number of steps follows; the
loop looks at the clock again now and then (`Plan.revision`).
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from weft import machine
from weft.data.batch.loader import Batch
from weft.data.open.splits import spread
from weft.errors import WeftError
from weft.networks.config import NetworkConfig
from weft.training.config import Precision, seconds, to_dict
from weft.training.finetuning.config import RATE_SHARE, FinetuneConfig
from weft.training.loop.events import outputs_of, save
from weft.training.loop.loop import update
from weft.training.loop.progress import Progress, capture, restore
from weft.training.optim import rate_finder
from weft.training.optim.optimisers import USUAL_RATE
from weft.training.optim.rate_finder import draw, find_rate
from weft.training.pretraining.config import PretrainConfig
from weft.training.run import memory, rehearsal
from weft.training.run.context import Run
from weft.training.run.distributed import scaling_for
from weft.training.run.kinds import AnyConfig
from weft.training.run.plan import Plan, Timing, nearest, steps_asked, warmup_steps
from weft.training.run.settings import fitting

STEPS, SKIPPED = 20, 3  # the first few steps pay for allocation and are left out of the mean
FEW = 2  # examples of the first step that is timed
LEAST = 10  # steps that a run must have: of fewer, a whole one more or less is not near the time asked for
MADE_UP = 0.25  # of the time after the last step: it may come out so different, and only fewer steps make up for it
PROBING = 0.1  # share of the time asked for that may go into measuring
SHARE_TOLD = 0.3  # of the time asked for: what takes more is named where too little is left
LEAVING = 0.5  # seconds from the record to the end of the process
LARGER = 2.0  # an example takes less in a whole batch than in one of a few: by this much at most
EVALUATING = 0.1  # share of the time, at most, that goes into evaluations where their interval is not given
EVALUATIONS = 10  # of a run that has fewer epochs
EVALUATED, TOGETHER = 3, 4  # places in the validation split, and batches at each, that are timed
TRY_FORMATS = 120.0  # seconds of training: to try a format takes two seconds the first time on a machine
TRY_COMPILE = 1200.0  # seconds of eager training: to try takes a minute, which should not be above 5 % of a run
SHAPES = 4  # batches of text differ in width: torch compiles for one, then for any, to train and to evaluate
Judge = Callable[[torch.Tensor, torch.Tensor], object]
NARROW: tuple[Precision, ...] = ("bf16", "fp16")
CHECKPOINT_SECONDS = 60.0
CHECKPOINT_SHARE = 0.005  # of the time, at most: half of what is allowed, since disks vary
STATES = {"gd": 0, "sgd": 0, "momentum": 1, "adagrad": 1, "muon": 2}  # tensors a weight; Adam and its kin have two


def draft(config: AnyConfig, steps_per_epoch: int, fingerprint: str) -> Plan:
    """The plan as far as it is known without measuring."""
    steps = steps_asked(config, steps_per_epoch) or 1
    lr = config.optimisation.lr
    execution = config.execution
    return Plan(
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        fingerprint=fingerprint,
        warmup=warmup_steps(config, steps, steps_per_epoch),
        lr=lr if isinstance(lr, float) else usual_rate(config),
        threads=threads_asked(config),
        precision="float32" if execution.precision == "auto" else execution.precision,
        compile=bool(execution.compile),
        log_every=execution.log_every or max(10, steps // 1000),
        eval_every=execution.eval_every or steps_per_epoch,
        checkpoint_every=execution.checkpoint_every or steps,
        seconds=0.0,
        memory=0,
        cost=0.0,
        stop_after=stop_after(config, execution.eval_every or steps_per_epoch),
    )


def threads_asked(config: AnyConfig) -> int:
    return config.execution.threads or machine.cores()


def usual_rate(config: AnyConfig) -> float:
    """The optimiser's usual rate; a trained network is moved by less."""
    trained = isinstance(config, FinetuneConfig) and not config.thawing.frozen
    return USUAL_RATE[config.optimisation.optimiser] * (RATE_SHARE if trained else 1)


def stop_after(config: AnyConfig, eval_every: int) -> int | None:
    """Steps without a better evaluation after which to stop."""
    if isinstance(config, PretrainConfig) or not config.patience:
        return None
    return config.patience * eval_every


def measure(run: Run, started: float, tested: int, judge: Judge) -> Plan:
    """The finished plan. `started` is when the command began (perf_counter): `--time` counts from there. `tested` is
    how many batches the test split has, and `judge` what is done at the end with outputs and targets of a split.

    Leaves the checkpoint of step 0 behind, and the run as it was.
    """
    beginning = Progress.begin(run.team.device)
    save_seconds = timed(lambda: save(run, beginning)) * growth(run)
    start = capture(beginning, run.core, run.optimiser, run.ema)
    run.plan = dataclasses.replace(run.plan, memory=predicted_memory(run))
    run.team.use(run.plan.precision)
    if run.plan.compile:
        run.core.compile()
    asked = run.config.duration.time
    probing = PROBING * seconds(asked) if asked else math.inf
    if asked:
        require_some_steps(run, asked, started)
    step_seconds = mean_step(run, run.plan.precision, probe_steps(run), within=probing)
    lr = run.plan.lr
    if run.config.optimisation.lr == "auto":
        restore(start, run.core, run.optimiser, run.ema)
        lr = search_rate(run, step_seconds)
        restore(start, run.core, run.optimiser, run.ema)
    until = time.perf_counter() + probing
    precision, step_seconds = choose_precision(run, step_seconds, until)
    compiled, step_seconds = choose_compile(run, precision, step_seconds, until)
    evaluation = evaluation_seconds(run, probing)
    last = last_evaluations(run, tested, evaluation, probing) if asked else 0.0
    judging = judging_seconds(run, judge, tested) if asked else 0.0
    restore(start, run.core, run.optimiser, run.ema)
    rest, passed = None, time.perf_counter() - started
    ending = evaluation * (1 + last) + judging + save_seconds / growth(run) + LEAVING  # writes the network once more
    if asked:
        rest = run.team.share(seconds(asked) - passed - ending)
    found = dataclasses.replace(run.plan, lr=lr, precision=precision, compile=compiled, last_evaluations=last)
    plan = schedule(found, run.config, step_seconds, evaluation, save_seconds, rest)
    if asked and run.team.anyone(plan.steps < LEAST or (plan.limit or 0.0) < MADE_UP * ending):  # ranks end together
        raise too_short(run, asked, passed, plan.seconds / plan.steps, ending)
    return Plan(**run.team.share(dataclasses.asdict(plan)))


def require_some_steps(run: Run, asked: str, started: float) -> None:
    """Refuse a time that a handful of steps does not fit into, from steps of a few examples: a whole one might take
    longer than all of the time. The first may be slow for reasons of its own, and is repeated if there is time."""
    batch, scaling = run.train[0], scaling_for(run.plan.precision)
    for group in run.optimiser.param_groups:
        group["lr"] = 0.0

    def fastest(examples: int) -> float:
        few = first_examples(batch, examples)
        first = timed(lambda: update(run, few, 0, scaling))
        if run.team.anyone(time.perf_counter() - started + first > seconds(asked)):
            return first
        return min(first, timed(lambda: update(run, few, 0, scaling)))

    def require(step: float) -> None:
        passed = time.perf_counter() - started
        if run.team.anyone(LEAST * step > seconds(asked) - passed):
            raise too_short(run, asked, passed, step)

    few = fastest(FEW)
    require(few)
    require(whole_step(few, fastest(2 * FEW), len(batch.index)))


def whole_step(few: float, more: float, examples: int) -> float:
    """Seconds, at least, of a step of so many examples, from steps of `FEW` and of twice as many: what grows with the
    examples, less by what larger batches gain, and what does not, such as the update of many weights."""
    each = max(0.0, more - few) / FEW
    return max(0.0, few - FEW * each) + each * examples / LARGER


def first_examples(batch: Batch, count: int) -> Batch:
    """A part of a batch."""
    inputs = {name: value[:count] for name, value in batch.inputs.items()}
    return Batch(inputs, batch.targets[:count], batch.index[:count], min(count, batch.size))


def too_short(run: Run, asked: str, passed: float, step: float, ending: float = 0.0) -> WeftError:
    """The sentence for a time in which next to nothing could be learnt: what has taken it or will, and what would do,
    as a `step` takes so many seconds and all after the last one `ending`."""
    spent = {"start and probe took": passed, "the last evaluations take": ending}
    known = [f"{what} {value:.0f} s" for what, value in spent.items() if value > SHARE_TOLD * seconds(asked)]
    besides = f" ({', '.join(known)})" if known else ""
    needed = max(LEAST * step, MADE_UP * ending)
    least = math.ceil(passed + ending + needed)
    share = (seconds(asked) - passed - ending) / needed
    network, trained = getattr(run.core, "config", None), isinstance(run.config, FinetuneConfig)
    found = fitting(network, share, trained) if share > 0 and isinstance(network, NetworkConfig) else []
    labelled, size = not isinstance(run.config, PretrainConfig), run.config.optimisation.batch
    found += [f"--batch-size {max(1, size // 4)}"] if size > 8 and share > 0 else []
    found += ["fewer --test-rows"] if labelled and ending > SHARE_TOLD * seconds(asked) else []
    images = run.train[0].inputs["x"]
    side = f" of {images.shape[-1]} px" if images.ndim == 4 else ""
    return WeftError(
        f"too few steps of {run.config.model} with a batch of {size}{side} fit into --time {asked}{besides}"
        f"; {', '.join([f'give at least {least}s', *found])}, or count in --steps"
    )


def evaluation_seconds(run: Run, within: float = math.inf) -> float:
    """Seconds of an evaluation, from batches in several places of it, since some texts are longer than others; several
    in each, as in an evaluation others are made ready meanwhile, which takes time from the network.

    The first is computed once before: it may hold a compilation, or the loading of a block of a streamed source. Where
    that took longer than `within`, there is no time for others.
    """
    if run.validation is None:
        return 0.0
    each = timed(lambda: evaluate_once(run))
    if run.team.anyone(each > within):
        run.display.say(f"the first batch of an evaluation took {each:.0f} s; the plan counts on as much for each")
        return each * len(run.validation)
    taken: list[float] = []
    for first in spread(max(1, len(run.validation) - TOGETHER + 1), EVALUATED).tolist():
        last = min(first + TOGETHER, len(run.validation))
        taken.append(timed(partial(evaluate_some, run, first, last)) / (last - first))
        if run.team.anyone(TOGETHER * sum(taken) > within / 2):
            break
    return statistics.fmean(taken) * len(run.validation)


def judging_seconds(run: Run, judge: Judge, tested: int) -> float:
    """Seconds that it takes to judge the answers to validation and test at the end, from those to one batch, repeated.

    Judged once before: to load the libraries of metrics takes a second, many on a busy machine, which is over then."""
    if run.validation is None:
        return 0.0
    outputs, targets = outputs_of(run.net, [run.validation[0]], run.team)
    judge(outputs, targets)
    times = max(tested, len(run.validation))
    many = [rows.repeat(times, *(1 for _ in rows.shape[1:])) for rows in (outputs, targets)]
    return timed(lambda: judge(*many))


def last_evaluations(run: Run, tested: int, evaluation: float, within: float = math.inf) -> float:
    """Evaluations after that of the last step, of the best weights, in those on validation of `evaluation` seconds: on
    test; and on validation once more where steps are in another format than float32, in which these are made."""
    if not run.validation:
        return 0.0
    used, test = run.team.precision, tested / len(run.validation)
    if used == "float32":
        return test  # the best answers on validation are kept
    run.team.use("float32")
    wide = evaluation_seconds(run, within)
    run.team.use(used)
    return (1 + test) * (wide / evaluation if evaluation else 1.0)


def adopt(run: Run, known: Plan) -> Plan:
    """A plan that was measured for a run like this one, in place of a probe; leaves what `measure` leaves."""
    save(run, Progress.begin(run.team.device))
    if known.compile:
        run.core.compile()
    return dataclasses.replace(known, limit=None)  # runs that differ by their seed alone take as many steps


def from_timing(run: Run, known: Timing) -> Plan:
    """The plan of a run whose steps were timed before, in place of a probe; leaves what `measure` leaves."""
    save_seconds = timed(lambda: save(run, Progress.begin(run.team.device))) * growth(run)
    plan = dataclasses.replace(run.plan, memory=predicted_memory(run))
    if plan.compile:
        run.core.compile()
    return schedule(plan, run.config, known.step, known.evaluation, save_seconds, None)


def probe_steps(run: Run) -> int:
    """Steps to time: as many as tell, but no more than a small part of a short run."""
    return STEPS if run.config.duration.time else max(SKIPPED, min(STEPS, run.plan.steps // 25))


def evaluation_interval(plan: Plan, config: AnyConfig, step: float, evaluation: float, rest: float) -> int:
    """Steps between evaluations: an epoch, or more often where there are few, as long as they do not cost much."""
    if config.execution.eval_every is not None:
        return plan.eval_every
    often = min(plan.steps_per_epoch, math.ceil(rest / step / EVALUATIONS))
    return max(1, often, math.ceil(evaluation / (EVALUATING * step)))


def schedule(plan: Plan, config: AnyConfig, step: float, evaluation: float, saving: float, rest: float | None) -> Plan:
    """Steps, intervals and predictions from the measured seconds; `rest` is what is left of the time asked for."""
    interval = max(CHECKPOINT_SECONDS, saving / CHECKPOINT_SHARE)
    checkpoint_every = config.execution.checkpoint_every or max(1, math.ceil(interval / step))
    eval_every = plan.eval_every if rest is None else evaluation_interval(plan, config, step, evaluation, rest)
    full_step = step + evaluation / eval_every + saving / checkpoint_every
    limit = None if rest is None else rest - saving  # the last checkpoint
    steps = plan.steps if limit is None else max(1, nearest(limit / full_step))
    return dataclasses.replace(
        plan,
        limit=limit,
        evaluation=evaluation,
        saving=saving,
        eval_every=eval_every,
        stop_after=stop_after(config, eval_every),
        steps=steps,
        warmup=warmup_steps(config, steps, plan.steps_per_epoch),
        log_every=config.execution.log_every or max(10, steps // 1000),
        checkpoint_every=checkpoint_every,
        seconds=steps * full_step,
        cost=steps * full_step / 3600 * config.execution.price_per_hour,
    )


def timed(action: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def mean_step(
    run: Run, precision: Precision, steps: int = STEPS, skipped: int = SKIPPED, within: float = math.inf
) -> float:
    """Mean seconds of a training step, its batch included, over `steps` of them at rate 0, or over fewer when as many
    seconds as given have passed."""
    scaling = scaling_for(precision)
    run.team.use(precision)
    for group in run.optimiser.param_groups:
        group["lr"] = 0.0
    marks = [time.perf_counter()]
    for number, batch in enumerate(run.train.range(0, steps + skipped)):
        update(run, batch, number, scaling)
        if run.team.device.type == "cuda":  # which works on while Python goes ahead
            torch.cuda.synchronize(run.team.device)
        marks.append(time.perf_counter())
        if run.team.anyone(marks[-1] - marks[0] > within):
            break
    skipped = min(skipped, len(marks) - 2)
    return (marks[-1] - marks[skipped]) / (len(marks) - 1 - skipped)


def evaluate_once(run: Run) -> None:
    """The network's outputs for one batch of the validation split."""
    evaluate_some(run, 0, 1)


def evaluate_some(run: Run, first: int, last: int) -> None:
    """The network's outputs for the batches first, …, last - 1 of the validation split."""
    if run.validation is not None:
        outputs_of(run.net, run.validation.range(first, last), run.team)


def predicted_memory(run: Run) -> int:
    """Bytes that the run will take on this process, refused with a sentence when there are not as many."""
    parts = run.config.optimisation.grad_accum_steps
    batch = run.train[0]
    per_example = memory.bytes_per_example(run.core, batch)
    examples = -(-len(batch.index) // parts)
    return memory.check(run.core, per_example, examples, states(run.config), parts * run.team.world)


def states(config: AnyConfig) -> int:
    """Tensors that optimiser and moving average keep for each weight."""
    return STATES.get(config.optimisation.optimiser, 2) + bool(config.optimisation.model_ema_decay)


def growth(run: Run) -> float:
    """How many times the checkpoint of step 0 later ones are: that has no optimiser's state and no best weights."""
    return (2 + states(run.config)) / (2 if run.ema is not None else 1)


def search_rate(run: Run, each: float) -> float:
    """The finder's rate, whose curve is shown; a step takes `each` seconds."""
    steps = search_steps(run, each)
    scaling = scaling_for(run.plan.precision)

    def step(number: int, lr: float) -> float:
        for group in run.optimiser.param_groups:
            group["lr"] = lr * group.get("share", 1.0)
        loss, _, sound = update(run, run.train[number], number, scaling)
        return float(run.team.sum(loss)) if sound else math.nan

    lr, curve = find_rate(step, USUAL_RATE[run.config.optimisation.optimiser], steps)
    if not curve:
        raise WeftError(
            "--lr auto finds no rate: the loss is not finite at the first step already; look for very large numbers "
            "in the inputs, or give a rate with --lr"
        )
    run.display.say(draw(curve, lr))
    run.display.say(f"learning rate {lr:g}, found in {len(curve)} steps")
    return lr


def search_steps(run: Run, each: float) -> int:
    """Steps of the search for a rate: as many as a tenth of the time asked for has room for, refused where that is too
    few to see where the loss is lowest; the same on every rank."""
    asked = run.config.duration.time
    if not asked:
        return rate_finder.STEPS
    steps = int(run.team.share(min(rate_finder.STEPS, PROBING * seconds(asked) / max(each, 1e-9))))
    if steps < rate_finder.FEWEST:
        raise WeftError(
            f"--lr auto takes {rate_finder.FEWEST} steps at least, and {steps} fit into a tenth of --time {asked}; "
            "give a rate with --lr, or more time"
        )
    return steps


def choose_precision(run: Run, plain: float, until: float = math.inf) -> tuple[Precision, float]:
    """The number format asked for, or the one with the fastest step, and its seconds.

    Narrow ones are tried where the run is long enough to gain, a bare product first, each in a process of its own,
    which is given `until` that moment (perf_counter).
    """
    if run.config.execution.precision != "auto":
        return run.plan.precision, plain
    found: dict[Precision, float] = {"float32": 0.9}  # a narrower format must be worth its rounding
    for precision in NARROW if expected_seconds(run, plain) > TRY_FORMATS else ():
        if run.team.rank == 0 and faster_product(run, precision, until):
            found[precision] = rehearse(run, precision, False, until).ratio
    found = run.team.share(found)
    best = min(found, key=lambda precision: found[precision])
    run.team.use(best)
    return best, plain if best == "float32" else plain * found[best]


def expected_seconds(run: Run, step: float) -> float:
    """How long the run will be, as far as it is known now; the same on every rank."""
    asked = run.config.duration.time
    return float(run.team.share(seconds(asked) if asked else run.plan.steps * step))


def faster_product(run: Run, precision: Precision, until: float) -> bool:
    """Whether a format works here and a product of matrices is faster in it: on many CPUs it is ten times slower."""
    within = until - time.perf_counter()
    answer = rehearsal.try_format(precision, run.team.device.type, net=run.core, within=within)
    note(run, precision, answer)
    return answer.works and answer.ratio < 1


def rehearse(run: Run, precision: Precision, compiled: bool, until: float) -> rehearsal.Answer:
    """Steps of this run in another form, in a process of its own, for which there must be memory, and time."""
    assert run.store is not None
    if memory.available(run.team.device) < run.plan.memory:
        answer = rehearsal.Answer(False, why="there is no memory for a second process to try it")
    else:
        config = run.config
        shape = [to_dict(config)[name] for name in ("model", "network", "transform", "augment", "optimisation")]
        shape.append(sum(p.numel() for p in run.core.parameters()))
        folder, threads = run.store.folder.parent, torch.get_num_threads()
        within = until - time.perf_counter()
        answer = rehearsal.try_steps(folder, precision, compiled, run.team.device.type, threads, shape, within)
    note(run, f"torch.compile in {precision}" if compiled else precision, answer)
    return answer if answer.works else dataclasses.replace(answer, ratio=math.inf)


def note(run: Run, what: str, answer: rehearsal.Answer) -> None:
    """What was tried and does not work here is told, and goes into the record."""
    if not answer.works:
        sentence = f"{what} is not used here: {answer.why}"
        run.display.say(sentence)
        run.plan = dataclasses.replace(run.plan, tried=(*run.plan.tried, sentence))


def choose_compile(run: Run, precision: Precision, eager: float, until: float = math.inf) -> tuple[bool, float]:
    """Whether to compile, and the seconds of a step: when the saving over the run exceeds the time to compile. To try
    it is given `until` that moment."""
    if run.config.execution.compile is not None:
        return run.plan.compile, eager
    total = expected_seconds(run, eager)
    varying = "mask" in run.train[0].inputs
    if total <= TRY_COMPILE * (SHAPES if varying else 1):
        return False, eager
    run.display.say("trying torch.compile in a process of its own, which takes a minute or more")
    answer = rehearse(run, precision, True, until) if run.team.rank == 0 else rehearsal.Answer(False)
    ratio, first = run.team.share([answer.ratio, answer.first])
    pays = bool((1 - ratio) * total > first)
    if pays:
        run.core.compile()
    return pays, eager * ratio if pays else eager
