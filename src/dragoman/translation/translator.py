"""`Translator`: the Python interface to a trained model, which translates, scores and aligns text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Unpack

import torch

from dragoman.base.errors import ConfigError, DataError, LineError
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.progress import Progress
from dragoman.base.settings.load import Overrides
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.control.control import Control
from dragoman.control.glossary import Glossary
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.inspect.attention import AttentionMap
from dragoman.inspect.inspection import Inspection, build_inspection, check_text, check_tokens
from dragoman.text.symbols import tag_languages
from dragoman.text.tokenizers import Tokenizers
from dragoman.translation.alignment import Aligner, Alignment, AttentionAligner, AttentionChoice
from dragoman.translation.choice import open_engine
from dragoman.translation.codec import Codec
from dragoman.translation.continuous import ContinuousTranslation, continuous_engine
from dragoman.translation.engine import Engine, attention_engine
from dragoman.translation.engines.torch import AttentionTorchEngine
from dragoman.translation.guard.guard import Guard
from dragoman.translation.guard.wrong_script import usual_scripts
from dragoman.translation.line_warnings import LineWarnings
from dragoman.translation.request import (
    Request,
    Requests,
    RequestSettings,
    Sampling,
    SearchSettings,
    TextRequest,
    check_batch_size,
    check_counts,
    check_pairs,
    check_texts,
    chunks,
    search_config,
    with_requests,
)
from dragoman.translation.result import PairScore, Translation
from dragoman.translation.source_tags import SourceTags
from dragoman.translation.window import WindowTranslation

__all__ = ["WINDOW_BATCHES", "PairScore", "Request", "Sampling", "Translation", "Translator"]

WINDOW_BATCHES = 16  # batches of lines that `stream` reads ahead


class Translator:
    """A trained model that translates. The output depends neither on the batch size nor on the order of the lines."""

    def __init__(
        self,
        engine: Engine,
        tokenizers: Tokenizers,
        meta: Meta | None = None,
        search: Mapping[str, Any] | None = None,
        report_cut: bool = True,
        aligner: Aligner | None = None,
    ) -> None:
        """search: the model's own search settings; omitted ones have default values. report_cut: warn of unfinished
        translations. aligner: aligns words; None for the decoder's attention.
        """
        self.engine, self.tokenizers, self.report_cut, self.aligner = engine, tokenizers, report_cut, aligner
        self.meta, self.source_tags = meta or Meta(step=0), SourceTags(tokenizers.source, meta)
        self._own = dict(search or {})
        self._usual, self._codec = lru_cache(partial(search_config, self._own)), Codec(tokenizers, engine.limits)
        self._translation = WindowTranslation(engine, self._codec)

    @classmethod
    def load(
        cls,
        folder: str | Path | Sequence[str | Path],
        device: str | None = None,
        engine: str = "auto",
        precision: str | None = None,
        threads: int | None = None,
        *,
        aligner: Aligner | None = None,
    ) -> "Translator":
        """Load a model folder, a folder that `dragoman export` wrote, or several folders as an ensemble.

        An ensemble averages its models' probabilities at each step. They must have the same vocabularies; tags,
        languages and search settings are the first model's.

        device: cpu, cuda or cuda:N (default: a GPU if there is one). engine: `auto` or a name of
        `translation.choice.ENGINES`. precision: float32, or int8 (CPU), float16 or bfloat16 (GPU), which are faster but
        less exact (default: float32 on a CPU, float16 on a GPU, or as an exported model is stored). threads: number of
        threads of engines other than PyTorch (default: one per processor). aligner: aligns words (default: the
        decoder's attention). Raises ModelError for a missing or damaged model folder and for a model that the engine
        doesn't support, ConfigError for an unknown device, engine or precision.
        """
        keep_large_tensors_on_heap()
        folders = [Path(folder)] if isinstance(folder, str | Path) else [Path(each) for each in folder]
        opened, loaded = open_engine(folders, device, engine, precision, threads)
        return cls(opened, loaded.tokenizers, loaded.meta, loaded.config.get("search"), aligner=aligner)

    @classmethod
    def of(cls, loaded: LoadedModel, device: torch.device, report_cut: bool = True) -> "Translator":
        """Return a translator for a model in memory: PyTorch on `device`, in evaluation mode. report_cut: as above."""
        opened = AttentionTorchEngine(loaded.model, loaded.tokenizers, device)
        return cls(opened, loaded.tokenizers, loaded.meta, loaded.config.get("search"), report_cut)

    def request(
        self,
        *,
        beam: int | None = None,
        nbest: int = 1,
        length_penalty: float | str | None = None,
        coverage_penalty: float | None = None,
        unknown: str | None = None,
        search: Overrides = (),
        sampling: Sampling | None = None,
        to: str | None = None,
        tags: Iterable[str] = (),
        prefix: str = "",
        constraints: Iterable[str | Sequence[str]] = (),
        glossary: Glossary | Mapping[str, Any] | Path | str | None = None,
        keep: Iterable[str] = (),
        keep_patterns: Iterable[str] = (),
        guard: bool = False,
    ) -> Request:
        """Return a request, which holds all settings of a translation; the model's own settings are the defaults.

        to: the target language, required if the model has several; tags: further tags that the model was trained with,
        such as a domain. prefix: as in `Request`. sampling: draw translations instead of searching for them.
        constraints: phrases that each translation must contain, each a text or a list of alternatives. glossary: a
        `Glossary`, its terms, or its file. keep: kinds of spans to copy unchanged (`control.keep.KINDS`, or all);
        keep_patterns: regular expressions for more. guard: inspect each translation, and search again if it repeats
        itself, is empty, copies the source, or differs in script or numbers; `Translation.guarded` reports the
        findings. The other arguments are as in `search_config`. Raises ConfigError for an invalid value, and for a
        language or tag that the model doesn't have; DataError for an unreadable glossary.
        """
        control = Control.of(constraints, glossary, keep, keep_patterns)
        of_search = (beam, length_penalty, coverage_penalty, unknown, search or None)
        if sampling is not None and (nbest > 1 or any(value is not None for value in of_search)):
            raise ConfigError("a sampled translation has no search: leave out the search settings or sampling")
        decoding = sampling or self.search_config(
            beam=beam,
            nbest=nbest,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            unknown=unknown,
            search=search or (),
        )
        before = self.source_tags.of(to, tags)
        return Request(decoding, before, prefix, control, self._guard(before) if guard else None)

    def _guard(self, tags: Sequence[str]) -> Guard:
        """Return a guard for these source tags, which may name the target language."""
        if self.tokenizers.reads_vectors:
            raise ConfigError("a guard compares words, and vectors have none: leave it out for this model")
        target = next(iter(tag_languages(tags)), self.meta.target_language)
        return Guard(self._target_scripts, target is None or target != self.meta.source_language)

    @cached_property
    def _target_scripts(self) -> frozenset[str]:
        return usual_scripts(self.tokenizers.target)

    def search_config(self, **changes: Unpack[SearchSettings]) -> SearchConfig:
        """Return the model's own search settings with these changed; see `request.search_config`."""
        return search_config(self._own, **changes) if changes.get("search") else self._usual(**changes)

    def translate(
        self,
        texts: Sequence[str],
        *,
        requests: Requests | None = None,
        batch_size: int = 64,
        prefixes: Sequence[str] | None = None,
        **settings: Unpack[RequestSettings],
    ) -> list[str]:
        """Return one translation per text, in order; a blank text stays blank. Settings default to the model's own.

        requests: from `request`, one shared by all texts or one per text; they replace the settings, which are as in
        `request`.

        prefixes: the start of each translation; blank for no prefix. Trailing spaces are ignored. A prefix is split
        into subwords like a text that ends there; the model decides whether letters, punctuation or a new word follow.
        The translation of a blank text is its prefix. Raises DataError unless there are as many prefixes as texts.
        """
        if prefixes is not None:
            check_counts(texts, prefixes, "prefixes")
        wanted = self._wanted(requests, prefixes, settings)
        return [best[0].text for best in self.translate_nbest(texts, wanted, batch_size)]

    def translate_nbest(
        self, texts: Sequence[str], requests: Requests | None = None, batch_size: int = 64
    ) -> list[list[Translation]]:
        """Return all requested hypotheses of each text, the best first; samples are in the order drawn.

        A blank text has one hypothesis, which is its prefix or blank. requests: as in `translate`; None: the model's
        own search settings.
        """
        check_texts(texts)
        wanted = self._wanted(requests, None, {})
        if not isinstance(wanted, Request):
            wanted = list(wanted)
            check_counts(texts, wanted, "requests")
        with Progress("Translating", "texts", len(texts)) as progress:
            return list(self._windows([tuple(with_requests(texts, wanted, "requests"))], batch_size, progress=progress))

    def sample(
        self,
        texts: Sequence[str],
        sampling: Sampling | None = None,
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[list[Translation]]:
        """Return `sampling.samples` random translations per text, determined by the seed and the text's index."""
        return self.translate_nbest(texts, self.request(sampling=sampling or Sampling(), to=to, tags=tags), batch_size)

    def stream(
        self,
        lines: Iterable[str],
        *,
        requests: Requests | None = None,
        batch_size: int = 64,
        prefixes: Iterable[str] | None = None,
        **settings: Unpack[RequestSettings],
    ) -> Iterator[str]:
        """Translate lines as they are read, in order, with a bounded window of them in memory; otherwise like
        `translate`.
        """
        wanted = self._wanted(requests, prefixes, settings)
        asked = with_requests(lines, wanted, "requests" if prefixes is None else "prefixes")
        for best in self._windows(chunks(asked, WINDOW_BATCHES * batch_size), batch_size):
            yield best[0].text

    def stream_nbest(
        self,
        lines: Iterable[str],
        requests: Requests | None = None,
        batch_size: int = 64,
        progress: Progress | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the hypotheses of each line, in order, reading 16 batches of lines ahead; otherwise like
        `translate_nbest`.

        progress: counts each completed line. Raises what `translate_window` raises, and DataError if the numbers of
        requests and lines differ.
        """
        asked = with_requests(lines, self._wanted(requests, None, {}), "requests")
        return self._windows(chunks(asked, WINDOW_BATCHES * batch_size), batch_size, progress=progress)

    def translate_window(
        self,
        texts: Sequence[str],
        requests: Requests | None = None,
        batch_size: int = 64,
        first: int = 1,
        progress: Progress | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the hypotheses of each text, in order, each as soon as those before it are complete.

        first: the number of the first text, for messages and for sampling. progress: as in `stream_nbest`. Raises
        ConfigError, before anything is yielded, if the engine doesn't support a request; ResourceError for a text that
        doesn't fit into memory and DataError for one that exceeds the model's positions, after the preceding texts have
        been yielded.
        """
        check_texts(texts)
        asked = with_requests(texts, self._wanted(requests, None, {}), "requests")
        return self._windows([tuple(asked)], batch_size, first, progress)

    def continuous(self, batch_size: int = 64) -> ContinuousTranslation | None:
        """Return continuous batching of at most `batch_size` lines, or None if the engine doesn't support it. Close it
        before any other translation.
        """
        check_batch_size(batch_size)
        engine = continuous_engine(self.engine)
        return None if engine is None else ContinuousTranslation(engine, self._codec, batch_size)

    def fits(self, text: str, request: Request | None = None) -> bool:
        """Return whether a source text, with the tags of its request, fits the model's positions."""
        return self.engine.limits.source.positions is None or self._codec.fits(text, request or self.request())

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[PairScore]:
        """Return the log-probability of each target given its source, by forced decoding, in order.

        to, tags: as in `request`. Raises DataError for a pair that is longer than the model's positions.
        """
        check_batch_size(batch_size)
        pairs = self._codec.pairs(sources, targets, self.source_tags.of(to, tags))
        scores = self.engine.scores(pairs, batch_size)
        return [PairScore(score, len(pair.target) + 1) for pair, score in zip(pairs, scores, strict=True)]

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        attention: AttentionChoice | None = None,
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[Alignment]:
        """Return the word alignment of each source and target: links (i, j) of their words as `str.split` has them.

        attention: as in `aligner_of`; to, tags: as in `request`. Raises what `score` and the aligner raise.
        """
        check_batch_size(batch_size)
        check_pairs(sources, targets)
        return self.aligner_of(self.source_tags.of(to, tags), attention).align(sources, targets, batch_size)

    def aligner_of(self, tags: Sequence[str] = (), attention: AttentionChoice | None = None) -> Aligner:
        """Return the translator's `aligner`; if it has none or `attention` is given, one that reads the decoder's
        attention.

        tags: precede each source, as in `Request.tags`. The default attention is the mean of all heads of the
        penultimate layer.
        """
        if self.aligner is not None and attention is None:
            return self.aligner
        return AttentionAligner(self.engine, self.tokenizers, tags, attention)

    def attention(
        self, source: str, target: str | None = None, to: str | None = None, tags: Iterable[str] = ()
    ) -> list[AttentionMap]:
        """Return all attention weights of every layer and head while `target` (default: the best translation) is
        predicted.

        Raises ConfigError if the engine does not expose them.
        """
        engine, request = attention_engine(self.engine), self.request(to=to, tags=tags)
        (pair,) = self._codec.pairs([source], [target or ""], request.tags)
        found = pair.target if target is not None else self._best(source, request).tokens
        return engine.attention(pair.source, found)

    def inspect(
        self, source: str, target: str | None = None, to: str | None = None, tags: Iterable[str] = ()
    ) -> Inspection:
        """Return everything that the model attends to while `target` (default: the best translation) is predicted.

        Raises ConfigError if the model has no attention or the engine does not expose it, DataError for a text that is
        blank or too long.
        """
        engine, request = attention_engine(self.engine), self.request(to=to, tags=tags)
        check_text(source, "text")
        if target is not None:
            check_text(target, "target")
        try:
            (pair,) = self._codec.pairs([source], [target or ""], request.tags)
        except LineError as error:
            raise DataError(f"the text is too long: {error.reason}") from None
        check_tokens(len(pair.source))
        if target is None:
            best = self._best(source, request)
            target, pair = self._codec.translation(best).text, pair._replace(target=best.tokens)
        check_tokens(len(pair.target))
        return build_inspection(source, target, engine.attention(pair.source, pair.target), engine.without_weights())

    def _best(self, source: str, request: Request) -> Hypothesis:
        (row,) = self._codec.rows([(source, request)], first=1)
        return self._translation.best(row)

    def _wanted(self, requests: Requests | None, prefixes: Iterable[str] | None, settings: RequestSettings) -> Requests:
        """Return the given requests, or one made from the settings."""
        if requests is None:
            request = self.request(**settings)
            return request if prefixes is None else (replace(request, prefix=prefix) for prefix in prefixes)
        given = [name for name, value in {**settings, "prefixes": prefixes}.items() if value not in (None, ())]
        if given:
            raise ConfigError(f"a request already has all settings: leave out {', '.join(given)}, or the requests")
        return requests

    def _windows(
        self,
        windows: Iterable[Sequence[TextRequest]],
        batch_size: int,
        first: int = 1,
        progress: Progress | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the hypotheses of each line of the windows; at the end, warn of unfinished translations."""
        check_batch_size(batch_size)
        warnings = LineWarnings()
        for window in windows:
            found = self._translation.translations(window, batch_size, first, progress)
            for line, translations in enumerate(found, start=first):
                warnings.note_translation(line, translations[0], self.engine.limits.target)
                yield translations
            first += len(window)
        if self.report_cut:
            warnings.report()
