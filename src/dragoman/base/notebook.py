"""`Card`: what a notebook shows of a result, as HTML. `Shown` is the base class of results that have one."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple, TypeAlias

from dragoman.base.table import Table

# Texts have the colour of the notebook, and lines are grey, so that a card is readable in light and dark notebooks.
# Classes are more specific than the notebook's own rules for tables.
_STYLE = (
    ".dragoman-card{max-width:62em;padding:.6em 1em;border:1px solid rgba(128,128,128,.4);border-radius:6px;"
    "line-height:1.5;color:inherit}"
    ".dragoman-card .dragoman-card{padding:.4em 0 0;border:0;border-radius:0}"
    ".dragoman-card .title{font-weight:bold}"
    ".dragoman-card p{margin:.4em 0;white-space:pre-line}.dragoman-card p.note{font-size:.85em;opacity:.75}"
    ".dragoman-card table{border-collapse:collapse;margin:.5em 0;color:inherit}"
    ".dragoman-card table tr{background:none!important}"
    ".dragoman-card table td,.dragoman-card table th{padding:.2em 1.2em .2em 0;border:0;vertical-align:top;"
    "border-bottom:1px solid rgba(128,128,128,.25);background:none;color:inherit;white-space:normal;max-width:none}"
    ".dragoman-card img{max-width:100%;height:auto;margin:.5em 0}"
)

_NOTE = ' class="note"'


class Note(str):
    """A paragraph in small type, such as the signature of a metric."""

    __slots__ = ()


class Picture(NamedTuple):
    """A picture. png: the bytes of a PNG file. width: in pixels of a page. description: read aloud instead of it."""

    png: bytes
    width: int
    description: str

    def html(self) -> str:
        """Return an image element that contains the picture."""
        data = base64.b64encode(self.png).decode()
        return f'<img src="data:image/png;base64,{data}" width="{self.width}" alt="{escape(self.description)}"/>'


Part: TypeAlias = "str | Mapping[str, str] | Table | Picture | Card"
"""A paragraph, facts by name, a table, a picture, or a card of a part of the result."""


@dataclass(frozen=True)
class Card:
    """What a notebook shows of a result. title: one line. parts: from top to bottom."""

    title: str
    parts: Sequence[Part] = ()

    def html(self) -> str:
        """Return an element with its own style. All texts are escaped."""
        return f"<style>{_STYLE}</style>{self._element()}"

    def _element(self) -> str:
        parts = "".join(map(_html, self.parts))
        return f'<div class="dragoman-card"><div class="title">{escape(self.title)}</div>{parts}</div>'


class Shown(ABC):
    """A result that a notebook shows as a card. Its text is unaffected."""

    @abstractmethod
    def card(self) -> Card:
        """Return what a notebook shows."""

    def _repr_html_(self) -> str:
        """Return the card as HTML, for IPython."""
        return self.card().html()


def _html(part: Part) -> str:
    if isinstance(part, Card):
        return part._element()
    if isinstance(part, Table | Picture):
        return part.html()
    if isinstance(part, Mapping):
        rows = (
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
            for name, value in part.items()
        )
        return f"<table><tbody>{''.join(rows)}</tbody></table>"
    return f"<p{_NOTE if isinstance(part, Note) else ''}>{escape(part)}</p>"
