"""What mkdocs does to pages: fills in public names, and names what lies outside of the site instead of linking."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

PUBLIC = re.compile(r"^<!-- public names of (?P<module>[\w.]+) -->$", re.MULTILINE)
OUTSIDE = re.compile(r"\[(?P<text>[^]]+)\]\(\.\./(?P<path>[^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with the text of every page."""
    return OUTSIDE.sub(outside, PUBLIC.sub(public, markdown))


def outside(link: re.Match[str]) -> str:
    """A file of the repository that is no page: its path, in brackets where the text is another."""
    path = f"`{link['path']}`"
    return path if link["text"].strip("`") in link["path"] else f"{link['text']} ({path})"


def public(marker: re.Match[str]) -> str:
    """One entry of the reference for each public name of a module, wherever it is defined."""
    module = import_module(marker["module"])
    return "\n\n".join(
        f"::: {thing.__module__}.{thing.__qualname__}\n    options:\n      heading: {marker['module']}.{name}"
        for name in module.__all__
        if hasattr(thing := getattr(module, name), "__qualname__")  # neither a version nor a table
    )
