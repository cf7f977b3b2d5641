"""Placeholders that begin and end an element stay around its words, in this order."""

import json
import re

import pytest
from stand_in_translators import StandIn, backwards

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats.messages.paired_placeholders import glued_pairs, paired_placeholders

pytest.importorskip("sentencex")


def translated_unit(source: str) -> str:
    """Return the target of a unit, in which the words are reversed."""
    unit = f"<trans-unit id='1'><source>{source}</source></trans-unit>"
    text = f"<xliff version='1.2'><file source-language='en'><body>{unit}</body></file></xliff>"
    found = translate_document(StandIn(backwards), text, format="xliff").text  # type: ignore[arg-type]
    return found.partition("<target")[2].partition(">")[2].partition("</target>")[0]


def code(name: str, shown: str) -> str:
    return f'<x id="{name}" equiv-text="{shown}"/>'


def test_blocks_of_angular_stay_around_their_words() -> None:
    opening, closing = code("START_BLOCK_FOR", "@for (item of items; track item) {"), code("CLOSE_BLOCK_FOR", "}")
    assert translated_unit(f"Two {opening}big cats{closing} run") == f"RUN {opening}CATS BIG{closing} TWO"


def test_the_branches_of_a_block_keep_their_order() -> None:
    first = code("START_BLOCK_IF", "@if (a) {"), code("CLOSE_BLOCK_IF", "}")
    other = code("START_BLOCK_ELSE", "@else {"), code("CLOSE_BLOCK_ELSE", "}")
    found = translated_unit(f"Two {first[0]}big cats{first[1]}{other[0]}small dogs{other[1]}")
    assert found == f"{first[0]}CATS BIG{first[1]} TWO{other[0]}DOGS SMALL{other[1]}"


def test_tags_as_separate_codes() -> None:
    opening, closing = code("1", "&lt;b class='x'&gt;"), code("2", "&lt;/b&gt;")
    assert translated_unit(f"Two {opening}big cats{closing} run") == f"RUN {opening}CATS BIG{closing} TWO"


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *[("{linkStart}", "{linkEnd}"), ("%{bold_open}", "%{bold_close}"), ("{{#em}}", "{{/em}}"), ("{#b}", "{/b}")],
        *[("{openTag}", "{closeTag}"), ("%{b}", "%{/b}"), ("[url=x]", "[/url]"), ("%(link_start)s", "%(link_end)s")],
        *[("%1$s", "%2$s"), ("%s", "%s"), ("%(start)s", "%(end)s"), ("{0}", "{1}"), ("$1", "$2")],
    ],
)
def test_placeholders_of_messages(opening: str, closing: str) -> None:
    text = json.dumps({"a": f"Two {opening}big cats{closing} run"})
    found = translate_document(StandIn(backwards), text, format="json").text  # type: ignore[arg-type]
    assert json.loads(found)["a"] == f"RUN {opening}CATS BIG{closing} TWO"


def test_a_section_of_a_name_contains_the_value_of_the_name() -> None:
    assert {index: role.kind for index, role in paired_placeholders(["{{#a}}", "{{a}}", "{{/a}}"]).items()} == {
        0: "open",
        2: "close",
    }


@pytest.mark.parametrize(
    "text", ["{0}的{1}。", "{0} cats {1}", "%s cats, %scats", "{0}MB of {1}MB", "a{0}b {1}", "{a}x{b}"]
)
def test_values_beside_words_are_no_pairs(text: str) -> None:
    found = re.finditer(r"\{\w\}|%s", text)
    assert not glued_pairs(text, [each.span() for each in found])


def test_other_placeholders_are_no_pairs() -> None:
    assert not paired_placeholders(["{start_date}", "{end_date}", "{linkEnd}", "{linkStart}", "{name}", "<br/>"])
    roles = paired_placeholders(["{aStart}", "{bStart}", "{aEnd}", "{bEnd}"])
    assert {index: role.kind for index, role in roles.items()} == {0: "open", 2: "close"}
