"""From the documents of a role to the sequences that a network reads: packed, a document each, or pairs.

All answer `rows(stream, index)`: the ids, segments and label of some sequences. `stream` names the noise that tears
pairs apart (data/batch/noise.py); the other two forms need none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.data.batch import noise
from weft.data.corpus.store import CorpusStore
from weft.data.transform.tokenizer import Tokenizer, rooms
from weft.errors import WeftError

Index = NDArray[np.int64]
Ids = NDArray[np.int32]

UNASKED, TORN, FOLLOWS = -1, 0, 1  # is the second text the continuation of the first?


@dataclass(frozen=True)
class Row:
    """One sequence with its markers."""

    ids: Ids
    second: int
    """where the second segment begins; the length where there is none"""
    follows: int = UNASKED


class Sequences(Protocol):
    """The sequences of a role."""

    lengths: Index
    """tokens of each, markers included; of pairs the most there can be"""
    notes: list[str]

    def __len__(self) -> int: ...

    def rows(self, stream: int, index: Index) -> list[Row]: ...


class Windows:
    """Stretches of a flat array of ids, each between [CLS] and [SEP]."""

    def __init__(self, ids: Ids, starts: Index, stops: Index, tokenizer: Tokenizer, notes: list[str]) -> None:
        self.ids, self.starts, self.stops, self.notes = ids, starts, stops, notes
        self.first, self.last = np.int32(tokenizer.cls_id), np.int32(tokenizer.sep_id)
        self.lengths = stops - starts + 2

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, stream: int, index: Index) -> list[Row]:
        found = []
        for start, stop in zip(self.starts[index], self.stops[index], strict=True):
            row = np.empty(stop - start + 2, np.int32)
            row[0], row[1:-1], row[-1] = self.first, self.ids[start:stop], self.last
            found.append(Row(row, len(row)))
        return found


def packed(store: CorpusStore, documents: Index, tokenizer: Tokenizer, max_length: int) -> Windows:
    """Sequences of exactly `max_length`, but for the last: documents follow each other, [SEP] between them."""
    mark = np.array([tokenizer.sep_id], np.int32)
    parts = [part for document in documents for part in (store.ids[store.span(document)], mark)][:-1]
    ids = np.concatenate(parts) if parts else mark
    starts = np.arange(0, len(ids), max_length - 2)
    return Windows(ids, starts, np.minimum(starts + max_length - 2, len(ids)), tokenizer, [])


def separate(store: CorpusStore, documents: Index, tokenizer: Tokenizer, max_length: int) -> Windows:
    """A document is a sequence; one longer than `max_length` is several."""
    room = max_length - 2
    spans = [store.span(document) for document in documents]
    starts = np.concatenate([np.arange(span.start, max(span.stop, span.start + 1), room) for span in spans])
    ends = np.concatenate([np.full(max(1, -(-(span.stop - span.start) // room)), span.stop) for span in spans])
    return Windows(store.ids, starts, np.minimum(starts + room, ends), tokenizer, [])


class Pairs:
    """[CLS] a [SEP] b [SEP], both runs of whole sentences. In half of them b goes on where a ends, in the others b is
    the end of another document's run (Devlin et al. 2018). Where a run is cut, and whether it is torn, is noise."""

    def __init__(self, store: CorpusStore, documents: Index, tokenizer: Tokenizer, max_length: int) -> None:
        self.store, self.max_length = store, max_length
        self.first, self.last = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)
        runs = [run for document in documents for run in self._runs(document)]
        whole = [run for run in runs if run[1] - run[0] > 1]
        if len({document for *_, document in whole}) < 2:
            raise WeftError(
                "next-sentence prediction needs two documents of two sentences at least; leave --next-sentence out"
            )
        self.starts, self.stops, self.documents = (
            np.array(column, dtype=np.int64) for column in zip(*whole, strict=True)
        )
        full = store.sentences[self.stops] - store.sentences[self.starts] + 3
        self.lengths = np.minimum(full, max_length)
        self.notes = self._told(len(runs) - len(whole), int((full > max_length).sum()))

    def _runs(self, document: int) -> list[tuple[int, int, int]]:
        """(first sentence, last + 1, document) of runs that fill a sequence, the last one perhaps less."""
        first, last = (int(number) for number in self.store.documents[document : document + 2])
        found, start = [], first
        for sentence in range(first, last):
            if self.store.sentences[sentence + 1] - self.store.sentences[start] >= self.max_length - 3:
                found.append((start, sentence + 1, int(document)))
                start = sentence + 1
        return found if start == last else [*found, (start, last, int(document))]

    def _told(self, single: int, long: int) -> list[str]:
        notes = []
        if single:
            notes.append(f"{single:,} runs of one sentence make no pair and are left out")
        if long:
            notes.append(
                f"{long:,} of {len(self.starts):,} pairs are longer than {self.max_length} tokens: "
                f"the longer text of each is cut first"
            )
        return notes

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, stream: int, index: Index) -> list[Row]:
        draws = noise.uniform(stream, index, 3)
        return [self._row(int(number), *draw) for number, draw in zip(index, draws.tolist(), strict=True)]

    def _row(self, number: int, cut: float, tear: float, other: float) -> Row:
        middle = self._middle(number, cut)
        a = self._ids(self.starts[number], middle)
        if torn := tear < 0.5:
            stranger = self._stranger(number, other)
            b = self._ids(self._middle(stranger, cut), self.stops[stranger])
        else:
            b = self._ids(middle, self.stops[number])
        room_a, room_b = rooms([a, b], self.max_length)
        a, b = a[:room_a], b[:room_b]
        ids = np.concatenate([self.first, a, self.last, b, self.last])
        return Row(ids, len(a) + 2, TORN if torn else FOLLOWS)

    def _middle(self, number: int, cut: float) -> int:
        """The sentence that begins the second text: any but the first of the run."""
        start, stop = int(self.starts[number]), int(self.stops[number])
        return start + 1 + int(cut * (stop - start - 1))

    def _stranger(self, number: int, draw: float) -> int:
        """A run of another document, each as likely as any. Runs of one document are neighbours in the list."""
        own = np.searchsorted(self.documents, self.documents[number], side="left")
        after = np.searchsorted(self.documents, self.documents[number], side="right")
        chosen = int(draw * (len(self.starts) - (after - own)))
        return chosen if chosen < own else int(chosen + after - own)

    def _ids(self, first: int, last: int) -> Ids:
        return self.store.ids[self.store.sentences[first] : self.store.sentences[last]]
