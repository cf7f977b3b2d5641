"""gettext catalogues: polib, an independent reader, verifies what is translated and what is kept."""

from typing import Any

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in_translators import StandIn, Write, backwards, same, upper

from dragoman.addons.documents.document import read_document, translate_document
from dragoman.addons.documents.formats.messages.gettext import GettextFormat
from dragoman.addons.documents.formats.messages.plural_forms import parse_plural_forms, plural_forms_of
from dragoman.base.errors import DataError, DocumentError

pytest.importorskip("sentencex")

HEADER = r"""# A title
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: x 1\n"
"Language: \n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

"""
BODY = r"""#. for translators
#: src/a.c:12
#, c-format
msgctxt "a menu"
msgid "_Open %s"
msgstr ""

msgid "a dog"
msgstr "ein Hund"

#, fuzzy
#| msgid "old"
msgid "a cat"
msgstr "alt"

#: b.c
#, c-format
msgid "one dog"
msgid_plural "%d dogs"
msgstr[0] ""
msgstr[1] ""

msgid ""
"\n"
"a \"tab\"\there\\n\n"
"and more\n"
msgstr ""

#~ msgid "gone"
#~ msgstr ""
"""


def translated(text: str, write: Write = upper, **of_translator: Any) -> str:
    return translate_document(StandIn(write, **of_translator), text, format="po").text  # type: ignore[arg-type]


def entry(text: str, write: Write = upper, **of_translator: Any) -> polib.POEntry:
    """Return the only entry of a catalogue, translated."""
    (found,) = polib.pofile(translated(text, write, **of_translator))
    return found


def test_entries_without_a_translation_are_translated() -> None:
    after = translated(HEADER + BODY)
    assert after == HEADER.replace("Language: ", "Language: de").replace(
        "nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2; plural=(n != 1);"
    ) + BODY.replace('#, c-format\nmsgctxt "a menu"', '#, fuzzy, c-format\nmsgctxt "a menu"').replace(
        '%s"\nmsgstr ""', '%s"\nmsgstr "_OPEN %s"'
    ).replace('#, c-format\nmsgid "one', '#, fuzzy, c-format\nmsgid "one').replace(
        'msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "ONE DOG"\nmsgstr[1] "%d DOGS"'
    ).replace('msgid ""\n"\\n"', '#, fuzzy\nmsgid ""\n"\\n"').replace(
        '"and more\\n"\nmsgstr ""', '"and more\\n"\nmsgstr ""\n"\\n"\n"A \\"TAB\\"\\tHERE\\\\n\\n"\n"AND MORE\\n"'
    )
    before = polib.pofile(HEADER + BODY)
    for one, two in zip(before, polib.pofile(after), strict=True):
        assert (one.msgid, one.msgid_plural, one.msgctxt, one.comment) == (
            (two.msgid, two.msgid_plural, two.msgctxt, two.comment)
        )
        assert two.msgstr or two.msgstr_plural or two.obsolete


def test_line_ends_and_a_missing_last_one() -> None:
    text = (HEADER + BODY).replace("\n", "\r\n")
    assert translated(text) == translated(HEADER + BODY).replace("\n", "\r\n")
    assert translated('msgid "a dog"\nmsgstr ""').endswith('\nmsgid "a dog"\nmsgstr "A DOG"')
    assert translated("") == ""
    assert translated(HEADER) == HEADER


def test_a_translated_catalogue_is_unchanged() -> None:
    done = HEADER.replace("Language: ", "Language: de_AT") + 'msgid "a dog"\nmsgstr "ein Hund"\n'
    assert translated(done) == done
    once = translated(HEADER + BODY)
    assert translated(once, backwards) == once


def test_control_characters() -> None:
    assert '\nmsgstr "A\\000\\033\\aB\\\\"' in translated('msgid "a\\0\\x1b\\ab\\\\"\nmsgstr ""\n')


@pytest.mark.parametrize(
    ("target", "declared", "expected"),
    [
        ("de", "", ["ONE DOG", "%d DOGS"]),
        ("ja", "", ["%d DOGS"]),
        ("ru", "", ["%d DOGS", "%d DOGS", "%d DOGS"]),  # the first form is also for 21
        ("sl", "", ["%d DOGS", "%d DOGS", "%d DOGS", "%d DOGS"]),  # the form of 1 is also for 101
        ("pl", "", ["ONE DOG", "%d DOGS", "%d DOGS"]),
        ("ar", "", ["%d DOGS", "ONE DOG", *["%d DOGS"] * 4]),
        ("de", "nplurals=1; plural=0;", ["%d DOGS"]),
        ("de", "nplurals=2; plural=__import__('os');", ["ONE DOG", "%d DOGS"]),
        ("tlh", "", ["ONE DOG", "%d DOGS"]),
        (None, "", ["ONE DOG", "%d DOGS"]),
    ],
)
def test_plural_forms_of_the_target_language(target: str | None, declared: str, expected: list[str]) -> None:
    header = HEADER.replace("nplurals=INTEGER; plural=EXPRESSION;", declared) if declared else HEADER
    text = header + 'msgid "one dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    after = polib.pofile(translated(text, target=target))
    found = after[0].msgstr_plural
    assert [found[number] for number in sorted(found)] == expected
    if target not in (None, "tlh"):
        forms = parse_plural_forms(after.metadata["Plural-Forms"])
        assert forms is not None and forms.count == len(expected)


@pytest.mark.parametrize("target", ["es", "fr", "it", "pt", "pt_BR"])
def test_forms_that_differ_between_versions_of_babel(target: str) -> None:
    """Newer versions follow Unicode's CLDR, where these languages have a form of their own for whole millions."""
    text = HEADER + 'msgid "one dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    after = polib.pofile(translated(text, target=target))
    forms = parse_plural_forms(after.metadata["Plural-Forms"])
    assert forms is not None and forms.count in (2, 3)
    assert after[0].msgstr_plural == {0: "ONE DOG"} | dict.fromkeys(range(1, forms.count), "%d DOGS")


def test_plural_forms_of_a_catalogue_without_a_header() -> None:
    found = entry('msgid "one dog"\nmsgid_plural "two dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n', target="cs")
    assert found.msgstr_plural == {0: "ONE DOG", 1: "TWO DOGS", 2: "TWO DOGS"}
    assert plural_forms_of("zz") is None and parse_plural_forms("nplurals=2; plural=n;") is None


def test_arguments_in_another_order_are_numbered() -> None:
    text = '#, c-format\nmsgid "%s has %d dogs (%.2f)"\nmsgstr ""\n'
    assert entry(text, backwards).msgstr == "(%3$.2f) DOGS %2$d HAS %1$s"
    assert entry(text, upper).msgstr == "%s HAS %d DOGS (%.2f)"
    named = '#, python-format\nmsgid "%(a)s has %(b)d dogs"\nmsgstr ""\n'
    assert entry(named, backwards).msgstr == "DOGS %(b)d HAS %(a)s"


def test_placeholders_are_kept() -> None:
    text = "it took %.3fs for %r: 100%% of %5d, %ld, {x!r}, ${n} and <PATH>, see --help"
    assert entry(f'#, python-format\nmsgid "{text}"\nmsgstr ""\n').msgstr == (
        "IT TOOK %.3fS FOR %r: 100%% OF %5d, %ld, {x!r}, ${n} AND <PATH>, SEE --help"
    )
    one, many = "one page", "${n} pages"
    template = f'msgid "{one}"\nmsgid_plural "{many}"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert set(entry(template, target="ru").msgstr_plural.values()) == {"${n} PAGES"}


@pytest.mark.parametrize("text", ["%s has %d dogs", "%1$s has %d dogs", "%*d dogs %s"])
def test_wrong_arguments_leave_a_message_untranslated(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = f'#, python-format\nmsgid "{text}"\nmsgstr ""\n'
    assert translated(given, backwards) == given
    assert "1 message(s) remain untranslated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Save _As", "_AS SAVE"),
        ("E_xit", "_EXIT"),
        ("Oxen, hens, &amp; a cow", "COW A &amp; HENS, OXEN,"),
        ("Select &all", "&ALL SELECT"),
        ("Big ta_ble:", "_TABLE: BIG"),
        ("Search & find", "FIND & SEARCH"),
        ("a_b c_d", "C_D A_B"),
        ("``a`` and :ref:`x` or `z`", "`z` OR :ref:`x` AND ``a``"),
        ("cannot open `%s'", "`%s' OPEN CANNOT"),
    ],
)
def test_keys_of_menus_and_code(text: str, expected: str) -> None:
    given = f'msgid "{text}"\nmsgstr ""\n'
    assert entry(given, backwards).msgstr == expected
    assert entry(given, same).msgstr == text


def test_a_catalogue_of_the_source_language_is_translated_itself() -> None:
    header = HEADER.replace("Language: ", "Language: en_GB")
    after = polib.pofile(translated(f'{header}msgid "button.open"\nmsgstr "Open it"\n\nmsgid "b"\nmsgstr ""\n'))
    assert [each.msgstr for each in after] == ["OPEN IT", "B"] and after.metadata["Language"] == "de"


def test_a_third_language_is_refused() -> None:
    header = HEADER.replace("Language: ", "Language: fr")
    with pytest.raises(DocumentError, match=r"in the language 'fr'.*into 'de': start from the template"):
        translated(f'{header}msgid "a"\nmsgstr "b"\n')
    empty = polib.pofile(translated(f'{header}msgid "a"\nmsgstr ""\n'))
    assert empty.metadata["Language"] == "de" and empty[0].msgstr == "A"
    assert translated(f'{header}msgid "a"\nmsgstr "b"\n', target=None)


def test_long_lines_are_wrapped_as_in_the_file() -> None:
    words = "a dog runs " * 20
    wrapped = translated(f'{HEADER}msgid "x"\nmsgstr ""\n\nmsgid "{words}end"\nmsgstr ""\n')
    assert 'msgstr "A DOG' in wrapped  # a line that is long shows that lines are not wrapped
    pieces = "".join(f'"{words[:66]}"\n' for _ in range(4))
    after = translated(f'{HEADER}msgid ""\n{pieces}"end"\nmsgstr ""\n')
    assert max(map(len, after.splitlines())) <= 80 and polib.pofile(after)[0].msgstr == (words[:66] * 4 + "end").upper()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('msgid "a"\nmsgstr "b\n', "line 2: not a line of a gettext catalogue"),
        ("a dog\n", "line 1: not a line"),
        ('msgstr "a"\n', "line 1: msgstr is not allowed here"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', "line 2: msgid is not allowed here"),
        ('\nmsgid "a"\n', "line 2: this message has no msgstr"),
        ('"a"\n', "line 1: not a line"),
        ('{"a": "b"}', "line 1: not a line"),
    ],
)
def test_syntax_errors(text: str, error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translated(text)


def test_the_declared_encoding(tmp_path: Any) -> None:
    format = GettextFormat()
    text = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "café"\nmsgstr ""\n'
    data = text.encode("latin-1")
    assert format.decode(data, "a.po", "stop").content == text
    (tmp_path / "a.po").write_bytes(data)
    assert read_document(tmp_path / "a.po", "po").content == text
    assert format.encode(translated(text)) == translated(text).encode("latin-1")
    russian = translated(text).replace("CAFÉ", "КАФЕ")
    assert format.encode(russian) == russian.replace("ISO-8859-1", "UTF-8").encode()
    with pytest.raises(DataError, match="a.po: its header declares the unknown charset 'klingon'"):
        format.decode(text.replace("ISO-8859-1", "klingon").encode(), "a.po", "stop")
    with pytest.raises(DataError, match="a.po"):
        format.decode(text.replace("ISO-8859-1", "ascii").encode("latin-1"), "a.po", "stop")
    template = HEADER.replace("UTF-8", "CHARSET") + 'msgid "é"\nmsgstr ""\n'
    assert format.decode(template.encode(), "a.pot", "stop").content == template


TEXTS = st.lists(
    st.sampled_from(["a dog ", "\\", '"', "\n", "\t", "%s", "<b>x</b>", "é", "…", "#", " | ", "{x}", "\r", "_A", "&"])
).map("".join)


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(TEXTS.filter(bool), TEXTS), max_size=4, unique_by=lambda pair: pair[0]),
    width=st.sampled_from([0, 40, 78]),
)
def test_polib_reads_what_was_written(pairs: list[tuple[str, str]], width: int) -> None:
    catalogue = polib.POFile(wrapwidth=width)
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "de"}
    for source, target in pairs:
        catalogue.append(polib.POEntry(msgid=source, msgstr=target, occurrences=[("a.c", "1")]))
    after = polib.pofile(translated(str(catalogue), same))
    open_sources = {source for source, target in pairs if not target or (not target.strip() and source.strip())}
    expected = {source: source if source in open_sources else target for source, target in pairs}
    assert {each.msgid: each.msgstr for each in after} == expected
    assert {each.msgid for each in after if each.fuzzy} == open_sources
    assert len(polib.pofile(translated(str(catalogue), backwards))) == len(pairs)


def test_missing_plural_forms_are_translated_and_the_others_stay() -> None:
    header = 'msgid ""\nmsgstr "Language: pl\\nPlural-Forms: nplurals=3; plural=n==1?0:n%10==2?1:2;\\n"\n\n'
    entries = (
        'msgid "a cow"\nmsgid_plural "%d cows"\nmsgstr[0] "krowa"\nmsgstr[1] ""\nmsgstr[2] "krów"\n\n'
        'msgid "a hen"\nmsgid_plural "%d hens"\nmsgstr[0] ""\nmsgstr[1] "kury"\n\n'
        'msgid "a cat"\nmsgid_plural "%d cats"\nmsgstr[0] "kot"\nmsgstr[1] "koty"\nmsgstr[2] "kotów"\n'
    )
    after = {each.msgid: each for each in polib.pofile(translated(header + entries, target="pl"))}
    assert after["a cow"].msgstr_plural == {0: "krowa", 1: "%d COWS", 2: "krów"} and after["a cow"].fuzzy
    assert after["a hen"].msgstr_plural == {0: "A HEN", 1: "kury", 2: "%d HENS"} and after["a hen"].fuzzy
    assert after["a cat"].msgstr_plural == {0: "kot", 1: "koty", 2: "kotów"} and not after["a cat"].fuzzy
