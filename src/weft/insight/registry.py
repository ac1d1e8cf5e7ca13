"""The lenses by name: what each can be asked, which networks it fits, and its function.

Loads no torch: each function imports its lens when it is called. A new lens is a module in `lenses/`, a class in
`options.py`, and here a function and an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from weft.errors import WeftError, nearest
from weft.insight import options

if TYPE_CHECKING:
    from weft.insight.finding import Finding
    from weft.insight.subject import Subject

EVERYTHING = ("image", "text", "vector")
TOKENS = ("image", "text")


@dataclass(frozen=True)
class Lens:
    """A lens: its function, its options' class, the inputs it fits."""

    function: Callable[[Subject, Any], Finding]
    options: type[Any]
    inputs: tuple[str, ...] = EVERYTHING

    @property
    def help(self) -> str:
        return str(self.options.__doc__).splitlines()[0]


def activations(subject: Subject, asked: options.ActivationsOptions) -> Finding:
    from weft.insight.lenses.activations.lens import activations

    return activations(subject, asked)


def backprop(subject: Subject, asked: options.BackpropOptions) -> Finding:
    from weft.insight.lenses.backprop.lens import backprop

    return backprop(subject, asked)


def filters(subject: Subject, asked: options.FiltersOptions) -> Finding:
    from weft.insight.lenses.filters.lens import filters

    return filters(subject, asked)


def field(subject: Subject, asked: options.FieldOptions) -> Finding:
    from weft.insight.lenses.field.lens import field

    return field(subject, asked)


def shift(subject: Subject, asked: options.ShiftOptions) -> Finding:
    from weft.insight.lenses.shift.lens import shift

    return shift(subject, asked)


def positions(subject: Subject, asked: options.PositionsOptions) -> Finding:
    from weft.insight.lenses.positions import positions

    return positions(subject, asked)


def attention(subject: Subject, asked: options.AttentionOptions) -> Finding:
    from weft.insight.lenses.attention.lens import attention

    return attention(subject, asked)


def gates(subject: Subject, asked: options.GatesOptions) -> Finding:
    from weft.insight.lenses.gates.lens import gates

    return gates(subject, asked)


def saliency(subject: Subject, asked: options.SaliencyOptions) -> Finding:
    from weft.insight.lenses.saliency.lens import saliency

    return saliency(subject, asked)


def mistakes(subject: Subject, asked: options.MistakesOptions) -> Finding:
    from weft.insight.lenses.mistakes.lens import mistakes

    return mistakes(subject, asked)


# In the order of the page: what is about the run first, what is about networks last.
LENSES: dict[str, Lens] = {
    "mistakes": Lens(mistakes, options.MistakesOptions),
    "saliency": Lens(saliency, options.SaliencyOptions),
    "attention": Lens(attention, options.AttentionOptions, TOKENS),
    "shift": Lens(shift, options.ShiftOptions, TOKENS),
    "field": Lens(field, options.FieldOptions, TOKENS),
    "filters": Lens(filters, options.FiltersOptions),
    "gates": Lens(gates, options.GatesOptions, TOKENS),
    "positions": Lens(positions, options.PositionsOptions, TOKENS),
    "activations": Lens(activations, options.ActivationsOptions),
    "backprop": Lens(backprop, options.BackpropOptions),
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
    return lens.function(subject, asked if asked is not None else configured(name, settings))


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
