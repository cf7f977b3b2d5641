"""From plain text to token ids, as `prepare` does it with sentence pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.data.corpora.documents import read_passages
from dragoman.data.corpora.passage import Passage
from dragoman.data.corpora.text_corpus import TextCorpusConfig
from dragoman.data.preparation.prepare import Preparation, Prepared
from dragoman.data.preparation.text_cleaning import TextCleaningConfig, TextRules
from dragoman.data.preparation.tokenised_texts import TokeniseTexts
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.data.shards import TextDataset
from dragoman.text.tokenizers import TextConfig, Tokenizers


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
) -> Prepared:
    """Clean and tokenise documents, or reuse what an earlier call left in `folder`, and say which of the two.

    block: a document is divided into excerpts of so many tokens to predict, the last of fewer, see `TextDataset`. text:
    how to learn one vocabulary, which is source and target of the tokenizers alike, or tokenizers that exist, of which
    the target's is taken. The others, what decides whether a corpus is reused, and what is raised: see `prepare`.
    """
    corpora = (corpora,) if isinstance(corpora, TextCorpusConfig) else tuple(corpora)
    return _TextPreparation(corpora, cleaning, text, Path(folder), temperature, sample, workers, block).run()


@dataclass
class _TextPreparation(Preparation[TextCorpusConfig, TextCleaningConfig]):
    block: int

    unit = "documents"
    dataset = TextDataset

    def __post_init__(self) -> None:
        if isinstance(self.text, TextConfig):
            _check(self.text)
        super().__post_init__()

    def read(self, corpus: TextCorpusConfig) -> Iterator[Passage]:
        return read_passages(corpus)

    def rules(self, corpus: TextCorpusConfig) -> TextRules:
        return TextRules(self.cleaning, str(corpus))

    def more(self, corpus: TextCorpusConfig) -> str:
        return f"block {self.block}"

    def function(self, corpus: TextCorpusConfig, source: Path, work: Path, tokenizers: Tokenizers) -> TokeniseTexts:
        return TokeniseTexts(source, work, tokenizers.target, self.block)


def _check(text: TextConfig) -> None:
    if text.vectors is not None:
        raise ConfigError("plain text holds no feature vectors: leave out text.vectors")
    if not text.shared:
        raise ConfigError("plain text has one side, and one vocabulary: leave out text.shared")
    if text.subword.resampling:
        raise ConfigError(
            "text.subword.dropout splits whole sentences anew each time they are read, and plain text is read in "
            "excerpts: leave it out"
        )
