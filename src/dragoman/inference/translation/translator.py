"""`Translator`: the Python interface to a trained model, which translates, scores and aligns text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Unpack

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.machine.startup import keep_large_tensors_on_heap
from dragoman.base.progress import Progress
from dragoman.base.settings.load import Overrides
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.systems import NEURAL, hybrid_weights, system_folders
from dragoman.decode.decoding import Sampling, SearchSettings, search_config
from dragoman.decode.search import SearchConfig
from dragoman.engines.choice import EngineChoice
from dragoman.engines.engine import Engine
from dragoman.engines.opening import open_engine
from dragoman.engines.router import concurrent_engine, continuous_engine, visible_engine
from dragoman.engines.torch.engine import AttentionTorchEngine
from dragoman.inference.control.control import Control
from dragoman.inference.control.glossary import Glossary
from dragoman.inference.process_bound import ProcessBound
from dragoman.inference.subject import NO_SETTINGS, Subject, SubjectSettings
from dragoman.inference.translation.alignment import Aligner, AttentionAligner, find_aligner
from dragoman.inference.translation.capitals import Capitals
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.continuous import ContinuousTranslation
from dragoman.inference.translation.line_division import LineDivision
from dragoman.inference.translation.request import (
    Request,
    Requests,
    RequestSettings,
    SourceTags,
    check_batch_size,
    check_counts,
    check_pairs,
    check_texts,
    chunks,
    lines_with_requests,
    with_requests,
)
from dragoman.inference.translation.reranking.hybrid import with_neural_scores
from dragoman.inference.translation.result import Choice, NBestLists, PairScore, Translation
from dragoman.inference.translation.stream import LineStream, StreamSettings
from dragoman.inference.translation.subject import TranslationSequence, TranslationSubjects
from dragoman.inference.translation.substitute import Substitute
from dragoman.inference.translation.training_texts import TrainingTexts
from dragoman.models.attention_weights import AttentionChoice, cross_attention_layers
from dragoman.models.kinds.registry import TRANSLATION_MODEL, ModelKind, kind_of
from dragoman.statistical.alignment.links import Alignment
from dragoman.statistical.alignment.shortlist import Shortlist
from dragoman.text.symbols import tag_languages
from dragoman.text.tokenizers import Tokenizers

__all__ = ["WINDOW_BATCHES", "PairScore", "Request", "Sampling", "Translation", "Translator"]

WINDOW_BATCHES = 16  # number of batches of lines that `stream` reads ahead


class Translator(ProcessBound):
    """Translates with a trained model. Results depend neither on the batch size nor on the order of the lines.

    >>> from dragoman import Translator
    >>> translator = Translator.load("runs/ende")
    >>> translator.translate(["The dog sleeps."])
    ['...']
    >>> best, second = translator.translate_nbest(["The dog sleeps."], translator.request(beam=4, nbest=2))[0]
    >>> best.score > second.score
    True
    """

    kind: ModelKind = TRANSLATION_MODEL

    def __init__(
        self,
        engine: Engine,
        tokenizers: Tokenizers,
        meta: Meta | None = None,
        search: Mapping[str, Any] | None = None,
        *,
        warn_unfinished: bool = True,
        aligner: Aligner | None = None,
        supervised_attention: AttentionChoice | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        """search: the model's own search settings; omitted settings have default values. warn_unfinished: warn of
        unfinished translations, of those of an unusual length, of inputs in another language, and of many unknown
        tokens. aligner: aligns words; None for the decoder's attention, by default that of `supervised_attention`.
        shortlist: for requests with `search.shortlist`.
        """
        self.engine, self.tokenizers, self.warn_unfinished, self.aligner = engine, tokenizers, warn_unfinished, aligner
        self.meta, self.source_tags = meta or Meta(step=0), SourceTags(tokenizers.source, meta)
        self.own_search, self.supervised_attention = dict(search or {}), supervised_attention
        self._cached_config = lru_cache(partial(search_config, self.own_search))
        self.codec = Codec(tokenizers, engine.limits, warn_unfinished, shortlist)
        capitals = Capitals(tokenizers.source, (self.meta.source_language, self.target_language()))
        self.training_texts = TrainingTexts(self.meta, tokenizers, lambda text: self.codec.usual(capitals.usual(text)))
        usual, divides = self.training_texts.has_usual_length, not (tokenizers.reads_vectors or self.meta.whole_texts)
        self.division = LineDivision(self.meta.source_language, self.codec.fits, usual, capitals) if divides else None
        self._stream = LineStream(engine, self.codec, self.division, self.training_texts, self.aligner_of)
        self._subjects = TranslationSubjects(engine, self.codec, tokenizers, self.request)

    @classmethod
    def load(
        cls,
        folder: str | Path | Sequence[str | Path],
        device: str | None = None,
        engine: str = "auto",
        precision: str | None = "auto",
        threads: int | None = None,
        *,
        system: str | None = None,
        aligner: Aligner | None = None,
    ) -> "Translator":
        """Load a model folder, a folder written by `dragoman export`, or several folders as an ensemble.

        An ensemble averages its models' probabilities at each step. The models must have the same vocabularies. Tags,
        languages and search settings are those of the first model.

        device: cpu, cuda or cuda:N (default: a GPU if there is one). engine: `auto` or a name in
        `engines.registry.ENGINES`. precision: float32, or int8 (CPU), float16 (GPU) or bfloat16, faster but less exact.
        `auto`: int8 on a CPU if it is faster there and costs at most 0.2 BLEU by the measurement in the folder;
        otherwise None: float32 on a CPU, float16 on a GPU, or that of an exported model. threads: number of threads of
        engines other than PyTorch (default: one per processor). system: as in `dragoman.load`. aligner: aligns words
        (default: the word aligner in the first folder, or else the decoder's attention). Raises ModelError for a
        missing or damaged folder or an unsupported model, ConfigError for an unknown device, engine, precision or
        system.
        """
        keep_large_tensors_on_heap()
        folders = system_folders(folder, system)
        opened, loaded = open_engine(folders, device, EngineChoice(name=engine, precision=precision, threads=threads))
        load_neural = partial(cls.load, folder, device, threads=threads, system=NEURAL)
        opened = with_neural_scores(opened, loaded.tokenizers.target, hybrid_weights(folder, system), load_neural)
        stored, head = find_aligner(folders[0], loaded.config)
        shortlist = Shortlist.load(folders[0], loaded.tokenizers.sizes)
        own = loaded.tokenizers, loaded.meta, loaded.config.get("search")
        found = cls(opened, *own, aligner=aligner or stored, supervised_attention=head, shortlist=shortlist)
        if system is None and folders != system_folders(folder, NEURAL):
            found._stream.substitute = Substitute(found.search_config(), load_neural)
        found.kind = kind_of(loaded.config.get("model") or {})
        return found

    @classmethod
    def of(cls, loaded: LoadedModel, device: torch.device, warn_unfinished: bool = True) -> "Translator":
        """Return a translator for a model in memory, in evaluation mode, with PyTorch's engine on `device`."""
        opened = AttentionTorchEngine(loaded.model, loaded.tokenizers, device)
        return cls(opened, loaded.tokenizers, loaded.meta, loaded.config.get("search"), warn_unfinished=warn_unfinished)

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
        keep: Iterable[str] | None = None,
        keep_patterns: Iterable[str] = (),
        guard: bool = False,
        divide: bool = True,
    ) -> Request:
        """Return a request, which contains all settings of a translation. The model's own settings are the defaults.

        to: the target language, required if the model has several; tags: further tags with which the model was trained,
        such as a domain. prefix: as in `Request`. sampling: draw translations instead of searching for them.
        constraints: phrases that each translation must contain, each a text or a list of alternatives. glossary: a
        `Glossary`, its terms, or its file. keep: kinds of spans to copy unchanged (`inference.control.keep.KINDS`, all
        or none); keep_patterns: regular expressions for further spans. guard: inspect each translation, and search
        again if it is empty, too short or too long, repeats a phrase, copies the source, or differs in script or
        numbers; `Translation.guarded` contains the findings. divide: translate a text of several sentences sentence by
        sentence. The remaining arguments are as in `search_config`. Raises ConfigError for an invalid value, and for a
        language or tag that the model doesn't have; DataError for an unreadable glossary.
        """
        control = Control.of(constraints, glossary, keep or (), keep_patterns)
        search_arguments = (beam, length_penalty, coverage_penalty, unknown, search or None)
        if sampling is not None and (nbest > 1 or any(value is not None for value in search_arguments)):
            raise ConfigError("sampling does not use search settings: leave out the search settings or sampling")
        decoding = sampling or self.search_config(
            beam=beam,
            nbest=nbest,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            unknown=unknown,
            search=search or (),
        )
        source_tags = self.source_tags.of(to, tags)
        chosen_guard = self.training_texts.guard(source_tags) if guard else None
        return Request(decoding, source_tags, prefix, control, chosen_guard, divide)

    def target_language(self, tags: Sequence[str] = ()) -> str | None:
        """Return the target language of a request with these source tags, or None if it is unknown."""
        return next(iter(tag_languages(tags)), self.meta.target_language)

    def search_config(self, **changes: Unpack[SearchSettings]) -> SearchConfig:
        """Return the model's own search settings with the given changes; see `request.search_config`."""
        return search_config(self.own_search, **changes) if changes.get("search") else self._cached_config(**changes)

    def translate(
        self,
        texts: Sequence[str],
        *,
        requests: Requests | None = None,
        batch_size: int = 64,
        prefixes: Sequence[str] | None = None,
        **settings: Unpack[RequestSettings],
    ) -> list[str]:
        """Return one translation per text, in order. The translation of a blank text is blank, or its prefix.

        settings: as in `request`; the model's own settings are the defaults. requests: created by `request`, one for
        all texts or one per text, instead of the settings.
        prefixes: the start of each translation; blank for no prefix. Trailing spaces are ignored. A prefix is split
        into subwords like a text that ends at the same point; letters, punctuation or a new word may follow. Raises
        DataError unless there are as many prefixes as texts.
        """
        if prefixes is not None:
            check_counts(texts, prefixes, "prefixes")
        lines = lines_with_requests(texts, self.request, requests, prefixes, settings)
        with Progress("Translating", "texts", len(texts)) as progress:
            found = list(self._stream.translations([lines], self._settings(batch_size, progress=progress)))
        return [best[0].text for best in found]

    def translate_nbest(
        self, texts: Sequence[str], requests: Requests | None = None, batch_size: int = 64
    ) -> list[list[Translation]]:
        """Return all requested hypotheses of each text, sorted from best to worst; samples are in the order drawn.

        A blank text has one hypothesis, which is its prefix or blank. requests: as in `translate`; None for the model's
        own search settings. Hypothesis n of a text of several sentences consists of hypothesis n of each sentence.
        """
        lines = lines_with_requests(texts, self.request, requests)
        with Progress("Translating", "texts", len(texts)) as progress:
            found = self._stream.translations([lines], self._settings(batch_size, progress=progress))
            return NBestLists(texts, found)

    def sample(
        self,
        texts: Sequence[str],
        sampling: Sampling | None = None,
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[list[Translation]]:
        """Return `sampling.samples` random translations per text, determined by the seed and the index of the text."""
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
        """Like `translate`, but yield translations while lines are read, with a limited number of lines in memory."""
        windows = chunks(with_requests(lines, self.request, requests, prefixes, settings), WINDOW_BATCHES * batch_size)
        for best in self._stream.translations(windows, self._settings(batch_size)):
            yield best[0].text

    def stream_nbest(
        self,
        lines: Iterable[str],
        requests: Requests | None = None,
        batch_size: int = 64,
        progress: Progress | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the hypotheses of each line, in order. 16 batches of lines are read ahead.

        requests: as in `translate_nbest`. progress: counts completed lines. Raises the same errors as
        `translate_window`, and DataError if the numbers of requests and lines differ.
        """
        windows = chunks(with_requests(lines, self.request, requests), WINDOW_BATCHES * batch_size)
        return self._stream.translations(windows, self._settings(batch_size, progress=progress))

    def translate_window(
        self,
        texts: Sequence[str],
        requests: Requests | None = None,
        batch_size: int = 64,
        *,
        first: int = 1,
        progress: Progress | None = None,
        choice: Choice | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the hypotheses of each text, in order, as soon as all preceding texts are complete.

        first: the number of the first text, for messages and sampling. progress: as in `stream_nbest`. choice: orders
        the hypotheses of each sentence. Raises ConfigError at once if the engine doesn't support a request; after all
        preceding results, ResourceError for a text that doesn't fit into memory and DataError for one that is too long.
        """
        check_texts(texts)
        lines = tuple(with_requests(texts, self.request, requests))
        settings = self._settings(batch_size, first=first, progress=progress, choice=choice)
        return self._stream.translations([lines], settings)

    def continuous(self, batch_size: int = 64) -> ContinuousTranslation | None:
        """Start continuous batching of at most `batch_size` lines; None if the engine has none. Close it after use."""
        check_batch_size(batch_size)
        engine = continuous_engine(self.engine)
        return None if engine is None else ContinuousTranslation(engine, self.codec, batch_size, self.division)

    def concurrent(self) -> "Translator | None":
        """Return a translator of the same model for another thread, or None if the engine has none."""
        engine = concurrent_engine(self.engine)
        if engine is None:
            return None
        return Translator(
            engine,
            self.tokenizers,
            self.meta,
            self.own_search,
            warn_unfinished=self.warn_unfinished,
            aligner=self.aligner,
        )

    def fits(self, text: str, request: Request | None = None) -> bool:
        """Return whether a source text, with the tags of its request, is within the model's maximum length."""
        return self.codec.fits(text, request or self.request())

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[PairScore]:
        """Return the log-probability of each target given its source, by forced decoding, in order.

        to, tags: as in `request`. Raises DataError for a pair that exceeds the model's maximum length.
        """
        check_batch_size(batch_size)
        pairs = self.codec.encode_pairs(sources, targets, self.source_tags.of(to, tags))
        scores = self.engine.scores(pairs, batch_size)
        return [PairScore.of(each.target, score) for each, score in zip(pairs, scores, strict=True)]

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        *,
        attention: AttentionChoice | None = None,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[Alignment]:
        """Return the word alignment of each source and target: links (i, j) between words separated by `str.split`.

        attention: as in `aligner_of`; to, tags: as in `request`. Raises the same errors as `score` and the aligner.
        """
        check_batch_size(batch_size)
        check_pairs(sources, targets)
        return self.aligner_of(self.source_tags.of(to, tags), attention).align(sources, targets, batch_size)

    def aligner_of(self, tags: Sequence[str] = (), attention: AttentionChoice | None = None) -> Aligner:
        """Return the translator's `aligner`, or an `AttentionAligner` if it has no aligner or `attention` is given.

        tags: the tags that precede each source, as in `Request.tags`. attention: None for the head that guided
        alignment has supervised, or else the mean of all heads of the penultimate layer.
        """
        if self.aligner is not None and attention is None:
            return self.aligner
        return AttentionAligner(self.engine, self.tokenizers, tags, attention or self.supervised_attention)

    def attention_aligner(
        self, tags: Sequence[str] = (), attention: AttentionChoice | None = None
    ) -> AttentionAligner | None:
        """Return the aligner by the model's attention, or None if its decoder has no attention over the source.

        tags, attention: as in `aligner_of`. Raises ConfigError as `model` does.
        """
        choice, sees_source = attention or self.supervised_attention, cross_attention_layers(self.model)
        return AttentionAligner(visible_engine(self.engine), self.tokenizers, tags, choice) if sees_source else None

    @property
    def model(self) -> Any:
        """The module that computes the translations. Raises ConfigError if its computation is not visible."""
        return visible_engine(self.engine).model

    def subject(self, text: str, settings: SubjectSettings = NO_SETTINGS) -> Subject:
        """Return the log-probability of a translation with its computation; see `TranslationSubjects.subject`."""
        return self._subjects.subject(text, settings)

    def sequence(self, text: str, settings: SubjectSettings = NO_SETTINGS) -> TranslationSequence:
        """Return the translation of a text as a sequence of tokens; see `TranslationSubjects.sequence`."""
        return self._subjects.sequence(text, settings)

    def _settings(self, batch_size: int, **settings: Any) -> StreamSettings:
        return StreamSettings(batch_size=batch_size, warns=self.warn_unfinished, **settings)
