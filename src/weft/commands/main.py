"""The `weft` command: finds the verb, hands it its arguments, turns bad input into one sentence and exit code 2.

Every verb is a module of this folder with a frozen dataclass `Arguments`, from which its flags and help are derived,
and a function `run(arguments)`. Only the verb that was asked for is imported.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import redirect_stderr, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from weft import __version__, machine
from weft.errors import Interrupted, WeftError, WorkFailed, nearest
from weft.imported import trust
from weft.supervision import supervise
from weft.terminal import complain, for_stream, take_any_letter, text_is_text

if TYPE_CHECKING:
    from weft.training.storage.run_folder import RunFolder

VERBS = {
    "models": "list the networks there are",
    "describe": "shapes, parameters, multiply-adds, receptive field and memory of a network",
    "data": "what a source holds, its augmentations on a sheet, the cache",
    "train": "train a network on a source; stop and resume it",
    "finetune": "teach a trained network the targets of a source; or put networks on its embeddings",
    "probe": "which trained network suits this data? simple classifiers on their features",
    "pretrain": "teach a text network the words of a corpus: masked words, next sentences",
    "tokenizer": "train a WordPiece vocabulary on a corpus",
    "eval": "metrics of a trained network on its own source or another",
    "predict": "what a trained network says of files, texts or rows",
    "export": "a trained network as an .onnx file, or as a folder for timm or transformers",
    "runs": "list run folders; prune them",
    "compare": "which network for this data, at equal budget? verdicts, leaderboard and report",
    "leaderboard": "draw a folder of runs again from its records",
    "tune": "search settings of a network; survives a kill, shared by workers",
    "study": "the experiments: list, run and show them",
    "inspect": "look inside a network: activations, gradients, filters, fields, shifts and more",
    "serve": "a page for runs and comparisons, and predictions over HTTP",
    "verify": "repeat steps of a run and compare bits",
    "doctor": "what this machine is and can do, for a bug report",
    "recipes": "known-good configurations",
}

COMPUTING = (  # here, with torch
    "train", "finetune", "probe", "pretrain", "eval", "predict", "export", "inspect", "verify", "serve",
)  # fmt: skip

HELP = """usage: weft VERB [arguments] [--debug]

weft answers, on your own images or text: which network should I train,
and is attention, or convolution, needed at all?

{verbs}

`weft VERB --help` explains a verb, `weft VERB --help-all` has all its options.
`--debug` shows the traceback of an error."""

began: float | None = None  # when the process was started from a shell: what `--time` counts from


def main(words: list[str] | None = None) -> None:
    """Entry point: exit code 0 when all went well, 1 when work failed, 2 for bad input, 130 when interrupted."""
    take_any_letter()
    global began
    from_shell = words is None
    began = time.perf_counter() - time.process_time() if from_shell else None  # Python has started meanwhile
    words = list(sys.argv[1:] if words is None else words)
    if from_shell:
        warnings.formatwarning = warning_line  # type: ignore[assignment]
        interrupt_when_asked_to_end()
    if from_shell and words[:1] and words[0] in COMPUTING and not under_torchrun(words):
        supervise(death_sentence)
    debug = "--debug" in words
    try:
        code = attempt([word for word in words if word != "--debug"], debug)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output, `head` for instance, has seen enough
        leave(sys.stdout)
        code = 0
    except OSError as error:
        if debug:
            raise
        complain(f"cannot use {error.filename or 'standard output'}: {error.strerror}; give another place")
        leave(sys.stdout)
        code = WorkFailed.code
    try:
        sys.stderr.flush()
    except OSError:  # what Python cannot write as it ends would become the exit code
        leave(sys.stderr)
    if from_shell and words[:1] and words[0] in COMPUTING and not under_torchrun(words):
        end(code)
    sys.exit(code)


def end(code: int) -> None:
    """End this process after its threads and what was registered for its end, without the second that Python takes
    to free the libraries that it has loaded, one by one: the system frees them at once."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def interrupt_when_asked_to_end() -> None:
    """From here on SIGTERM and a closed terminal end a verb as Ctrl-C does, also while it still imports.

    What is ignored stays so, as nohup wants it. The ranks of torchrun are left alone: it starts and ends them itself.
    """
    for name in ("SIGTERM", "SIGHUP") if "RANK" not in os.environ else ():
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def attempt(words: list[str], debug: bool) -> int:
    """Run a verb; what it raises for the user becomes a sentence and an exit code."""
    try:
        require_folder()
        return dispatch(words)
    except WeftError as error:
        if debug:
            raise
        complain(str(error))
        return error.code
    except KeyboardInterrupt:
        if debug:
            raise
        complain("interrupted")
        return Interrupted.code
    except (MemoryError, ImportError) as error:  # libraries that find no room for themselves cannot be imported
        if debug:
            raise
        why = " ".join(str(error).split())
        complain(
            f"memory is short, or the installation damaged ({why or 'no memory'}); free memory, or install weft anew"
        )
        return WorkFailed.code
    except RuntimeError as error:
        if debug or not machine.memory_is_short(error):
            raise
        complain("the machine has not enough memory for this; give a smaller network, image side or batch")
        return WorkFailed.code


def warning_line(message: Warning | str, *_: Any) -> str:
    """A warning as people read it, without the line of code that raised it."""
    return f"weft: {for_stream(' '.join(str(message).split()), sys.stderr)}\n"


def leave(stream: TextIO) -> None:
    """Write no more to a standard stream that takes nothing."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def require_folder() -> None:
    """Refuse to work in a folder that has been deleted: libraries would end the process without a sentence."""
    try:
        Path.cwd()
    except OSError as error:
        raise WeftError("the current folder does not exist any more; choose another one") from error


def under_torchrun(words: list[str]) -> bool:
    """Whether torchrun, which tells itself how its processes end, starts this one or is about to be started."""
    return "RANK" in os.environ or any(word.partition("=")[0] == "--processes" for word in words)


def death_sentence(code: int, folder: Path | None) -> str:
    """What is said of a process that a signal has ended, as its exit code tells."""
    died = f"the process died by {machine.death(code)}"
    if folder is None:
        return died
    from weft.training.storage.run_folder import RunFolder

    run = RunFolder(folder)
    return f"{died}; it was {run.phase()} in {folder}: {way_on(run, code == -signal.SIGILL)}"


def way_on(run: RunFolder, illegal: bool) -> str:
    """How to go on with a run whose process died, by an illegal instruction or otherwise.

    Once it is planned it is computed as planned; before that, the flags that avoid such instructions can be given.
    """
    from weft.training.storage.run_folder import has_checkpoints

    try:
        plan = run.plan()
    except WeftError:
        return "start a new run"
    if plan is None:
        flags = " --precision float32 --no-compile" if illegal else ""
        return f"`{run.resuming()}{flags}` begins it again"
    if illegal and (plan.precision != "float32" or plan.compile):
        return "resumed, it would compute as it was planned, so start a new run with these flags"
    goes_on = has_checkpoints(run.checkpoints)
    return f"`{run.resuming()}` goes on from its last checkpoint" if goes_on else "start a new run"


def dispatch(words: list[str]) -> int:
    """Run the verb named by the first word and return its exit code."""
    if not words or words[0] in {"-h", "--help", "help"}:
        print(HELP.format(verbs="\n".join(f"  {verb:<12}{what}" for verb, what in VERBS.items())))
        return 0
    if words[0] in {"-V", "--version"}:
        print(f"weft {__version__}")
        return 0
    if words[0] not in VERBS:
        raise WeftError(f"there is no verb {words[0]!r}; {nearest(words[0], VERBS)} `weft --help` lists all")
    if "" in words:
        raise WeftError(f"an argument of weft {words[0]} is empty: was a variable of the shell not set?")
    if any(":" in word for word in words):  # package.module:name, code that is the user's own
        trust(words)
    with machine.loading():
        verb = import_module(f"weft.commands.{words[0]}")
    defaults = verb.defaults(words[1:]) if hasattr(verb, "defaults") else None
    arguments = verb.Arguments if defaults is None else type(defaults)  # a resumed run may be of another verb
    if "--help" in words or "--help-all" in words or "-h" in words:
        print(help_of(verb, arguments, words, defaults))
        return 0
    parsed = parse(arguments, words[0], words[1:], defaults)
    with text_is_text():
        return int(verb.run(parsed) or 0)


def help_of(verb: Any, arguments: Any, words: list[str], defaults: Any) -> str:
    """What `weft VERB --help` prints, or with --help-all."""
    from weft.commands import help

    if defaults is None:
        try:
            defaults = arguments()
        except TypeError:  # a word that must be given has no default
            defaults = help.field_defaults(arguments)
    return help.render(arguments, words[0], words[1:], defaults, getattr(verb, "COMMON", {}))


def parse(arguments: Any, verb: str, words: list[str], defaults: Any = None) -> Any:
    """Fill the dataclass `arguments` from the command line; errors of tyro become a sentence.

    A verb whose defaults depend on its words (a recipe, a stored run) brings a function `defaults(words)`.
    """
    import tyro  # 0.1 s, so not at the top: `weft --help` does without
    from pydantic import ValidationError

    from weft.commands import help, usage

    spelled = help.spelled_out(words, arguments)
    options = {} if defaults is None else {"default": defaults}
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(
                arguments,
                prog=f"weft {verb}",
                args=spelled,
                description=arguments.__doc__,
                **options,
            )
    except SystemExit as ended:
        if ended.code != WeftError.code:
            raise
        raise WeftError(usage.sentence(said.getvalue(), verb, arguments)) from None
    except ValidationError as error:
        raise WeftError(f"{usage.refusal(error)}; `weft {verb} --help` explains it") from error
