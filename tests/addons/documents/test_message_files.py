"""Files of messages of Java, Apple's systems, .NET and Rails: values are translated, everything else is kept."""

import re
from typing import Any

import pytest
import yaml
from stand_in_translators import StandIn, Write, same, upper

from dragoman.addons.documents.document import translate_document
from dragoman.base.errors import DocumentError

pytest.importorskip("sentencex")


def translated(text: str, format: str, write: Write = upper, **of_translator: Any) -> str:
    assert translate_document(StandIn(same), text, format=format).text == text  # type: ignore[arg-type]
    return translate_document(StandIn(write, **of_translator), text, format=format).text  # type: ignore[arg-type]


def test_java() -> None:
    given = (
        "# a comment = a b\n! more\n\na.b = one cow\\nruns\n  long\\ key:{0} big \\\n    hens\nflag\nempty=\n"
        "path=C\\:\\\\a b\ntab\ttwo oxen\\u0020here\r\nlast=it''s {1}"
    )
    assert translated(given, "properties") == (
        "# a comment = a b\n! more\n\na.b = ONE COW\\nRUNS\n  long\\ key:{0} BIG HENS\nflag\nempty=\n"
        "path=C:\\\\a B\ntab\tTWO OXEN HERE\r\nlast=IT''S {1}"
    )
    assert translated("a=\\u00fcber \\ud83d\\ude00 x", "properties") == "a=\\u00DCBER \\uD83D\\uDE00 X"
    assert translated("a=%1$S of %d日 und %@ک", "properties") == "a=%1$S OF %d日 UND %@ک"
    assert translated("a=\\u0041 ü", "properties") == "a=A Ü"


def test_apple() -> None:
    given = (
        '/* a "note" = "x"; */\n"%@ cows" = "%@ \\"big\\" cows\\n\\U00e9";\n// b = "c";\nkey.a = "a hen";\n"alone";\n'
    )
    expected = given.replace('\\"big\\" cows\\n\\U00e9', '\\"BIG\\" COWS\\nÉ').replace("a hen", "A HEN")
    assert translated(given, "strings") == expected
    assert translated("Redo = Again;\n", "strings") == 'Redo = "AGAIN";\n'
    with pytest.raises(DocumentError, match=r"line 2: not an entry of a \.strings file"):
        translated('"a" = "b";\n"c" = \n', "strings")


def test_dot_net() -> None:
    entry = '<data name="{}" {}><value>{}</value><comment>a note</comment></data>'
    given = (
        '<?xml version="1.0" encoding="utf-8"?>\n<root><!-- ä --><resheader name="a"><value>a b</value></resheader>'
        + entry.format("Titel.ü", 'xml:space="preserve"', "{0} cows &amp; ö")
        + entry.format("c", 'type="System.Drawing.Size"', "a b")
        + entry.format(">>d.Name", "", "a b")
        + '<data name="e"><value/></data></root>'
    )
    assert translated(given, "resx") == given.replace("cows &amp; ö", "COWS &amp; Ö")
    with pytest.raises(DocumentError, match="its root is <a>"):
        translated("<a/>", "resx")


RAILS = """# a comment
en:
  hello: "%{name} has a cow"   # why
  'no': it's here
  day_names: [Monday, "a day"]
  order: [:year, :month]
  count: 7
  off: no
  html: |
    <b>one</b>
    two hens
  folded: >
    one ox
    runs
  form: &form
    one: a cow
    other: "%{count} cows"
  again: *form
fr:
  hello: bonjour
"""


def loaded(text: str) -> Any:
    return yaml.safe_load(text.replace("[:year, :month]", '[":year", ":month"]'))  # PyYAML knows no symbols of Ruby


def test_rails() -> None:
    after = translated(RAILS, "rails")
    expected = RAILS.replace("en:\n", "de:\n")
    for text in ("a cow", "has", "it's here", "Monday", "a day", "two hens", "one<"):
        expected = expected.replace(text, text.upper())
    assert after.partition("  folded")[0] == expected.partition("  folded")[0]
    read, before = loaded(after), loaded(RAILS)
    assert list(read) == ["de", "fr"] and read["fr"] == before["fr"]
    assert list(read["de"]) == list(before["en"])
    assert read["de"]["folded"] == "ONE OX RUNS\n" and read["de"]["form"] == {"one": "A COW", "other": "%{count} COWS"}
    assert read["de"]["order"] == [":year", ":month"] and read["de"]["count"] == 7
    colon = translated("en:\n  a: two cows\n", "rails", lambda words: [("x: #y", 0)])
    assert yaml.safe_load(colon) == {"de": {"a": "x: #y"}}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: b", "no messages of Rails in the language en"),
        ("fr:\n  a: b c", "no messages of Rails in the language en"),
        ("en: {a: b", "line 1: invalid YAML"),
        ("en: " + "[" * 3000, "nested too deeply|invalid YAML"),
    ],
)
def test_other_yaml_is_refused(text: str, error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translate_document(StandIn(upper), text, format="rails")  # type: ignore[arg-type]


def test_numbers_of_any_length() -> None:
    given = "en:\n  a: " + "7" * 5000 + "\n  b: a cow\n  c: 2024-99-99\n"
    assert translated(given, "rails") == re.sub("^en", "de", given).replace("a cow", "A COW")


FLUENT = """# a comment
hello-user = Hello, { $userName }!
shared-photos =
    { $userName } { $photoCount ->
        [one] added a new photo
       *[other] added { $photoCount } new photos
    } to { $userGender ->
        [male] his stream
       *[other] their stream
    }.
-brand-name = Big Dog
login = Log in
    .title = a { -brand-name } title
multi = A first line
    and a second line.

    A new paragraph.
quoted = { "{" } kept { "}" }
last = see { hello-user.attr }
"""


def test_fluent() -> None:
    expected = FLUENT.replace(
        "A first line\n    and a second line.\n\n    A new", "A FIRST LINE AND A SECOND LINE.\n\n    A new"
    )
    for text in ("Hello", "added a new photo", "added", "new photos", "to", "his stream", "their stream", "Log in"):
        expected = expected.replace(f" {text}", f" {text.upper()}")
    for text in ("a { -brand-name } title", "A new paragraph", "see"):
        expected = expected.replace(f" {text}", f" {text.upper()}").replace("-BRAND-NAME", "-brand-name")
    assert translated(FLUENT, "fluent") == expected
    other: Write = lambda words: [(word, 0) for word in "a {b} { $x } {".split()]  # noqa: E731
    assert translated("a = b { $x }", "fluent", other) == 'a = a {"{"}b{"}"} { $x } {"{"}'
    with pytest.raises(DocumentError, match="line 2: a brace is not closed"):
        translated("a = b\nc = { $x", "fluent")
    with pytest.raises(DocumentError, match="line 1: placeables are nested too deeply"):
        translated("a = " + "{" * 99, "fluent")


def test_placeables_of_any_length_are_kept() -> None:
    long = "{ DATETIME($a, " + ", ".join(f'option{number}: "long"' for number in range(20)) + ") }"
    given = f"a = at {long}\nb = some cows\n"
    assert translated(given, "fluent") == given.replace("some cows", "SOME COWS")
