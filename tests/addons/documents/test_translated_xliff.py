"""XLIFF: segments get targets with their inline elements; everything else is kept byte for byte."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in_translators import StandIn, Write, anyhow, backwards, same, upper

from dragoman.addons.documents.document import read_document, translate_document
from dragoman.addons.documents.formats.xliff.xliff import XliffFormat
from dragoman.base.errors import DataError, DocumentError

pytest.importorskip("sentencex")

OLD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a > note -->
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file source-language="en-US" datatype='plaintext' original="a&amp;b.html">
    <body>
{}
    </body>
  </file>
</xliff>
"""
NEW = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
  <file id="f">
    <unit id="u">
{}
    </unit>
  </file>
</xliff>
"""
REVIEW = ' state="needs-review-translation"'


def translated(text: str, write: Write = upper, **of_translator: Any) -> str:
    return translate_document(StandIn(write, **of_translator), text, format="xliff").text  # type: ignore[arg-type]


def target(source: str, write: Write = upper, template: str = OLD) -> str:
    """Return the content of the target of a segment."""
    unit = f"<trans-unit id='1'><source>{source}</source></trans-unit>"
    after = translated(
        template.format(unit if template is OLD else f"<segment><source>{source}</source></segment>"), write
    )
    ElementTree.fromstring(after)
    (found,) = re.findall("<target[^>]*>(.*)</target>", after, re.DOTALL)
    return str(found)


def test_targets_of_version_1() -> None:
    units = """      <trans-unit id="a" xml:space="preserve">
        <source>A  dog &amp; <g id="1">a man</g> &lt;b&gt;</source>
        <note>a dog</note>
      </trans-unit>
      <trans-unit id="b">
        <source>a cat</source>
        <target>eine Katze</target>
        <alt-trans><source>a cat</source><target/></alt-trans>
      </trans-unit>
      <group translate="no"><trans-unit id="c"><source>kept</source></trans-unit></group>
      <trans-unit id="d"><source>a horse</source><target state="new" x:y="z" xmlns:x="u">a horse</target></trans-unit>
      <trans-unit id="e"><source>a mouse</source><target /></trans-unit>"""
    expected = (
        units.replace(
            "&lt;b&gt;</source>",
            f'&lt;b&gt;</source>\n        <target{REVIEW}>A DOG &amp; <g id="1">A MAN</g> &lt;b&gt;</target>',
        )
        .replace('<target state="new" x:y="z" xmlns:x="u">a horse', f'<target{REVIEW} x:y="z" xmlns:x="u">A HORSE')
        .replace("<target /></trans-unit>", f"<target{REVIEW}>A MOUSE</target></trans-unit>")
    )
    assert translated(OLD.format(units)) == OLD.format(expected).replace('.html"', '.html" target-language="de"')


def test_targets_of_version_2() -> None:
    units = """      <segment id="s" canResegment="no">
        <source>A <pc id="1">big</pc> dog</source>
      </segment>
      <ignorable><source> </source></ignorable>
      <segment state="final"><source>a cat</source><target>eine Katze</target></segment>
      <segment state="initial"><source>a mouse</source><target>a mouse</target></segment>
      <segment><source>a horse</source><target>ein Pferd</target></segment>"""
    expected = (
        units.replace('Resegment="no"', 'Resegment="no" state="translated"')
        .replace("dog</source>", 'dog</source>\n        <target>A <pc id="1">BIG</pc> DOG</target>')
        .replace(
            'state="initial"><source>a mouse</source><target>a mouse',
            'state="translated"><source>a mouse</source><target>A MOUSE',
        )
    )
    assert translated(NEW.format(units)) == NEW.format(expected).replace('srcLang="en"', 'srcLang="en" trgLang="de"')


def test_a_translated_file_is_unchanged() -> None:
    segment = "<source>a dog</source>"
    for text in (OLD.format(f"<trans-unit id='1'>{segment}</trans-unit>"), NEW.format(f"<segment>{segment}</segment>")):
        once = translated(text)
        assert once != text and translated(once, backwards) == once


def test_prefixes_and_line_ends() -> None:
    text = OLD.format("<trans-unit id='1'>\n <source>a dog</source>\n</trans-unit>").replace("\n", "\r\n")
    prefixed = re.sub(r"<(/?)(?=[a-z])", r"<\1x:", text).replace("xmlns=", "xmlns:x=")
    found = translated(prefixed)
    assert f"<x:source>a dog</x:source>\r\n <x:target{REVIEW}>A DOG</x:target>\r\n</x:trans-unit>" in found
    assert (
        found.replace(f"\r\n <x:target{REVIEW}>A DOG</x:target>", "").replace(' target-language="de"', "") == prefixed
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            'See <x id="1"/>the <bpt id="2">&lt;b></bpt>big dog<ept id="2">&lt;/b></ept>',
            '<bpt id="2">&lt;b></bpt>DOG BIG<ept id="2">&lt;/b></ept>',
        ),
        (
            '<bx id="1" rid="a"/>one man<ex id="9" rid="a"/> runs',
            'RUNS <bx id="1" rid="a"/>MAN ONE<ex id="9" rid="a"/>',
        ),
        ('one <mrk mtype="protected">Dog</mrk> runs', 'RUNS <mrk mtype="protected">Dog</mrk> ONE'),
        ('it <mrk mtype="term">big dog</mrk> runs', 'RUNS <mrk mtype="term">DOG BIG</mrk> IT'),
        ('<x id="START_BOLD"/>big<x id="CLOSE_BOLD"/> dog', 'DOG <x id="START_BOLD"/>BIG<x id="CLOSE_BOLD"/>'),
        ('Hi <x id="INTERPOLATION" equiv-text="{{n}}"/> you', 'YOU <x id="INTERPOLATION" equiv-text="{{n}}"/> HI'),
        ("has <ph id='1'>%d</ph> dogs", "DOGS <ph id='1'>%d</ph> HAS"),
        ("%s has {{x}} dogs", "DOGS {{x}} HAS %s"),
        ("a &lt;b&gt;big&lt;/b&gt; dog", "DOG &lt;b&gt;BIG&lt;/b&gt; A"),
        ("R&amp;D <![CDATA[a <b> & c]]>", "C &amp; &lt;b> A R&amp;D"),
        ('x<x id="1" ctype="lb"/>big dog', 'X<x id="1" ctype="lb"/>DOG BIG'),
        ("<!-- c -->big dog<?pi?>", "DOG BIG"),
        ("{N, plural, one {big dog} other {<x id='1'/>big dogs}}", "{N, plural, one {DOG BIG} other {<x id='1'/>"),
    ],
)
def test_inline_elements_of_version_1(source: str, expected: str) -> None:
    found = target(source, backwards)
    assert expected in found
    assert sorted(re.findall("<[a-z]+|id=.[^\"']*", found)) == sorted(
        re.findall("<[a-z]+|id=.[^\"']*", re.sub(r"<!.*?[\[>]", "", source.replace("<b>", "")))
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<sc id="1"/>one man<ec startRef="1"/> runs', 'RUNS <sc id="1"/>MAN ONE<ec startRef="1"/>'),
        (
            'Hi <ph id="0" equiv="INTERPOLATION" disp="{{n}}"/> you',
            'YOU <ph id="0" equiv="INTERPOLATION" disp="{{n}}"/> HI',
        ),
        (
            '<pc id="1" equivStart="START_A"><pc id="2">big</pc> dog</pc> x',
            'X <pc id="1" equivStart="START_A">DOG <pc id="2">BIG',
        ),
        ('one <mrk id="m" translate="no">Dog</mrk> x', 'X <mrk id="m" translate="no">Dog</mrk> ONE'),
        ('a<cp hex="0001"/> big', 'BIG A<cp hex="0001"/>'),
        ('<sm id="1" type="term"/>big dog<em startRef="1"/> x', 'X <sm id="1" type="term"/>DOG BIG<em startRef="1"/>'),
    ],
)
def test_inline_elements_of_version_2(source: str, expected: str) -> None:
    assert expected in target(source, backwards, NEW)


def test_divided_sources() -> None:
    divided = '<mrk mid="0" mtype="seg">A dog.</mrk> <mrk mid="1" mtype="seg">Two men.</mrk>'
    unit = f"<trans-unit id='1'><source>A dog. Two men.</source><seg-source>{divided}</seg-source></trans-unit>"
    expected = divided.replace("A dog", "A DOG").replace("Two men", "TWO MEN")
    assert f"</seg-source><target{REVIEW}>{expected}</target>" in translated(OLD.format(unit))


def test_segments_without_words_and_with_invalid_branches(capsys: pytest.CaptureFixture[str]) -> None:
    assert target("100 <x id='1'/>") == "100 <x id='1'/>"
    assert target("") == ""
    assert (
        target("You have {n, plural, one {a dog} other {# dogs}}") == "You have {n, plural, one {a dog} other {# dogs}}"
    )
    assert "1 segment(s) are copied" in capsys.readouterr().err


def test_languages() -> None:
    unit = "<trans-unit id='1'><source>a</source></trans-unit>"
    done = "<trans-unit id='2'><source>a</source><target>b</target></trans-unit>"
    french = OLD.format(unit).replace("<file ", '<file target-language="fr" ')
    assert '<file target-language="de" ' in translated(french)
    assert '<file target-language="pt-BR" ' in translated(french, target="pt_BR")
    austrian = OLD.format(unit + done).replace("<file ", '<file target-language="de-AT" ')
    assert '<file target-language="de-AT" ' in translated(austrian)
    with pytest.raises(DocumentError, match=r"translations are in the language 'fr' \(target-language\)"):
        translated(OLD.format(unit + done).replace("<file ", '<file target-language="fr" '))
    with pytest.raises(DocumentError, match=r"texts are in the language 'en-US' \(source-language\), and not in 'fr'"):
        translated(OLD.format(unit), language="fr")
    assert translated(OLD.format(done)) == OLD.format(done)
    copied = OLD.format(done).replace("<file ", '<file target-language="en" ')
    assert f"<target{REVIEW}>A</target>" in translated(copied) and '<file target-language="de" ' in translated(copied)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<xliff version='1.2'><file>", "line 1, column 28: invalid XML: no element found"),
        ("<a/>", "not XLIFF 1.x or 2.x: its root is <a>"),
        ("<xliff version='9'/>", "its root is <xliff>, version '9'"),
        ("<xliff version='2.0'/>", "no <file> element"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff version="1.2">&a;</xliff>', "has a document type"),
        ("<xliff version='1.2'>&a;</xliff>", "undefined entity"),
        ("<xliff version='1.2'>" + "<g>" * 300, "nested more than 200 deep"),
        ("a dog", "line 1, column 1"),
        ("", "no element found"),
    ],
)
def test_invalid_files(text: str, error: str) -> None:
    with pytest.raises(DocumentError, match=error):
        translated(text)


def test_declared_encodings(tmp_path: Path) -> None:
    format = XliffFormat()
    text = OLD.replace("UTF-8", "ISO-8859-1").format("<trans-unit id='1'><source>café</source></trans-unit>")
    (tmp_path / "a.xlf").write_bytes(text.encode("latin-1"))
    assert read_document(tmp_path / "a.xlf", "xliff").content == text
    assert "CAFÉ" in translated(text)
    assert format.encode(text.replace("café", "кот é")) == text.replace("café", "&#1082;&#1086;&#1090; é").encode(
        "latin-1"
    )
    with pytest.raises(DataError, match="a.xlf: it declares the unknown encoding 'x-y'"):
        format.decode(text.replace("ISO-8859-1", "x-y").encode(), "a.xlf", "stop")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8", "us-ascii"])
def test_files_are_written_in_their_encoding(encoding: str) -> None:
    unit = "<trans-unit id='1'><source>a dog&#228;</source></trans-unit>"
    text = OLD.replace("UTF-8", encoding.removesuffix("-sig")).format(unit)
    file = XliffFormat().decode(text.encode(encoding), "a.xlf")
    written = file.encode(translated(file.content))
    root = ElementTree.fromstring(written)
    assert root.findtext(".//{*}target") == "A DOGÄ"
    assert written.decode(encoding).startswith('<?xml version="1.0" encoding=')


SOURCE = st.recursive(
    st.sampled_from(
        ["a dog ", "Two men. ", "&amp;", "<x id='X'/>", " ", "&#65;", "{{x}}", "<ph id='P'>%s</ph>", "é", "&lt;b>"]
    ),
    lambda inner: st.builds("<g id='G'>{}</g>".format, inner) | st.builds("{}{}".format, inner, inner),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(source=SOURCE, write=st.sampled_from([upper, backwards, anyhow]), aligns=st.booleans())
def test_inline_elements_stay_balanced(source: str, write: Write, aligns: bool) -> None:
    text = OLD.format(f"<trans-unit id='1'><source>{source}</source></trans-unit>")
    unit = ElementTree.fromstring(translated(text, write, aligns=aligns)).find(".//{*}trans-unit")
    assert unit is not None
    before, after = unit.find("{*}source"), unit.find("{*}target")
    assert before is not None and after is not None
    assert sorted(each.tag for each in before.iter()) == sorted(
        each.tag.replace("target", "source") for each in after.iter()
    )
    same_target = ElementTree.fromstring(translated(text, same)).find(".//{*}target")
    assert same_target is not None
    assert (
        ElementTree.tostring(same_target)[40:].partition(b">")[2].rpartition(b"</")[0]
        == (ElementTree.tostring(before)[40:].partition(b">")[2].rpartition(b"</")[0])
    )


@pytest.mark.parametrize(
    ("empty", "full"),
    [
        ('<g id="1"/>', '<g id="1">A COW</g>'),
        ('<g id="1"> <x id="2"/> </g>', '<g id="1">A COW</g>'),
        ('<bpt id="3">&lt;b&gt;</bpt><ept id="3">&lt;/b&gt;</ept>', '<g id="1">A COW</g>'),
        ('<ph id="3">a<sub>KUH</sub></ph>', '<ph id="3">a<sub>KUH</sub></ph>'),
        ('<g id="1">Kuh</g>', '<g id="1">Kuh</g>'),
    ],
)
def test_targets_without_words_are_no_translations(empty: str, full: str) -> None:
    source = '<source><g id="1">a cow</g></source>'
    after = translated(OLD.format(f"<trans-unit id='1'>{source}<target>{empty}</target></trans-unit>"))
    state = "" if empty == full else REVIEW
    assert f"{source}<target{state}>{full}</target>" in after


def test_only_the_empty_segments_of_a_target_are_translated() -> None:
    source = '<source>A cow. A hen. 7</source><seg-source><mrk mtype="seg" mid="a">A cow.</mrk> <g id="1"><mrk mid="b" '
    source += 'mtype="seg">A <x id="2"/>hen.</mrk></g> <mrk mtype="seg" mid="c"/></seg-source>'
    target = '<target state="x"><mrk mtype="seg" mid="a">Kuh.</mrk> <g id="1"><mrk mid="b" mtype="seg"{}</g> '
    target += '<mrk mtype="seg" mid="c"/></target>'
    for empty in (" />", "></mrk>", "><x id='2'/></mrk>"):
        after = translated(OLD.format(f"<trans-unit id='1'>{source}{target.format(empty)}</trans-unit>"))
        full = target.format('>A <x id="2"/>HEN.</mrk>').replace('"x"', '"needs-review-translation"')
        assert f"{source}{full}</trans-unit>" in after


def test_segments_that_a_target_lacks_are_added() -> None:
    marks = {number: f'<mrk mtype="seg" mid="{number}">{{}}</mrk>' for number in "abc"}
    source = f"<source>x</source><seg-source>{' '.join(marks.values())}</seg-source>".format(
        "A cow.", "A hen.", "A cat."
    )
    for present in ("a", "b", "c", "ac"):
        words = {"a": "A COW.", "b": "A HEN.", "c": "A CAT."} | dict.fromkeys(present, "Da.")
        before = " ".join(marks[number].format("Da.") for number in present)
        after = translated(OLD.format(f"<trans-unit id='1'>{source}<target>{before}</target></trans-unit>"))
        expected = " ".join(mark.format(words[number]) for number, mark in marks.items())
        assert f"{source}<target{REVIEW}>{expected}</target>" in after


@pytest.mark.parametrize(
    ("attribute", "definition"),
    [("", '<seg-defs><seg id="1" locked="true"/></seg-defs>'), (' xmlns:m="MQXliff" m:locked="locked"', "")],
)
def test_locked_segments_are_kept(attribute: str, definition: str) -> None:
    source = '<source>A cow.</source><seg-source><mrk mtype="seg" mid="{0}">A cow.</mrk></seg-source>'
    target = '<target><mrk mtype="seg" mid="{0}"/></target>'
    unit = f"<trans-unit id='1'{{1}}>{source}{target}{{2}}</trans-unit>"
    locked, free = unit.format(1, attribute, definition), unit.format(2, "", "")
    after = translated(OLD.format(locked + free))
    assert locked in after and '<mrk mtype="seg" mid="2">A COW.</mrk></target>' in after


def test_an_empty_source_keeps_its_target() -> None:
    unit = '<trans-unit id="1"><source/><target state="final"/></trans-unit>'
    assert unit in translated(OLD.format(unit + "<trans-unit id='2'><source>A cow</source></trans-unit>"))


def test_tags_of_angular_are_pairs_whatever_stands_for_them() -> None:
    pair = '<x id="START_TAG_A" equiv-text="&lt;a&gt;"/>', '<x id="CLOSE_TAG_A" equiv-text="more."/>'
    for content in ("", "big"):
        unit = f"<trans-unit id='1'><source>Cows {pair[0]}{content}{pair[1]} more</source></trans-unit>"
        after = translated(OLD.format(unit), backwards).partition("<target")[2]
        assert after.index(pair[0]) < after.index(pair[1])
