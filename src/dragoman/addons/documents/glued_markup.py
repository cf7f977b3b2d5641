"""`fold_glued_markup`: takes markup within words out of the text that the model reads.

Between two blanks, a page may have `10<sup>6</sup>`, `dog<a href="#n1">[1]</a>` or an address in three elements. A
model would read `106` and `dog[1]`, and the elements would cover neighbouring words of the translation.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import regex

from dragoman.addons.documents.passage import Mark, Passage
from dragoman.inference.control.keep import KeepRules

_ADDRESSES = KeepRules(("url", "email", "mention", "hashtag", "path"))
"""Text that nobody translates, so that the elements in it and around it belong together."""

_CODES = KeepRules(
    ("code",), (r"(?<![\p{L}\p{N}])(?=[\p{L}()]*[0-9])(?:[A-Z][a-z]?[0-9]*+|\([A-Za-z0-9]++\)[0-9]*+)++",)
)
"""Codes and formulas, such as H2O and Na2SO4."""

_LONGEST_SIGN, _LONGEST_NOTE, _MOST_MARKS = 20, 100, 12
_RAISED_SIGN = regex.compile(r"(?:[^\p{L}\s]|(?<!\p{L})\p{L}(?!\p{L}))+|TM|SM")
"""The text of a raised or lowered sign: digits, signs and single letters."""

_PLAIN_SIGN = regex.compile(r"[\[(]?\p{N}[^\p{L}\s]*|[*†‡§¶]+")
"""The text of a sign that is neither raised nor lowered, such as the cents of a price or the number of a note."""

_NOTE = regex.compile(r"\[[^\[\]]*\p{L}[^\[\]]*\]")
_ORDINAL = regex.compile(r"(?:[\p{N}IVXLCDM]|(?<!\p{L})[Nn])[adehorst]")
"""A letter that makes an ordinal number, as in `2<sup>e</sup>` and `XX<sup>e</sup>`, or `n<sup>o</sup>`."""

_BEFORE_RAISED = regex.compile(r"[\p{L}\p{M}\p{N}.,;:!?)\]»”\"'’…%*†‡]")
_BETWEEN_SIGNS = frozenset("/⁄,;–-")


def fold_glued_markup(passage: Passage) -> Passage:
    """Return a passage without the markup within words that the words do not need.

    Addresses, formulas and codes with markup become ranges to copy. Raised signs, such as exponents and the numbers of
    notes, and digits that another element adds to a word or number, become marks, which stay next to their word.
    """
    if not any(mark.kind == "open" for mark in passage.marks):
        return passage
    passage = _keep_spans(passage, _ADDRESSES, must_be_divided=False)
    passage = _keep_spans(passage, _CODES, must_be_divided=True)
    return _detach_signs(passage)


def _keep_spans(passage: Passage, rules: KeepRules, must_be_divided: bool) -> Passage:
    """Return a passage in which the units of the spans that rules find contain the markup of the spans.

    must_be_divided: only fold spans in which an element begins and ends.
    """
    spans = rules.find("".join(passage.texts))
    if not spans:
        return passage
    ends = [0, *accumulate(map(len, passage.texts))]
    positions = [mark.position for mark in passage.marks]
    raws, marks, kept = list(passage.raws), list[Mark | None](passage.marks), list(passage.kept)
    for span in spans:
        begin, end = bisect_right(ends, span.start) - 1, bisect_left(ends, span.end)
        first, last = _balanced(passage.marks, positions, begin, end, with_raised=must_be_divided)
        found = passage.marks[first:last]
        if not found or any(begin < other[1] and end > other[0] for other in kept[-2:]):
            continue
        if must_be_divided and not any(
            mark.kind == "close" and mark.position < end and passage.marks[mark.partner or 0].position > begin
            for mark in found
        ):
            continue
        if not passage.code.isdisjoint(range(begin, end)):
            continue
        for unit in range(begin, end):
            raws[unit] = ""
        at = begin
        for mark in found:
            for unit in range(at, mark.position):
                raws[unit] += passage.raws[unit]
            at = mark.position
            raws[min(at, end - 1)] += "".join(part for part in mark.raw if isinstance(part, str))
        for unit in range(at, end):
            raws[unit] += passage.raws[unit]
        marks[first:last] = [None] * (last - first)
        kept.append((begin, end))
    return Passage(passage.texts, tuple(raws), _renumbered(marks), passage.code, passage.escape, tuple(sorted(kept)))


def _balanced(
    marks: Sequence[Mark], positions: Sequence[int], begin: int, end: int, with_raised: bool
) -> tuple[int, int]:
    """Return the range of the marks at the units `begin` to `end` that only enclose these units, if it is balanced.

    with_raised: whether the marks of raised or lowered text may be among them. A range that is not balanced is empty.
    """
    first, last = bisect_left(positions, begin), bisect_right(positions, end)
    while True:
        if first < last and positions[first] == begin and not _is_partner_in(marks[first], "open", first, last):
            first += 1
        elif first < last and positions[last - 1] == end and not _is_partner_in(marks[last - 1], "close", first, last):
            last -= 1
        elif (
            first < last
            and marks[first].partner == last - 1
            and any(map(_has_passage, (marks[first], marks[last - 1])))
        ):
            first, last = first + 1, last - 1  # the description of a link is translated
        else:
            break
    for mark in marks[first:last]:
        is_paired = mark.kind == "empty" or _is_partner_in(mark, mark.kind, first, last)
        if not is_paired or (mark.style == "raised" and not with_raised) or _has_passage(mark):
            return first, first
    return first, last


def _is_partner_in(mark: Mark, kind: str, first: int, last: int) -> bool:
    return mark.kind == kind and mark.partner is not None and first <= mark.partner < last


def _has_passage(mark: Mark) -> bool:
    return any(isinstance(part, Passage) for part in mark.raw)


def _detach_signs(passage: Passage) -> Passage:
    """Return a passage in which the signs at words are marks instead of text."""
    marks = passage.marks
    new_marks, removed = list[Mark | None](), list[tuple[int, int]]()
    shift = index = 0
    while index < len(marks):
        mark = marks[index]
        last = _last_mark_of_signs(passage, index)
        if last is None:
            new_marks.append(mark._replace(position=mark.position - shift))
            index += 1
            continue
        begin, end = mark.position, marks[last].position
        raw = passage.original(begin, end, index, last + 1)
        if _NOTE.fullmatch("".join(passage.texts[begin:end])):
            raw = (*mark.raw, _part(passage, index + 1, last), *marks[last].raw)
        new_marks += [Mark(begin - shift, raw, "empty", style="raised"), *[None] * (last - index)]
        removed.append((begin, end))
        shift += end - begin
        index = last + 1
    return _without_units(passage, _renumbered(new_marks), removed) if removed else passage


def _last_mark_of_signs(passage: Passage, index: int) -> int | None:
    """Return the last mark of the signs that start at a mark, or None if the mark does not open a sign."""
    last = _sign_end(passage, index)
    if last is None:
        return None
    marks, texts = passage.marks, passage.texts
    while last + 1 < len(marks):
        following, at = marks[last + 1].position, marks[last].position
        is_next = following == at or (following == at + 1 and texts[at] in _BETWEEN_SIGNS)
        further = _sign_end(passage, last + 1, follows_sign=True) if is_next else None
        if further is None:
            break
        last = further
    return last


def _sign_end(passage: Passage, index: int, follows_sign: bool = False) -> int | None:
    """Return the closing mark of a single sign that starts at a mark, or None."""
    marks, texts, mark = passage.marks, passage.texts, passage.marks[index]
    last = mark.partner
    if mark.kind != "open" or last is None or last - index > _MOST_MARKS:
        return None
    begin, end = mark.position, marks[last].position
    if end - begin > _LONGEST_NOTE or not passage.code.isdisjoint(range(begin, end)):
        return None
    outer = [each for each in marks[index:last] if each.kind == "open" and each.position == begin]
    outer = [each for each in outer if each.partner is not None and marks[each.partner].position == end]
    styles = {each.style for each in outer}
    inner = "".join(texts[begin:end])
    before = "".join(texts[max(0, begin - 2) : begin])
    after = "" if end >= len(texts) else texts[end][:1]
    left = before[-1:]
    is_first = not left or left.isspace()
    if "raised" in styles:
        fits = after.isalpha() if is_first else follows_sign or _BEFORE_RAISED.fullmatch(left)
        is_sign = len(inner) <= _LONGEST_SIGN and _RAISED_SIGN.fullmatch(inner) is not None
        is_ordinal = len(inner) == 1 and _ORDINAL.search(before + inner, max(0, len(before) - 2)) is not None
        return last if fits and ((is_sign and not is_ordinal) or (_NOTE.fullmatch(inner) and not is_first)) else None
    if "separate" not in styles or len(inner) > _LONGEST_SIGN or not _PLAIN_SIGN.fullmatch(inner):
        return None
    is_after_word = left.isdigit() or (len(before) == 2 and before.isalpha())
    opens_next = last + 1 < len(marks) and marks[last + 1].position == end and marks[last + 1].kind == "open"
    return last if (follows_sign or is_after_word) and (not after.isalnum() or opens_next) else None


def _part(passage: Passage, first: int, last: int) -> Passage:
    """Return the part of a passage between two marks, with the marks `first` to `last`, as a passage of its own."""
    begin, end = passage.marks[first - 1].position, passage.marks[last].position
    marks = [
        mark._replace(position=mark.position - begin, partner=None if mark.partner is None else mark.partner - first)
        for mark in passage.marks[first:last]
    ]
    return Passage(passage.texts[begin:end], passage.raws[begin:end], tuple(marks), escape=passage.escape)


def _without_units(passage: Passage, marks: tuple[Mark, ...], removed: Sequence[tuple[int, int]]) -> Passage:
    """Return a passage with other marks, and without some ranges of units."""
    begins = [begin for begin, _ in removed]
    shifts = [0, *accumulate(end - begin for begin, end in removed)]

    def moved(unit: int) -> int:
        return unit - shifts[bisect_right(begins, unit)]

    texts, raws, at = list[str](), list[str](), 0
    for begin, end in [*removed, (len(passage.texts), 0)]:
        texts += passage.texts[at:begin]
        raws += passage.raws[at:begin]
        at = end
    code = frozenset(map(moved, passage.code))
    kept = tuple((moved(begin), moved(end - 1) + 1) for begin, end in passage.kept)
    return Passage(tuple(texts), tuple(raws), marks, code, passage.escape, kept)


def _renumbered(marks: Sequence[Mark | None]) -> tuple[Mark, ...]:
    """Return the marks without those that are None. Partners are the indices of the given sequence."""
    numbers = [0, *accumulate(mark is not None for mark in marks)]
    return tuple(
        mark if mark.partner is None else mark._replace(partner=numbers[mark.partner])
        for mark in marks
        if mark is not None
    )
