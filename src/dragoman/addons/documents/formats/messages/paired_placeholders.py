"""`paired_placeholders`: placeholders that begin and end an element, such as `{linkStart}` and `{linkEnd}`."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import regex

from dragoman.text.words import is_unspaced

_ELEMENT = (
    r"(?:link|bold|strong|italic|em|emphasis|anchor|a|b|i|u|span|code|tag|button|url|highlight|mark|colou?r|underline"
    r"|text)[0-9]*+"
)
_ROLE = regex.compile(
    r"(?P<tag><(?P<tag_end>/)?(?P<tag_name>[\p{L}0-9][\w:.-]*+)(?:\s[^<>]*+)?(?<!/)>)"  # shown as a tag of HTML
    r"|\W*+(?:(?P<open>(?-i:START|OPEN))|(?-i:CLOSE))_(?P<prefixed>\w++)\W*+"  # Angular
    r"|\{\{?(?P<section>\#)\s?(?P<section_name>\w[\w.-]*+)[^{}]*+\}\}?"  # Mustache, Handlebars, Svelte
    rf"|\W*+(?P<suffixed>{_ELEMENT})[_.-]?(?:(?P<begin>start|open|begin)|end|close)[0-9]*+(?:\)s|\W*+)"
    rf"|\W*+(?:(?P<first>start|open|begin)|end|close)[_.-]?(?P<second>{_ELEMENT})(?:\)s|\W*+)"
    r"|(?:[$%]?\{\{?|\[)(?P<bare_end>/)?\s?(?P<bare>\w[\w.-]*+)(?:=[^\[\]]*+)?(?:\}\}?|\])",  # {b}, {{/b}}, [b]
    regex.IGNORECASE | regex.V1,
)
_BEFORE_OPENING, _AFTER_CLOSING = regex.compile(r"[\s(\[\p{Pi}\"'¿¡]"), regex.compile(r"[\s)\].,;:!?…\p{Pf}\"']")
_ANONYMOUS = regex.compile(r"%(?:[0-9]+\$)?s|%\(\w+\)s|\{[0-9]*\}|\$[0-9]")
"""Placeholders that may stand for tags without a name that says so."""


class Role(NamedTuple):
    """What a placeholder does, if it is one of a pair. name: equal for both."""

    kind: Literal["open", "close"]
    name: str


def paired_placeholders(shown: Sequence[str]) -> dict[int, Role]:
    """Return the roles of the placeholders of a text that belong together, by their indices.

    shown: the placeholders in order, or the names of codes. The placeholders of a pair are nested with other pairs.
    """
    pairs: dict[int, Role] = {}
    waiting: list[tuple[int, Role]] = []
    depths: dict[str, list[int]] = {}  # of the waiting placeholders of each name
    for index, text in enumerate(shown):
        role = _role_of(text)
        if role is None:
            continue
        if role.kind == "open":
            depths.setdefault(role.name, []).append(len(waiting))
            waiting.append((index, role))
        elif names := [name for name in (f"#{role.name}", role.name) if depths.get(name)]:
            partner = depths[names[0]][-1]
            name = waiting[partner][1].name
            pairs |= {waiting[partner][0]: waiting[partner][1], index: Role("close", name)}
            while len(waiting) > partner:
                depths[waiting.pop()[1].name].pop()
    return pairs


def _role_of(text: str) -> Role | None:
    found = _ROLE.fullmatch(text)
    if found is None:
        return None
    groups = found.groupdict()
    if groups["tag"] is not None:
        return Role("close" if groups["tag_end"] else "open", f"<{groups['tag_name'].lower()}>")
    if groups["section"] is not None:
        return Role("open", f"#{groups['section_name'].lower()}")
    if groups["bare"] is not None:
        return Role("close" if groups["bare_end"] else "open", groups["bare"].lower())
    name = groups["prefixed"] or groups["suffixed"] or groups["second"]
    opens = groups["open"] or groups["begin"] or groups["first"]
    return Role("open" if opens else "close", name.lower())


def glued_pairs(text: str, ranges: Sequence[tuple[int, int]]) -> dict[int, Role]:
    """Return the roles of placeholders that stand for tags without a name, as in `Read %1$sthe page%2$s.`, by their
    indices: one that stands directly before a word, and the next one that stands directly after a word.

    ranges: the (begin, end) of each placeholder in the text.
    """
    pairs: dict[int, Role] = {}
    opening: int | None = None
    for index, (begin, end) in enumerate(ranges):
        if not _ANONYMOUS.fullmatch(text, begin, end):
            continue
        before, after = text[begin - 1 : begin] if begin else "", text[end : end + 1]
        if after.isalpha() and not is_unspaced(after) and (not before or _BEFORE_OPENING.match(before)):
            opening = index
        elif opening is not None and before.isalpha() and (not after or _AFTER_CLOSING.match(after)):
            name = f"glued {opening}"
            pairs |= {opening: Role("open", name), index: Role("close", name)}
            opening = None
    return pairs
