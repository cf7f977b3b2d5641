"""Preparing corpora: cleaned, subwords learned, tokenised once, and kept for the next run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.data.cleaning.report import LENGTH_LIMITS, CleaningReport
from dragoman.data.cleaning.rules import CleaningConfig, PairRules, TextCleaningConfig, TextRules
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.items import Pair, Passage
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.dataset import Dataset, TextDataset
from dragoman.data.preparation.pipeline import Preparation, PreparedCorpora
from dragoman.data.preparation.tokenising import BlockTokeniser, PairMarker, PairTokeniser, TextTokeniser
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.text.tokenizers import TextConfig, Tokenizers


def prepare(
    corpora: CorpusConfig | Sequence[CorpusConfig],
    cleaning: CleaningConfig,
    text: TextConfig | Tokenizers,
    folder: Path,
    temperature: float | None = None,
    sample: int = SAMPLE,
    workers: int | None = None,
    marking: PairMarker | None = None,
) -> PreparedCorpora:
    """Clean and tokenise corpora, or reuse what an earlier call left in `folder`, and say which of the two.

    text: how to learn subwords from the corpora, or tokenizers that exist (of a model to start from). temperature: see
    `epoch_weights`; sample: see `learn_vocabulary`; workers: processes, None for one a core. marking: what is put into
    the pairs beside their words; the vocabulary is learned without it, and has its symbols.

    Each corpus is reused when the contents of its files, the cleaning rules, its tags, the marking, and the subword
    settings (or tokenizers) are the same; it is verified when opened and made again when damaged. What a killed call
    has done is not done again. Of several processes that call with the same folder, one works and the others wait for
    it. Raises DataError when a corpus cannot be read or no pair stays, ConfigError for tags that the tokenizers do not
    have, and for a marking that does not go with them.
    """
    corpora = (corpora,) if isinstance(corpora, CorpusConfig) else tuple(corpora)
    return _PairPreparation(corpora, cleaning, text, Path(folder), temperature, sample, workers, marking).run()


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
) -> PreparedCorpora:
    """Clean and tokenise documents, or reuse what an earlier call left in `folder`, and say which of the two.

    block: a document is divided into excerpts of so many tokens to predict, the last of fewer, see `TextDataset`. text:
    how to learn one vocabulary, which is source and target of the tokenizers alike, or tokenizers that exist, of which
    the target's is taken. The others, what decides whether a corpus is reused, and what is raised: see `prepare`.
    """
    corpora = (corpora,) if isinstance(corpora, TextCorpusConfig) else tuple(corpora)
    return _TextPreparation(corpora, cleaning, text, Path(folder), temperature, sample, workers, block).run()


@dataclass
class _PairPreparation(Preparation[CorpusConfig, CleaningConfig]):
    marking: PairMarker | None = None

    unit = "pairs"
    dataset = Dataset
    check = "; `dragoman data check` lists every dropped line"

    def __post_init__(self) -> None:
        text = self.text
        if self.marking is not None:
            _check_vocabulary(text, self.marking.tags)
        if isinstance(text, TextConfig):
            inline = () if self.marking is None else self.marking.tags
            tags = dict.fromkeys([*text.tags, *(tag for corpus in self.corpora for tag in corpus.all_tags), *inline])
            if tags and text.vectors is not None:
                raise ConfigError("a source of feature vectors takes no tags: leave out tags and target_language")
            self.text = text.model_copy(update={"tags": tuple(tags)})
        self.vectors = text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None
        super().__post_init__()

    def read(self, corpus: CorpusConfig) -> Iterator[Pair]:
        return read_pairs(corpus)

    def rules(self, corpus: CorpusConfig) -> PairRules:
        return PairRules(self.cleaning, str(corpus), self.vectors)

    def before(self, index: int) -> Sequence[int]:
        cleaning, tags = self.cleaning, self.corpora[index].all_tags
        if not (cleaning.enabled and cleaning.duplicates and cleaning.duplicates_between):
            return ()
        return [other for other in range(index) if self.corpora[other].all_tags == tags]

    def more(self, corpus: CorpusConfig) -> str:
        tags = repr(corpus.all_tags) if corpus.all_tags else ""
        return tags if self.marking is None else f"{tags} {self.marking.fingerprint}"

    def function(self, corpus: CorpusConfig, source: Path, work: Path, tokenizers: Tokenizers) -> PairTokeniser:
        tags = tuple(tokenizers.source.tag_ids(corpus.all_tags)) if corpus.all_tags else ()
        limit = self.cleaning.max_tokens if self.cleaning.enabled else None
        return PairTokeniser(source, work, tokenizers, tags, limit, corpus.files[0], self.marking)

    def marked(self, function: BlockTokeniser, blocks: int) -> dict[str, dict[str, int]]:
        assert isinstance(function, PairTokeniser)
        counts = function.marked(blocks)
        return {"marked": counts} if counts else {}

    def _tell(self, report: CleaningReport) -> None:
        """The report, and where long pairs were dropped, which settings would keep them."""
        super()._tell(report)
        if any(limit in report.counts for limit in LENGTH_LIMITS):
            values = {limit: getattr(self.cleaning, limit) for limit in LENGTH_LIMITS}
            limits = ", ".join(f"{limit}={'null' if most is None else most}" for limit, most in values.items())
            info(
                f"Longer pairs are dropped by data.cleaning ({limits}): raise a limit, or set it to null, to keep them."
            )


@dataclass
class _TextPreparation(Preparation[TextCorpusConfig, TextCleaningConfig]):
    block: int

    unit = "documents"
    dataset = TextDataset

    def __post_init__(self) -> None:
        if isinstance(self.text, TextConfig):
            _check_text(self.text)
        super().__post_init__()

    def read(self, corpus: TextCorpusConfig) -> Iterator[Passage]:
        return read_passages(corpus)

    def rules(self, corpus: TextCorpusConfig) -> TextRules:
        return TextRules(self.cleaning, str(corpus))

    def more(self, corpus: TextCorpusConfig) -> str:
        return f"block {self.block}"

    def function(self, corpus: TextCorpusConfig, source: Path, work: Path, tokenizers: Tokenizers) -> TextTokeniser:
        return TextTokeniser(source, work, tokenizers.target, self.block)


def _check_vocabulary(text: TextConfig | Tokenizers, symbols: Sequence[str]) -> None:
    """Raises ConfigError where symbols cannot stand among the words of the source or the target, or are not known."""
    if text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None:
        raise ConfigError("a source of feature vectors has no words: leave out data.placeholders and data.terminology")
    kinds = (text.source, text.target) if isinstance(text, Tokenizers) else (text.subword.tokenizer,)
    for kind in kinds:
        if not kind.lossless:
            raise ConfigError(
                f"data.placeholders and data.terminology need a vocabulary that keeps every text as it is, and one of "
                f"kind {kind.kind} does not: set text.subword.kind to bpe or unigram"
            )
    if isinstance(text, Tokenizers) and (missing := [symbol for symbol in symbols if symbol not in text.tags]):
        raise ConfigError(
            f"the vocabulary has no symbol {missing[0]}, which data.placeholders or data.terminology needs: train from "
            "the data, or start from the model (train.start), which adds it"
        )


def _check_text(text: TextConfig) -> None:
    if text.vectors is not None:
        raise ConfigError("plain text holds no feature vectors: leave out text.vectors")
    if not text.shared:
        raise ConfigError("plain text has one side, and one vocabulary: leave out text.shared")
    if text.subword.resampling:
        raise ConfigError(
            "text.subword.dropout splits whole sentences anew each time they are read, and plain text is read in "
            "excerpts: leave it out"
        )
