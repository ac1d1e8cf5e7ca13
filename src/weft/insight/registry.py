"""The lenses by name: what each can be asked, which networks it fits, and where its function is. Loads no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from weft.errors import WeftError, nearest
from weft.insight import options

if TYPE_CHECKING:
    from weft.insight.finding import Finding
    from weft.insight.subject import Subject

EVERYTHING = ("image", "text", "vector")


@dataclass(frozen=True)
class Lens:
    """A lens: its options' class, its function as module:name below weft.insight, the inputs and families it fits."""

    options: type[Any]
    place: str
    inputs: tuple[str, ...] = EVERYTHING
    families: tuple[str, ...] | None = None  # None: all of them

    @property
    def help(self) -> str:
        return str(self.options.__doc__).splitlines()[0]

    def function(self) -> Callable[[Subject, Any], Finding]:
        module, _, name = self.place.partition(":")
        found: Callable[[Subject, Any], Finding] = getattr(import_module(f"weft.insight.{module}"), name)
        return found


LENSES: dict[str, Lens] = {
    "activations": Lens(options.ActivationsOptions, "lenses.activations.lens:activations"),
    "backprop": Lens(options.BackpropOptions, "lenses.backprop.lens:backprop"),
    "filters": Lens(options.FiltersOptions, "lenses.filters.lens:filters"),
    "field": Lens(options.FieldOptions, "lenses.field.lens:field", inputs=("image", "text")),
    "shift": Lens(options.ShiftOptions, "lenses.shift.lens:shift", inputs=("image", "text")),
    "positions": Lens(options.PositionsOptions, "lenses.positions:positions", inputs=("image", "text")),
    "attention": Lens(options.AttentionOptions, "lenses.attention.lens:attention", inputs=("image", "text")),
    "gates": Lens(options.GatesOptions, "lenses.gates.lens:gates", inputs=("image", "text")),
    "saliency": Lens(options.SaliencyOptions, "lenses.saliency.lens:saliency"),
    "mistakes": Lens(options.MistakesOptions, "lenses.mistakes.lens:mistakes"),
}


def find(name: str) -> Lens:
    """The lens called `name`."""
    if name not in LENSES:
        raise WeftError(f"there is no lens {name!r}; {nearest(name, LENSES)} the lenses are {', '.join(LENSES)}")
    return LENSES[name]


def look(subject: Subject, name: str, asked: Any = None, **settings: Any) -> Finding:
    """What the lens `name` shows of a subject; `settings` are its options, or `asked` holds them."""
    from weft.insight.finding import Unfit  # torch comes with the subject

    lens = find(name)
    config = subject.config
    if config.input not in lens.inputs:
        fits = " and ".join({"image": "images", "text": "text", "vector": "vectors"}[kind] for kind in lens.inputs)
        raise Unfit(f"the lens {name} is for networks on {fits}; {subject.name} takes {config.input}")
    if lens.families is not None and config.family not in lens.families:
        raise Unfit(
            f"the lens {name} is for {', '.join(lens.families)}; {subject.name} is of the family {config.family}"
        )
    return lens.function()(subject, asked if asked is not None else configured(name, settings))


def configured(name: str, settings: dict[str, Any]) -> Any:
    """The options of a lens, turning what pydantic finds into one sentence."""
    try:
        return find(name).options(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise WeftError(f"the lens {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def look_through_all(subject: Subject, say: Callable[[str], None] = lambda _: None) -> Iterator[Finding | str]:
    """The finding of every lens that fits, or the sentence why it does not."""
    from weft.insight.finding import Unfit

    for name in LENSES:
        say(name)
        try:
            yield look(subject, name)
        except Unfit as reason:
            yield str(reason)
