"""From words to a written sentence: commas, capitals, blanks before punctuation."""

import re
from collections.abc import Sequence

_COMMAS = re.compile(r"\s*,(?:\s*,)*\s*")
_COMMA_BEFORE_END = re.compile(r",\s*([.?!])")


def sentence(words: Sequence[str], end: str, blank: str = "") -> str:
    """Join `words`, in which "," stands for a comma, and close with `end`; `blank` goes before "?" and "!" (French)."""
    text = " ".join(word for word in words if word)
    text = _COMMAS.sub(", ", text).strip(", ")
    text += (blank if end in "?!" else "") + end
    text = _COMMA_BEFORE_END.sub(r"\1", text)
    return text[0].upper() + text[1:]
