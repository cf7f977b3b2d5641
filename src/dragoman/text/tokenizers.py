"""`Tokenizers`: the tokenizers of source and target, which may be a single object."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from dragoman.base.errors import ModelError
from dragoman.base.settings.config import Config
from dragoman.text.normalization import Normalization, normalise
from dragoman.text.symbols import Tag, placeholder_symbols
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.vocabularies.feature_vectors import VectorsConfig, VectorSequences
from dragoman.text.vocabularies.union import SubwordConfig, load_tokenizer

SHARED_FILE = "tokenizer.json"
SOURCE_FILE, TARGET_FILE = "tokenizer.source.json", "tokenizer.target.json"


class TextConfig(Config):
    """Tokenisation, which converts text to ids."""

    subword: SubwordConfig = Field(
        default=BPEConfig(), description="Kind of vocabulary: subwords, words or characters."
    )
    shared: bool = Field(
        default=True,
        description="Learn one vocabulary from both languages together instead of one per language. Source of the "
        "default: Vaswani et al. 2017, section 5.1.",
    )
    normalization: Normalization = Field(
        default="nfc",
        description="Unicode normalisation of all texts before cleaning and tokenisation: nfc (an accented letter is "
        "one character), nfkc (in addition, compatibility characters such as full-width letters and ligatures are "
        "replaced) or none. The kinds bert and sentencepiece have their own normalisation instead.",
    )
    divide_unspaced: bool = Field(
        default=True,
        description="Divide letters of scripts without spaces, such as Chinese and Thai, into words of at most 64 "
        "characters, and separate them from other letters. Words of kind word are single letters, as are Chinese "
        "words of kind wordpiece. false: a word extends to the next space or punctuation mark.",
    )
    tags: tuple[Tag, ...] = Field(
        default=(),
        description="Tags that are added to the source vocabulary for later use, in addition to the tags of the "
        "corpora: words such as bt or domain-law, and to:de for a target language. They are not counted in "
        "text.subword.size.",
    )
    source_prefix: str = Field(
        default="",
        max_length=1000,
        description="Words that precede every source text, such as `translate English to German:` for a T5 model. They "
        "are added, with a space, in training and in translation. Empty: none.",
    )
    vectors: VectorsConfig | None = Field(
        default=None,
        description="Source of feature vectors instead of text: each line is a JSON list of vectors. null: the source "
        "is text.",
    )

    @property
    def effective_normalization(self) -> Normalization:
        """The normalisation of texts by this kind of vocabulary."""
        return "none" if self.subword.tokenizer.normalises else self.normalization

    def one_sided(self) -> "TextConfig":
        """Return the settings of a single vocabulary of this kind, without tags and prefix."""
        return TextConfig(subword=self.subword, normalization=self.normalization, divide_unspaced=self.divide_unspaced)

    @model_validator(mode="before")
    @classmethod
    def _disable_sharing_for_vectors(cls, values: Any) -> Any:
        """Set `shared` to false by default if the source consists of feature vectors."""
        if isinstance(values, dict) and values.get("vectors") is not None:
            return {"shared": False, **values}
        return values

    @model_validator(mode="after")
    def _check_vectors(self) -> "TextConfig":
        """Check that settings of the source vocabulary are not combined with feature vectors."""
        if self.vectors is not None and self.shared:
            raise ValueError("vectors have no vocabulary to share: set text.shared=false, or remove it")
        if self.vectors is not None and self.tags:
            raise ValueError("a source of feature vectors does not support tags: remove text.tags")
        if self.vectors is not None and self.source_prefix:
            raise ValueError("a source of feature vectors has no words before it: remove text.source_prefix")
        return self


class VocabularySizes(NamedTuple):
    """Sizes of the source and target vocabularies.

    vectors: whether the source consists of feature vectors instead of text; `source` is then the number of components
    of a vector.
    """

    source: int
    target: int
    vectors: bool = False


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of source and target, which are the same object if both languages are tokenised identically."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def of_one(cls, tokenizer: Tokenizer) -> "Tokenizers":
        """Return one tokenizer for both languages. Its prefix, if it has one, precedes only source texts."""
        return cls(tokenizer, tokenizer.with_prefix(""))

    @property
    def shared(self) -> bool:
        """Return whether both languages share a vocabulary, even if their tokenizers differ."""
        return self.has_single_tokenizer or (self.source.joint and self.target.joint)

    @property
    def has_single_tokenizer(self) -> bool:
        """Return whether both languages use the same tokenizer, apart from a prefix of source texts."""
        return self.source.shares_vocabulary(self.target)

    @property
    def sizes(self) -> VocabularySizes:
        """The sizes of both vocabularies."""
        return VocabularySizes(self.source.size, self.target.size, self.reads_vectors)

    @property
    def reads_vectors(self) -> bool:
        """Return whether the source consists of feature vectors instead of text."""
        return isinstance(self.source, VectorSequences)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that source texts may have."""
        return self.source.tags

    def with_tags(self, tags: Sequence[str]) -> "Tokenizers":
        """Return the tokenizers with these tags in the source vocabulary.

        A shared vocabulary contains the tags on both sides. A separate target vocabulary contains only the placeholder
        symbols among them.
        """
        source = self.source.with_tags(tags)
        if self.has_single_tokenizer:
            return Tokenizers.of_one(source)
        if self.shared:
            return Tokenizers(source, self.target.with_tags(tags))
        placeholders = placeholder_symbols(tags)
        return Tokenizers(source, self.target.with_tags(placeholders) if placeholders else self.target)

    @property
    def normalizations(self) -> tuple[Normalization, Normalization]:
        """The Unicode normalisation of the source and of the target."""
        return self.source.normalization, self.target.normalization

    @property
    def fingerprint(self) -> str:
        """A digest of both tokenizers."""
        return f"{self.source.fingerprint}:{self.target.fingerprint}"

    def with_dropout(self, dropout: float) -> "Tokenizers":
        """Return the tokenizers with this rate for `resample`."""
        source = self.source.with_dropout(dropout)
        if self.has_single_tokenizer:
            return Tokenizers.of_one(source)
        return Tokenizers(source, self.target.with_dropout(dropout))

    def with_source_prefix(self, prefix: str) -> "Tokenizers":
        """Return the tokenizers with these words before every source text. A blank prefix adds nothing."""
        return Tokenizers(self.source.with_prefix(prefix), self.target)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`, or `tokenizer.source.json` and `tokenizer.target.json`."""
        folder = Path(folder)
        if self.has_single_tokenizer:
            self.source.save(folder / SHARED_FILE)
        else:
            self.source.save(folder / SOURCE_FILE)
            self.target.save(folder / TARGET_FILE)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizers":
        """Load saved tokenizers. Raises ModelError if a file is missing or damaged, or if both variants exist."""
        folder = Path(folder)
        names = {name for name in (SHARED_FILE, SOURCE_FILE, TARGET_FILE) if (folder / name).is_file()}
        if names == {SHARED_FILE}:
            return cls.of_one(load_tokenizer(folder / SHARED_FILE))
        if names == {SOURCE_FILE, TARGET_FILE}:
            return cls(load_tokenizer(folder / SOURCE_FILE), load_tokenizer(folder / TARGET_FILE))
        found = ", ".join(sorted(names)) or "neither"
        raise ModelError(
            f"{folder} must contain either {SHARED_FILE} or both {SOURCE_FILE} and {TARGET_FILE}; found: {found}."
        )


def train_tokenizers(config: TextConfig, sources: Iterable[str], targets: Iterable[str]) -> Tokenizers:
    """Learn vocabularies from the two sides of a corpus. `sources` is read completely before `targets`.

    The tags of `config` are added to the source vocabulary, and to the target vocabulary if it is shared. The texts are
    normalised. The prefix of source texts is not among the texts.
    """
    form = config.effective_normalization
    sources = sources if config.vectors is not None else (normalise(text, form) for text in sources)
    targets = (normalise(text, form) for text in targets)

    def learn(texts: Iterable[str]) -> Tokenizer:
        return config.subword.learn(texts, config.divide_unspaced).with_normalization(form)

    if config.shared:
        tokenizer = learn(chain(sources, targets)).with_tags(config.tags)
        return Tokenizers.of_one(tokenizer.with_prefix(config.source_prefix))
    if config.vectors is not None:
        return Tokenizers(VectorSequences(config.vectors.width), learn(targets))
    source = learn(sources)
    return Tokenizers(source, learn(targets)).with_tags(config.tags).with_source_prefix(config.source_prefix)
