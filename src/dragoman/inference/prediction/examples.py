"""The examples of a model with a head: the forms in which they are given, and the files that contain them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.labelled.corpus import (
    LabelledCorpusConfig,
    QuestionCorpusConfig,
    TaggedCorpusConfig,
    TreebankCorpusConfig,
)
from dragoman.data.labelled.examples import LabelledText, ParsedSentence, Question, TaggedSentence
from dragoman.data.labelled.read import read_labelled, read_parsed, read_questions, read_tagged
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.tagging import tagged_sentence
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.models.heads.union import HeadConfig

_TAGGED_SUFFIXES = (".conll", ".conllu", ".iob", ".bio")

Text = str | Sequence[str] | Mapping[str, str] | LabelledText | TaggedSentence | ParsedSentence | Question
"""One input of a predictor: a text; a pair of texts, a question and its context, or the words of a sentence; the fields
`question` and `context` of a question; or an example.
"""
_Example = LabelledText | TaggedSentence | ParsedSentence | Question


@dataclass(frozen=True)
class EncodedText:
    """A text as an example of the model's task, and its inputs to the model."""

    text: Text
    example: Any
    inputs: Sequence[ModelInput]

    @property
    def tokens(self) -> int:
        """Number of tokens of all inputs."""
        return sum(len(each.ids) for each in self.inputs)

    @property
    def cut(self) -> int:
        """Number of tokens that no input contains."""
        return sum(each.cut for each in self.inputs)


def read_examples(
    head: HeadConfig, source: str | Path, settings: Overrides = (), labelled: bool = False
) -> Sequence[Any]:
    """Return the examples of a file in the form that a head expects.

    settings: the settings of the corpus. labelled: whether the examples must have labels. Raises ConfigError for an
    unknown setting, DataError if the file cannot be read.
    """
    values = all_overrides({"path": str(source)}, settings)
    if isinstance(head, SpanHeadConfig):
        return read_questions(load_settings(None, values, QuestionCorpusConfig), labelled)
    if isinstance(head, TreeHead):
        return read_parsed(load_settings(None, values, TreebankCorpusConfig), labelled)
    if not isinstance(head, TaggingHeadConfig):
        return read_labelled(load_settings(None, values, LabelledCorpusConfig), labelled)
    is_named = any(suffix in _TAGGED_SUFFIXES for suffix in Path(source).suffixes)
    if labelled or is_named or any(each.key[0] != "path" and each.value != "text" for each in values):
        return read_tagged(load_settings(None, values, TaggedCorpusConfig), labelled)
    lines = read_labelled(load_settings(None, all_overrides({"format": "text"}, values), LabelledCorpusConfig), False)
    return [line.texts[0] for line in lines]


def example_of(head: HeadConfig, text: Text, number: int) -> Any:
    """Return an input as an example of a head. Raises ConfigError if it has the wrong form. number: its number."""
    if isinstance(text, TaggedSentence) and isinstance(head, TreeHead) and not text.features:
        return ParsedSentence(text.words)
    if isinstance(text, _Example):
        if isinstance(text, _example_type(head)):
            return text
        expected, found = _FORMS[_example_type(head)], _FORMS[type(text)]
        raise ConfigError(f"text {number}: expected {expected}, not {found}, because the head is {head.kind}")
    if isinstance(head, ClassificationHeadConfig | RegressionHeadConfig | MaskedLanguageModelHeadConfig):
        return as_texts(text, number)
    if isinstance(head, TaggingHeadConfig | TreeHead):
        if isinstance(text, str):
            is_tree = isinstance(head, TreeHead)
            return ParsedSentence(tuple(text.split())) if is_tree else tagged_sentence(text)[0]
        if not isinstance(text, Mapping):
            return _example_type(head)(tuple(text))
        raise ConfigError(f"text {number}: expected a text or a list of words, not {text!r:.80}")
    pair = (text.get("question"), text.get("context")) if isinstance(text, Mapping) else text
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise ConfigError(f"text {number}: expected a question and a context, not {text!r:.80}")
    return Question(str(number), str(pair[0]), str(pair[1]))


def check_pairs(head: HeadConfig, examples: Sequence[Any], first: int) -> None:
    """Raise ConfigError for a single text if the model was trained on pairs, and vice versa."""
    expected = getattr(head, "texts", None)
    for number, example in enumerate(examples, first):
        if expected is not None and len(example.texts) != expected:
            given, needed = ("a pair", "single texts") if expected == 1 else ("a single text", "pairs of texts")
            raise ConfigError(f"text {number}: this is {given}, but the model was trained on {needed}")


_FORMS = {
    LabelledText: "a text or a pair of texts",
    TaggedSentence: "the words of a sentence",
    ParsedSentence: "the words of a sentence to parse",
    Question: "a question and a context",
}
"""The forms of inputs, for messages."""


def _example_type(head: HeadConfig) -> Any:
    """Return the type of the examples of a head."""
    if isinstance(head, TreeHead):
        return ParsedSentence
    if isinstance(head, TaggingHeadConfig):
        return TaggedSentence
    return Question if isinstance(head, SpanHeadConfig) else LabelledText


def as_texts(text: Any, number: int) -> LabelledText:
    """Return a text or a pair of texts as an example. Raises ConfigError if it has another form. number: its number."""
    if isinstance(text, LabelledText):
        return text
    if isinstance(text, str):
        return LabelledText((text,))
    if isinstance(text, Sequence) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return LabelledText(tuple(text))
    raise ConfigError(f"text {number}: expected a text or a pair of texts, not {text!r:.80}")


def warn_of_cuts(encoded: Sequence[EncodedText], first: int, limit: int | None) -> None:
    """Warn of texts that are longer than the maximum number of tokens. first: number of the first text."""
    cut = {number: each.cut for number, each in enumerate(encoded, first) if each.cut}
    if cut:
        number, tokens = next(iter(cut.items()))
        others = f" and {len(cut) - 1:,} other texts" if len(cut) > 1 else ""
        warn(
            f"text {number}{others} longer than the model's {limit:,} tokens: {tokens:,} tokens at the end of text "
            f"{number} are not used"
        )
