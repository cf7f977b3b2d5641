"""The annotated word alignments of the sentence pairs of `dragoman demo`, which its grammar derives."""

from functools import cache
from typing import Any

from dragoman.addons.lecture.grammar.alignments import align_english_german
from dragoman.addons.lecture.grammar.corpus import generate
from dragoman.base.errors import DataError
from dragoman.metrics.alignment_error_rate import GoldLinks


def grammar_translation(source: str) -> str:
    """Return the reference of an English or German sentence of the embedded corpus in the other language.

    The corpus is generated once. Raises DataError for another sentence.
    """
    for pair in _grammar_pairs():
        if source.strip() in pair:
            return pair[1 - pair.index(source.strip())]
    raise DataError(f"the embedded corpus does not contain the sentence {source[:60]!r}: give one of `dragoman demo`")


def grammar_gold(source: str, target: str) -> GoldLinks:
    """Return the annotated links of a sentence pair of the embedded corpus, English and German, in either direction.

    They are derived from the syntax tree of the pair. The corpus is that of `dragoman demo`, and is generated once.
    Raises DataError for another sentence pair.
    """
    pairs = _grammar_pairs()
    for is_reversed, pair in enumerate(((source.strip(), target.strip()), (target.strip(), source.strip()))):
        if pair in pairs:
            found = align_english_german(pairs[pair])
            return GoldLinks(*(found.reversed() if is_reversed else found))
    raise DataError(
        f"the embedded corpus does not contain the sentence pair {source[:60]!r}, {target[:60]!r}: give a sentence of "
        "`dragoman demo` with its English or German reference as the target"
    )


@cache
def _grammar_pairs() -> dict[tuple[str, str], Any]:
    """Return the derivation of each English and German sentence pair."""
    return {(each.en, each.de): utterance for each, utterance in generate().derivations.items()}
