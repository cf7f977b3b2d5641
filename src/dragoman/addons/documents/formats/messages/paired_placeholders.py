"""`paired_placeholders`: placeholders that begin and end an element, such as `{linkStart}` and `{linkEnd}`."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import regex

_ROLE = regex.compile(
    r"(?P<tag><(?P<tag_end>/)?(?P<tag_name>[\p{L}0-9][\w:.-]*+)(?:\s[^<>]*+)?(?<!/)>)"  # shown as a tag of HTML
    r"|\W*+(?:(?P<open>(?-i:START|OPEN))|(?-i:CLOSE))_(?P<prefixed>\w++)\W*+"  # Angular
    r"|\{\{?(?:(?P<section>\#)|/)\s?(?P<section_name>\w[\w.-]*+)[^{}]*+\}\}?"  # Mustache, Handlebars, Svelte
    r"|\W*+(?P<suffixed>(?:link|bold|strong|italic|em|emphasis|anchor|a|b|i|u|span|code|tag|button|url|highlight|mark"
    r"|colou?r|underline|text)[0-9]*+)[_.-]?(?:(?P<begin>start|open|begin)|end|close)[0-9]*+(?:\)s|\W*+)",
    regex.IGNORECASE | regex.V1,
)


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
        elif depths.get(role.name):
            partner = depths[role.name][-1]
            pairs |= {waiting[partner][0]: waiting[partner][1], index: role}
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
    name = groups["prefixed"] or groups["section_name"] or groups["suffixed"]
    opens = groups["open"] or groups["section"] or groups["begin"]
    return Role("open" if opens else "close", name.lower())
