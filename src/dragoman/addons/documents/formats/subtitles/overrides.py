"""The override blocks of SubStation Alpha, such as `{\\i1}` and `{\\k20}`, which some SubRip files use too."""

import re

from dragoman.addons.documents.formats.subtitles.markup import Tag

_KARAOKE = re.compile(r"\\[kK][fot]?\d")
_SINGLE = re.compile(r"\{\\([1-4]?[A-Za-z]++)([^\\{}]*+)\}")
_SPANS = frozenset("i b u s c 1c 2c 3c 4c alpha 1a 2a 3a 4a fn fs fsp bord shad blur be fscx fscy".split())
_FLAGS = frozenset("ibus")


def classify_override(block: str) -> Tag:
    """Return the role of an override block.

    Durations of karaoke keep their order. A block that sets one property, such as `{\\i1}`, opens a span that the block
    which resets it (`{\\i0}`, `{\\c}`) closes. Any other block stays next to its word.
    """
    if _KARAOKE.search(block):
        return Tag("break")
    found = _SINGLE.fullmatch(block)
    if found is None:
        return Tag("empty")
    name, value = found.groups()
    if name.startswith("fn"):  # the name of a font follows without a separator
        name, value = "fn", name[2:] + value
    if name not in _SPANS:
        return Tag("empty")
    resets = value.strip() in ("", "0") if name in _FLAGS else not value.strip()
    return Tag("close" if resets else "open", name)
