"""`Inspection`: all that a model attends in one text or sentence pair, as arrays, and as a folder of pictures."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import atomic_folder
from dragoman.inspect.attention import KINDS, AttentionMap

ARRAYS, INDEX, PAGE = "attention.npz", "index.json", "index.html"

MOST_TOKENS = 512
"""A side. Weights and pictures grow with the square of the length; beyond, a cell would have fewer than four pixels."""


@dataclass(frozen=True)
class Inspection:
    """Every attention's weights while `target` was predicted, of a language model while its text was.

    source: the text that was read, None for a language model. target: the text that was predicted. maps: one an
    attention, the encoder's first. absent: what the model has no weights of, and why.
    """

    source: str | None
    target: str
    maps: tuple[AttentionMap, ...]
    absent: tuple[str, ...] = ()

    @cached_property
    def kinds(self) -> dict[str, list[AttentionMap]]:
        """The maps by kind, layer by layer; only kinds that there are."""
        found = {kind: [each for each in self.maps if each.kind == kind] for kind in KINDS}
        return {kind: maps for kind, maps in found.items() if maps}

    @cached_property
    def tokens(self) -> dict[str, tuple[str, ...]]:
        """What the rows and columns of the weights stand for, by name.

        `source`: the source with its end. `target`: what is predicted, the target with its end. `read`: what the
        decoder has read by then, the target with its beginning. Only those that some attention has.
        """
        sides = {_side(kind): maps[0] for kind, maps in self.kinds.items()}
        named: dict[str, tuple[str, ...]] = {}
        for (queries, keys), found in sides.items():
            named |= {queries: found.queries, keys: found.keys}
        return {name: named[name] for name in ("source", "target", "read") if name in named}

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Weights (heads, T, S) float32 by the attention's name, such as `decoder.layers.0.cross_attention`.

        Beside them `tokens.source`, `tokens.target` and `tokens.read`, as in `tokens`.
        """
        weights = {each.name: each.weights for each in self.maps}
        return weights | {f"tokens.{name}": np.array(tokens) for name, tokens in self.tokens.items()}

    def save(self, folder: str | Path) -> list[Path]:
        """Write pictures (PNG and SVG), `attention.npz`, `index.json` and `index.html`; gives the files.

        A picture of each kind, with all its layers and heads, and one of each attention. Raises ConfigError where the
        folder exists and is not empty.
        """
        from dragoman.inspect.pictures.attention import draw_attention, draw_overview  # matplotlib takes a second

        folder = Path(folder)
        check_free(folder)
        with atomic_folder(folder) as place:
            for kind, maps in self.kinds.items():
                if len(maps) > 1:
                    draw_overview(maps, *(place / name for name in _files(kind)))
                for each in maps:
                    draw_attention(each, *(place / name for name in _files(_name(each, maps))))
            np.savez_compressed(place / ARRAYS, **self.arrays)  # type: ignore[arg-type]
            (place / INDEX).write_text(json.dumps(self.index(), ensure_ascii=False, indent=1) + "\n", "utf-8")
            (place / PAGE).write_text(page(self.index()), "utf-8")
            names = sorted(path.name for path in place.iterdir())
        return [folder / name for name in names]

    def index(self) -> dict[str, Any]:
        """What a saved folder holds: texts, tokens, and of each attention its name, place, shape and pictures."""
        kinds = []
        for kind, maps in self.kinds.items():
            queries, keys = _side(kind)
            attentions = [
                {
                    "name": each.name,
                    "layer": each.layer,
                    "heads": len(each.weights),
                    "pictures": list(_files(_name(each, maps))),
                }
                for each in maps
            ]
            kinds.append(
                {
                    "kind": kind,
                    "rows": queries,
                    "columns": keys,
                    "overview": list(_files(kind)),
                    "attentions": attentions,
                }
            )
        return {
            "source": self.source,
            "target": self.target,
            "tokens": self.tokens,
            "kinds": kinds,
            "absent": list(self.absent),
            "arrays": ARRAYS,
        }


def inspected(source: str | None, target: str, maps: Sequence[AttentionMap], absent: Sequence[str] = ()) -> Inspection:
    """The inspection of a text. Raises ConfigError where the model attends nothing."""
    if not maps:
        raise ConfigError(f"this model has no attention to show. {'; '.join(absent)}")
    return Inspection(source, target, tuple(maps), tuple(absent))


def check_free(folder: Path) -> None:
    """Raises ConfigError where a folder cannot be written because something stands there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists already: choose another name, or remove it")


def check_text(text: str, what: str) -> None:
    """Raises DataError for a text that is blank; what: the name that it has in the message."""
    if not text.strip():
        raise DataError(f"the {what} is blank: give a text to inspect")


def check_tokens(count: int) -> None:
    """Raises DataError for a text of more tokens than can be drawn."""
    if count > MOST_TOKENS:
        raise DataError(f"the text has {count} tokens, but pictures hold {MOST_TOKENS} a side: inspect a part of it")


def _side(kind: str) -> tuple[str, str]:
    """What the rows and the columns of a kind's weights are."""
    if kind.startswith("encoder."):
        return "source", "source"
    return "target", "source" if kind.endswith("cross_attention") else "read"


def _name(attention: AttentionMap, kind: Sequence[AttentionMap]) -> str:
    """What an attention's pictures are called; the only one of its kind has the kind's name."""
    return f"{attention.kind}.layer-{attention.layer}" if len(kind) > 1 else attention.kind


def _files(name: str) -> tuple[str, str]:
    return f"{name}.png", f"{name}.svg"


_STYLE = (
    "body{font:16px/1.5 sans-serif;color:#1f2933;margin:2rem auto;max-width:80rem;padding:0 1rem}"
    "img{max-width:100%;border:1px solid #e4e8ec}code{background:#f3f5f7;padding:0 .2em}"
)


def page(index: dict[str, Any]) -> str:
    """HTML, of an inspection's index."""
    parts = [f"<p><b>{name}</b> {escape(index[name])}</p>" for name in ("source", "target") if index[name] is not None]
    for kind in index["kinds"]:
        shown = "".join(map(_attention, kind["attentions"]))
        png, svg = kind["overview"]
        parts.append(
            f"<h2>{kind['kind']}</h2>\n<p>Rows: {_SIDES[kind['rows']]}. Columns: {_SIDES[kind['columns']]}.</p>\n"
            f'<p><a href="{svg}"><img src="{png}" alt="all layers and heads of {kind["kind"]}"></a></p>\n'
            f"<ul>\n{shown}</ul>"
        )
    if index["absent"]:
        parts.append(f"<h2>Not there</h2>\n<ul>{''.join(f'<li>{escape(each)}</li>' for each in index['absent'])}</ul>")
    parts.append(f'<p>All weights: <a href="{index["arrays"]}">{index["arrays"]}</a></p>')
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Attention</title>\n'
        f"<style>{_STYLE}</style>\n<h1>Attention</h1>\n{body}\n</html>\n"
    )


_SIDES = {
    "source": "tokens of the source",
    "target": "tokens of the target, each while it is predicted",
    "read": "tokens that were read by then",
}


def _attention(each: dict[str, Any]) -> str:
    png, svg = each["pictures"]
    heads = "1 head" if each["heads"] == 1 else f"{each['heads']} heads"
    return f'<li><code>{each["name"]}</code>, {heads}: <a href="{png}">PNG</a>, <a href="{svg}">SVG</a></li>\n'
