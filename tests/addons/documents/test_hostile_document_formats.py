"""Files that repeat one piece many times are parsed in linear time, and values that Python refuses are no faults."""

import time

import pytest
from open_documents import document
from stand_in_translators import StandIn, upper

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats.union import get_format
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, raw_text

pytest.importorskip("lxml")

TIMES = 10_000
UNIT = "<trans-unit id='1'><source>{}</source></trans-unit>"


def xliff(body: str, attribute: str = "") -> str:
    return f"<xliff version='1.2'><file source-language='en' a='{attribute}'><body>{body}</body></file></xliff>"


FILES = {
    "xliff line breaks": ("xliff", xliff(UNIT.format("\n" * TIMES))),
    "xliff codes": ("xliff", xliff(UNIT.format("<bx id='1'/>" * TIMES))),
    "xliff arguments": ("xliff", xliff(UNIT.format("{a, plural, one {" * TIMES))),
    "xliff units in a big tag": ("xliff", xliff(UNIT.format("a") * (TIMES // 4), "b" * 1_000_000)),
    "odt blanks": ("odt", document("<text:p>" + "<text:s/>" * TIMES + "</text:p>")),
    "odt line breaks": ("odt", document("<text:p><text:bookmark/>" + "\n" * (5 * TIMES) + "a</text:p>")),
    "odt bookmarks": ("odt", document("<text:p>" + "<text:bookmark-start text:name='a'/> " * TIMES + "</text:p>")),
    "odt notes": (
        "odt",
        document("<text:p>" + "a<text:note><text:p>b</text:p></text:note>" * (TIMES // 4) + "</text:p>"),
    ),
    "po flags": ("po", "#, fuzzy, c-format\n" * TIMES + 'msgid "a"\nmsgstr ""\n'),
    "po lines": ("po", 'msgid ""\n' + '"a\\n"\n' * TIMES + 'msgstr ""\n'),
    "po forms": ("po", 'msgid "a"\nmsgid_plural "b"\n' + 'msgstr[0] ""\n' * TIMES),
    "po blanks": ("po", 'msgid "' + " " * (10 * TIMES) + 'x"\nmsgstr ""\n'),
    "po escapes": ("po", 'msgid "' + '\\"%-' * TIMES + '"\nmsgstr ""\n'),
}


@pytest.mark.parametrize("name", FILES)
def test_parsing_takes_linear_time(name: str) -> None:
    format, content = FILES[name]
    begin = time.process_time()
    parsed = get_format(format).parse(content, Languages("en", "de"))
    parsed.write([raw_text(part) if isinstance(part, Passage) else part for part in parsed.parts])
    assert time.process_time() - begin < 5  # each takes below a second, and would take minutes in quadratic time


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("html", '<img alt="a &#{};" lang="&#x{};">a dog'),
        ("html", '<iframe srcdoc="&#{}; a &#{};"></iframe>a dog'),
        ("html", "a <code>&#{};</code> dog"),
        ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\na &#x{};&#{}; dog\n"),
        ("ttml", '<tt><p begin="{}s">a dog</p></tt>'),
        ("markdown", '---\ntitle: a man\nsize: {}\n---\n[a dog](b "&#{};")\n'),
        ("json", '[{}, "a dog &#{};"]'),
        ("po", 'msgid ""\nmsgstr "Plural-Forms: nplurals=2; plural=n%{};"\n\nmsgid "a dog"\nmsgstr ""\n'),
    ],
)
def test_numbers_that_python_refuses(format: str, text: str) -> None:
    content = text.replace("{}", "7" * 5000)
    assert "DOG" in translate_document(StandIn(upper), content, format=format).text  # type: ignore[arg-type]
