"""Subtitles, valid or broken: times and tags are kept, no text is lost, no cue grows. pysubs2 is the judge."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in_translators import StandIn, Write, anyhow, backwards, upper

from dragoman.addons.documents.document import translate_document

pytest.importorskip("sentencex")
pysubs2 = pytest.importorskip("pysubs2")

WORDS = st.lists(
    st.sampled_from(["dog", "runs", "Two", "men.", "park,", "é日", "(big)", "x", "extraordinarily"]),
    min_size=1,
    max_size=12,
)
TAGGED = st.builds("<{0}>{1}</{0}>".format, st.sampled_from("biu"), WORDS.map(" ".join))
LINE = st.lists(WORDS.map(" ".join) | TAGGED, min_size=1, max_size=3).map(" ".join)
TEXT = st.lists(LINE | LINE.map("- {}".format), min_size=1, max_size=3)
SECONDS = st.integers(0, 5000)
WRITES = st.sampled_from([upper, backwards, anyhow])
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)


def time(seconds: int, format: str) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{',' if format == 'srt' else '.'}250"


def file(cues: list[tuple[int, int, list[str]]], format: str, end: str) -> str:
    """A file whose times may overlap."""
    head = [] if format == "srt" else ["WEBVTT", ""]
    blocks = [
        [str(number), f"{time(begin, format)} --> {time(begin + length, format)}", *text, ""]
        for number, (begin, length, text) in enumerate(cues, 1)
    ]
    return end.join([*head, *(line for block in blocks for line in block)])


def translated(text: str, format: str, write: Write) -> str:
    return translate_document(StandIn(write), text, format=format).text  # type: ignore[arg-type]


def read(text: str, format: str) -> list[tuple[int, int, list[str]]]:
    found = pysubs2.SSAFile.from_string(text.replace("\r\n", "\n"), format_=format, keep_html_tags=True)
    return [(each.start, each.end, each.text.split("\\N")) for each in found]


@settings(max_examples=60, deadline=None)
@given(
    cues=st.lists(st.tuples(SECONDS, SECONDS, TEXT), min_size=1, max_size=4),
    format=st.sampled_from(["srt", "vtt"]),
    end=st.sampled_from(["\n", "\r\n"]),
    write=WRITES,
)
def test_whole_files(cues: list[tuple[int, int, list[str]]], format: str, end: str, write: Write) -> None:
    text = file(cues, format, end)
    done = translated(text, format, write)
    before, after = read(text, format), read(done, format)
    assert [each[:2] for each in after] == [each[:2] for each in before]
    assert set(re.findall(r"\r?\n", done)) <= {end}
    for (_, _, old), (_, _, new) in zip(before, after, strict=True):
        assert len(new) <= len(old)
        assert Counter(_TAG.findall(" ".join(new))) == Counter(_TAG.findall(" ".join(old)))
        assert not re.search(r"<(.)>[^<]*</(?!\1)", " ".join(new))
        if write is upper:
            assert " ".join(new).split() == _TAG.sub(lambda tag: tag[0].lower(), " ".join(old).upper()).split()


BROKEN = st.lists(
    st.sampled_from(
        [
            "",
            "",
            "1",
            "a dog",
            "<i>Two men</i>",
            "<i>two",
            "men</b>",
            "WEBVTT",
            "NOTE x",
            " ",
            "\t",
            "- a",
            "♪ b ♪",
            "[c]",
            "-->",
        ]
    )
    | st.sampled_from(
        ["00:00:01,000 --> 00:00:02,000", "00:01.000 --> 00:00.500 line:0", "00:0x:01 --> dog", "1:2:3 -> 4"]
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8),
    max_size=14,
)


@settings(max_examples=80, deadline=None)
@given(lines=BROKEN, format=st.sampled_from(["srt", "vtt"]), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_no_text_of_broken_files_is_lost(lines: list[str], format: str, end: str) -> None:
    text = end.join(lines)
    done = translated(text, format, upper)

    def letters(text: str) -> str:
        """Return letters in one case, so that differences other than case and blanks are noticed."""
        return re.sub(r"\s+", "", re.sub("&(amp|lt|gt);", "&", text)).upper().casefold()

    if format == "srt" or not re.search("[&<>]", text.replace("-->", "")):
        assert letters(done) == letters(text)
    assert [line for line in done.split(end) if "-->" in line] == [line for line in lines if "-->" in line]
