"""Sentences that run over several cues: translated as a whole, and divided among the cues."""

import pytest
from stand_in_translators import StandIn, Write, backwards, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("sentencex")

Cue = tuple[float, float, str]


def srt(cues: list[Cue]) -> str:
    return "\n".join(
        f"{number}\n00:00:{begin:06.3f} --> 00:00:{end:06.3f}\n{text}\n"
        for number, (begin, end, text) in enumerate(cues, 1)
    )


def sentences(cues: list[Cue], language: str | None = "en") -> list[str]:
    """Return the texts that the translator receives."""
    translator = StandIn(upper, language=language)
    assert translate_document(translator, srt(cues), format="srt").text.count("-->") == len(cues)  # type: ignore[arg-type]
    return [text for text, _ in translator.asked]


def texts(cues: list[Cue], write: Write) -> list[str]:
    done = translate_document(StandIn(write), srt(cues), format="srt").text  # type: ignore[arg-type]
    return [block.split("\n", 2)[2].rstrip("\n") for block in done.split("\n\n")]


def in_a_row(*texts: str) -> list[Cue]:
    return [(number, number + 1, text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        (("I want", "to go."), ["I want to go."]),
        (("I want\nto go", "<i>home,</i>", "{\\an8}Bob. And", "you?"), ["I want to go home, Bob.", "And you?"]),
        (("He said,", "“Come in.”"), ["He said, “Come in.”"]),
        (("and then", "I'm off."), ["and then I'm off."]),
        (("I have", "3 dogs."), ["I have 3 dogs."]),
        (("I want to go.", "to the park."), ["I want to go.", "to the park."]),
        (("I want", "- to go."), ["I want", "to go."]),
        (("I want", "[music]", "to go."), ["I want", "music", "to go."]),
        (("♪ la la", "la la. ♪"), ["la la", "la la."]),
        (("Directed by", "Steven Smith."), ["Directed by", "Steven Smith."]),
        (("no end", "in sight", "at all"), ["no end", "in sight", "at all"]),
        (("a", "b", "c", "d", "e", "f."), ["a", "b", "c", "d", "e", "f."]),
        (("<i>I want", "to</i> go."), ["I want", "to go."]),
        (("I want <i>to", "go</i> now."), ["I want to", "go now."]),
        (("hello you", "hello you\nand me."), ["hello you", "hello you and me."]),
        (("I was going to—", "to go."), ["I was going to—", "to go."]),
    ],
)
def test_sentences_are_joined(cues: tuple[str, ...], expected: list[str]) -> None:
    found = [text.strip("[]♪ ") for text in sentences(in_a_row(*cues))]
    assert found == expected


def test_pauses_and_overlaps_end_a_sentence() -> None:
    assert sentences([(0, 1, "I want"), (3, 4, "to go.")]) == ["I want to go."]
    assert sentences([(0, 1, "I want"), (3.1, 4, "to go.")]) == ["I want", "to go."]
    assert sentences([(0, 2, "I want"), (1, 4, "to go.")]) == ["I want", "to go."]


def test_capitals_continue_a_german_sentence() -> None:
    assert sentences(in_a_row("Der große", "Hund rennt."), "de") == ["Der große Hund rennt."]
    assert sentences(in_a_row("THE END", "Hund rennt."), "de") == ["THE END", "Hund rennt."]
    assert sentences(in_a_row("我想去，", "和你。"), "zh") == ["我想去，和你。"]
    assert sentences(in_a_row("你好", "你是谁。"), "zh") == ["你好", "你是谁。"]


def test_a_sentence_is_divided_at_the_aligned_words() -> None:
    cues = in_a_row("I want to <b>go</b>", "to the park,", "with you.")
    assert texts(cues, upper) == ["I WANT TO <b>GO</b>", "TO THE PARK,", "WITH YOU."]
    words = list(zip("ICH WILL MIT DIR IN DEN PARK GEHEN.".split(), (0, 1, 7, 8, 4, 5, 6, 3), strict=True))
    assert texts(cues, lambda _: words) == ["ICH WILL <b>MIT</b>", "DIR IN DEN", "PARK GEHEN."]


def test_no_cue_becomes_empty_or_much_longer() -> None:
    cues = in_a_row("I want to see", "the biggest dog of all", "in the park.")
    for write in (backwards, lambda words: [("word", 0)] * 10, lambda words: [("word", len(words) - 1)] * 10):
        lengths = [len(text) for text in texts(cues, write)]
        assert all(0 < length <= 1.6 * len(text) for length, (_, _, text) in zip(lengths, cues, strict=True))
    assert texts(cues, lambda _: [("Ja.", 0)]) == ["Ja."] * 3
    assert texts(cues, lambda _: []) == [text for _, _, text in cues]


def test_a_sentence_continues_only_at_the_same_place_and_with_the_same_speaker() -> None:
    def asked(first: str, second: str) -> int:
        translator = StandIn(upper)
        text = f"WEBVTT\n\n00:01.000 --> 00:02.000 {first}I want\n\n00:02.000 --> 00:03.000 {second}to go.\n"
        translate_document(translator, text, format="vtt")  # type: ignore[arg-type]
        return len(translator.asked)

    assert asked("\n<v Bob>", "\n<v Bob>") == 1
    assert asked("\n<v Bob>", "\n<v Ann>") == asked("\n<v Bob>", "\n") == 2
    assert asked("\n", "\n") == asked("line:0\n", "line:0\n") == 1
    assert asked("line:0\n", "\n") == asked("\n", "\n- ") == 2
