"""Writes a model's shortlist as CTranslate2's vocabulary map, for its option `use_vmap`."""

from collections.abc import Iterable
from pathlib import Path

from dragoman.base.log import warn
from dragoman.exchange.ctranslate2.specification import token_names
from dragoman.statistical.alignment.shortlist import Shortlist
from dragoman.text.tokenizers import Tokenizers

VOCABULARY_MAP = "vmap.txt"


def write_vocabulary_map(folder: Path, tokenizers: Tokenizers) -> None:
    """Write the shortlist in a folder as `vmap.txt`, if there is one.

    A line contains a source token, a tab, and its translations; the tokens of the first line, which has no source
    token, may occur in every translation. CTranslate2 considers all tokens for a batch that are in the shortlist of any
    of its sentences. If a vocabulary contains tokens with whitespace, no map is written, and a warning is printed.
    """
    shortlist = Shortlist.load(folder, tokenizers.sizes)
    if shortlist is None:
        return
    sources, targets = token_names(tokenizers.source), token_names(tokenizers.target)
    if any(len(token.split()) != 1 for token in (*sources, *targets)):
        warn("CTranslate2's vocabulary maps cannot express tokens with whitespace, so the shortlist was not exported")
        return

    def line(token: str, translations: Iterable[int]) -> str:
        return f"{token}\t{' '.join(targets[each] for each in translations)}\n"

    rows = ((token, shortlist.translations(number).tolist()) for number, token in enumerate(sources))
    lines = [line("", shortlist.always.tolist()), *(line(token, found) for token, found in rows if found)]
    (folder / VOCABULARY_MAP).write_text("".join(lines), encoding="utf-8")
