"""`CardLanguages`: the languages that a model card names, from the settings, the names of data files or the texts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from dragoman.checkpoint.meta import Meta
from dragoman.models.interface import Side
from dragoman.models.kinds.registry import ModelKind
from dragoman.text.languages.detector import release_model, sample_language
from dragoman.text.languages.names import has_name

Samples = Mapping[str, Iterable[str]]
"""Some texts of each side, `source` and `target`."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".txt")
_PAIR = re.compile(r"(?:^|[._-])([a-z]{2,3})-([a-z]{2,3})(?=[._-]|$)")
"""Matches a pair of languages in the name of a file, as in `train.en-de.tsv`."""

_FROM_NAMES, _FROM_TEXTS = "names of the data files", "texts"


@dataclass(frozen=True)
class CardLanguages:
    """The codes of the languages of each side, and where they come from.

    guessed: the grounds of the languages that the settings do not state, such as "names of the data files".
    """

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()

    @classmethod
    def of(cls, meta: Meta, config: Mapping[str, Any], kind: ModelKind, samples: Samples) -> "CardLanguages":
        """Return the languages that are stated; else those in the names of the data files; else those of the texts."""
        stated = {
            "source": _split(meta.source_language),
            "target": meta.target_languages or _split(meta.target_language),
        }
        named = dict(_in_file_names(config, kind.sides))
        sides: dict[str, tuple[str, ...]] = {}
        guessed = []
        for side in kind.sides:
            codes = stated[side]
            if not codes and (codes := named.get(side, ())):
                guessed.append(_FROM_NAMES)
            if not codes and side in samples and (code := sample_language(samples[side])):
                codes = (code,)
                guessed.append(_FROM_TEXTS)
            sides[side] = codes
        release_model()
        return cls(sides.get("source", ()), sides.get("target", ()), tuple(dict.fromkeys(guessed)))

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes, without duplicates."""
        return tuple(dict.fromkeys([*self.source, *self.target]))

    def text(self, kind: ModelKind) -> str | None:
        """Return the languages of the sides of a model, such as "en → de", or None if all are unknown."""
        return kind.languages(", ".join(self.source) or None, ", ".join(self.target) or None)

    @property
    def note(self) -> str:
        """A note on languages that are not stated, to be appended; empty if all are stated."""
        return f" (guessed from the {' and the '.join(self.guessed)})" if self.guessed else ""


def _split(codes: str | None) -> tuple[str, ...]:
    return tuple(code.strip() for code in (codes or "").split(",") if code.strip())


def _in_file_names(config: Mapping[str, Any], sides: tuple[Side, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each side with the languages in the names of the files of its training data."""
    data = config.get("data")
    train = data.get("train") if isinstance(data, Mapping) else None
    found: dict[str, list[str]] = {side: [] for side in sides}
    for corpus in train if isinstance(train, list | tuple) else [train]:
        if isinstance(corpus, Mapping):
            for side, code in _languages_of(corpus, sides):
                found.setdefault(side, []).append(code)
    for side, codes in found.items():
        yield side, tuple(dict.fromkeys(codes))


def _languages_of(corpus: Mapping[str, Any], sides: tuple[Side, ...]) -> Iterator[tuple[str, str]]:
    """Yield the languages in the file names of one corpus, each with its side."""
    if len(sides) == 1:
        for key in ("text", "jsonl", "path"):
            if code := _ending(corpus.get(key)):
                yield sides[0], code
        return
    for side in ("source", "target"):
        if code := corpus.get(f"{side}_code") or _ending(corpus.get(side)):
            yield side, str(code)
    pair = _PAIR.findall(PurePath(str(corpus.get("pairs") or "")).name)
    if pair and all(map(has_name, pair[-1])):
        columns = corpus.get("source_column") or 1, corpus.get("target_column") or 2
        backwards = all(isinstance(column, int) for column in columns) and columns[0] > columns[1]
        yield from zip(("target", "source") if backwards else ("source", "target"), pair[-1], strict=True)


def _ending(path: Any) -> str | None:
    """Return the language that a file name ends with, as in `train.de.gz`, or None."""
    name = PurePath(path).name if isinstance(path, str) else ""
    while name.endswith(_COMPRESSED):
        name = name.rpartition(".")[0]
    stem, _, code = name.rpartition(".")
    return code if stem and has_name(code) else None
