"""BLEU on tokenised text, as in older papers."""

from collections.abc import Iterable
from importlib.metadata import version

from sacrebleu.metrics.bleu import BLEU as SacreBLEU

from dragoman.base.errors import ConfigError
from dragoman.metrics.metric import Metric, Outputs
from dragoman.text.languages.usual_scripts import writing_system


class TokenisedBLEU(Metric):
    """Corpus BLEU on text that is lowercased, punctuation-normalised and Moses-tokenised.

    The score is not comparable with BLEU on detokenised text, so its name and signature state the preprocessing. This
    metric requires sacremoses.
    """

    key, name, better = "tokenized", "BLEU (lowercased, tokenised)", "higher"

    def __init__(self, language: str) -> None:
        """language: code of the target language. Raises ConfigError if it has no spaces between words."""
        system = writing_system(language)
        if system is not None and not system.is_spaced:
            raise ConfigError(
                f"Moses cannot tokenise '{language}', which has no spaces between words: leave out --tokenized and "
                "choose BLEU's tokeniser by --tokenizer"
            )
        self._language = language

    def value(self, outputs: Outputs) -> float:
        """Return corpus BLEU. Raises ConfigError for a language without rules or if sacremoses is not installed."""
        hypotheses, *references = (
            moses_tokenise(lines, self._language) for lines in (outputs.hypotheses, *outputs.references)
        )
        return float(self._sacrebleu().corpus_score(hypotheses, references).score)

    def signature(self, references: int) -> str:
        """Return sacrebleu's signature followed by the preprocessing."""
        metric = self._sacrebleu()
        metric.num_refs = references
        prepared = f"lc.norm.tok.moses-{self._language}|sacremoses:{version('sacremoses')}"
        return f"{metric.get_signature()}|prepared:{prepared}"

    def _sacrebleu(self) -> SacreBLEU:
        # `force` suppresses sacrebleu's warning that the text looks tokenised, because it is tokenised on purpose.
        return SacreBLEU(tokenize="none", force=True)


def moses_tokenise(lines: Iterable[str], language: str) -> list[str]:
    """Lowercase lines, normalise their punctuation, tokenise them and escape special characters (`&quot;`).

    language: language code of the tokenisation rules. Raises ConfigError if Moses has no rules for the language, or if
    the optional dependency sacremoses is not installed.
    """
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer  # optional, and slow to import
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise ConfigError(
            'tokenised BLEU needs sacremoses, which is not installed: pip install "dragoman[moses]"'
        ) from error
    known = sorted({code for code in NonbreakingPrefixes().available_langs.values() if len(code) < 4})
    if language not in known:
        raise ConfigError(f"Moses has no tokenisation rules for '{language}': expected one of {', '.join(known)}")
    normalise = MosesPunctNormalizer(lang=language).normalize
    tokenise = MosesTokenizer(lang=language).tokenize
    # sacremoses is a port of a Perl script. That script reads lines with their newline, and one of its rules for
    # quotation marks needs the newline.
    return [str(tokenise(normalise(line.lower() + "\n"), return_str=True, escape=True)) for line in lines]
