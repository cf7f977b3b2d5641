"""Selection of the source and the target among named columns: by role, such as `source`, or by language."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.text.languages.codes import match_language_codes, parse_language_code
from dragoman.text.languages.names import NAMES, language_name

_SOURCES = frozenset("source src".split())
_TARGETS = frozenset("target tgt trg translation".split())
_NOISE = re.compile(r"[\s_.-]*\b(?:text|sentence|segment|string|lang|language)s?\b[\s_.-]*")
_CODE = re.compile(r"[a-z]{2}(?:[-_][a-z]{2,4})*|[a-z]{3}(?:[-_][a-z]{4})?", re.IGNORECASE)
_CODES = {name.casefold(): code for code, name in NAMES.items()}


class Columns(NamedTuple):
    """The positions of the source and the target among the columns, counted from 0, and what their names mean."""

    source: int
    target: int
    meanings: tuple[str, str]


def columns_by_name(names: Sequence[str], corpus: CorpusConfig) -> Columns | None:
    """Return the columns whose names are those of a source and a target, or of two languages; None if none are.

    names: of all columns, or keys such as translation.en. Of two languages, the first is the source, unless
    `source_code` or `target_code` of the corpus states otherwise. Returns None if more than two columns are possible.
    """
    words = [_NOISE.sub("", name.strip().replace("_", " ").casefold()) for name in names]
    sources = [position for position, word in enumerate(words) if word in _SOURCES]
    targets = [position for position, word in enumerate(words) if word in _TARGETS]
    if len(sources) == len(targets) == 1:
        return Columns(sources[0], targets[0], (names[sources[0]], names[targets[0]]))
    codes = {position: code for position, name in enumerate(names) if (code := language_of_name(name)) is not None}
    if len(codes) > 2:
        codes = {position: code for position, code in codes.items() if names[position].casefold() != "id"}
    source, target = (
        [position for position, code in codes.items() if match_language_codes(requested, code) is not None]
        if requested is not None
        else None
        for requested in (corpus.source_code, corpus.target_code)
    )
    if source is None and target is None and len(codes) == 2:
        source, target = ([position] for position in codes)
    elif len(codes) == 2:
        source = [position for position in codes if position not in (target or ())] if source is None else source
        target = [position for position in codes if position not in source] if target is None else target
    if not source or not target or len(source) > 1 or len(target) > 1 or source == target:
        return None
    return Columns(source[0], target[0], (language_name(codes[source[0]]), language_name(codes[target[0]])))


@lru_cache(maxsize=1 << 8)
def language_of_name(name: str) -> str | None:
    """Return the code of the language that a column is named after: en, eng_Latn, English, translation.en; or None."""
    name = _NOISE.sub("", name.strip()) or name
    last = re.split(r"[.\s]", name.strip())[-1]
    if (code := _CODES.get(name.strip().casefold())) is not None:
        return code
    if _CODE.fullmatch(last) is None and "_" in last:
        last = re.sub(r"^(?:text|sentence|translation|lang)_", "", last)
    if _CODE.fullmatch(last) is None:
        return None
    found = parse_language_code(last)
    return last.replace("_", "-") if found.is_known and found.language in NAMES else None
