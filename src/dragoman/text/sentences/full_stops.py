"""`is_within_name`: whether a full stop without a blank after it is part of a name, and ends no sentence."""

import regex

_CAPITALISED_NOUNS = ("de", "lb", "nds")
"""Languages in which an ordinary noun at the end of a sentence has a capital letter."""

_BEFORE = regex.compile(r"(?P<chain>(?:[\p{L}\p{N}_]++\.)*)(?P<word>[\p{L}\p{N}_]*)\.\Z", regex.V1)
_LONGEST = 100
"""The number of characters before a full stop that are searched for a name."""

_WORD = regex.compile(r"[\p{L}\p{N}_]+")
_BRACKETED = regex.compile(r"(?:\([\p{L}\p{N}]{1,4}\)|\[[\p{N}, –-]{1,20}\])(?=\s*+(?:[\p{Ll}\p{N},;:)]|[.]?\Z))")
"""The number of an equation or of a source within a sentence, as in `Eq.(2) is` and `cf.[3] for`."""

_PLAIN = regex.compile(r"\p{Lu}[\p{Ll}\p{M}]*+(?:['’-][\p{L}\p{M}]++)*+(?![\p{L}\p{N}_(<]|\.\p{L}|::)")
"""An ordinary word that may begin a sentence, unlike `IO`, `WriteLine`, `Println(` and `Net.Http`."""


_ENDS_NAME = ("#", "+", ")", "]", "`")
"""Characters at the end of names such as `C#.NET`, `get().Then(x)` and `a[0].IO`."""


def is_within_name(sentence: str, following: str, language: str) -> bool:
    """Return whether the full stop at the end of a sentence belongs to a name that continues in the following one.

    A full stop ends a sentence without a blank (`fine.Then`) only after an ordinary word and before one.
    """
    if sentence.endswith(".") and _BRACKETED.match(following):
        return True
    if not _WORD.match(following):
        return False
    before = _BEFORE.search(sentence[-_LONGEST:])
    if before is None:
        return False
    word = before["word"]
    if not word:
        if sentence[:-1][-1:] in _ENDS_NAME:
            return _PLAIN.match(following) is None
        return sentence[:-1][-1:].isspace() or len(sentence) == 1 or sentence[-2] in "([{\"'„“‚‘«/"
    if before["chain"] or _PLAIN.match(following) is None:
        return True
    if word.isnumeric():
        return len(word) < 3
    is_ordinary = word[1:].islower() and (word[0].islower() or language in _CAPITALISED_NOUNS)
    return not is_ordinary
