"""Readers: compression, line ends, unequal sides, and errors that name the file."""

import gzip
import lzma
import os
import threading
from pathlib import Path

import pytest
import zstandard
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import check_readable, read_pairs, read_sides
from dragoman.data.files.lines import count_lines, open_lines

LINES = ["Ein Hund.", "", "a\u2028b\x0bc\x85d", " blanks\t ", "e\u0301 😀"]
CONTENT = "\n".join(LINES).encode()
PACKERS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("final", [b"", b"\n"])
def test_lines_end_at_line_feeds_only(tmp_path: Path, ending: str, final: bytes) -> None:
    path = write(tmp_path / f"text{ending}", PACKERS[ending](CONTENT + final))
    assert list(open_lines(path)) == LINES
    assert count_lines(path) == len(LINES)


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "text", b"\xef\xbb\xbfone\r\ntwo\r\r\nthr\ree\r")
    assert list(open_lines(path)) == ["one", "two\r", "thr\ree"]


def test_long_lines_across_chunks(tmp_path: Path) -> None:
    lines = ["x" * 200_000, "", "y" * 65_536, "z"]
    assert list(open_lines(write(tmp_path / "a.gz", gzip.compress("\n".join(lines).encode())))) == lines


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_several_compressed_members(tmp_path: Path, ending: str) -> None:
    pack = PACKERS[ending]
    path = write(tmp_path / f"text{ending}", pack(b"one\ntw") + pack(b"o\nthree\n"))
    assert list(open_lines(path)) == ["one", "two", "three"]
    assert count_lines(path) == 3


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "not compressed"])
def test_damaged_compression_names_the_file(tmp_path: Path, ending: str, damage: str) -> None:
    content = PACKERS[ending](("\n".join(f"sentence {number}" for number in range(5000))).encode())
    middle = len(content) // 2
    if damage == "truncated":
        content = content[:middle]
    elif damage == "flipped":
        content = (
            content[:middle] + bytes(byte ^ 0xFF for byte in content[middle : middle + 16]) + content[middle + 16 :]
        )
    else:
        content = b"plain text\n"
    path = write(tmp_path / f"corpus{ending}", content)
    if ending == ".zst" and damage == "flipped":  # by default the library writes no checksum
        path = write(path, _flip(zstandard.ZstdCompressor(write_checksum=True).compress(b"some text\n" * 5000 + b"x")))
    with pytest.raises(DataError, match=rf"corpus\{ending}"):
        list(open_lines(path))


def _flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 0xFF])


def test_a_missing_file_is_named_with_the_most_similar_one(tmp_path: Path) -> None:
    write(tmp_path / "train.de.gz", b"")
    with pytest.raises(DataError, match=r"no file .*train\.de; did you mean .*train\.de\.gz"):
        list(open_lines(tmp_path / "train.de"))
    with pytest.raises(DataError, match="does not contain nowhere"):
        list(open_lines(tmp_path / "nowhere" / "deep" / "file"))
    with pytest.raises(DataError, match=str(tmp_path)):
        list(open_lines(tmp_path))


def test_unequal_sides_name_both_files_and_counts(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", b"1\n2\n3\n"), write(tmp_path / "b", b"1\n2\n3\n4\n5")
    for corpus in (CorpusConfig(source=source, target=target), CorpusConfig(source=target, target=source)):
        with pytest.raises(DataError) as caught:
            list(read_pairs(corpus))
        assert f"{source} has 3 lines" in str(caught.value)
        assert f"{target} has 5 lines" in str(caught.value)


def test_pairs_keep_blank_lines_in_place(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", b"1\n\n3\n"), write(tmp_path / "b", b"\n2\n3")
    assert list(read_pairs(CorpusConfig(source=source, target=target))) == [
        Pair(1, "1", ""),
        Pair(2, "", "2"),
        Pair(3, "3", "3"),
    ]


def test_columns_of_a_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", b"id\tein Hund\ta dog\n\nid\t\tx\textra\n")
    corpus = CorpusConfig(pairs=path, source_column=3, target_column=2)
    assert list(read_pairs(corpus)) == [Pair(1, "a dog", "ein Hund"), Pair(2, "", ""), Pair(3, "x", "")]
    path.write_bytes(b"a\tb\nonly one\n")
    with pytest.raises(DataError, match=r"p\.tsv, line 2: 1 tab-separated column, but column 2"):
        list(read_pairs(CorpusConfig(pairs=path)))


def test_the_columns_of_a_wide_table_must_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", b"12\tHello\tHallo\n13\tdog\tHund\n\n")
    for read in (check_readable, lambda each: list(read_pairs(each))):
        with pytest.raises(DataError) as caught:
            read(CorpusConfig(pairs=path))
        assert "p.tsv, line 1: 3 tab-separated columns (1 '12', 2 'Hello', 3 'Hallo')" in str(caught.value)
        assert "data.train.source_column=2" in str(caught.value)
    chosen = CorpusConfig(pairs=path, source_column=2, target_column=3)
    assert [pair.texts for pair in read_pairs(chosen)] == [("Hello", "Hallo"), ("dog", "Hund"), ("", "")]
    explicit = CorpusConfig.model_validate({"pairs": path, "source_column": 1, "target_column": 2})
    assert next(read_pairs(explicit)).texts == ("12", "Hello")


def test_a_few_lines_with_more_columns_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "p.tsv", b"a\tb\n" * 9 + b"a\tb\tc\n" * 9)
    assert [pair.texts for pair in read_pairs(CorpusConfig(pairs=path))] == [("a", "b")] * 18


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", b"")
    with pytest.raises(DataError, match="empty"):
        list(read_pairs(CorpusConfig(source=empty, target=empty)))
    with pytest.raises(DataError, match=r"/empty is empty\. Use a file with at least one line"):
        list(read_pairs(CorpusConfig(source=write(tmp_path / "full", b"a\n"), target=empty)))


def test_a_corpus_has_exactly_one_format() -> None:
    for given in (
        {},
        {"source": "a"},
        {"source": "a", "target": "b", "pairs": "c"},
        {"pairs": "c", "target_column": 1},
    ):
        with pytest.raises(ValidationError):
            CorpusConfig.model_validate(given)


def test_sides_for_evaluation_reject_invalid_utf8(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good", b"1\n2\n"), write(tmp_path / "bad", b"1\n\xff\n")
    assert read_sides(CorpusConfig(source=good, target=good)) == (["1", "2"], ["1", "2"])
    with pytest.raises(DataError, match="line 2"):
        read_sides(CorpusConfig(source=good, target=bad))


@pytest.mark.parametrize("compressed", [False, True])
def test_a_named_pipe_is_read_like_a_file(tmp_path: Path, compressed: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = b"ein Satz\nnoch einer\n"
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(text) if compressed else text,))
    writer.start()
    assert list(open_lines(pipe)) == ["ein Satz", "noch einer"]
    writer.join()
