"""`Inspection`: all attention weights of a text or sentence pair, as arrays or as a folder of pictures."""

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
"""Maximum tokens per side. Weights and pictures grow quadratically; beyond it, cells are smaller than 4 pixels."""


@dataclass(frozen=True)
class Inspection:
    """The weights of all attention layers during the prediction of `target`.

    source: the source text; None for a language model. target: the predicted text. maps: one per attention layer, the
    encoder's first. absent: kinds of attention without weights, with the reasons.
    """

    source: str | None
    target: str
    maps: tuple[AttentionMap, ...]
    absent: tuple[str, ...] = ()

    @cached_property
    def kinds(self) -> dict[str, list[AttentionMap]]:
        """The maps by kind, in the order of layers; only kinds that the model has."""
        found = {kind: [each for each in self.maps if each.kind == kind] for kind in KINDS}
        return {kind: maps for kind, maps in found.items() if maps}

    @cached_property
    def tokens(self) -> dict[str, tuple[str, ...]]:
        """The tokens of the rows and columns of the weights, by name.

        `source`: the source with its end symbol. `target`: the predicted tokens, with the end symbol. `read`: the
        tokens that the decoder has read, with the start symbol. Contains only names that some attention layer uses.
        """
        sides = {_side(kind): maps[0] for kind, maps in self.kinds.items()}
        named: dict[str, tuple[str, ...]] = {}
        for (queries, keys), found in sides.items():
            named |= {queries: found.queries, keys: found.keys}
        return {name: named[name] for name in ("source", "target", "read") if name in named}

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Weights (heads, T, S) float32 by the name of the attention layer, such as `decoder.layers.0.cross_attention`.

        Also contains `tokens.source`, `tokens.target` and `tokens.read`, as in `tokens`.
        """
        weights = {each.name: each.weights for each in self.maps}
        return weights | {f"tokens.{name}": np.array(tokens) for name, tokens in self.tokens.items()}

    def save(self, folder: str | Path) -> list[Path]:
        """Write pictures (PNG and SVG), `attention.npz`, `index.json` and `index.html`; returns the files.

        There is one picture per kind, with all layers and heads, and one per attention layer. Raises ConfigError if the
        folder exists and is not empty.
        """
        # Imported here because matplotlib takes a second.
        from dragoman.inspect.pictures.attention import draw_attention, draw_overview

        folder = Path(folder)
        check_output_folder(folder)
        with atomic_folder(folder) as staged:
            for kind, maps in self.kinds.items():
                if len(maps) > 1:
                    draw_overview(maps, *(staged / name for name in _files(kind)))
                for each in maps:
                    draw_attention(each, *(staged / name for name in _files(_name(each, maps))))
            np.savez_compressed(staged / ARRAYS, **self.arrays)  # type: ignore[arg-type]
            (staged / INDEX).write_text(json.dumps(self.index(), ensure_ascii=False, indent=1) + "\n", "utf-8")
            (staged / PAGE).write_text(page(self.index()), "utf-8")
            names = sorted(path.name for path in staged.iterdir())
        return [folder / name for name in names]

    def index(self) -> dict[str, Any]:
        """Describe a saved folder: texts, tokens, and the name, layer, heads and pictures of each attention layer."""
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


def build_inspection(
    source: str | None, target: str, maps: Sequence[AttentionMap], absent: Sequence[str] = ()
) -> Inspection:
    """Build the inspection of a text. Raises ConfigError if the model has no attention weights."""
    if not maps:
        raise ConfigError(f"this model has no attention to show. {'; '.join(absent)}")
    return Inspection(source, target, tuple(maps), tuple(absent))


def check_output_folder(folder: Path) -> None:
    """Raises ConfigError if the path exists and is not an empty folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} already exists: choose another name, or delete it")


def check_text(text: str, what: str) -> None:
    """Raises DataError for a blank text. what: the name of the text in the message."""
    if not text.strip():
        raise DataError(f"the {what} is blank: give a text to inspect")


def check_tokens(count: int) -> None:
    """Raises DataError for a text with more tokens than can be drawn."""
    if count > MOST_TOKENS:
        raise DataError(
            f"the text has {count} tokens, but pictures show at most {MOST_TOKENS} per side: inspect a part of it"
        )


def _side(kind: str) -> tuple[str, str]:
    """Return the names of the tokens of the rows and of the columns of a kind's weights."""
    if kind.startswith("encoder."):
        return "source", "source"
    return "target", "source" if kind.endswith("cross_attention") else "read"


def _name(attention: AttentionMap, kind: Sequence[AttentionMap]) -> str:
    """Return the file name of a layer's pictures; the only attention layer of its kind has the name of the kind."""
    return f"{attention.kind}.layer-{attention.layer}" if len(kind) > 1 else attention.kind


def _files(name: str) -> tuple[str, str]:
    return f"{name}.png", f"{name}.svg"


_STYLE = (
    "body{font:16px/1.5 sans-serif;color:#1f2933;margin:2rem auto;max-width:80rem;padding:0 1rem}"
    "img{max-width:100%;border:1px solid #e4e8ec}code{background:#f3f5f7;padding:0 .2em}"
)


def page(index: dict[str, Any]) -> str:
    """Return the HTML page for an inspection's index."""
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
        parts.append(
            f"<h2>Not available</h2>\n<ul>{''.join(f'<li>{escape(each)}</li>' for each in index['absent'])}</ul>"
        )
    parts.append(f'<p>All weights: <a href="{index["arrays"]}">{index["arrays"]}</a></p>')
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Attention</title>\n'
        f"<style>{_STYLE}</style>\n<h1>Attention</h1>\n{body}\n</html>\n"
    )


_SIDES = {
    "source": "tokens of the source",
    "target": "tokens of the target, as they are predicted",
    "read": "tokens that the decoder has read",
}


def _attention(each: dict[str, Any]) -> str:
    png, svg = each["pictures"]
    heads = "1 head" if each["heads"] == 1 else f"{each['heads']} heads"
    return f'<li><code>{each["name"]}</code>, {heads}: <a href="{png}">PNG</a>, <a href="{svg}">SVG</a></li>\n'
