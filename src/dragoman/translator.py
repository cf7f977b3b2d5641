"""The Python face: a trained model folder as an object that translates and scores text."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import torch

from dragoman.base.allocator import keep_large_tensors_on_heap
from dragoman.base.device import choose_device
from dragoman.base.errors import ConfigError, DataError, LineError
from dragoman.base.log import warn
from dragoman.base.settings import parse_settings
from dragoman.checkpoint.folder import LoadedModel, load_model_folder
from dragoman.decode.replacement import UnknownWords, unknown_words
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.inspect.attention import AttentionMap, attention_maps
from dragoman.models.limits import first_exceeded
from dragoman.text.vectors import VectorError
from dragoman.translation.batch import BatchTranslator
from dragoman.translation.languages import SourceTags
from dragoman.translation.method import Drawing, Drawn, Method, Prefix, Row, Searched
from dragoman.translation.result import PairScore, Translation

__all__ = ["WINDOW_BATCHES", "PairScore", "Translation", "Translator"]

Item = TypeVar("Item")

WINDOW_BATCHES = 16
"""Batches' worth of lines that `stream` reads ahead, to sort them by length."""


class Translator:
    """A trained model that translates. The output depends neither on the batch size nor on the order of the lines."""

    def __init__(self, loaded: LoadedModel, device: torch.device, report_cut: bool = True) -> None:
        """report_cut: warn of translations that the length limit stopped; while a model is trained they are many."""
        self.report_cut = report_cut
        self.model = loaded.model.eval()
        self.tokenizers = loaded.tokenizers
        self._unknown_words = UnknownWords(loaded.tokenizers)
        self.meta = loaded.meta
        self.source_tags = SourceTags(loaded.tokenizers.source, loaded.meta)
        self._batches = BatchTranslator(self.model, loaded.tokenizers.target.size, device)
        self.config = loaded.config
        self.device = device

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "Translator":
        """Read a model folder; `device` is cpu, cuda or cuda:N (default: a GPU if there is one).

        Raises ModelError for a folder that is none or is damaged, ConfigError for an unknown device.
        """
        keep_large_tensors_on_heap()
        chosen = choose_device(device or "auto")
        return cls(load_model_folder(Path(folder), chosen), chosen)

    def translate(
        self,
        texts: Sequence[str],
        beam: int | None = None,
        batch_size: int = 64,
        length_penalty: float | str | None = None,
        coverage_penalty: float | None = None,
        prefixes: Sequence[str] | None = None,
        unknown: str | None = None,
        to: str | None = None,
        tags: Sequence[str] = (),
    ) -> list[str]:
        """One translation a text, in order; a blank text stays blank. Settings left out are the model's own.

        to: the target language, which a model of several languages needs; tags: others that the model was trained
        with, such as a domain's. Raises ConfigError for a language or a tag that the model does not have.

        prefixes: what each translation has to start with, a blank one where it is free. Blanks at the end of a prefix
        are ignored. A prefix is split into subwords as a text that ends there, so its last word counts as whole;
        whether letters, a punctuation mark or a new word follow is the model's choice. A blank text's translation is
        its prefix. Raises DataError unless there are as many prefixes as texts. unknown: for words that a vocabulary
        lacks, `copy`, `forbid` or a dictionary's file, as `search_config` takes it.
        """
        lists = self.translate_nbest(
            texts, beam, 1, batch_size, length_penalty, coverage_penalty, prefixes, unknown, to, tags
        )
        return [best[0].text for best in lists]

    def translate_nbest(
        self,
        texts: Sequence[str],
        beam: int | None = None,
        nbest: int = 1,
        batch_size: int = 64,
        length_penalty: float | str | None = None,
        coverage_penalty: float | None = None,
        prefixes: Sequence[str] | None = None,
        unknown: str | None = None,
        to: str | None = None,
        tags: Sequence[str] = (),
    ) -> list[list[Translation]]:
        """The `nbest` best hypotheses of each text, best first; a blank text has one, which is blank or its prefix."""
        if isinstance(texts, str) or isinstance(prefixes, str):
            raise TypeError("texts and prefixes are lists of strings, not one string")
        if prefixes is not None and len(prefixes) != len(texts):
            raise DataError(
                f"{len(texts)} texts and {len(prefixes)} prefixes: give each text one, blank where it is free"
            )
        config = self.search_config(beam, nbest, length_penalty, coverage_penalty, unknown)
        before = self.source_tags.ids(to, tags)
        return list(self.stream_nbest(texts, config, batch_size, max(1, len(texts)), 1, prefixes, before))

    def sample(
        self,
        texts: Sequence[str],
        drawing: Drawing | None = None,
        batch_size: int = 64,
        to: str | None = None,
        tags: Sequence[str] = (),
    ) -> list[list[Translation]]:
        """`drawing.samples` translations a text, drawn at random; its seed and a text's place decide which."""
        before = self.source_tags.ids(to, tags)
        return list(self.stream_nbest(texts, drawing or Drawing(), batch_size, max(1, len(texts)), before=before))

    def stream(
        self,
        lines: Iterable[str],
        beam: int | None = None,
        batch_size: int = 64,
        length_penalty: float | str | None = None,
        coverage_penalty: float | None = None,
        prefixes: Iterable[str] | None = None,
        unknown: str | None = None,
        to: str | None = None,
        tags: Sequence[str] = (),
    ) -> Iterator[str]:
        """Translate lines as they are read, in order, holding a bounded window of them; otherwise like `translate`."""
        config = self.search_config(beam, 1, length_penalty, coverage_penalty, unknown)
        before = self.source_tags.ids(to, tags)
        for best in self.stream_nbest(lines, config, batch_size, prefixes=prefixes, before=before):
            yield best[0].text

    def stream_nbest(
        self,
        lines: Iterable[str],
        config: SearchConfig | Drawing,
        batch_size: int = 64,
        window: int | None = None,
        first: int = 1,
        prefixes: Iterable[str] | None = None,
        before: Sequence[int] | None = None,
    ) -> Iterator[list[Translation]]:
        """The hypotheses of each line, in order; `window` lines (default: 16 batches) are read ahead, sorted by length.

        first: the number of the first line, for messages and for what is drawn. before: ids of the tags before each
        line, from `source_tags.ids`; None: those of the model's one language. Raises ResourceError for a line that does
        not fit the memory, and DataError for one that is longer than the model's positions, after all lines before it
        were given.
        """
        if batch_size < 1:
            raise ConfigError(f"the batch size must be at least 1 sentence, not {batch_size}")
        method = self._method(config)
        if prefixes is not None and not isinstance(method, Searched):
            raise ConfigError("a prefix goes with beam search only: leave out the prefixes, or the sampling")
        before = self.source_tags.ids() if before is None else before
        cut: list[int] = []
        ended: list[int] = []  # because there are no more positions
        positions = self.model.limits.target.positions
        pairs = ((line, "") for line in lines) if prefixes is None else _paired(lines, prefixes)
        for chunk in _chunks(pairs, window or WINDOW_BATCHES * batch_size):
            found = self._window(chunk, first, method, batch_size, list(before))
            for line, translations in enumerate(found, start=first):
                if not translations[0].finished:
                    out_of_positions = positions is not None and len(translations[0].tokens) >= positions
                    (ended if out_of_positions else cut).append(line)
                yield translations
            first += len(chunk)
        limit = f"the model's {positions} target positions ({self.model.limits.target.setting})"
        for lines_cut, reached in ((cut, "the length limit"), (ended, limit)):
            if lines_cut and self.report_cut:
                shown = ", ".join(map(str, lines_cut[:10])) + (" …" if len(lines_cut) > 10 else "")
                warn(f"{len(lines_cut)} translation(s) reached {reached} and end unfinished: line {shown}")

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        to: str | None = None,
        tags: Sequence[str] = (),
    ) -> list[PairScore]:
        """The log-probability of each target given its source, by forced decoding, in order.

        to, tags: as in `translate`. Raises DataError for a pair that is longer than the model's positions.
        """
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets: each source needs one target")
        before = self.source_tags.ids(to, tags)
        read = self._read(sources, before)
        write = self.tokenizers.target.encode_batch(targets)
        for line, (source, target) in enumerate(zip(read, write, strict=True), start=1):
            self._check_length(line, source, target)
        order = sorted(range(len(sources)), key=lambda row: (len(write[row]), len(read[row])))
        scores: list[PairScore | None] = [None] * len(sources)
        for rows in _chunks(order, batch_size):
            for row, value in zip(
                rows, self._batches.score([(row, read[row], write[row]) for row in rows]), strict=True
            ):
                scores[row] = PairScore(value, len(write[row]) + 1)
        return [score for score in scores if score is not None]

    def attention(
        self, source: str, target: str | None = None, to: str | None = None, tags: Sequence[str] = ()
    ) -> list[AttentionMap]:
        """The weights of every layer, head and kind while `target` (default: the best translation) is predicted."""
        before = self.source_tags.ids(to, tags)
        (read,) = self._read([source], before)
        self._check_length(1, read, [] if target is None else self.tokenizers.target.encode(target))
        if target is None:
            row = Row(1, source, read, tags=len(before))
            write = list(self._batches.hypotheses([row], self._method(self.search_config()))[0][0].tokens)
        else:
            write = self.tokenizers.target.encode(target)
        return attention_maps(self.model, self.tokenizers.source, self.tokenizers.target, read, write)

    def search_config(
        self,
        beam: int | None = None,
        nbest: int = 1,
        length_penalty: float | str | None = None,
        coverage_penalty: float | None = None,
        unknown: str | None = None,
    ) -> SearchConfig:
        """The model's own search settings with these changed. Raises ConfigError for a value that makes no sense.

        length_penalty: GNMT's exponent α, `mean` (mean log-probability of a token) or `none`. coverage_penalty: β.
        unknown: `copy` (the source word that an unknown attends), `forbid`, or the file of a dictionary (word TAB
        translation) to translate that word with.
        """
        settings: dict[str, Any] = {**self.config.get("search", {}), "nbest": nbest}
        settings["beam"] = max(settings.get("beam", SearchConfig().beam), nbest) if beam is None else beam
        if length_penalty is not None:
            settings["length_penalty"] = _penalty(length_penalty)
        if coverage_penalty is not None:
            settings["coverage_penalty"] = coverage_penalty
        if unknown is not None:
            plain = unknown in ("copy", "forbid")
            settings["unknown"] = {"kind": unknown} if plain else {"kind": "dictionary", "path": unknown}
        return parse_settings(settings, SearchConfig, "search")

    def _window(
        self, lines: Sequence[tuple[str, str]], first: int, method: Method, batch_size: int, before: list[int]
    ) -> Iterator[list[Translation]]:
        """Translate length-sorted batches of (text, prefix); give a line's result once all before it are there."""
        prefixes = self._prefixes([prefix.rstrip() for _, prefix in lines])
        filled = [place for place, (text, _) in enumerate(lines) if text.strip()]
        try:
            ids = self._read([lines[place][0] for place in filled], before)
        except VectorError as found:
            raise VectorError(first + filled[found.place] - 1, found.reason) from None
        rows = [
            Row(first + place, lines[place][0], source, prefixes[place], len(before))
            for place, source in zip(filled, ids, strict=True)
        ]
        error = None
        for place, row in enumerate(rows):
            try:
                self._check_length(row.line, row.source, row.prefix.ids)
            except DataError as found:
                error, rows = found, rows[:place]
                break
        rows.sort(key=lambda row: len(row.source))
        batches = sorted(_chunks(rows, batch_size), key=lambda batch: min(row.line for row in batch))
        blank = set(range(len(lines))) - set(filled)
        # nothing to translate: what is there already is its prefix
        done = {}
        for place in blank:
            whole = Hypothesis(prefixes[place].ids, 0.0, 0.0, True, prefixes[place].unknown)
            done[first + place] = [self._translation(whole)]
        upcoming = first
        for batch in [(), *batches]:
            if batch:
                for row, hypotheses in zip(batch, self._batches.hypotheses(batch, method), strict=True):
                    done[row.line] = [self._translation(hypothesis) for hypothesis in hypotheses]
            while upcoming in done:
                yield done.pop(upcoming)
                upcoming += 1
        if error is not None:
            raise error

    def _read(self, texts: Sequence[str], before: Sequence[int]) -> list[list[int]]:
        """The ids of each text, after those of its tags."""
        ids = self.tokenizers.source.encode_batch(texts)
        return [[*before, *source] for source in ids] if before else ids

    def _method(self, config: SearchConfig | Drawing) -> Method:
        target = self.tokenizers.target
        never = target.tag_ids(target.tags)
        if isinstance(config, Drawing):
            return Drawn(config, never)
        return Searched(config, self._unknown_words, never)

    def _check_length(self, line: int, source: Sequence[int], target: Sequence[int]) -> None:
        """Raises DataError when the model has too few positions for so many tokens."""
        if (found := first_exceeded(self.model.limits, len(source), len(target))) is not None:
            limit, length = found
            reason = f"{limit.describe(length)}: shorten it, or train a model with a larger {limit.setting}"
            raise LineError(line - 1, reason, limit.side)

    def _prefixes(self, texts: list[str]) -> list[Prefix]:
        if not any(texts):
            return [Prefix()] * len(texts)
        ids = self.tokenizers.target.encode_batch(texts)
        return [
            Prefix(tuple(prefix), unknown_words(self.tokenizers, text, prefix)) if text else Prefix()
            for text, prefix in zip(texts, ids, strict=True)
        ]

    def _translation(self, hypothesis: Hypothesis) -> Translation:
        ids = list(hypothesis.tokens)
        target = self.tokenizers.target
        return Translation(
            target.decode(ids, hypothesis.unknown),
            hypothesis.score,
            hypothesis.log_probability,
            tuple(target.pieces(ids)),
            hypothesis.finished,
        )


def _penalty(value: float | str) -> dict[str, Any]:
    if value in ("mean", "none"):
        return {"kind": value}
    try:
        return {"kind": "gnmt", "alpha": float(value)}
    except ValueError:
        raise ConfigError(
            f"there is no length penalty '{value}': use a number (GNMT's exponent), mean or none"
        ) from None


def _paired(lines: Iterable[str], prefixes: Iterable[str]) -> Iterator[tuple[str, str]]:
    for count, (line, prefix) in enumerate(zip_longest(lines, prefixes)):
        if line is None or prefix is None:
            few, many = ("texts", "prefixes") if line is None else ("prefixes", "texts")
            raise DataError(f"{count} {few}, but more {many}: give each text one prefix, blank where it is free")
        yield line, prefix


def _chunks(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk
