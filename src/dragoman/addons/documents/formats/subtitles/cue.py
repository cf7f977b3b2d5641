"""`Cue`: a text that is displayed for some time; `Fragment`: a part of it that one speaker says."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman.addons.documents.formats.subtitles.markup import CueMarkup, Token

_SPEAKER = re.compile(r"\s*(?:[-–—‐‑]+|[♪♫#]+|>>+)")
_DASHES = frozenset("-–—‐‑#>♪♫")
_NOTES = frozenset("♪♫")
_SOUND = re.compile(r"\s*(?:\[[^\[\]]*\]|\([^()]*\))\s*")


@dataclass(frozen=True)
class Cue:
    """A text of a subtitle file that is displayed for some time.

    text: in the form of the file; begin, end: in seconds, None if unknown; appearance: identifies the speaker, the
    style and the position on the screen. A sentence may continue in the next cue with the same appearance.
    """

    text: str
    begin: float | None = None
    end: float | None = None
    appearance: str = ""


@dataclass(frozen=True)
class Fragment:
    """Lines of a cue that one speaker says.

    head, tail: the raw text before and after the translatable core: blanks, a speaker's dash, and markup of the whole
    fragment. core: the pieces between them. is_balanced: whether each span in the core is opened and closed in it.
    is_sound: whether the fragment describes a sound or is music. has_speaker: whether it starts with the mark of a
    speaker.
    """

    head: str
    core: Sequence[Token]
    tail: str
    is_balanced: bool
    is_sound: bool
    has_speaker: bool

    @property
    def raw_core(self) -> str:
        """The translatable part in the form of the file."""
        return "".join(token.raw for token in self.core)


def split_cue(text: str, markup: CueMarkup) -> Iterator[str | Fragment]:
    """Yield the fragments of a cue and the line breaks between them.

    A line that starts with a dash, a note, a voice tag or a font, or is entirely in brackets, starts a new fragment.
    Any other line continues the previous fragment. Lines without text belong to the fragment before or after them.
    """
    fragment: list[Token] = []
    line: list[Token] = []
    ended = False  # whether the fragment describes a sound
    for token in [*markup.tokens(text), None]:
        if token is not None and token.kind != "line_break":
            line.append(token)
            continue
        visible = _visible(line, markup)
        is_new = bool(visible.strip()) and (ended or _starts_fragment(line, visible, markup))
        if fragment and is_new and any(map(markup.is_visible, fragment)):
            last_break = next(index for index in reversed(range(len(fragment))) if fragment[index].kind == "line_break")
            yield _fragment(fragment[:last_break], markup)
            yield fragment[last_break].raw
            fragment = fragment[last_break + 1 :]
        fragment += line
        ended = _is_sound(visible) if visible.strip() else ended
        line = []
        if token is not None:
            fragment.append(token)
    yield _fragment(fragment, markup)


def _visible(tokens: Sequence[Token], markup: CueMarkup) -> str:
    return "".join(token.raw for token in tokens if token.kind != "markup")


def _starts_fragment(line: Sequence[Token], visible: str, markup: CueMarkup) -> bool:
    """Return whether a line starts a new fragment instead of continuing the previous line."""
    first = next((token for token in line if token.kind != "blank"), None)
    is_other = first is not None and first.kind == "markup" and markup.new_text.match(first.raw) is not None
    return is_other or _SPEAKER.match(visible) is not None or _is_sound(visible)


def _is_sound(visible: str) -> bool:
    """Return whether a line describes a sound, such as `[DOOR OPENS]`."""
    return _SOUND.fullmatch(visible) is not None


def _fragment(tokens: Sequence[Token], markup: CueMarkup) -> Fragment:
    """Separate the core of a fragment from the markup, blanks and marks of speakers around it."""
    partners = _pair_tags(tokens, markup)
    begin, end = 0, len(tokens)
    while begin < end and not markup.is_visible(tokens[begin]):
        begin += 1
    if begin < end and _SPEAKER.match(visible := _visible(tokens[begin:], markup)) and visible[0] in _DASHES:
        while begin < end and (tokens[begin].raw in _DASHES or not markup.is_visible(tokens[begin])):
            begin += 1
    while end > begin and (tokens[end - 1].raw in _NOTES or not markup.is_visible(tokens[end - 1])):
        end -= 1
    # the tags of a span within the core and beyond it stay in the core
    for index in range(begin):
        if begin <= partners.get(index, -1) < end:
            begin = index
            break
    for index in reversed(range(end, len(tokens))):
        if begin <= partners.get(index, -1) < end:
            end = index + 1
            break
    head, tail = ("".join(token.raw for token in part) for part in (tokens[:begin], tokens[end:]))
    text = _visible(tokens, markup).strip()
    return Fragment(
        head,
        tokens[begin:end],
        tail,
        all(begin <= partner < end for partner in (partners.get(index, begin) for index in range(begin, end))),
        _is_sound(text) or text[:1] in _NOTES or text[-1:] in _NOTES,
        _SPEAKER.match(_visible(tokens, markup)) is not None,
    )


def _pair_tags(tokens: Sequence[Token], markup: CueMarkup) -> dict[int, int]:
    """Return the index of the partner of each tag of a span, -1 for tags without a partner."""
    partners: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    names: Counter[str] = Counter()
    for index, token in enumerate(tokens):
        if token.kind != "markup":
            continue
        tag = markup.classify(token.raw)
        if tag.kind in ("open", "close"):
            partners[index] = -1
        if tag.kind == "open":
            opened.append((tag.name, index))
            names[tag.name] += 1
        elif tag.kind == "close" and names[tag.name]:
            while True:
                name, begin = opened.pop()
                names[name] -= 1
                if name == tag.name:
                    break
            partners[begin], partners[index] = index, begin
    return partners
