"""`Inspection`: all attention weights of a text or sentence pair, as arrays or as a folder of pictures."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.base.notebook import Card, Note, Part, Shown
from dragoman.base.table import Table
from dragoman.figures.head_lines import HeadLines, head_lines
from dragoman.figures.heads import head_grid, layer_heads
from dragoman.figures.heat_maps import HeatMaps
from dragoman.figures.regions import RegionPicture, draw_regions, read_picture
from dragoman.inspection.page import build_page, picture_files
from dragoman.models.attention_weights import KINDS, AttentionMap, SentenceWeights
from dragoman.models.relevance import Relevance, RelevantText
from dragoman.text.trees.tree import Tree, draw_tree

ARRAYS, INDEX, PAGE = "attention.npz", "index.json", "index.html"
_TREE, _TREE_NAME = "tree.svg", "tree"

_REGIONS = "decoder.cross_attention"
"""The kind of attention that is drawn over a picture."""


@dataclass(frozen=True)
class Inspection(Shown):
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
        of a tree is an SVG file only. picture: the picture whose regions are the vectors of the source, with its
        numbers of rows and columns of regions; the weights of the last layer are drawn over it. Raises ConfigError if
        the folder exists and is not empty, and for a picture without attention to a source; DataError if the picture
        does not fit the source.
        """
        folder = Path(folder)
        check_new_folder(folder)
        if picture is not None:
            if _REGIONS not in self.kinds:
                raise ConfigError("a picture needs a model with attention weights over the source: leave it out")
            regions, seen = RegionPicture(Path(picture[0]), *picture[1:]), self.kinds[_REGIONS][-1]
            pixels = read_picture(regions, len(seen.keys) - 1)
        with atomic_folder(folder) as temporary:
            if picture is not None:
                draw_regions(pixels, regions, seen, *(temporary / file for file in picture_files("regions")))
            self._draw(temporary)
            np.savez_compressed(temporary / ARRAYS, **self.arrays)  # type: ignore[arg-type]
            (temporary / INDEX).write_text(json.dumps(self.index(), ensure_ascii=False, indent=1) + "\n", "utf-8")
            (temporary / PAGE).write_text(self._page(), "utf-8")
            names = sorted(path.name for path in temporary.iterdir())
        return [folder / name for name in names]

    def _draw(self, folder: Path) -> None:
        """Draw all pictures."""
        from dragoman.figures.constituency_tree import draw_trees
        from dragoman.figures.document import draw_document
        from dragoman.figures.relevance import draw_relevance

        for kind, maps in self.kinds.items():
            if len(maps) > 1:
                head_grid(maps).write(*(folder / name for name in picture_files(kind)))
            for each in maps:
                layer_heads(each).write(*(folder / name for name in picture_files(_base_name(each, maps))))
        for name, relevance in self._relevances.items():
            draw_relevance(relevance, *(folder / file for file in picture_files(name)))
        if self.document:
            draw_document(self.target, self.document, *(folder / file for file in picture_files("document")))
        if self.tree is not None:
            draw_trees([self.tree], folder / _TREE)

    def _page(self) -> str:
        """Return the HTML page."""
        return build_page(self.index())

    @property
    def words(self) -> Iterator[str]:
        """All tokens and words in the pictures."""
        for tokens in self.tokens.values():
            yield from tokens
        for text in self.relevance.texts if self.relevance else ():
            yield from text.words

    def _texts(self) -> dict[str, str]:
        """Return the inspected texts by name."""
        texts = {} if self.source is None else {"source": self.source}
        if self.tree is not None:
            return {**texts, _TREE_NAME: draw_tree(self.tree)}
        has_label = self.relevance is not None or self.document
        name = "text" if self.source is None or self.fills else "label" if has_label else "target"
        return {**texts, name: self.target}

    def __str__(self) -> str:
        """The inspected texts, and the size of each kind of attention or the reason for its absence."""
        lines = [f"{name}  {text}" if name != _TREE_NAME else text for name, text in self._texts().items()]
        for number, fills in enumerate(self.fills, 1):
            listed = "  ".join(f"{text!r} {probability:.3f}" for text, probability in fills)
            lines.append(f"{f'mask {number}':<24}  {listed}")
        for sentence in sorted(self.document, key=lambda each: -each.weight)[:5]:
            lines.append(f"{f'sentence {sentence.weight:.3f}':<24}  {' '.join(sentence.words)}")
        for kind, maps in self.kinds.items():
            heads, queries, keys = maps[0].weights.shape
            lines.append(f"{kind:<24}  layers {len(maps)}  heads {heads}  tokens {queries} × {keys}")
        for relevance in self._relevances.values():
            lines.append(f"{relevance.method:<24}  {relevance.output} = {relevance.value:.4f}")
            for text in relevance.texts:
                lines.append(f"{text.name:<24}  " + "  ".join(f"{word} {value:+.3f}" for value, word in _largest(text)))
        for line in self.absent:
            kind, _, reason = line.partition(": ")
            lines.append(f"{kind:<24}  {reason}")
        return "\n".join(lines)

    def figure(self, kind: str = "", layer: int | None = None) -> HeatMaps:
        """Return the weights of all heads of a layer as heat maps.

        kind: one of `models.attention_weights.KINDS`; empty: the last one that the model has. layer: its number, from
        1; None: the last one. Raises ConfigError if the model does not have them.
        """
        return layer_heads(self._map(kind, layer))

    def card(self) -> Card:
        """Return the texts, the heads of the last layer, what labels are based on, and what the model does not have."""
        parts: list[Part] = [self._texts()]
        parts += [
            Table([(f"mask {number}", "probability"), *((text, f"{probability:.3f}") for text, probability in each)])
            for number, each in enumerate(self.fills, 1)
        ]
        if self.kinds:
            parts += [
                self.figure().picture(),
                Note(f"figure(kind, layer) shows other layers and kinds: {', '.join(self.kinds)}."),
            ]
        if self.document:
            sentences = sorted(self.document, key=lambda each: -each.weight)[:5]
            rows = [(f"{each.weight:.3f}", " ".join(each.words)) for each in sentences]
            parts.append(Table([("weight", "sentence"), *rows]))
        for relevance in self._relevances.values():
            rows = [(word, f"{value:+.3f}") for text in relevance.texts for value, word in _largest(text)]
            parts.append(Table([(relevance.method, f"{relevance.output} = {relevance.value:.4f}"), *rows]))
        return Card("Inspection", [*parts, *map(Note, self.absent)])

    def lines(
        self, kind: str = "", layer: int | None = None, heads: Sequence[int] | None = None, token: int | None = None
    ) -> HeadLines:
        """Return the weights of heads as lines between tokens.

        kind: one of `models.attention_weights.KINDS`; empty: the last one that the model has. layer, heads, token:
        numbers from 1; None: the last layer, all heads, and the lines of all tokens. Raises ConfigError if the model
        does not have them.
        """
        return head_lines(self._map(kind, layer), heads, None if token is None else token - 1)

    def _map(self, kind: str, layer: int | None) -> AttentionMap:
        """Return the weights of a layer, as in `lines`."""
        if not self.kinds:
            raise ConfigError("the inspection has no attention weights between tokens")
        kind = kind or list(self.kinds)[-1]
        if kind not in self.kinds:
            raise ConfigError(f"the model has no weights of kind {kind}: choose one of {', '.join(self.kinds)}")
        maps = self.kinds[kind]
        if layer is not None and not 1 <= layer <= len(maps):
            raise ConfigError(f"there is no layer {layer} of {kind}: this model has layers 1 to {len(maps)}")
        return maps[-1 if layer is None else layer - 1]

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
                    "pictures": list(picture_files(_base_name(each, maps))),
                }
                for each in maps
            ]
            kinds.append(
                {
                    "kind": kind,
                    "rows": queries,
                    "columns": keys,
                    "overview": list(picture_files(kind)),
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
                name: {**relevance.as_json(), "pictures": list(picture_files(name))}
                for name, relevance in self._relevances.items()
            },
            "arrays": ARRAYS,
        }


def _largest(text: RelevantText) -> list[tuple[float, str]]:
    """Return the values and the words that are most relevant."""
    known = [entry for entry in zip(text.values, text.words, strict=True) if not isnan(entry[0])]
    return sorted(known, key=lambda entry: -abs(entry[0]))[:8]


def _axes(kind: str) -> tuple[str, str]:
    """Return the names of the token sequences (see `Inspection.tokens`) that label the rows and columns of a kind."""
    if kind.startswith("encoder."):
        return "source", "source"
    return "target", "source" if kind.endswith("cross_attention") else "read"


def _base_name(attention: AttentionMap, maps: Sequence[AttentionMap]) -> str:
    """Return the file name, without suffix, of a layer's pictures. maps: all maps of the same kind."""
    return f"{attention.kind}.layer-{attention.layer}" if len(maps) > 1 else attention.kind


def _fills_as_json(fills: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"text": text, "probability": probability} for text, probability in fills]
