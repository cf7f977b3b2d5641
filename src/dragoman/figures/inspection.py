"""`Inspection`: all attention weights of a text or sentence pair, as arrays or as a folder of pictures."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.figures.head_lines import HeadLines, head_lines
from dragoman.figures.heads import head_grid, layer_heads
from dragoman.models.attention_weights import KINDS, AttentionMap, SentenceWeights
from dragoman.models.relevance import Relevance
from dragoman.text.trees.tree import Tree

ARRAYS, INDEX, PAGE = "attention.npz", "index.json", "index.html"
_TREE = "tree.svg"

_REGIONS = "decoder.cross_attention"
"""The kind of attention that is drawn over a picture."""

MAX_TOKENS = 512
"""Maximum number of tokens per side.

Weights and pictures grow quadratically with it. In longer texts, cells would be smaller than 4 pixels.
"""


@dataclass(frozen=True)
class Inspection:
    """The weights of all attention layers during the prediction of `target`.

    source: the source text; None for a language model. target: the predicted text. maps: one map per attention layer,
    encoder layers first. absent: kinds of attention without weights, with the reasons. relevance, erasure: the
    relevance of the words by gradient × input and by erasure, for a model that predicts labels; `source` is then the
    text, and `target` the predicted label. fills: for each `<mask>` of a text, the most probable tokens with their
    probabilities, best first; `target` is then the text with the best tokens. document: the weights of the sentences
    and words of a document, for a hierarchical encoder; empty for other models. tree: the predicted tree of a parser;
    `target` is then the same tree in brackets.
    """

    source: str | None
    target: str
    maps: tuple[AttentionMap, ...]
    absent: tuple[str, ...] = ()
    relevance: Relevance | None = None
    erasure: Relevance | None = None
    fills: tuple[tuple[tuple[str, float], ...], ...] = ()
    document: tuple[SentenceWeights, ...] = ()
    tree: Tree | None = None

    @cached_property
    def kinds(self) -> dict[str, list[AttentionMap]]:
        """The maps of each kind that the model has, in layer order."""
        maps_by_kind = {kind: [each for each in self.maps if each.kind == kind] for kind in KINDS}
        return {kind: maps for kind, maps in maps_by_kind.items() if maps}

    @cached_property
    def tokens(self) -> dict[str, tuple[str, ...]]:
        """The tokens that label the rows and columns of the weights.

        `source`: source tokens with the end symbol. `target`: predicted tokens with the end symbol. `read`: decoder
        inputs with the start symbol. Token sequences that no attention layer uses are omitted.
        """
        sides = {_axes(kind): maps[0] for kind, maps in self.kinds.items()}
        tokens: dict[str, tuple[str, ...]] = {}
        for (queries, keys), example in sides.items():
            tokens |= {queries: example.queries, keys: example.keys}
        return {name: tokens[name] for name in ("source", "target", "read") if name in tokens}

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The weights (heads, T, S) float32 by layer name, such as `decoder.layers.0.cross_attention`.

        The dictionary also contains the arrays of `tokens` as `tokens.source`, `tokens.target` and `tokens.read`, and
        those of the relevance (see `Relevance.arrays`). For a document, `sentences` (N,) has the weights of the
        sentences, and `words.n` and `word_weights.n` have the words of sentence n, from 0, with their weights.
        """
        weights = {each.name: each.weights for each in self.maps}
        relevance = {key: array for name, each in self._relevances.items() for key, array in each.arrays(name).items()}
        return (
            weights
            | {f"tokens.{name}": np.array(tokens) for name, tokens in self.tokens.items()}
            | relevance
            | self._document_arrays
        )

    @property
    def _document_arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"word_weights.{n}": np.array(each.values, np.float32) for n, each in enumerate(self.document)}
        arrays |= {f"words.{n}": np.array(each.words, dtype=np.str_) for n, each in enumerate(self.document)}
        weights = np.array([each.weight for each in self.document], np.float32)
        return {"sentences": weights, **arrays} if self.document else {}

    @property
    def _relevances(self) -> dict[str, Relevance]:
        """The relevance by each method that was computed, by the name of its pictures."""
        found = {"relevance": self.relevance, "erasure": self.erasure}
        return {name: each for name, each in found.items() if each is not None}

    def save(self, folder: str | Path, picture: tuple[str | Path, int, int] | None = None) -> list[Path]:
        """Write pictures (PNG and SVG), `attention.npz`, `index.json` and `index.html`; returns the paths of the files.

        For each kind of attention, there is a picture of all layers and heads, and a picture of each layer. The picture
        of a tree is an SVG file only. picture:
        the picture whose regions are the vectors of the source, with its numbers of rows and columns of regions; the
        weights of the last layer are drawn over it. Raises ConfigError if the folder exists and is not empty, and for a
        picture without attention to a source; DataError if the picture does not fit the source.
        """
        # a local import, because importing matplotlib takes a second
        from dragoman.figures.constituency_tree import draw_trees
        from dragoman.figures.document import draw_document
        from dragoman.figures.regions import RegionPicture, draw_regions, read_picture
        from dragoman.figures.relevance import draw_relevance

        folder = Path(folder)
        check_new_folder(folder)
        if picture is not None:
            if _REGIONS not in self.kinds:
                raise ConfigError("a picture needs a model with attention weights over the source: leave it out")
            regions, seen = RegionPicture(Path(picture[0]), *picture[1:]), self.kinds[_REGIONS][-1]
            pixels = read_picture(regions, len(seen.keys) - 1)
        with atomic_folder(folder) as temporary:
            if picture is not None:
                draw_regions(pixels, regions, seen, *(temporary / file for file in _picture_files("regions")))
            for kind, maps in self.kinds.items():
                if len(maps) > 1:
                    head_grid(maps).write(*(temporary / name for name in _picture_files(kind)))
                for each in maps:
                    layer_heads(each).write(*(temporary / name for name in _picture_files(_base_name(each, maps))))
            for name, relevance in self._relevances.items():
                draw_relevance(relevance, *(temporary / file for file in _picture_files(name)))
            if self.document:
                draw_document(self.target, self.document, *(temporary / file for file in _picture_files("document")))
            if self.tree is not None:
                draw_trees([self.tree], temporary / _TREE)
            np.savez_compressed(temporary / ARRAYS, **self.arrays)  # type: ignore[arg-type]
            (temporary / INDEX).write_text(json.dumps(self.index(), ensure_ascii=False, indent=1) + "\n", "utf-8")
            (temporary / PAGE).write_text(build_page(self.index()), "utf-8")
            names = sorted(path.name for path in temporary.iterdir())
        return [folder / name for name in names]

    def lines(
        self, kind: str = "", layer: int | None = None, heads: Sequence[int] | None = None, token: int | None = None
    ) -> HeadLines:
        """Return the weights of heads as lines between tokens.

        kind: one of `models.attention_weights.KINDS`; empty: the last one that the model has. layer, heads, token:
        numbers from 1; None: the last layer, all heads, and the lines of all tokens. Raises ConfigError if the model
        does not have them.
        """
        kind = kind or list(self.kinds)[-1]
        if kind not in self.kinds:
            raise ConfigError(f"the model has no weights of kind {kind}: choose one of {', '.join(self.kinds)}")
        maps = self.kinds[kind]
        if layer is not None and not 1 <= layer <= len(maps):
            raise ConfigError(f"there is no layer {layer} of {kind}: this model has layers 1 to {len(maps)}")
        return head_lines(maps[-1 if layer is None else layer - 1], heads, None if token is None else token - 1)

    def index(self) -> dict[str, Any]:
        """Return the contents of `index.json`.

        They are the texts, the tokens, and the name, layer, heads and pictures of each attention layer.
        """
        kinds = []
        for kind, maps in self.kinds.items():
            queries, keys = _axes(kind)
            attentions = [
                {
                    "name": each.name,
                    "layer": each.layer,
                    "heads": len(each.weights),
                    "pictures": list(_picture_files(_base_name(each, maps))),
                }
                for each in maps
            ]
            kinds.append(
                {
                    "kind": kind,
                    "rows": queries,
                    "columns": keys,
                    "overview": list(_picture_files(kind)),
                    "attentions": attentions,
                }
            )
        return {
            "source": self.source,
            "target": self.target,
            "tokens": self.tokens,
            "kinds": kinds,
            "absent": list(self.absent),
            **({"tree": _TREE} if self.tree is not None else {}),
            **({"document": [asdict(each) for each in self.document]} if self.document else {}),
            **({"fills": list(map(_fills_as_json, self.fills))} if self.fills else {}),
            **{
                name: {**relevance.as_json(), "pictures": list(_picture_files(name))}
                for name, relevance in self._relevances.items()
            },
            "arrays": ARRAYS,
        }


def build_inspection(
    source: str | None, target: str, maps: Sequence[AttentionMap], absent: Sequence[str] = ()
) -> Inspection:
    """Build the inspection of a text. Raises ConfigError if the model has no attention weights."""
    if not maps:
        raise ConfigError(f"this model has no attention weights. {'; '.join(absent)}")
    return Inspection(source, target, tuple(maps), tuple(absent))


def check_not_blank(text: str, name: str) -> None:
    """Raise DataError if the text is blank. name: the name of the text in the message."""
    if not text.strip():
        raise DataError(f"the {name} is blank: enter a text to inspect")


def check_token_count(count: int) -> None:
    """Raise DataError if a text has more tokens than a picture can show."""
    if count > MAX_TOKENS:
        raise DataError(
            f"the text has {count} tokens, but pictures show at most {MAX_TOKENS} per side: inspect a part of the text"
        )


def _axes(kind: str) -> tuple[str, str]:
    """Return the names of the token sequences (see `Inspection.tokens`) that label the rows and columns of a kind."""
    if kind.startswith("encoder."):
        return "source", "source"
    return "target", "source" if kind.endswith("cross_attention") else "read"


def _base_name(attention: AttentionMap, maps: Sequence[AttentionMap]) -> str:
    """Return the file name, without suffix, of a layer's pictures. maps: all maps of the same kind."""
    return f"{attention.kind}.layer-{attention.layer}" if len(maps) > 1 else attention.kind


def _picture_files(base_name: str) -> tuple[str, str]:
    return f"{base_name}.png", f"{base_name}.svg"


_STYLE = (
    "body{font:16px/1.5 sans-serif;color:#1f2933;margin:2rem auto;max-width:80rem;padding:0 1rem}"
    "img{max-width:100%;border:1px solid #e4e8ec}code{background:#f3f5f7;padding:0 .2em}"
)


def build_page(index: dict[str, Any]) -> str:
    """Return the HTML page for the contents of `index.json`."""
    parts = [f"<p><b>{name}</b> {escape(index[name])}</p>" for name in ("source", "target") if index[name] is not None]
    if "tree" in index:
        parts.append(f'<p><img src="{index["tree"]}" alt="the tree"></p>')
    for kind in index["kinds"]:
        items = "".join(map(_list_item, kind["attentions"]))
        png, svg = kind["overview"]
        rows, columns = _TOKEN_DESCRIPTIONS[kind["rows"]], _TOKEN_DESCRIPTIONS[kind["columns"]]
        parts.append(
            f"<h2>{kind['kind']}</h2>\n<p>Rows: {rows}. Columns: {columns}.</p>\n"
            f'<p><a href="{svg}"><img src="{png}" alt="all layers and heads of {kind["kind"]}"></a></p>\n'
            f"<ul>\n{items}</ul>"
        )
    parts += [_fills_section(number, fills) for number, fills in enumerate(index.get("fills", ()), 1)]
    if "relevance" in index:
        parts += [_relevance_section(index["relevance"]), _erasure_section(index["erasure"])]
    if "document" in index:
        png, svg = _picture_files("document")
        parts.append(f'<p><a href="{svg}"><img src="{png}" alt="weights of the sentences and words"></a></p>')
    if index["absent"]:
        parts.append(
            f"<h2>Not available</h2>\n<ul>{''.join(f'<li>{escape(each)}</li>' for each in index['absent'])}</ul>"
        )
    parts.append(f'<p>All weights: <a href="{index["arrays"]}">{index["arrays"]}</a></p>')
    return page("Attention and relevance" if "relevance" in index else "Attention", parts)


def page(title: str, parts: Sequence[str]) -> str:
    """Return an HTML page. title: escaped text. parts: HTML elements."""
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n{body}\n</html>\n"
    )


def _fills_as_json(fills: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"text": text, "probability": probability} for text, probability in fills]


def _fills_section(number: int, fills: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['text'])}</code></td><td>{each['probability']:.4f}</td></tr>" for each in fills
    )
    return f"<h2>Tokens for mask {number}</h2>\n<table>\n<tr><th>token</th><th>probability</th></tr>{rows}\n</table>"


def _relevance_section(relevance: dict[str, Any]) -> str:
    png, svg = relevance["pictures"]
    return (
        f"<h2>Relevance of the words</h2>\n<p>Gradient × input of the {escape(relevance['output'])}, which is "
        f"{relevance['value']:.3f}. Blue words raise it, and orange words lower it. The words and the special symbols "
        f'sum to {relevance["sum"]:.3f}.</p>\n<p><a href="{svg}"><img src="{png}" alt="relevance of each word"></a></p>'
    )


def _erasure_section(erasure: dict[str, Any]) -> str:
    png, svg = erasure["pictures"]
    return (
        f"<h2>Erasure of the words</h2>\n<p>The {escape(erasure['output'])}, which is {erasure['value']:.3f}, minus "
        "its value for the text without the word.</p>\n"
        f'<p><a href="{svg}"><img src="{png}" alt="effect of each word"></a></p>'
    )


_TOKEN_DESCRIPTIONS = {
    "source": "source tokens",
    "target": "predicted target tokens",
    "read": "decoder input tokens",
}


def _list_item(attention: dict[str, Any]) -> str:
    png, svg = attention["pictures"]
    heads = "1 head" if attention["heads"] == 1 else f"{attention['heads']} heads"
    return f'<li><code>{attention["name"]}</code>, {heads}: <a href="{png}">PNG</a>, <a href="{svg}">SVG</a></li>\n'
