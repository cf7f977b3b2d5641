"""Subtitles as documents: the translated parts of known files, line wrapping, and reports on broken ones."""

import pytest
from stand_in_translators import StandIn, Write, backwards, same, upper

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.formats.subtitles.webvtt import WebVtt
from dragoman.addons.documents.formats.subtitles.wrapping import wrap_like

pytest.importorskip("sentencex")

SRT = """\ufeff7
00:00:01,000 --> 00:00:02,000 X1:1 X2:2
{\\an8}<i>Hi</i> there, my
dear <font color="red">friend</font> <3.

8
00:00:03,000  -->  00:00:04,500
- Who is it?
- Me.
9
00:00:05,000 --> 00:00:06,000
♪ la la la ♪
[door opens]
Come in
now!

2012

10
00:00:05,500 --> 00:00:06,500

""".replace("\n", "\r\n")

VTT = """WEBVTT - a title

NOTE a remark

STYLE
::cue { color: red }

REGION
id:fred

intro
00:01.000 --> 00:02.000 align:start position:10%
<v Bob>Hello <c.loud>there</c> &amp; you
all<00:01.500> &lt;my&gt; friends.
<v Ann>Hi.

01:00:03.000 --> 01:00:04.000
one two
"""


def translated(text: str, format: str, write: Write = upper) -> str:
    return translate_document(StandIn(write), text, format=format).text  # type: ignore[arg-type]


def test_subrip() -> None:
    assert translated(SRT, "srt") == (
        SRT.replace("Hi</i> there, my\r\ndear ", "HI</i> THERE, MY\r\nDEAR ")
        .replace("friend<", "FRIEND<")
        .replace("Who is it", "WHO IS IT")
        .replace("Me.", "ME.")
        .replace("la la la", "LA LA LA")
        .replace("door opens", "DOOR OPENS")
        .replace("Come in\r\nnow", "COME IN\r\nNOW")
    )


@pytest.mark.parametrize(
    "text",
    [
        "00:00:01,000 --> 00:00:02,000\nA dog.\n\n00:00:02,000 --> 00:00:03,000\nTwo dogs.\n",
        "9\n00:00:01.000 --> 00:00:02.000\nA dog.\n\n3\n0:0:2 --> 0:0:3\nTwo dogs.\n",
        "1\n00:00:01,000 --> 00:00:02,000 X1:1 X2:2 Y1:3 Y2:4\nA dog.\n\n\nTwo dogs.\n",
        "1\r\n00:00:01:000-->00:00:02:000\r\nA dog.\r\n2\r\n00:00:02,000 --> 00:00:03,000\r\nTwo dogs.",
        "1\n00:00:01,000 --> 00:00:02,000\n \nA dog.\n \n\n2\n00:00:02,000 --> 00:00:03,000\n\nTwo dogs.\n1999\n",
    ],
)
def test_variants_of_subrip(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translated(text, "srt") == text.replace("A dog", "A DOG").replace("Two dogs", "TWO DOGS")
    assert not capsys.readouterr().err


def test_webvtt() -> None:
    assert translated(VTT, "vtt") == (
        VTT.replace("Hello <c.loud>there</c> &amp; you\nall", "HELLO <c.loud>THERE</c> &amp; YOU\nALL")
        .replace("&lt;my&gt; friends", "&lt;my&gt; FRIENDS")
        .replace("Hi.", "HI.")
        .replace("one two", "ONE TWO")
    )
    moved = "<v Bob>FRIENDS. &lt;<c.loud>my</c>&gt; ALL\nYOU<00:01.500> &amp; THERE HELLO\n<v Ann>HI.\n"
    assert moved in translated(VTT, "vtt", backwards)


@pytest.mark.parametrize("line_break", ["\n", "<br>", "<BR />", "\\N"])
def test_line_breaks_within_a_line_separate_words(line_break: str) -> None:
    text = f"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nA dog{line_break}runs.{line_break}- A cat\n"
    for format in ("srt", "vtt") if line_break != "\\N" else ("srt",):
        done = translated(text, format)
        assert done == text.replace("A dog", "A DOG").replace("runs", "RUNS").replace("A cat", "A CAT")


def test_a_cue_has_no_more_lines_than_it_had() -> None:
    def lines(text: str, before: str) -> list[str]:
        return wrap_like(before, text, WebVtt.markup).split("\r\n" if "\r" in before else "\n")

    words = "one two three four five six seven eight nine ten eleven twelve"
    two = ["one two three four five six seven", "eight nine ten eleven twelve"]
    assert lines(words, "a") == [words]
    assert lines(words, "a\r\nb") == two
    assert lines(words, "a\nb\nc") == ["one two three four", "five six seven eight", "nine ten eleven twelve"]
    assert lines("one two", "a\nb\nc") == ["one", "two"]
    assert lines("one", "a\nb") == ["one"]
    assert wrap_like("a\n \t<br> b\nc", words, WebVtt.markup).count("\n \t<br>") == 1
    assert lines("a" * 50 + " b", "a\nb") == ["a" * 50, "b"]
    assert lines("a" * 50 + " b c d", "a\nb\nc") == ["a" * 50, "b c", "d"]
    tagged = "<v Bob the big>" + words.replace("six", "<i>six</i>")
    assert [WebVtt.markup.visible(line) for line in lines(tagged, "a\nb")] == two


def test_a_line_of_a_script_without_spaces_ends_between_characters() -> None:
    def lines(text: str) -> list[str]:
        return wrap_like("a\nb", text, WebVtt.markup).split("\n")

    assert lines("犬" * 60) == ["犬" * 30] * 2
    assert lines("犬犬犬犬。猫") == ["犬犬犬", "犬。猫"] and lines("犬犬、<i>猫猫猫</i>") == ["犬犬、", "<i>猫猫猫</i>"]
    assert lines("A dog runs, &amp; x") == ["A dog", "runs, &amp; x"]


def test_lines_that_were_sentences_stay_sentences() -> None:
    def wrapped(before: str, text: str) -> str:
        return wrap_like(before, text, WebVtt.markup)

    assert wrapped("a.\n<i>b?</i>", "Hi. You <i>two!</i>") == "Hi.\nYou <i>two!</i>"
    assert wrapped("a\nb.", "Hi. You two!") == "Hi. You\ntwo!"
    assert wrapped("a.\nb.", "Hi. You two. A.") == "Hi. You\ntwo. A."
    assert wrapped("a.\nb.", "a " * 30 + ". B.") == "a " * 15 + "a\n" + "a " * 14 + ". B."


def test_text_that_no_player_displays_is_reported_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    broken = "a head\n1\n00:00:0x,0 --> 00:00:02,000\nA dog\n\n5 --> 7 dogs\nruns.\n"
    assert translated(broken, "srt") == broken.replace("A dog", "A DOG").replace("runs", "RUNS")
    told = capsys.readouterr().err
    assert "2 line(s) with --> have times that players cannot read" in told and "the first is line 3" in told
    assert "1 line(s) of text belong to no cue" in told and "the first is line 1" in told
    lost = "WEBVTT\n\n00:01.000 --> 00:02.000\nA dog\n\nruns.\n"
    assert translated(lost, "vtt") == lost.replace("A dog", "A DOG")
    assert "1 line(s) of text belong to no cue" in capsys.readouterr().err
    assert translated("no subtitles", "srt") == "no subtitles"
    assert "this file has no subtitles" in capsys.readouterr().err
    assert translated("", "vtt") == "" and translated(VTT, "vtt", same) == VTT
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("format", "expected"), [("srt", "x -> <b> y"), ("vtt", "x --&gt; &lt;b&gt; y")])
def test_a_translation_cannot_become_another_cue(format: str, expected: str) -> None:
    text = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\ndog\n"
    found = translated(text, format, lambda _: [("x --> <b> y", 0)])
    assert found == text.replace("dog", expected)


def test_a_text_without_a_translation_stays_in_its_cue() -> None:
    text = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\ndog\n- cat\n\nNOTE end\n"
    write: Write = lambda words: [] if words == ["dog"] else upper(words)  # noqa: E731
    assert translated(text, "vtt", write) == text.replace("cat", "CAT")


def test_bytes_of_subtitles_are_decoded() -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,000\nA dög.\n"
    for encoding in ("utf-8", "utf-16"):
        done = translate_document(StandIn(upper), cue.encode(encoding), format="srt")  # type: ignore[arg-type]
        assert done.content == cue.replace("A dög", "A DÖG").encode(encoding)


def test_a_line_in_another_font_is_a_text_of_its_own() -> None:
    events = "[Events]\nFormat: Layer, Start, End, Text\nDialogue: 0,0:00:01.00,0:00:02.00,{}\n"
    for font in (r"\fnArial\fs16", r"\c&H0&\fs16", r"\rOther"):
        text = events.format(rf"two cows\N{{{font}}}one hen and one cat")
        expected = events.format(rf"COWS TWO\N{{{font}}}CAT ONE AND HEN ONE")
        assert translated(text, "ass", backwards) == expected
    joined = events.format(r"two cows\N{\i1}run{\i0} now")
    assert translated(joined, "ass", backwards).endswith(r"NOW {\i1}RUN{\i0}\NCOWS TWO" + "\n")
