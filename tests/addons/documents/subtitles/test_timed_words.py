"""Times and karaoke durations within subtitles: rising order, with the words of the translation spread over them."""

import re
from collections.abc import Callable

import pytest
from stand_in_translators import StandIn, Write, anyhow, backwards, upper

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.sections import SectionDivider
from dragoman.addons.documents.spans import Point

pytest.importorskip("sentencex")

HEAD = "WEBVTT\n\n00:01.000 --> 00:09.000\n"


def translated(text: str, format: str, write: Write = upper) -> str:
    return translate_document(StandIn(write), text, format=format).text  # type: ignore[arg-type]


def cue(text: str, write: Write = upper) -> str:
    return translated(HEAD + text + "\n", "vtt", write).removeprefix(HEAD).removesuffix("\n")


def write_words(translation: str, *sources: int) -> Write:
    """Return a translator whose output has the given words, aligned with the given words of the source."""
    return lambda _: list(zip(translation.split(), sources, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one <00:02.000>two <00:03.000>three", "ONE <00:02.000>TWO <00:03.000>THREE"),
        ("one<00:02.000> two<00:03.000> three", "ONE<00:02.000> TWO<00:03.000> THREE"),
        ("<00:01.000>one <00:02.000>two<00:09.000>", "<00:01.000>ONE <00:02.000>TWO<00:09.000>"),
        ("ka<00:02.000>ra<00:03.000>oke", "KA<00:02.000>RA<00:03.000>OKE"),
        ("one <00:02.000><00:03.000>two", "ONE <00:02.000><00:03.000>TWO"),
        ("one<00:02.000><c> two</c><00:03.000><c> three</c>", "ONE<00:02.000> <c>TWO</c><00:03.000> <c>THREE</c>"),
        ("<i>one <00:02.000>a</i> <b>b <00:03.000>c</b>", "<i>ONE <00:02.000>A</i> <b>B <00:03.000>C</b>"),
        ("<v Bob><00:01.000>one <00:02.000>two</v>", "<v Bob><00:01.000>ONE <00:02.000>TWO</v>"),
        ("<lang fr>un</lang> <ruby>two<rt>deux</rt></ruby> x", "<lang fr>UN</lang> <ruby>TWO<rt>deux</rt></ruby> X"),
    ],
)  # fmt: skip
def test_a_translation_in_the_same_order_has_the_times_at_the_same_words(text: str, expected: str) -> None:
    assert cue(text) == expected


@pytest.mark.parametrize("write", [backwards, anyhow, write_words("x", 0), lambda _: [("y", 0)] * 9])
@pytest.mark.parametrize(
    "text",
    [
        "one <00:02.000>two <00:03.000>three <00:04.000>four",
        "<i>a <00:02.000>b</i> c <u>d <00:03.000>e <00:04.000>f</u> <b>g</b>",
        "one. <00:02.000>Two three.<00:03.000> Four <00:04.000>five",
        "<c>one <00:02.000>two</c> <c>three<00:03.000></c> <00:04.000><c>four</c>",
    ],
)
def test_times_rise_in_every_translation(text: str, write: Write) -> None:
    done = cue(text, write)
    assert re.findall(r"00:\d\d", done) == ["00:02", "00:03", "00:04"]
    assert sorted(re.findall("<.*?>", done)) == sorted(re.findall("<.*?>", text))


def test_times_follow_aligned_words_if_their_order_is_similar() -> None:
    text = "the big dog <00:02.000>runs in the park <00:03.000>today"
    moved = write_words("heute rennt der große Hund im Park", 7, 3, 0, 1, 2, 4, 6)
    assert (
        cue("the very big dog <00:02.000>runs", write_words("der Hund rennt", 0, 3, 4)) == "der Hund <00:02.000>rennt"
    )
    assert cue(text, write_words("der Hund rennt heute", 0, 2, 3, 7)) == "der Hund <00:02.000>rennt <00:03.000>heute"
    assert cue(text, moved) == "heute rennt <00:02.000>der große Hund im <00:03.000>Park"


def test_words_in_another_order_are_spread_in_proportion() -> None:
    assert cue("a b <00:02.000>c d <00:03.000>e f", backwards) == "F E <00:02.000>D C <00:03.000>B A"


def test_no_section_is_empty_if_there_are_enough_words() -> None:
    text = " ".join(f"<00:0{number}.000>word" for number in range(1, 7))
    done = cue(text, lambda _: [("x", 5)] * 6)
    assert done == " ".join(f"<00:0{number}.000>x" for number in range(1, 7))


def test_fewer_words_than_times_have_a_time_of_their_own_each() -> None:
    text = "a <00:02.000>b <00:03.000>c <00:04.000>d <00:05.000>e <00:06.000>f"
    assert cue(text, write_words("X Y Z", 0, 2, 5)) == ("X <00:02.000><00:03.000>Y <00:04.000><00:05.000><00:06.000>Z")
    assert cue(text, write_words("X Y Z", 5, 5, 5)) == ("X <00:02.000><00:03.000>Y <00:04.000><00:05.000>Z<00:06.000>")
    assert cue(text, write_words("X", 3)) == "<00:02.000><00:03.000><00:04.000>X<00:05.000><00:06.000>"


def divide(make: Callable[[int], str], count: int) -> list[int]:
    target = make(count)
    divider = SectionDivider("犬 " * 4, target, ())
    return divider.cuts([Point(1, (), True, True), Point(3, (), True, True)], (0, 8), (0, len(target)))


def test_a_translation_without_spaces_is_divided_between_characters() -> None:
    first, second = divide(lambda count: "猫" * count, 8)
    assert 0 < first < second < 8
    assert divide(lambda count: "word" * count, 2) == [8, 8]


DIALOGUE = (
    "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:01.00,0:00:05.00,Default,,0,0,0,,"
)


@pytest.mark.parametrize("write", [upper, backwards, anyhow, write_words("x", 0)])
@pytest.mark.parametrize(
    "text",
    [
        r"{\k20}ka{\k30}ra{\kf25}o{\ko30}ke {\K5}is, {\k7\1c&HFF&}fun",
        r"{\an8\k20}One {\k30}two {\k25}{\k30}three{\k9}",
        r"{\k20}One {\i1}{\k30}two {\k25}three{\i0} {\k10}four",
    ],
)
def test_karaoke_keeps_its_durations_in_order(text: str, write: Write) -> None:
    done = translated(DIALOGUE + text, "ass", write).removeprefix(DIALOGUE)
    karaoke = r"\\[kK][fo]?\d+"
    assert re.findall(karaoke, done) == re.findall(karaoke, text)
    assert sorted(re.findall(r"\{.*?\}", done)) == sorted(re.findall(r"\{.*?\}", text))
    if write is upper:
        assert done == re.sub(r"(\{.*?\})|\w+", lambda found: found[1] or found[0].upper(), text)
