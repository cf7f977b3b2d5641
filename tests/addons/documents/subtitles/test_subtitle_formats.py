"""SubStation Alpha, SBV, TTML and LRC: the texts that are translated, and everything that stays."""

import re

import pytest
from stand_in_translators import StandIn, Write, backwards, same, upper

from dragoman.addons.documents.document import translate_document
from dragoman.base.errors import DocumentError

pytest.importorskip("sentencex")
pysubs2 = pytest.importorskip("pysubs2")

ASS = """\
[Script Info]
; Script made by hand
Title: The big dog
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, Encoding
Style: Default,Arial,20,&H00FFFFFF,1

[Fonts]
fontname: arial_0.ttf
Dialogue: 0,no text

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,a comment
Dialogue: 0,0:00:01.00,0:00:02.00,Default,Bob,0,0,0,,{\\an8\\pos(1,2)}Hello, {\\i1}old{\\i0} friend,\\Nhow are\\hyou?
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,Fade,{\\p1}m 0 0 l 100 0{\\p0}{\\move(1,2,3,4)}a {\\t(0,1,\\fs20)}dog
Dialogue: 1,0:00:05.00,0:00:06.00,Default,,0,0,0,,{a remark}one {\\c&H0000FF&}red{\\c} dog \\{sic\\}
Dialogue: 1,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\\p1}m 0 0 l 5 {\\bord1} b 1 1
Dialogue: 1,0:00:05.00,0:00:06.00,Default,,0,0,0,,
"""
TRANSLATED = (
    ASS.replace("Hello, {\\i1}old{\\i0} friend,\\Nhow are\\hyou?", "HELLO, {\\i1}OLD{\\i0} FRIEND,\\NHOW ARE\\hYOU?")
    .replace("a {\\t(0,1,\\fs20)}dog", "A {\\t(0,1,\\fs20)}DOG")
    .replace("one {\\c&H0000FF&}red{\\c} dog \\{sic\\}", "ONE {\\c&H0000FF&}RED{\\c} DOG \\{sic\\}")
)  # fmt: skip


def translated(text: str, format: str, write: Write = upper) -> str:
    return translate_document(StandIn(write), text, format=format).text  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_substation(end: str) -> None:
    assert translated(ASS.replace("\n", end), "ass") == TRANSLATED.replace("\n", end)
    assert translated(ASS.replace("\n", end), "ass", same) == ASS.replace("\n", end)


def test_substation_as_pysubs2_reads_it() -> None:
    before, after = (pysubs2.SSAFile.from_string(text) for text in (ASS, translated(ASS, "ass", backwards)))
    assert before.info == after.info and before.styles == after.styles and len(before) == len(after) == 6
    assert [event.as_dict() | {"text": ""} for event in before] == [event.as_dict() | {"text": ""} for event in after]
    for old, new in zip(before, after, strict=True):
        assert sorted(re.findall(r"\{.*?\}", old.text)) == sorted(re.findall(r"\{.*?\}", new.text))
        assert old.text.count("\\N") == new.text.count("\\N") and bool(old.plaintext) == bool(new.plaintext)


def test_overrides_follow_their_words() -> None:
    line = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,"
    for text, expected in (
        ("a {\\b1}red{\\b0} dog", "DOG {\\b1}RED{\\b0} A"),
        ("a {\\b700}red{\\b} dog", "DOG {\\b700}RED{\\b} A"),
        ("a {\\fnArial}red{\\fn} dog", "DOG {\\fnArial}RED{\\fn} A"),
        ("{\\i1}a red dog", "{\\i1}DOG RED A"),
    ):
        assert translated(line + text, "ass", backwards).removeprefix(line) == expected


@pytest.mark.parametrize("dash", ["- ", "– ", "-"])
def test_dashes_of_speakers_in_substation(dash: str) -> None:
    line = f"{dash}A dog.\\N{dash}{{\\i1}}A cat{{\\i0}} sleeps."
    text = f"[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,{line}\n"
    loud = line.replace("A dog", "A DOG").replace("A cat", "A CAT").replace("sleeps", "SLEEPS")
    assert translated(text, "ass") == text.replace(line, loud)


def test_fields_of_substation_in_other_orders(capsys: pytest.CaptureFixture[str]) -> None:
    events = "[Events]\nFormat: Start, End, Name, Text\n"
    line = "Dialogue: 0:00:01.00,0:00:02.00,Bob,a dog, a cat\n"
    assert translated(events + line, "ass") == events + line.replace("a dog, a cat", "A DOG, A CAT")
    first = "[events]\nformat: text, start, style, end\ndialogue: a dog, a cat,0:00:01.00,Red,0:00:02.00\n"
    assert translated(first, "ass") == first.replace("a dog, a cat", "A DOG, A CAT")
    old = "Dialogue: Marked=0,0:00:01.00,0:00:02.00,Default,NTP,0000,0000,0000,!Effect,a dog, a cat"
    assert translated(old, "ass") == old.replace("a dog, a cat", "A DOG, A CAT")
    assert not capsys.readouterr().err
    short = "[Events]\nDialogue: 0,a dog\n" + old.replace("!Effect", "fx")
    assert translated(short, "ass") == short
    told = capsys.readouterr().err
    assert "1 line(s) of dialogue have too few fields" in told and "the first is line 2" in told
    assert "1 line(s) contain generated effects or code" in told and "the first is line 3" in told
    assert translated("no subtitles", "ass") == "no subtitles"
    assert "no line starts with Dialogue:" in capsys.readouterr().err


def test_sentences_of_substation_continue_in_the_next_line_of_the_same_speaker() -> None:
    line = "Dialogue: 0,0:00:0{}.00,0:00:0{}.00,Default,{},0,0,0,,{}"

    def asked(second: str) -> list[str]:
        translator = StandIn(upper)
        text = "\n".join([line.format(1, 2, "Bob", "I want"), line.format(2, 3, second, "{\\i1}to go.")])
        translate_document(translator, text, format="ass")  # type: ignore[arg-type]
        return [text for text, _ in translator.asked]

    assert asked("Bob") == ["I want to go."] and asked("Ann") == ["I want", "to go."]


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("ass", "Dialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,dog", "\\{a\\} \\\u2060N b"),
        ("sbv", "0:00:01.000,0:00:02.000\ndog\n", "{a} \\N b"),
        ("lrc", "[00:01.00]dog\n", "{a} \\N b"),
        ("ttml", '<tt><p begin="1s">dog</p></tt>', "{a} \\N b"),
    ],
)
def test_a_translation_cannot_become_markup(format: str, text: str, expected: str) -> None:
    assert translated(text, format, lambda _: [("{a} \\N\nb", 0)]) == text.replace("dog", expected)


def test_sbv(capsys: pytest.CaptureFixture[str]) -> None:
    text = "0:00:01.000,0:00:02.000\n>> A dog, [br]a cat,\na bird\n\n0:00:02.000,0:00:03.000\nand a horse.\n\nRun!\n"
    assert translated(text, "sbv") == (
        text.replace("A dog, [br]a cat,\na bird", "A DOG,[br]A CAT,\nA BIRD")
        .replace("and a horse.", "AND A HORSE.")
        .replace("Run!", "RUN!")
    )
    assert not capsys.readouterr().err
    assert translated("a dog\n0:00:01,000\n", "sbv") == "a dog\n0:00:01,000\n"
    assert "this file has no subtitles" in capsys.readouterr().err


def test_lyrics(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[ti:A dog]\n[00:01.00][01:09.00]The big <00:02.00>dog <00:03.00>runs\n[00:04.00]\nno time\n"
    assert translated(text, "lrc") == text.replace(
        "The big <00:02.00>dog <00:03.00>runs", "THE BIG <00:02.00>DOG <00:03.00>RUNS"
    )
    assert "RUNS DOG <00:02.00>BIG <00:03.00>THE" in translated(text, "lrc", backwards)
    assert not capsys.readouterr().err
    assert translated("a dog", "lrc") == "a dog" and "no line has a time" in capsys.readouterr().err


TTML = """\
<?xml version="1.0" encoding="UTF-8"?>
<tt:tt xmlns:tt="http://www.w3.org/ns/ttml" xml:lang="en-GB"><tt:head><tt:metadata><t>title</t></tt:metadata></tt:head>
<tt:body><tt:div xml:lang="fr">
 <tt:p begin="00:00:01.000" end="00:00:02.000">
  <!-- remark --><tt:span style="s">A &amp; b</tt:span><tt:br/>a dog</tt:p>
 <tt:p begin="2.5s" end="3s"><tt:span begin="0s">one </tt:span><tt:span begin='1s'>two</tt:span> <tt:span begin="2s" end="3s">three</tt:span></tt:p>
 <tt:p/><tt:p begin="4s"><![CDATA[kept]]></tt:p><tt:p>x <tt:other>y</tt:other></tt:p>
</tt:div></tt:body></tt:tt>
"""  # noqa: E501


def test_timed_text(capsys: pytest.CaptureFixture[str]) -> None:
    expected = TTML.replace('"en-GB"', '"de"').replace("A &amp; b", "A &amp; B").replace("a dog", "A DOG")
    words = ">ONE</tt:span> <tt:span begin='1s'>TWO<"
    expected = expected.replace(">one </tt:span><tt:span begin='1s'>two<", words).replace("three<", "THREE<")
    assert translated(TTML, "ttml") == expected
    assert "2 paragraph(s) with CDATA sections or unusual elements" in capsys.readouterr().err
    moved = translated(TTML, "ttml", backwards)
    assert re.findall("begin=[\"'].*?[\"']", moved) == re.findall("begin=[\"'].*?[\"']", TTML)
    assert moved.count(">THREE<") == moved.count(">TWO<") == moved.count(">ONE<") == 1
    assert moved.index("THREE") < moved.index("TWO") < moved.index("ONE")
    assert translated("<a>x</a>", "ttml") == "<a>x</a>"
    assert "no element is named p" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["no XML", "<tt><p>a</tt>", "<!DOCTYPE tt [<!ENTITY a 'b'>]><tt><p>&a;</p></tt>"])
def test_broken_timed_text_is_an_error(text: str) -> None:
    with pytest.raises(DocumentError, match="the document"):
        translated(text, "ttml")


def test_other_encodings() -> None:
    for text, format in ((ASS, "ass"), (TTML, "ttml"), ("[00:01.00]dög\n", "lrc")):
        data = text.replace("dog", "dög").encode("utf-16")
        done = translate_document(StandIn(upper), data, format=format).content  # type: ignore[arg-type]
        assert done[:2] == data[:2] and "DÖG" in done.decode("utf-16")
