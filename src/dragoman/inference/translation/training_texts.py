"""`TrainingTexts`: the texts that a model was trained on, with which its inputs are compared."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property

from dragoman.base.errors import ConfigError, DataError, ResourceError
from dragoman.base.log import warn
from dragoman.checkpoint.meta import Meta
from dragoman.data.lengths import CorpusLengths
from dragoman.inference.translation.guard.guard import Guard
from dragoman.inference.translation.guard.wrong_script import usual_scripts
from dragoman.inference.translation.request import Request
from dragoman.text.languages.detector import Detection, Detector, release_model
from dragoman.text.languages.usual_scripts import language_scripts
from dragoman.text.scripts import character_scripts, script_name
from dragoman.text.symbols import UNK, tag_languages
from dragoman.text.tokenizers import Tokenizers

_SAMPLE = 4_000
"""Maximum number of characters of the inputs whose language is checked."""

_FEWEST_LETTERS, _ENOUGH_LETTERS = 40, 200
"""Minimum number of letters of a sample whose script and tokens are checked, and of one whose language is detected."""

_MAX_UNKNOWN = 0.2
"""Maximum fraction of unknown tokens of a text in the source language."""

_MAX_FOREIGN = 0.5
"""Maximum fraction of letters of scripts that the source language does not use."""

_CERTAIN = 95.0
"""Minimum confidence in percent of the detection of another language."""


class TrainingTexts:
    """The texts that a model was trained on, as described by its folder.

    Folders of imported models do not describe the lengths of the texts; they are then None, and no length is unusual.
    """

    def __init__(self, meta: Meta, tokenizers: Tokenizers, as_read: Callable[[str], str] = lambda text: text) -> None:
        """as_read: returns a text with the letters and spaces that the model reads instead."""
        self._meta, self._tokenizers, self._as_read = meta, tokenizers, as_read
        self._sample, self._is_checked = "", False

    @property
    def are_whole(self) -> bool:
        """Whether a text is translated as a whole, and may differ from its translation in length."""
        return self._meta.whole_texts

    def lengths(self, tags: Sequence[str] = ()) -> CorpusLengths | None:
        """Return the lengths of the training pairs with these tags; None if the folder lacks them.

        They are also None if the pairs are too few to judge other texts by their lengths.
        """
        lengths = self._meta.lengths_of(next(iter(tag_languages(tags)), None))
        return lengths if lengths is not None and lengths.is_representative else None

    def has_usual_length(self, text: str, request: Request) -> bool:
        """Return whether a source text has at most as many tokens as the longest training source.

        Spans to copy, which can be addresses of many tokens, count as one token each, as placeholders do in training.
        """
        lengths = self.lengths(request.tags)
        if lengths is None or len(text) <= lengths.source_tokens.median:
            return True
        text, rest, end, copied = self._as_read(text), [], 0, 0
        for span in () if request.control is None else request.control.requirements(text).spans:
            rest.append(text[end : span.start])
            end, copied = max(end, span.end), copied + 1
        rest.append(text[end:])
        try:
            tokens = sum(map(len, self._tokenizers.source.encode_batch(rest)))
        except DataError:  # reported when the text is translated
            return True
        return tokens + copied <= lengths.source_tokens.maximum

    def guard(self, tags: Sequence[str]) -> Guard:
        """Return a guard for requests with these source tags, which may name the target language.

        Raises ConfigError for a source of feature vectors.
        """
        if self._tokenizers.reads_vectors:
            raise ConfigError("the guard compares words, but the inputs of this model are vectors: disable the guard")
        target = next(iter(tag_languages(tags)), self._meta.target_language)
        two_languages = target is None or target != self._meta.source_language
        return Guard(self._target_scripts, two_languages, lengths=self.lengths(tags))

    @cached_property
    def _target_scripts(self) -> frozenset[str]:
        return usual_scripts(self._tokenizers.target)

    def check_language(self, texts: Sequence[str]) -> None:
        """Warn once if texts to translate are in a language that the model was not trained on.

        texts: the next inputs. They are checked together with the preceding ones, until a warning was printed or there
        was enough text.
        """
        if self._is_checked or self._tokenizers.reads_vectors:
            return
        for text in texts:
            if len(self._sample) >= _SAMPLE:
                break
            self._sample += text[: _SAMPLE - len(self._sample)].encode("utf-8", "replace").decode() + "\n"
        letters = sum(map(str.isalpha, self._sample))
        if letters < _FEWEST_LETTERS:
            return
        problem = self._foreign_script() or self._unknown_tokens()
        if problem is None and letters >= _ENOUGH_LETTERS:
            problem = self._other_language()
        if problem is not None:
            warn(f"{problem}. Expect poor translations. Check the input and the direction of the model")
        self._is_checked = problem is not None or letters >= _ENOUGH_LETTERS

    def _foreign_script(self) -> str | None:
        known = usual_scripts(self._tokenizers.source)
        if known and self._meta.source_language is not None:
            known |= language_scripts(self._meta.source_language)
        letters = [scripts for scripts in map(character_scripts, self._sample) if scripts]
        foreign = Counter(min(scripts) for scripts in letters if scripts.isdisjoint(known))
        if not known or foreign.total() <= _MAX_FOREIGN * len(letters):
            return None
        ((script, _),) = foreign.most_common(1)
        return (
            f"the input is mostly written in {script_name(script)} letters, but the model was trained on sources in "
            f"{', '.join(sorted(map(script_name, known)))} letters"
        )

    def _unknown_tokens(self) -> str | None:
        tokens = [token for ids in self._tokenizers.source.encode_batch(self._sample.split("\n")) for token in ids]
        fraction = tokens.count(UNK) / max(1, len(tokens))
        if fraction <= _MAX_UNKNOWN:
            return None
        return f"{fraction:.1%} of the tokens of the input are not in the model's source vocabulary"

    def _other_language(self) -> str | None:
        """Return a message if the input is not in the source language, if this is known and can be detected."""
        source = self._meta.source_language
        if source is None:
            return None
        detection = detect_other_language(self._sample, source)
        release_model()
        if detection is None:
            return None
        return (
            f"the input is probably {detection.language} (confidence {detection.confidence:.0f}%), but the model "
            f"translates from {source}"
        )


def detect_other_language(text: str, expected: str) -> Detection | None:
    """Return the language of a text if it is almost certainly not the expected one; None otherwise.

    Returns None if the library for language detection is not installed or does not support the expected language.
    """
    try:
        detector = Detector([expected])
        if detector.undetected:
            return None
        detection = detector.most_probable(text)
    except (ConfigError, ResourceError):
        return None
    if detection is None or detection.language == expected or detection.confidence < _CERTAIN:
        return None
    return detection
