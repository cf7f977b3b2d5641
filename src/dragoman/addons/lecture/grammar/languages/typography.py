"""Turn words into a written sentence: commas, capitals and spaces before punctuation."""

import re
from collections.abc import Sequence

_COMMAS = re.compile(r"\s*,(?:\s*,)*\s*")
_COMMA_BEFORE_END = re.compile(r",\s*([.?!])")


def sentence(words: Sequence[str], end: str, blank: str = "") -> str:
    """Join `words`, in which "," is a comma, and append `end`; `blank` is put before "?" and "!" (French)."""
    text = " ".join(word for word in words if word)
    text = _COMMAS.sub(", ", text).strip(", ")
    text += (blank if end in "?!" else "") + end
    text = _COMMA_BEFORE_END.sub(r"\1", text)
    return text[0].upper() + text[1:]
