"""Preparation of corpora: clean them, learn a vocabulary, tokenise them, and store the result for later runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.mismatches import PairScoring
from dragoman.data.cleaning.report import LENGTH_LIMITS, CleaningReport
from dragoman.data.cleaning.rules import PairRules, TextRules
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.items import Pair, Passage
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.dataset import Dataset, TextDataset
from dragoman.data.preparation.pipeline import Preparation, PreparedCorpora
from dragoman.data.preparation.tokenising import ChunkTokeniser, PairMarker, PairTokeniser, TextTokeniser
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.text.normalization import Normalization
from dragoman.text.tokenizers import TextConfig, Tokenizers


def prepare(
    corpora: CorpusConfig | Sequence[CorpusConfig],
    cleaning: CleaningConfig,
    text: TextConfig | Tokenizers,
    folder: Path,
    *,
    temperature: float | None = None,
    sample: int = SAMPLE,
    workers: int | None = None,
    marking: PairMarker | None = None,
    languages: tuple[str | None, str | None] = (None, None),
    scoring: PairScoring | None = None,
    held_out: SentenceKeys | None = None,
) -> PreparedCorpora:
    """Clean and tokenise corpora, or reuse the result of an earlier call in `folder`. The log states which.

    text: settings to learn subwords from the corpora, or existing tokenizers, such as those of a model to start from.
    temperature: see `epoch_weights`. sample: maximum number of bytes, see `learn_vocabulary`. workers: number of
    processes; None: one per core. marking: inserts symbols into the pairs. The vocabulary contains these symbols, but
    is learned from text without them. languages: codes of the source and the target language, whose scripts cleaning
    expects, except in corpora that name other languages. scoring: scores pairs if `cleaning.mismatched`. held_out:
    sentences of held-out pairs; pairs with one of them are dropped.

    A corpus is reused if the contents of its files, the cleaning rules, its tags, the marking, and the subword settings
    (or tokenizers) are the same. It is verified when it is opened, and prepared again if it is damaged. A call that was
    killed is resumed by the next call. If several processes use the same folder, one of them prepares the corpora while
    the others wait. Raises DataError if a corpus cannot be read or no pair is kept, and ConfigError if the tokenizers
    lack a tag or do not support the marking, or if mismatches are sought among feature vectors.
    """
    corpora = (corpora,) if isinstance(corpora, CorpusConfig) else tuple(corpora)
    folder = Path(folder)
    return _PairPreparation(
        corpora,
        cleaning,
        text,
        folder,
        temperature,
        sample,
        workers,
        marking=marking,
        languages=languages,
        scoring=scoring,
        held_out=held_out,
    ).run()


def prepare_texts(
    corpora: TextCorpusConfig | Sequence[TextCorpusConfig],
    cleaning: TextCleaningConfig,
    text: TextConfig | Tokenizers,
    folder: Path,
    block: int,
    *,
    temperature: float | None = None,
    sample: int = SAMPLE,
    workers: int | None = None,
    language: str | None = None,
    held_out: SentenceKeys | None = None,
) -> PreparedCorpora:
    """Clean and tokenise documents, or reuse the result of an earlier call in `folder`. The log states which.

    block: number of labels per block of a document, see `TextDataset`; the last block may be shorter. text:
    settings to learn one vocabulary, which is used as source and target, or existing tokenizers, whose target tokenizer
    is used. language: code of the language, whose scripts cleaning expects. held_out: documents that are dropped. For
    other arguments, reuse and errors, see `prepare`.
    """
    corpora = (corpora,) if isinstance(corpora, TextCorpusConfig) else tuple(corpora)
    folder = Path(folder)
    return _TextPreparation(
        corpora,
        cleaning,
        text,
        folder,
        temperature,
        sample,
        workers,
        held_out=held_out,
        block=block,
        language=language,
    ).run()


@dataclass
class _PairPreparation(Preparation[CorpusConfig, CleaningConfig]):
    marking: PairMarker | None = None
    languages: tuple[str | None, str | None] = (None, None)
    scoring: PairScoring | None = None
    held_out: SentenceKeys | None = None

    unit = "pairs"
    dataset = Dataset
    hint = ". `dragoman data check` lists every dropped line"

    def __post_init__(self) -> None:
        text = self.text
        if self.marking is not None:
            _check_vocabulary(text, self.marking.tags)
        if isinstance(text, TextConfig):
            inline = () if self.marking is None else self.marking.tags
            tags = dict.fromkeys([*text.tags, *(tag for corpus in self.corpora for tag in corpus.all_tags), *inline])
            if tags and text.vectors is not None:
                raise ConfigError("a source of feature vectors does not support tags: remove tags and target_language")
            self.text = text.model_copy(update={"tags": tuple(tags)})
        self.vectors = text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None
        if self.vectors and self.cleaning.checks_mismatches:
            raise ConfigError("feature vectors have no words, so that data.cleaning.mismatched cannot score them")
        super().__post_init__()

    def read(self, corpus: CorpusConfig) -> Iterator[Pair]:
        return read_pairs(corpus)

    def cleaning_of(self, corpus: CorpusConfig) -> CleaningConfig:
        return self.cleaning.with_languages(*corpus.languages(*self.languages))

    def rules(self, corpus: CorpusConfig) -> PairRules:
        cleaning = self.cleaning_of(corpus)
        return PairRules(cleaning, str(corpus), self.vectors, corpus.side_names, held_out=self.held_out)

    def earlier_corpora(self, index: int) -> Sequence[int]:
        cleaning, tags = self.cleaning, self.corpora[index].all_tags
        if not (cleaning.enabled and cleaning.duplicates and cleaning.duplicates_between):
            return ()
        return [other for other in range(index) if self.corpora[other].all_tags == tags]

    def describe_extra(self, corpus: CorpusConfig) -> str:
        tags = repr(corpus.all_tags) if corpus.all_tags else ""
        return tags if self.marking is None else f"{tags} {self.marking.fingerprint}"

    def chunk_tokeniser(self, corpus: CorpusConfig, source: Path, work: Path, tokenizers: Tokenizers) -> PairTokeniser:
        tags = tuple(tokenizers.source.tag_ids(corpus.all_tags)) if corpus.all_tags else ()
        limit = self.cleaning.max_tokens if self.cleaning.enabled else None
        return PairTokeniser(source, work, tokenizers, tags, limit, corpus.files[0], self.marking)

    def count_marked(self, tokeniser: ChunkTokeniser, chunks: int) -> dict[str, dict[str, int]]:
        assert isinstance(tokeniser, PairTokeniser)
        counts = tokeniser.marked(chunks)
        return {"marked": counts} if counts else {}

    def _report(self, report: CleaningReport) -> None:
        """Log the report. If pairs were too long, also log the settings that limit their length."""
        super()._report(report)
        if any(limit in report.counts for limit in LENGTH_LIMITS):
            values = {limit: getattr(self.cleaning, limit) for limit in LENGTH_LIMITS}
            limits = ", ".join(f"{limit}={'null' if value is None else value}" for limit, value in values.items())
            info(f"data.cleaning drops longer pairs ({limits}): raise a limit, or set it to null, to keep them.")


@dataclass
class _TextPreparation(Preparation[TextCorpusConfig, TextCleaningConfig]):
    block: int = 0
    language: str | None = None
    held_out: SentenceKeys | None = None

    unit = "documents"
    dataset = TextDataset

    def __post_init__(self) -> None:
        if isinstance(self.text, TextConfig):
            _check_text(self.text)
        super().__post_init__()

    def read(self, corpus: TextCorpusConfig) -> Iterator[Passage]:
        return read_passages(corpus)

    def cleaning_of(self, corpus: TextCorpusConfig) -> TextCleaningConfig:
        return self.cleaning.with_languages(self.language)

    def rules(self, corpus: TextCorpusConfig) -> TextRules:
        single_lines = corpus.jsonl is not None
        return TextRules(self.cleaning_of(corpus), str(corpus), single_lines=single_lines, held_out=self.held_out)

    @property
    def normalizations(self) -> tuple[Normalization, ...]:
        return super().normalizations[1:]

    def describe_extra(self, corpus: TextCorpusConfig) -> str:
        return f"block {self.block}"

    def chunk_tokeniser(
        self, corpus: TextCorpusConfig, source: Path, work: Path, tokenizers: Tokenizers
    ) -> TextTokeniser:
        return TextTokeniser(source, work, tokenizers.target, self.block)


def _check_vocabulary(text: TextConfig | Tokenizers, symbols: Sequence[str]) -> None:
    """Raise ConfigError if the vocabularies do not support the inline symbols or do not contain them."""
    if text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None:
        raise ConfigError("a source of feature vectors has no words: remove data.placeholders and data.terminology")
    kinds = (text.source, text.target) if isinstance(text, Tokenizers) else (text.subword.tokenizer,)
    for kind in kinds:
        if not kind.lossless:
            raise ConfigError(
                f"data.placeholders and data.terminology require a lossless vocabulary, but {kind.kind} is not "
                "lossless: set text.subword.kind to bpe or unigram"
            )
    if isinstance(text, Tokenizers) and (missing := [symbol for symbol in symbols if symbol not in text.tags]):
        raise ConfigError(
            f"the vocabulary lacks the symbol {missing[0]}, which data.placeholders or data.terminology requires: "
            "learn the vocabulary from the data, or start from the model with train.start, which adds the symbol"
        )


def _check_text(text: TextConfig) -> None:
    if text.vectors is not None:
        raise ConfigError("plain text does not contain feature vectors: remove text.vectors")
    if text.source_prefix:
        raise ConfigError("plain text has one side: remove text.source_prefix")
    if not text.shared:
        raise ConfigError("plain text has one side and one vocabulary: remove text.shared")
    if text.subword.resampling:
        raise ConfigError(
            "text.subword.dropout resamples the splits of whole sentences, but plain text is read in blocks: remove it"
        )
