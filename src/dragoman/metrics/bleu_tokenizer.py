"""The choice of BLEU's tokeniser by the target language. The names are those of sacrebleu's option `--tokenize`."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from dragoman.base.errors import ConfigError
from dragoman.base.log import info, warn
from dragoman.text.languages.usual_scripts import writing_system
from dragoman.text.words import is_unspaced_text

DEFAULT = "13a"
"""The tokeniser of languages with spaces between words, which is sacrebleu's default."""
CHARACTERS = "char"
AUTO = "auto"
"""The setting that chooses the tokeniser by the target language and the references."""

TOKENIZERS = (DEFAULT, "intl", "zh", "ja-mecab", "ko-mecab", CHARACTERS, "flores101", "flores200", "none")
"""sacrebleu's tokenisers."""

_MECAB = {"ja-mecab": "ja", "ko-mecab": "ko"}
"""The extras that install MeCab and its dictionary for a tokeniser."""

if TYPE_CHECKING:
    BleuTokenizerName = str
else:
    BleuTokenizerName = Literal[(AUTO, *TOKENIZERS)]
    """The type of a setting whose value is a tokeniser of BLEU or `auto`."""


@dataclass(frozen=True)
class TokenizerChoice:
    """A tokeniser of BLEU. note: a message for the user about the choice, if one is needed.

    is_warning: whether the note is a warning.
    """

    name: str
    note: str = ""
    is_warning: bool = False

    def report(self) -> "TokenizerChoice":
        """Print the note, and return the choice."""
        if self.note:
            (warn if self.is_warning else info)(self.note)
        return self


def choose_tokenizer(language: str | None, references: Sequence[Sequence[str]], name: str = AUTO) -> TokenizerChoice:
    """Return the tokeniser `name` or, if it is `auto`, the tokeniser for the target language.

    Chinese, Japanese and Korean have tokenisers of their own. If MeCab is not installed for the latter two, or if
    sacrebleu has no tokeniser for a language without spaces between words, BLEU counts n-grams of characters. If the
    language is unknown or has spaces between words, but the references have none, characters are counted as well.

    language: a code as in `writing_system`, or None. Raises ConfigError for a tokeniser that is unknown or unavailable.
    """
    if name != AUTO:
        check_tokenizer(name)
        return TokenizerChoice(name)
    system = None if language is None else writing_system(language)
    if system is not None:
        if system.script == "Hani":
            return TokenizerChoice("zh")
        for tokenizer, code in _MECAB.items():
            if system.language == code and system.script != "Latn":
                return _choose_mecab(tokenizer, code)
        if not system.is_spaced:
            return TokenizerChoice(
                CHARACTERS,
                f"sacreBLEU has no tokeniser for the language {language}, which has no spaces between words, so BLEU "
                "counts n-grams of characters (tokeniser char).",
            )
    if any(is_unspaced_text(lines) for lines in references):
        known = "no target language is set" if language is None else f"the target language is set to {language}"
        return TokenizerChoice(
            CHARACTERS,
            f"the references have no spaces between words, and {known}: BLEU counts n-grams of characters (tokeniser "
            "char). If the text is Chinese, Japanese or Korean, choose the tokeniser zh, ja-mecab or ko-mecab",
            is_warning=True,
        )
    return TokenizerChoice(DEFAULT)


def _choose_mecab(tokenizer: str, extra: str) -> TokenizerChoice:
    if _find_problem(tokenizer) is None:
        return TokenizerChoice(tokenizer)
    return TokenizerChoice(
        CHARACTERS,
        f"the tokeniser {tokenizer} is not installed, so BLEU counts n-grams of characters (tokeniser char). To count "
        f'n-grams of words: pip install "dragoman[{extra}]"',
        is_warning=True,
    )


def check_tokenizer(name: str) -> None:
    """Raise ConfigError if a tokeniser is unknown, is not installed or needs a file that is missing."""
    if name not in TOKENIZERS:
        close = [known for known in TOKENIZERS if known.startswith(f"{name}-")] or get_close_matches(name, TOKENIZERS)
        hint = f"did you mean {close[0]}? The tokenisers are" if close else "expected one of"
        raise ConfigError(f"unknown tokeniser {name!r}: {hint} {', '.join(TOKENIZERS)}")
    if problem := _find_problem(name):
        raise ConfigError(problem)


def _find_problem(name: str) -> str | None:
    """Return the reason why a tokeniser is unavailable, with the remedy, or None if it is available."""
    if name in _MECAB:
        try:
            SacreBLEU(tokenize=name)
        except (RuntimeError, AssertionError):  # not installed, or another dictionary
            return f'the tokeniser {name} needs MeCab and its dictionary: pip install "dragoman[{_MECAB[name]}]"'
    if name in SPM_MODELS:
        if find_spec("sentencepiece") is None:
            return f'the tokeniser {name} needs sentencepiece: pip install "dragoman[hf]"'
        address = SPM_MODELS[name]["url"]
        path = Path(SACREBLEU_DIR, "models", os.path.basename(address))
        if not path.exists():  # sacrebleu would download the file in the middle of the computation
            return f"the tokeniser {name} needs the file {path}: download it from {address}"
    return None
