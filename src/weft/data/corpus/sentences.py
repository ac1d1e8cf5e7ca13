"""Where a sentence ends, by rule: after `.`, `!` or `?` and closing marks, before a blank and a capital; or at a line.

No rule knows all abbreviations. Titles and initials are left together; what is cut too often costs a pair, not a word:
the sentences of a document are always taken together and in order.
"""

from __future__ import annotations

import re

_END = re.compile(r"""(?<=[.!?…])(["'”’)\]]*)\s+(?=["'“‘(\[]*[A-Z0-9])|\n+""")
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|No|Jr|Sr|e\.g|i\.e|cf|Fig|[A-Z])\.$")


def sentences(text: str) -> list[str]:
    """The sentences of a document, in order; their words are all the words of the document."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        sentence = text[start : end.start()] + (end.group(1) or "")
        if end.group()[0] != "\n" and _TITLE.search(sentence[-6:]):  # the longest title and what stands before it
            continue
        found.append(sentence)
        start = end.end()
    return [sentence for sentence in [*found, text[start:]] if sentence.strip()]
