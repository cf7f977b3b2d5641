"""Spans in tagged sentences, in two conventions, and their precision, recall and F1.

conlleval: the rules of the script conlleval of the CoNLL tasks (Tjong Kim Sang and Buchholz 2000). Any tag may begin a
span: I-X after O, or after a tag of another type, begins a span of type X. The rules for E- and S- (and L- and U-) are
those of seqeval's default mode. As in the script, a tag with another prefix continues a span of its type, or begins
one; a tag without prefix, such as o or PER, ends a span, and begins one without type.

strict: the rules of seqeval's strict mode (Nakayama 2018). Only complete sequences of the scheme are spans. With IOB2,
a span begins with B-, and I-X after O belongs to no span. With IOBES and BILOU, a span also has its end.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.metrics.labels.classification import ClassScores

Scheme = Literal["IOB1", "IOB2", "IOBES", "BILOU"]
Convention = Literal["conlleval", "strict"]

SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

_PREFIXES: dict[Scheme, dict[str, str]] = {
    "IOB1": {"I": "I", "B": "B"},
    "IOB2": {"I": "I", "B": "B"},
    "IOBES": {"I": "I", "B": "B", "E": "E", "S": "S"},
    "BILOU": {"I": "I", "B": "B", "L": "E", "U": "S"},
}
"""The prefixes of each scheme, and the prefixes of IOBES with the same meaning."""

OUTSIDE = "O"
_ALL_PREFIXES = frozenset("BIESLU")
_ODD = "?"
"""Stands for the prefix of a tag that does not belong to the scheme."""
_Parsed = tuple[str, str]
"""The prefix, as in IOBES, and the type of a tag; ("O", "") outside of spans."""

_NO_SPAN: _Parsed = (OUTSIDE, "")


class Span(NamedTuple):
    """A span of words. end: index of the word after its last word. The type is empty if the tags have no type."""

    type: str
    start: int
    end: int


def has_span_tags(tags: Iterable[str]) -> bool:
    """Return whether tags mark spans: at least one has a prefix such as B-, and all others have one or are O."""
    names = set(tags)
    return any(map(_has_prefix, names)) and all(tag == OUTSIDE or _has_prefix(tag) for tag in names)


_TOLERATED = 0.1
"""Largest fraction of spans with faults of annotators, with which a scheme is still recognised."""


class _Faults:
    """The contradictions of tags to a scheme. first: the first of them, with the number of its sentence."""

    def __init__(self) -> None:
        self.count, self.first = 0, ""

    def add(self, description: str, sentence: int) -> None:
        """Count a contradiction."""
        self.count += 1
        self.first = self.first or f"first in sentence {sentence:,}: {description}"


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Determine the scheme of tags.

    Tags with E- or S- are IOBES, and tags with L- or U- are BILOU. Otherwise, tags are IOB2 if each span begins with
    B-, and IOB1 if B- only separates adjacent spans of the same type. If a few spans do not, as in real annotations,
    warns of their number. Raises DataError if the tags have no prefixes, if they contain no span, or if they match no
    scheme.
    """
    names: set[str] = set()
    faults: dict[Scheme, _Faults] = {"IOB2": _Faults(), "IOB1": _Faults()}
    spans = 0
    for number, tags in enumerate(sentences, 1):
        names.update(tags)
        previous = _NO_SPAN
        for tag in tags:
            prefix, _, kind = tag.partition("-")
            follows = previous[0] != OUTSIDE and previous[1] == kind
            if prefix == "I" and not follows:
                faults["IOB2"].add(f"{tag} begins a span", number)
            if prefix == "B" and not follows:
                faults["IOB1"].add(f"{tag} is not preceded by a span of the same type", number)
            spans += prefix == "B" or (prefix == "I" and not follows)
            previous = (prefix, kind)
    if not has_span_tags(names):
        raise _no_span_tags(names)
    prefixes = {tag.partition("-")[0] for tag in names}
    ends = [scheme for scheme, letters in (("IOBES", "ES"), ("BILOU", "LU")) if prefixes & set(letters)]
    if len(ends) > 1:
        raise DataError(f"the tags mix IOBES and BILOU: their prefixes are {', '.join(sorted(prefixes))}")
    if ends:
        return "IOBES" if ends == ["IOBES"] else "BILOU"
    scheme = min(faults, key=lambda each: faults[each].count)
    found = faults[scheme]
    if found.count > _TOLERATED * spans:
        reasons = " nor ".join(f"{name} ({each.count:,} faults, {each.first})" for name, each in faults.items())
        raise DataError(f"the tags are neither {reasons}: set the scheme, one of {', '.join(SCHEMES)}")
    if found.count:
        warn(
            f"the tags are read as {scheme}, although {found.count:,} of {spans:,} spans are not marked so "
            f"({found.first}). To read them otherwise, set the scheme, one of {', '.join(SCHEMES)}"
        )
    return scheme


def find_spans(tags: Sequence[str], scheme: Scheme, convention: Convention) -> list[Span]:
    """Return the spans of a sentence in order. A tag that does not belong to the scheme is in no strict span."""
    parsed = _parse_all(tags, scheme)
    if convention == "conlleval":
        return _find_lenient(parsed)
    if scheme == "IOB1":
        return _find_strict_iob1(parsed)
    return _find_strict_iob2(parsed) if scheme == "IOB2" else _find_strict_iobes(parsed)


def parse_tag(tag: str, scheme: Scheme) -> _Parsed:
    """Return the prefix, as in IOBES, and the type of a tag. Raises DataError if it does not belong to the scheme."""
    if tag == OUTSIDE:
        return _NO_SPAN
    prefix, _, kind = tag.partition("-")
    if not belongs(tag, scheme):
        allowed = ", ".join(f"{letter}-" for letter in _PREFIXES[scheme])
        raise DataError(f"the tag {tag!r} is not a tag of {scheme}: expected O or a prefix ({allowed}) and a type")
    return _PREFIXES[scheme][prefix], kind


def belongs(tag: str, scheme: Scheme) -> bool:
    """Return whether a tag belongs to a scheme."""
    return tag == OUTSIDE or (tag.partition("-")[0] in _PREFIXES[scheme] and _has_prefix(tag))


def _parse_all(tags: Sequence[str], scheme: Scheme) -> list[_Parsed]:
    """Return the prefixes and types of the tags of a sentence. The prefix of a tag of another scheme is `_ODD`."""
    parsed: list[_Parsed] = []
    for tag in tags:
        kind = tag.partition("-")[2]
        if belongs(tag, scheme):
            parsed.append(parse_tag(tag, scheme))
        elif kind or (parsed and parsed[-1] != _NO_SPAN):
            parsed.append((_ODD, kind))
        else:  # conlleval begins a span where the type changes, and this tag has none, like O
            parsed.append(_NO_SPAN)
    return parsed


def score_types(gold: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]) -> tuple[ClassScores, ...]:
    """Return the scores of each type of span, in alphabetical order. gold, predicted: the spans of each sentence."""
    support: Counter[str] = Counter(span.type for spans in gold for span in spans)
    guesses: Counter[str] = Counter(span.type for spans in predicted for span in spans)
    correct: Counter[str] = Counter(
        span.type for sides in zip(gold, predicted, strict=True) for span in set(sides[0]) & set(sides[1])
    )
    types = sorted({*support, *guesses})
    return tuple(ClassScores.of(name, correct[name], support[name], guesses[name]) for name in types)


def _has_prefix(tag: str) -> bool:
    """Return whether a tag is a prefix with a type, such as B-PER, or only a prefix."""
    return tag[:1] in _ALL_PREFIXES and (len(tag) == 1 or tag[1] == "-")


def _no_span_tags(names: set[str]) -> DataError:
    if names <= {OUTSIDE}:
        return DataError("the correct tags contain no span: set the scheme, or use sentences with spans")
    plain = sorted(tag for tag in names if tag != OUTSIDE and not _has_prefix(tag))
    return DataError(
        f"tags such as {plain[0]!r} have no prefix (B-, I-), so it is unknown where spans begin: add prefixes, or "
        "score the tags of single words instead of spans"
    )


def _find_lenient(tags: Sequence[_Parsed]) -> list[Span]:
    spans: list[Span] = []
    start = 0
    previous = _NO_SPAN
    for position, tag in enumerate([*tags, _NO_SPAN]):
        changes = tag[1] != previous[1] or previous[0] in "ES"
        is_inside = previous[0] != OUTSIDE
        if is_inside and (changes or tag[0] in "SO" or (tag[0] == "B" and previous[0] != _ODD)):
            spans.append(Span(previous[1], start, position))
            is_inside = False
        if tag[0] != OUTSIDE and not is_inside:
            start = position
        previous = tag
    return spans


def _find_strict_iob2(tags: Sequence[_Parsed]) -> list[Span]:
    spans = []
    for position, (prefix, kind) in enumerate(tags):
        if prefix == "B":
            spans.append(Span(kind, position, _end_of_inside(tags, position)))
    return spans


def _find_strict_iobes(tags: Sequence[_Parsed]) -> list[Span]:
    spans = []
    for position, (prefix, kind) in enumerate(tags):
        if prefix == "S":
            spans.append(Span(kind, position, position + 1))
        elif prefix == "B":
            end = _end_of_inside(tags, position)
            if tags[end : end + 1] == [("E", kind)]:
                spans.append(Span(kind, position, end + 1))
    return spans


def _find_strict_iob1(tags: Sequence[_Parsed]) -> list[Span]:
    """B-X begins a span only after a tag of the same type. A span of B-X alone cannot be followed by B-Y."""
    spans = []
    position = 0
    while position < len(tags):
        previous = tags[position - 1] if position else _NO_SPAN
        prefix, kind = tags[position]
        same_type = previous[0] != OUTSIDE and previous[1] == kind
        if not (prefix == "I" and not (previous[0] == "I" and same_type)) and not (prefix == "B" and same_type):
            position += 1
            continue
        end = _end_of_inside(tags, position)
        following = tags[end] if end < len(tags) else _NO_SPAN
        if not (tags[end - 1][0] == "B" and following[0] == "B" and following[1] != kind):
            spans.append(Span(kind, position, end))
        position = end
    return spans


def _end_of_inside(tags: Sequence[_Parsed], start: int) -> int:
    """Return the index after the tags I-X that follow `start` and have its type."""
    end = start + 1
    while end < len(tags) and tags[end] == ("I", tags[start][1]):
        end += 1
    return end


def may_follow(tag: str, previous: str, scheme: Scheme) -> bool:
    """Return whether a tag may follow another one. Before the first and after the last word of a sentence is O.

    Raises DataError if a tag does not belong to the scheme.
    """
    (before, old), (prefix, new) = parse_tag(previous, scheme), parse_tag(tag, scheme)
    if scheme in ("IOBES", "BILOU"):
        inside = prefix in "IE"
        return inside and old == new if before in "BI" else not inside
    dependent = "I" if scheme == "IOB2" else "B"
    return prefix != dependent or (before != OUTSIDE and old == new)


def find_forbidden(tags: Sequence[str], scheme: Scheme) -> tuple[str, str] | None:
    """Return the first two successive tags of a sentence that the scheme does not allow; None if all are allowed.

    O stands for the positions before the first and after the last word.
    """
    return next(
        (
            (before, after)
            for before, after in pairwise([OUTSIDE, *tags, OUTSIDE])
            if not may_follow(after, before, scheme)
        ),
        None,
    )
