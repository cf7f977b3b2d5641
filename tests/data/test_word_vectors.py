"""Word vectors as text: the formats of word2vec, GloVe and fastText, and invalid files."""

import gzip
import lzma
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.word_vectors import read_word_vectors, vector_width

VECTORS = {"the": [0.5, -1.25, 3e-05], "Hund": [1.0, 2.0, -3.5], "2016": [7.0, 8.0, 9.0], ",": [0.0, -0.0, 1e3]}
GLOVE = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items())
WORD2VEC = "4 3\n" + GLOVE.replace("\n", " \n")  # the program writes a blank at the end of a line
FASTTEXT = "4 3\n" + GLOVE
FORMS = {
    "glove": GLOVE.encode(),
    "word2vec": WORD2VEC.encode(),
    "fasttext": FASTTEXT.encode(),
    "windows": FASTTEXT.replace("\n", "\r\n").encode(),
    "tabs": GLOVE.replace(" ", "\t").encode(),
    "mark": b"\xef\xbb\xbf" + GLOVE.encode(),
    "no last end": GLOVE.rstrip("\n").encode(),
    "blank lines": ("\n" + GLOVE.replace("\n", "\n\n")).encode(),
    "gzip": gzip.compress(FASTTEXT.encode()),
    "gzip members": gzip.compress(WORD2VEC[:20].encode()) + gzip.compress(WORD2VEC[20:].encode()),
    "xz": lzma.compress(GLOVE.encode()),
}


def written(folder: Path, content: bytes | str, name: str = "vectors") -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_vectors(tmp_path: Path, form: str) -> None:
    suffix = {"gzip": ".vec.gz", "gzip members": ".gz", "xz": ".xz"}.get(form, ".txt")
    path = written(tmp_path, FORMS[form], f"vectors{suffix}")
    assert vector_width(path) == 3
    found = read_word_vectors(path, {*VECTORS, "nobody"})
    assert {word: vector.tolist() for word, vector in found.items()} == {
        word: np.float32(vector).tolist() for word, vector in VECTORS.items()
    }
    assert all(vector.dtype == np.float32 for vector in found.values())
    assert set(read_word_vectors(path, {"Hund", "hund"})) == {"Hund"}


def test_of_a_repeated_word_the_first_vector_counts(tmp_path: Path) -> None:
    path = written(tmp_path, "a 1 2\nb 3 4\na 5 6\n")
    assert read_word_vectors(path, {"a"})["a"].tolist() == [1, 2]


def test_words_may_contain_blanks_and_be_numbers(tmp_path: Path) -> None:
    """GloVe of Common Crawl has both; characters that only look like a blank are part of the word."""
    path = written(
        tmp_path, ", 1 2 3\n. . . 4 5 6\n7 8 9 10\nat name@domain.com 1 1 1\nx\u00a0y 2 2 2\nx\u2028y 3 3 3\n"
    )
    found = read_word_vectors(path, {". . .", "7", "at", "at name@domain.com", "x\u00a0y", "x\u2028y", "."})
    assert {word: vector.tolist() for word, vector in found.items()} == {
        ". . .": [4, 5, 6],
        "7": [8, 9, 10],
        "at name@domain.com": [1, 1, 1],
        "x\u00a0y": [2, 2, 2],
        "x\u2028y": [3, 3, 3],
    }


def test_a_word_of_broken_utf8_is_skipped(tmp_path: Path) -> None:
    assert set(read_word_vectors(written(tmp_path, b"a 1 2\n\xff\xfe 1 2\nb 1 2\n"), {"a", "b"})) == {"a", "b"}


@pytest.mark.parametrize("before", ["", "3 2\n"])
@pytest.mark.parametrize("line", ["b 1", "b", "1 2", "b 1 x", "b 1 nan", "b inf 1", "b 1e99 1", "b 1,5 2", "b 1 "])
def test_a_malformed_line_is_named(tmp_path: Path, line: str, before: str) -> None:
    path = written(tmp_path, f"{before}a 1 2\n{line}\nc 1 2\n")
    place = 3 if before else 2
    with pytest.raises(DataError, match=rf"vectors, line {place}: .*[Ff]ix or remove the line"):
        read_word_vectors(path, {"a", "b", "1", "c"})


def test_numbers_of_unwanted_words_are_only_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "a 1 2\nb nan x\n")
    assert set(read_word_vectors(path, {"a"})) == {"a"}
    with pytest.raises(DataError, match="line 2: not a word and 2 numbers"):
        read_word_vectors(written(tmp_path, "a 1 2\nb 1\n"), {"a"})


def test_numbers_that_are_not_finite_do_not_hide_the_width(tmp_path: Path) -> None:
    path = written(tmp_path, "a 1 nan inf\nb 1 2 3\n")
    assert vector_width(path) == 3
    assert set(read_word_vectors(path, {"b"})) == {"b"}
    with pytest.raises(DataError, match="line 1: the vector of 'a' contains a value that is not a finite number"):
        read_word_vectors(path, {"a"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "vectors is empty"),
        ("\n \n\t\n", "vectors is empty"),
        ("200000 100\n", "has only a header line"),
        ("2 100\na 1 2 3\n", "line 2: not a word and 100 numbers"),
        ("2 0\na\n", "line 2: not a word"),
        ("the dog sees the cat .\n", "line 1: not a word and its numbers: 'the dog"),
        ('{"a": [1, 2]}\n', "line 1"),
        (b"\x80\x04\x95 pickled\n", "line 1.*This is not text"),
        (b"2 4\nthe " + struct.pack("4f", 0.1, 0.2, 0.3, 0.4) + b"\nof " + struct.pack("4f", 1, 2, 3, 4), "not text"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', }\n" + struct.pack("4f", 0.1, 0.2, 0.3, 0.4), "not a text file"),
        (bytes(range(256)) * 200, "not a text file"),
    ],
)
def test_files_without_vectors_are_rejected_early(tmp_path: Path, content: bytes | str, message: str) -> None:
    path = written(tmp_path, content)
    for read in (vector_width, lambda path: read_word_vectors(path, {"the"})):
        with pytest.raises(DataError, match=message):
            read(path)


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no file .*did you mean .*vectors.txt"):
        vector_width(written(tmp_path, GLOVE, "vectors.txt").with_name("vector.txt"))
    with pytest.raises(DataError, match="truncated"):
        read_word_vectors(written(tmp_path, gzip.compress(GLOVE.encode())[:-12], "short.gz"), {"the"})
    with pytest.raises(DataError, match="is not a gz file"):
        vector_width(written(tmp_path, GLOVE, "plain.gz"))


def test_a_file_that_was_cut_off_is_used_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_word_vectors(written(tmp_path, "1 2\n\na 1 2\n\n"), {"a"})
    assert capsys.readouterr().err == ""
    assert set(read_word_vectors(written(tmp_path, "2000 2\na 1 2\n"), {"a"})) == {"a"}
    assert "states 2,000 words, but the file has 1" in capsys.readouterr().err


def test_memory_grows_with_the_wanted_words_only(tmp_path: Path) -> None:
    line = " ".join(["0.1234"] * 50)
    path = written(tmp_path, "".join(f"word{number} {line}\n" for number in range(20_000)))
    assert path.stat().st_size > 6_000_000
    tracemalloc.start()
    try:
        found = read_word_vectors(path, {f"word{number}" for number in range(0, 20_000, 100)})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 200
    assert peak < 1_500_000


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t\0"), min_size=1, max_size=8).filter(
    lambda word: word.strip(" ") == word
)


@given(
    vectors=st.dictionaries(
        WORDS,
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    header=st.booleans(),
)
def test_any_words_and_numbers_are_restored(
    vectors: dict[str, list[float]], header: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Including words that look like numbers, except the first one, which a format without header cannot recognise."""
    ordered = {"the": [1.0, 2.0, 3.0], **vectors}
    content = "".join(f"{word} {' '.join(map(repr, vector))}\n" for word, vector in ordered.items())
    path = written(tmp_path_factory.getbasetemp(), f"{len(ordered)} 3\n{content}" if header else content, "any")
    found = read_word_vectors(path, set(ordered))
    assert {word: vector.tolist() for word, vector in found.items()} == ordered
