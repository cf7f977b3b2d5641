"""Reading and writing a document of any format takes time and memory in proportion to its length.

Documents are made of the pieces of each format's grammar: one piece repeated, two pieces that alternate, and one piece
within another; a new pattern that is not linear is found without a test of its own.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

import pytest
from growth import check_linear, check_linear_memory
from office_archives import book, presentation, workbook
from open_documents import document as open_document
from open_documents import packed, part
from pdf_files import pdf
from stand_in_translators import StandIn, upper
from word_documents import document as word_document

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats.union import FORMATS
from dragoman.addons.documents.formats.xml_tree import with_attribute
from dragoman.base.errors import DragomanError
from dragoman.text.words import count_words

pytest.importorskip("sentencex")
pytest.importorskip("lxml")
pytest.importorskip("mdit_py_plugins")

_TEXT = [
    "a",
    "A dog. ",
    "10",
    "%s",
    "{a}",
    "http://a.b/",
    "a@b.c",
    "#a",
    "@a ",
    "/a",
    "...",
    "  ",
    "\t",
    "«",
    "中",
    "-",
    ":",
]
_TAGS = [
    "<b>",
    "</b>",
    "<sup>1</sup>",
    "<a href='x'>",
    "</a>",
    "<",
    ">",
    "&amp;",
    "&",
    "<!--",
    "-->",
    "<br>",
    '"',
    "{{",
    "}}",
]
_LINES = ["\n", "\r\n", "\n\n", " \n"]
_CUES = [
    "00:00:01,000 --> 00:00:02,000\n",
    "{\\k1}",
    "{\\i1}",
    "{\\",
    "}",
    "\\N",
    "<00:00:01.000>",
    "<i>",
    "<v A>",
    "[a] ",
    "♪ ",
]
_ICU = [
    "{n, plural, ",
    "one {",
    "other {#}",
    "}",
    "{a}",
    "'",
    "''",
    "%1$s",
    "<b>",
    "</b>",
    "$t(",
    "|",
    "_",
    "&",
    ", select, ",
]
_MARKDOWN = [
    "*",
    "**",
    "_",
    "`",
    "[",
    "](",
    ")",
    "![",
    "- ",
    "# ",
    "> ",
    "|",
    "|-",
    "~~~",
    "---\n",
    "$",
    "[^1]",
    "<b>",
    "{{<",
    ":::",
]
_HTML = [
    "<p>",
    "</p>",
    "<div>",
    "<code>",
    "<script>",
    "<img alt='a dog'>",
    "<ul><li>",
    " a=",
    "<p translate=no>",
    "<svg>",
    "<!",
    "<?",
]
_XLIFF = ["<g id='1'>", "</g>", "<x id='1'/>", "<bx id='1'/>", "<ex id='1'/>", "<ph id='1'>a</ph>", "&#10;", "a "]
_ODF = ["<text:span>", "</text:span>", "<text:s/>", "<text:tab/>", "<text:note><text:p>a</text:p></text:note>", "a "]
_WORD = [
    "<w:r><w:t>a</w:t></w:r>",
    "<w:r><w:rPr><w:b/></w:rPr><w:t>b </w:t></w:r>",
    "<w:hyperlink>",
    "</w:hyperlink>",
    "<w:r><w:br/></w:r>",
]

_SLIDE = ["<a:r><a:t>a </a:t></a:r>", "<a:r><a:rPr b='1'/><a:t>b</a:t></a:r>", "<a:br/>", "<a:fld><a:t>1</a:t></a:fld>"]

ODF = "application/vnd.oasis.opendocument."
PRESENTATION = (
    "<office:body><office:presentation><draw:page><text:p>{}</text:p></draw:page></office:presentation></office:body>"
)
SPREADSHEET = (
    "<office:body><office:spreadsheet><table:table><table:table-row><table:table-cell><text:p>{}</text:p>"
    "</table:table-cell></table:table-row></table:table></office:spreadsheet></office:body>"
)
UNIT = (
    "<xliff version='1.2'><file source-language='en'><body><trans-unit id='1'><source>{}</source></trans-unit></body>"
    "</file></xliff>"
)
ASS = "[Events]\nFormat: Layer, Start, End, Style, Text\nDialogue: 0,0:00:01.00,0:00:03.00,D,"
TTML = "<tt xmlns='http://www.w3.org/ns/ttml'><body><div><p begin='0s' end='1s'>{}</p></div></body></tt>"

Make = Callable[[str], str | bytes]
GRAMMARS: dict[str, tuple[list[str], Make]] = {
    "text": (_TEXT + _LINES, str),
    "markdown": (_TEXT + _LINES + _MARKDOWN, str),
    "html": (_TEXT + _TAGS + _HTML, str),
    "srt": (_TEXT + _LINES + _TAGS + _CUES, lambda body: f"1\n00:00:01,000 --> 00:00:02,000\n{body}"),
    "vtt": (_TEXT + _LINES + _TAGS + _CUES, lambda body: f"WEBVTT\n\n00:01.000 --> 00:02.000\n{body}"),
    "ass": (_TEXT + _LINES + _CUES, lambda body: ASS + body),
    "sbv": (_TEXT + _LINES + ["[br]"], lambda body: f"0:00:01.000,0:00:02.000\n{body}"),
    "lrc": (_TEXT + _LINES + ["[00:01.00]", "<00:01.00>", "[", "<"], lambda body: f"[00:01.00]{body}"),
    "ttml": (["a ", "<span>", "</span>", "<br/>", "&amp;", "<!--a-->", "<span begin='1s'>"], TTML.format),
    "docx": (_WORD, lambda body: word_document(f"<w:p>{body}</w:p>")),
    "odt": (_ODF, lambda body: open_document(f"<text:p>{body}</text:p>")),
    "po": (_TEXT + _ICU + ["\\n", "\\"], lambda body: f'msgid "{body}"\nmsgstr ""\n'),
    "xliff": ([*_XLIFF, "{n, plural, one {", "}"], UNIT.format),
    "json": (_TEXT + _ICU, lambda body: json.dumps({"a": body})),
    "xhtml": (["a ", "<b>", "</b>", "<br/>", "&amp;", "<!--a-->", "<p>b</p>"], "<html><body>{}</body></html>".format),
    "properties": ([*_TEXT, *_ICU, "\\", "\\u00e9", "\n", "a=b\n", "  "], lambda body: f"a={body}"),
    "strings": ([*_TEXT, *_ICU, "\\n", '";\n"a" = "', "/*", "*/", "//"], lambda body: f'"a" = "{body}";\n'),
    "resx": (["a ", "&amp;", "{0}", "<!--a-->"], "<root><data name='a'><value>{}</value></data></root>".format),
    "fluent": (
        [*_TEXT, *_ICU, "\n    ", "{ $n ->", "\n[one] ", "\n*[other] ", "\nb = ", "\n.c = ", '"', "{ $a }", "\r\n"],
        lambda body: f"a = {body}",
    ),
    "rst": (
        [
            *_TEXT,
            *_LINES,
            *_MARKDOWN,
            "``",
            "::",
            ":ref:`",
            ".. note:: ",
            ".. ",
            "====",
            "   ",
            "|a|",
            "_ ",
            "`_",
            "a:",
        ],
        str,
    ),
    "asciidoc": (
        [
            *_TEXT,
            *_LINES,
            *_MARKDOWN,
            "==",
            "|===\n",
            "----\n",
            "link:",
            "<<",
            ">>",
            "{a}",
            "footnote:[",
            "((",
            "::",
            "+",
        ],
        str,
    ),
    "latex": (
        [*_TEXT, *_LINES, "\\a{", "}", "$", "\\[", "\\footnote{", "%", "\\begin{a}", "\\end{a}", "~", "&", '\\"a', "["],
        lambda body: f"\\begin{{document}}{body}",
    ),
    "pdf": (
        _TEXT,
        lambda body: pdf(
            [body[at : at + 60].encode("latin-1", "replace").decode("latin-1") for at in range(0, len(body), 60)]
        ),
    ),
    "rails": ([*_TEXT, *_ICU, "\n  b: a", "'", "|", "- ", "[", "&a "], lambda body: f"en:\n  a: {body}\n"),
    "odp": (
        _ODF,
        lambda body: packed({"content.xml": part("content", PRESENTATION.format(body))}, f"{ODF}presentation"),
    ),
    "ods": (_ODF, lambda body: packed({"content.xml": part("content", SPREADSHEET.format(body))}, f"{ODF}spreadsheet")),
    "pptx": (_SLIDE, lambda body: presentation(f"<p:sp><p:txBody><a:p>{body}</a:p></p:txBody></p:sp>")),
    "xlsx": (["<si><t>a dog</t></si>", "<si><r><t>a</t></r><r><t> b</t></r></si>"], workbook),
    "epub": (["a ", "<b>", "</b>", "<br/>", "&amp;", "<p>b</p>"], book),
}


def read_and_write(format: str, content: str | bytes) -> None:
    with suppress(DragomanError):  # a document that is not valid is refused in linear time, too
        translate_document(StandIn(upper, longest=200), content, format=format)  # type: ignore[arg-type]


def repeated(format: str, start: str, piece: str, end: str) -> Callable[[int], None]:
    """Return a function that reads and writes a document of a length, in which a piece is repeated."""
    make = GRAMMARS[format][1]
    return lambda length: read_and_write(format, make(start + piece * (length // len(piece)) + end))


def nested(format: str, opening: str, closing: str) -> Callable[[int], None]:
    make, size = GRAMMARS[format][1], len(opening + closing)
    return lambda length: read_and_write(format, make(opening * (length // size) + "a" + closing * (length // size)))


def documents(format: str, count: int) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Yield each piece repeated, and `count` random pairs of pieces in each arrangement, with a description."""
    pieces = GRAMMARS[format][0]
    draw = Random(format)
    for piece in pieces:
        yield f"{piece!r} repeated", repeated(format, "", piece, "")
    for _ in range(count):
        one, two, *end = (draw.choice(pieces) for _ in range(4))
        three = "".join(end)
        yield f"{one!r} and {two!r} alternating", repeated(format, "", one + two, three)
        yield f"{one!r}, then {two!r} repeated, then {three!r}", repeated(format, one, two, three)
        yield f"{one!r} before {two!r}, nested", nested(format, one, two)


def test_every_format_is_tested() -> None:
    assert GRAMMARS.keys() == FORMATS.keys()


@pytest.mark.parametrize("format", GRAMMARS)
def test_a_sample_takes_linear_time(format: str) -> None:
    check_linear(repeated(format, "", "".join(GRAMMARS[format][0]), ""), 300)


def test_an_override_with_a_long_name_takes_linear_time() -> None:
    check_linear(repeated("ass", "{\\", "a", "\\b}dog"), 2500)  # took 36 s for 60,000 letters


@pytest.mark.parametrize(
    "run",
    [
        lambda length: count_words("中" + "." * length + "a"),
        lambda length: with_attribute(f"<a{' ' * length}b='c'/>", "d", "e"),
        lambda length: read_and_write("markdown", f"---\ndescription: |\n  a{' ' * length}b\n---\n"),
    ],
    ids=["punctuation", "blanks in a tag", "blanks in front matter"],
)
def test_long_runs_take_linear_time(run: Callable[[int], object]) -> None:
    check_linear(run, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("format", GRAMMARS)
def test_pieces_in_any_arrangement_take_linear_time_and_memory(format: str) -> None:
    failures = []
    for number, (description, run) in enumerate(documents(format, 12)):
        try:
            check_linear(run, 800)
            if number % 5 == 0:
                check_linear_memory(run, 400)
        except AssertionError as error:
            failures.append(f"{description}: {error}")
    assert not failures, "\n".join(failures)
