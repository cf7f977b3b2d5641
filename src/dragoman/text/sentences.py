"""`split_sentences`: splits a line into sentences."""

import re
from functools import cache
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.packages import import_optional

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SENTENCE_END = re.compile(r"(?:[.!?…؟।]+[\"'”’»“«)\]]*\s+(?=\S)|[。！？]+[”’」』）]*\s*(?=\S))")
"""What can end a sentence that another one follows. Text without a match is one sentence."""


def may_have_sentences(text: str) -> bool:
    """Return whether a text may have several sentences. This takes much less time than splitting it."""
    return _SENTENCE_END.search(text) is not None


def split_sentences(text: str, language: str, required: bool = True) -> list[str]:
    """Return the sentences of a line with the library sentencex. Their concatenation is the line.

    language: a code such as `en`. Raises ConfigError if the library is missing; unless it is `required`, the text is
    then split after punctuation that a space or a Chinese or Japanese sentence follows.
    """
    if not text:
        return []
    segment = _library(required)
    if segment is None:
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        return [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    # the library does not support lone surrogates
    segments, begin = [], 0
    for sentence in segment(language, _SURROGATE.sub("\ufffd", text)):
        segments.append(text[begin : begin + len(sentence)])
        begin += len(sentence)
    return segments if "".join(segments) == text else [text]


@cache
def _library(required: bool) -> Any:
    try:
        return import_optional("sentencex", "documents").segment
    except ConfigError:
        if required:
            raise
        return None
