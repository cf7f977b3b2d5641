"""`group_fragments`: finds the cues over which a sentence runs, so that it is translated as a whole."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.subtitles.cue import Cue, Fragment
from dragoman.addons.documents.formats.subtitles.markup import CueMarkup
from dragoman.text.languages.codes import is_same_language

MAX_CUES = 5
"""The maximum number of cues over which a sentence may run."""

_LONGEST_PAUSE = 2.0
"""The longest pause between two cues of a sentence, in seconds."""

_SENTENCE_END = re.compile(r"(?:[.!?…؟।۔]|--|[–—])[\"'”’»)\]]*(?=\s|\Z)|[。！？][\"'”’»）」』\])]*")
_ENDS_SENTENCE = re.compile(rf"(?:{_SENTENCE_END.pattern})\s*\Z")
_ENDS_CLAUSE = re.compile(r"[,;、，،][\"'”’»)\]]*\Z")
_VOICE = re.compile(r"<v\b[^<>]*>")
_ENGLISH_I = re.compile(r"I(?:['’]\w+)?\b")


class CueFragment(NamedTuple):
    """A fragment of a cue. cue: the index of the cue; piece: the index among its pieces; text: the visible text."""

    cue: int
    piece: int
    fragment: Fragment
    text: str


def group_fragments(
    cues: Sequence[Cue], pieces: Sequence[Sequence[str | Fragment]], markup: CueMarkup, language: str | None
) -> list[list[CueFragment]]:
    """Return all fragments with text, grouped by the sentences that connect them.

    pieces: the fragments of each cue and the line breaks between them. language: the source language, if known.
    """
    lines = [
        CueFragment(number, index, piece, markup.visible(piece.raw_core).strip())
        for number, parts in enumerate(pieces)
        for index, piece in enumerate(parts)
        if isinstance(piece, Fragment) and piece.core
    ]
    groups: list[list[CueFragment]] = []
    begin = 0
    while begin < len(lines):
        end = begin + 1
        while end < len(lines) and _continues(cues, lines[end - 1], lines[end], language):
            end += 1
        groups += _divide_chain(lines[begin:end])
        begin = end
    return groups


def _continues(cues: Sequence[Cue], line: CueFragment, following: CueFragment, language: str | None) -> bool:
    """Return whether a sentence probably continues in the following fragment, which is in another cue."""
    cue, next_cue = cues[line.cue], cues[following.cue]
    if following.cue != line.cue + 1 or cue.appearance != next_cue.appearance:
        return False
    if cue.end is None or next_cue.begin is None or not 0 <= next_cue.begin - cue.end <= _LONGEST_PAUSE:
        return False
    fragments = line.fragment, following.fragment
    if _VOICE.findall(line.fragment.head) != _VOICE.findall(following.fragment.head):
        return False
    if following.fragment.has_speaker or any(each.is_sound or not each.is_balanced for each in fragments):
        return False
    if _ENDS_SENTENCE.search(line.text[-8:]) or following.text.startswith(line.text[-40:]):  # live captions repeat text
        return False
    return _starts_in_sentence(line.text, following.text, language)


def _starts_in_sentence(text: str, following: str, language: str | None) -> bool:
    """Return whether a text starts within a sentence, given the text before it."""
    first = following.lstrip("\"'“”„«»‘’([¿¡")[:1]
    if first.islower() or first.isdigit() or _ENDS_CLAUSE.search(text[-8:]):
        return True
    if language is not None and is_same_language(language, "de"):  # German nouns are capitalised
        return first.isupper() and text[-1:].islower()
    is_english = language is None or is_same_language(language, "en")
    return is_english and text[-1:].islower() and _ENGLISH_I.match(following) is not None


def _divide_chain(chain: Sequence[CueFragment]) -> list[list[CueFragment]]:
    """Divide successive fragments, each of which seems to continue the previous one.

    A sentence without an end, or one that runs over too many cues, is divided at all cues. Captions without punctuation
    are therefore translated cue by cue.
    """
    groups = [[chain[0]]]
    first = 0  # the fragment in which the current sentence begins
    for index in range(1, len(chain)):
        if _SENTENCE_END.search(chain[index].text) is None and index + 1 < len(chain):
            continue
        has_end = _SENTENCE_END.search(chain[index].text) is not None
        continuations = chain[first + 1 : index + 1]
        if has_end and index - first < MAX_CUES:
            groups[-1] += continuations
        else:
            groups += [[each] for each in continuations]
        first = index
    return groups


def sentence_start(text: str) -> int:
    """Return the position at which the last sentence of a text starts, after blanks."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text.rstrip()) if found.end() < len(text.rstrip())]
    rest = text[ends[-1] :] if ends else text
    return len(text) - len(rest.lstrip())
