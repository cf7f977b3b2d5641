"""JSON files of messages: what is translated, placeholders, plural forms, and everything that is kept."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in_translators import StandIn, Write, backwards, same, upper

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats.messages.json import parse_json
from dragoman.addons.documents.formats.messages.message import _SPECIAL_CHARACTER, _TOKEN, Message
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, raw_text
from dragoman.base.errors import DocumentError

pytest.importorskip("sentencex")


def translated(text: str, write: Write = upper, **of_translator: Any) -> str:
    return translate_document(StandIn(write, **of_translator), text, format="json").text  # type: ignore[arg-type]


def message(text: str, write: Write = upper) -> str:
    """Return a single message, translated."""
    found: str = json.loads(translated(json.dumps({"key": text}), write))["key"]
    return found


I18NEXT = r"""{
    "title":"A brown dog",   "count" : 3, "on": true,
	"nested": {"list": ["Two dogs", 7, null, ["one man"]], "a": {"title": "deep"}},
    "item_one": "{{count}} dog", "item_other": "{{count}} dogs",
    "esc": "caf\u00e9 \"now\"\n\tthen <b>bold</b>", "empty": "", "id": "common.save", "url": "https://a.b/c",
    "title": "again"
}
"""


def test_values_are_translated_and_everything_else_is_kept() -> None:
    assert translated(I18NEXT) == (
        I18NEXT.replace("A brown dog", "A BROWN DOG")
        .replace("Two dogs", "TWO DOGS")
        .replace("one man", "ONE MAN")
        .replace('"deep"', '"DEEP"')
        .replace("}} dog", "}} DOG")
        .replace("DOGs", "DOGS")
        .replace(r"caf\u00e9 \"now\"\n\tthen <b>bold", r"CAF\u00c9 \"NOW\"\n\tTHEN <b>BOLD")
        .replace('"again"', '"AGAIN"')
    )
    assert translated(I18NEXT, same) == I18NEXT


def test_letters_are_escaped_only_where_the_file_escapes_them() -> None:
    assert translated('["über \\u00fc"]') == '["ÜBER Ü"]'
    assert translated('["\\u00fcber \\ud83d\\ude00 a"]') == '["\\u00dcBER \\ud83d\\ude00 A"]'
    assert translated('["\\u0041 stra\u00dfe", "\\u00fc"]') == '["A STRASSE", "Ü"]'
    assert translated('["\\u0041 dog"]', lambda words: [("ü", 0)]) == '["ü"]'
    assert translated('\ufeff["a dog"]\r\n') == '\ufeff["A DOG"]\r\n'
    assert translated('["a \\ud800 ü"]') == '["A \ufffd Ü"]'  # a lone surrogate
    assert translated('["a \\ud800 ü"]', same) == '["a \\ud800 ü"]'
    assert translated('["<a \\ud800> ü"]') == '["<a \\ud800> \\u00dc"]'
    assert translated('"a dog"') == '"A DOG"'


def test_descriptions_and_metadata_are_kept() -> None:
    arb = {
        "@@locale": "en",
        "@@x-context": "a page",
        "hello": "Hello {name}",
        "@hello": {"description": "A greeting", "placeholders": {"name": {"type": "String", "example": "a man"}}},
    }
    after = json.loads(translated(json.dumps(arb)))
    assert after == {**arb, "hello": "HELLO {name}", "@@locale": "de"}
    chrome = {
        "name": {"message": "My dog", "description": "the name"},
        "hi": {"message": "Hi $USER$, $1 dogs", "placeholders": {"user": {"content": "$1", "example": "a man"}}},
    }
    after = json.loads(translated(json.dumps(chrome)))
    assert after["name"] == {"message": "MY DOG", "description": "the name"}
    assert after["hi"] == {**chrome["hi"], "message": "HI $USER$, $1 DOGS"}
    react = {"x.y": {"defaultMessage": "a dog", "description": "the animal"}}
    assert json.loads(translated(json.dumps(react))) == {
        "x.y": {"defaultMessage": "A DOG", "description": "the animal"}
    }
    listed = [{"id": "save", "description": "a button", "defaultMessage": "Save it"}]
    assert json.loads(translated(json.dumps(listed))) == [{**listed[0], "defaultMessage": "SAVE IT"}]
    plain = {"message": "a dog", "description": "an animal", "title": "x y"}
    assert json.loads(translated(json.dumps(plain))) == {key: text.upper() for key, text in plain.items()}


def test_the_language_of_the_file() -> None:
    assert translated('{"locale": "en-US", "translations": {"a": "a dog"}}').startswith('{"locale": "de",')
    assert translated('{"locale": "en", "a": "1"}') == '{"locale": "en", "a": "1"}'
    assert translated('{"locale": "fr", "a": "a b"}') == '{"locale": "fr", "a": "A B"}'
    assert translated('{"@@locale": "en", "a": "a b"}', target=None) == '{"@@locale": "en", "a": "A B"}'
    assert (
        translated('{"locale": "the place", "a": {"locale": "en"}}') == '{"locale": "THE PLACE", "a": {"locale": "EN"}}'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi {{ name }}, {0} of {n, number}", "HI {{ name }}, {0} OF {n, number}"),
        ("%s has %1$d of %(x)s, %@ and ${v} 100% sure", "%s HAS %1$d OF %(x)s, %@ AND ${v} 100% SURE"),
        ("see $t(common.dog) or @:common.cat", "SEE $t(common.dog) OR @:common.cat"),
        ("no dogs | one dog | {n} dogs", "NO DOGS | ONE DOG | {n} DOGS"),
        ("a <0>big</0><br/>dog &amp; <file>", "A <0>BIG</0><br/>DOG &amp; <file>"),
        ("don''t run {x}", "DON''T RUN {x}"),
        (
            "{n, plural, one {it isn''t #} other {they aren't #}}",
            "{n, plural, one {IT ISN''T #} other {THEY AREN'T #}}",
        ),
        ("<p>a dog</p><p>{x}</p> <ul><li>two men</li></ul>", "<p>A DOG</p><p>{x}</p> <ul><li>TWO MEN</li></ul>"),
        ("run <code class='a'>make it</code>", "RUN <code class='a'>make it</code>"),
        ("up-to-date and/or", "UP-TO-DATE AND/OR"),
        ("day-to-day", "DAY-TO-DAY"),
        ("it's '{'a'}' {x}", "IT'S '{'A'}' {x}"),
    ],
)
def test_placeholders_and_tags_are_kept(text: str, expected: str) -> None:
    assert message(text) == expected
    assert message(text, same) == text


def test_apostrophes_of_translations() -> None:
    """A single apostrophe before a brace begins quoted text, which would hide the placeholder."""

    assert Message("the {x}").write(["l'{x}"]) == "l’{x}"
    assert Message("don''t {x}").passages[0].escape("l'ami", True) == "l''ami"
    assert Message("don''t {x}").write(["l''{x}"]) == "l''{x}"
    assert Message("the '{' {x}").write(["l'{' {x}"]) == "l'{' {x}"


def test_blocks_of_markup_are_separate_texts() -> None:
    text = "<p>one two</p><p>three <b>four</b> five</p>"
    assert message(text, backwards) == "<p>TWO ONE</p><p>FIVE <b>FOUR</b> THREE</p>"


@pytest.mark.parametrize(
    "text",
    ["https://a.b/c d", "src/a/b.png", "camelCase", "SOME_KEY", "me@x.org", "#fff", "a.txt", "12:30", "{x}", "…"],
)
def test_values_that_are_no_messages(text: str) -> None:
    assert message(text.partition(" ")[0]) == text.partition(" ")[0]


@pytest.mark.parametrize(
    "text",
    [
        *("保存:{name}", "はい/いいえ/中止", "地址是https://a.b/c吧", "กรุณาใส่user_id", "写信给me@a.org"),
        *("Größe:{n}", "Price:{n}", "Left/Right/Up", "Code:12", "Set-up:{n}", "写入到data.csv"),
    ],
)
def test_texts_without_blanks_are_messages(text: str) -> None:
    stand_in = StandIn(upper)
    translate_document(stand_in, json.dumps([text]), format="json")  # type: ignore[arg-type]
    assert {asked for asked, _ in stand_in.asked} == {text}


def test_identifiers_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"a": "图片/标志.png",\n "b": "a_{n}", "c": "src/a/b", "d": "{n}", "e": "https://a.b/c"}'
    assert translated(text) == text
    assert "3 value(s) without blanks are kept" in (said := capsys.readouterr().err)
    assert "the first is '图片/标志.png' in line 1" in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a cow|:count cows", "COW A|COWS :count"),
        ("|{n} new cows", "|COWS NEW {n}"),
        ("no cow|one cow | {n} cows", "COW NO|COW ONE | COWS {n}"),
        ("{0} no cow|{1} a cow|[2,*] more cows", "{0} COW NO|{1} COW A|[2,*] COWS MORE"),
        ("]-Inf,0] no cow|]0,Inf[ some cows", "]-Inf,0] COW NO|]0,Inf[ COWS SOME"),
        ("one: a cow|other: some cows", "one: COW A|other: COWS SOME"),
        ("%{n} cow||||%{n} cows", "COW %{n}||||COWS %{n}"),
        ("{0} cow|{0} cows", "COW {0}|COWS {0}"),
        ("run [start|stop] it", "IT [START|STOP] RUN"),
        ("a||b it", "IT A||B"),
        ("0#no cow|1#a cow|1<many cows", "0#COW NO|1#COW A|1<COWS MANY"),
        ("n==1#a cow|n>1#{n} cows", "n==1#COW A|n>1#COWS {n}"),
        ("n%10==1&&n%100!=11#a cow|n>=2#big cows", "n%10==1&&n%100!=11#COW A|n>=2#COWS BIG"),
        ("{0,choice,0#no cow|1#a cow|1<{0,number} cows}", "{0,choice,0#COW NO|1#COW A|1<COWS {0,number}}"),
        ("my {n,choice,0#sad|1\u2264big} cow", "{n,choice,0#COW SAD MY|1\u2264COW BIG MY}"),
    ],
)
def test_plural_forms_between_bars(text: str, expected: str) -> None:
    assert message(text, backwards) == expected
    assert message(text, same) == text


def test_plural_forms_and_cases() -> None:
    whole = "{n, plural, =0 {no dogs} one {# dog} other {{x} has # dogs}}"
    assert message(whole) == "{n, plural, =0 {NO DOGS} one {# DOG} other {{x} HAS # DOGS}}"
    within = "Hi {x}, you {n, plural, offset:1 one {have # dog} other {have # dogs}} now."
    assert message(within) == (
        "{n, plural, offset:1 one {HI {x}, YOU HAVE # DOG NOW.} other {HI {x}, YOU HAVE # DOGS NOW.}}"
    )
    assert message(within, same) == within
    two = "{g, select, m {He} other {They}} saw {n, plural, one {a dog} other {# dogs}}."
    dogs = "{{n, plural, one {{0} SAW A DOG.} other {{0} SAW # DOGS.}}}"
    cases = [dogs.replace("{0}", who) for who in ("HE", "THEY")]
    assert message(two) == f"{{g, select, m {cases[0]} other {cases[1]}}}"
    order = "{n, selectordinal, one {#st dog} other {#th dog}}"
    assert message(order, backwards) == "{n, selectordinal, one {DOG #ST} other {DOG #TH}}" or "#" in message(order)


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural, one {a dog}",
        "{n, plural, one a dog}",
        "No. # {n, plural, one {a} other {b}}",
        "{a, select, " + " ".join(f"k{n} {{a dog {n}}}" for n in range(40)) + "}",
        "".join(f"a {{x{n}, plural, one {{b}} other {{c}}}} " for n in range(9)),
        "{a, plural, other {" * 20 + "x" + "}}" * 20,
    ],
)
def test_messages_that_cannot_be_divided_remain(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message(text) == text
    assert "1 message(s) remain untranslated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": "b",\n "c": }', "line 2, column 7: invalid JSON"),
        ("", "line 1, column 1: invalid JSON"),
        ('{\n  // note\n  "a": "b"}', r"line 2, column 3.*JSON has no comments"),
        ('{"a": "b"} {}', "line 1, column 12"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a": "b\n"}', "line 1, column 9"),
    ],
)
def test_invalid_json(text: str, error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translated(text)


@pytest.mark.parametrize(
    "text",
    [
        "{" + ", ".join(f'"k{n}": ["dog"]' for n in range(2_000)) + "}",
        "[" * 900 + '"dog"' + ', "dog"' * 2_000 + "]" * 900,
        f'["{"a" * 25_000}"]',
        f'["{"<" * 20_000}"]',
        f'["{"<a " * 10_000}"]',
        f'["{"{a, plural, one {" * 10_000}"]',
        f'["{"<!--" * 10_000}"]',
        f'["{"%-" * 10_000}"]',
        f'["{"https://" * 10_000}"]',
        "[" + "1" * 300_000 + ', "dog"]',
        f'["a|{" " * 50_000}b"]',
        f'["{"(a|" * 20_000}"]',
    ],
    ids=[
        "keys",
        "depth",
        "word",
        "signs",
        "tags",
        "arguments",
        "comments",
        "directives",
        "addresses",
        "digits",
        "bar",
        "bars",
    ],
)
def test_files_are_parsed_in_linear_time(text: str) -> None:
    begin = time.process_time()
    parsed = parse_json(text, Languages("en", "de"))
    assert parsed.write([raw_text(part) for part in parsed.parts if isinstance(part, Passage)]) == text
    assert time.process_time() - begin < 5  # quadratic time would be minutes


SIGNS = st.lists(
    st.sampled_from(
        [*"aB1 .,:;!?'\"()-_/\\%$#{}<>&@|[]*`~^+=\n", "://", "{x}", "www.", "a@b.c", "--a", "&amp;", ".com"]
    )
).map("".join)


@settings(max_examples=300, deadline=None)
@given(text=SIGNS)
def test_every_special_token_has_a_sign(text: str) -> None:
    """Texts without signs take a faster path, so none of them may have a placeholder, a tag or an entity."""
    if _SPECIAL_CHARACTER.search(text) is None:
        assert {match.lastgroup for match in _TOKEN.finditer(text)} <= {"blank", "line", "other"}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from([" a dog ", "\n{x} b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(value=VALUES, indent=st.sampled_from([None, 2, "\t"]), ascii_only=st.booleans())
def test_only_strings_change(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace").decode()
    assert translated(text, same) == text

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(inner) for key, inner in value.items()}
        return [shape(each) for each in value] if isinstance(value, list) else type(value)

    assert shape(json.loads(translated(text, backwards))) == shape(json.loads(text))


def test_a_message_does_not_become_many_times_its_length() -> None:
    """Its surroundings would be repeated in each of its branches."""
    branches = " ".join(f"={number} {{a cat}}" for number in range(20))
    text = json.dumps({"a": "Two dogs run. " * 200 + f"{{n, plural, {branches} other {{cats}}}}", "b": "a dog"})
    translator = StandIn(upper)
    found = json.loads(translate_document(translator, text, format="json").text)  # type: ignore[arg-type]
    assert found == {**json.loads(text), "b": "A DOG"}
    assert [each for each, _ in translator.asked] == ["a dog"]
