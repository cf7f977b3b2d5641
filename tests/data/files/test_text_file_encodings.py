"""Encodings and line ends of corpora: Python's codecs and iconv as references, and any division into chunks."""

import codecs
import gzip
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.inputs import read_lines
from dragoman.data.corpora.readers import check_readable, read_pairs
from dragoman.data.files.encoding import convert_mac_line_ends, transcode, unmarked_encoding
from dragoman.data.files.lines import count_lines, has_broken_utf8, open_lines, read_text

LINES = ["Über den Wäldern", "дом и сад 家", "", "สวัสดี 😀", "a\u2028b\x85c\x0cd", "end"]
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
SENTENCES = {
    "windows-1252": "Die größte Straße führt über die Brücke – „schön“",
    "windows-1250": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "windows-1251": "Съешь же ещё этих мягких французских булок",
    "koi8-r": "Съешь же ещё этих мягких французских булок",
    "shift_jis": "吾輩は猫である。名前はまだ無い。\nどこで生れたか頓と見当がつかぬ。\nニャーニャー泣いて居た。",
    "euc_kr": "모든 인간은 태어날 때부터 자유로우며\n그 존엄과 권리에 있어 동등하다.\n인간은 이성과 양심을 부여받았다.",
    "gb18030": "人人生而自由，在尊严和权利上一律平等。\n他们赋有理性和良心，\n并应以兄弟关系的精神相对待。",
    "iso-2022-jp": "吾輩は猫である。",
}


def mark(codec: str) -> bytes:
    return {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(
        codec, codecs.BOM_UTF32_LE if codec == "utf-32-le" else codecs.BOM_UTF32_BE
    )


@pytest.mark.parametrize("codec", WIDE)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_marked_file_has_the_lines_of_its_text(tmp_path: Path, codec: str, line_end: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(mark(codec) + line_end.join(LINES).encode(codec))
    assert list(open_lines(path)) == LINES
    assert count_lines(path) == len(LINES)
    assert "".join(read_text(path)) == "\n".join(LINES)


@pytest.mark.parametrize("codec", WIDE)
@pytest.mark.parametrize(
    "text", ["Hello, world.\n", "это предложение\nи ещё одно\n", "一个人和一只狗。\n我们在家。\n", "สวัสดี ครับ\n"]
)
def test_a_file_without_a_mark_is_named_with_a_command_that_works(tmp_path: Path, codec: str, text: str) -> None:
    text *= 20
    path = tmp_path / "wide text.en"
    path.write_bytes(text.encode(codec))
    with pytest.raises(DataError, match=rf"is {codec[:6].upper()} without a byte order mark") as caught:
        list(open_lines(path))
    assert converted(str(caught.value), path) == text


@pytest.mark.parametrize(
    "text", ["a\0b\nc\n", "plain\n" * 9, "Äb\0\n" * 9, "\0".join("nul separated words".split()) * 9]
)
def test_utf8_with_a_few_nuls_is_utf8(text: str) -> None:
    assert unmarked_encoding(text.encode()) is None


def converted(message: str, path: Path) -> str:
    """Run the command at the end of a message, and return the file that it writes."""
    if shutil.which("iconv") is None:
        pytest.skip("iconv is not installed")
    command = message[message.index("iconv") :]
    subprocess.run(command, shell=True, check=True)
    output = path.with_name(f"{path.stem}.utf8{path.suffix}")
    assert str(output) in command.replace("'", "")
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", SENTENCES)
@pytest.mark.parametrize("ascii_lines", [0, 50])
def test_another_encoding_is_rejected_with_the_command_that_converts_it(
    tmp_path: Path, encoding: str, ascii_lines: int
) -> None:
    text = "plain text\n" * ascii_lines + f"{SENTENCES[encoding]}\n" * 12
    count = 12 * (SENTENCES[encoding].count("\n") + 1)
    message = f"{count} of the {count} lines with non-ASCII characters are broken"
    if encoding.startswith("iso-2022"):
        message = "is ISO-2022-JP, not UTF-8"
    path = tmp_path / "side.de"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(DataError, match=message) as caught:
        next(open_lines(path))
    assert converted(str(caught.value), path) == text


def test_a_compressed_file_is_decompressed_by_the_command(tmp_path: Path) -> None:
    path = tmp_path / "side.de.gz"
    path.write_bytes(gzip.compress(("größer\n" * 20).encode("latin-1")))
    with pytest.raises(DataError, match=r"gzip -dc .*side\.de\.gz \| iconv -f \S+ -t utf-8 > .*side\.utf8\.de"):
        next(open_lines(path))


@pytest.mark.parametrize(
    ("broken", "valid", "is_rejected"),
    [(2, 0, False), (3, 0, True), (5, 6, False), (5, 5, False), (6, 5, True), (0, 9, False)],
)
def test_the_majority_of_the_lines_with_non_ascii_characters_decides(
    tmp_path: Path, broken: int, valid: int, is_rejected: bool
) -> None:
    path = tmp_path / "side"
    path.write_bytes(b"ascii\n" * 100 + "größer\n".encode() * valid + b"gr\xf6\xdfer\n" * broken)
    if is_rejected:
        with pytest.raises(DataError, match="is not UTF-8"):
            list(open_lines(path))
        return
    assert sum(map(has_broken_utf8, open_lines(path))) == broken


def test_broken_lines_after_the_start_of_a_file_are_counted_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "side"
    path.write_bytes(b"ascii only\n" * 10_000 + b"gr\xf6\xdfer\n" * 3)
    lines = open_lines(path)
    assert [next(lines) for _ in range(10_003)][-1] == "gr\udcf6\udcdfer"
    with pytest.raises(DataError, match="3 of the 3 lines"):
        next(lines)
    path.write_bytes(b"gr\xf6\xdfer\n" * 3 + b"ascii only\n" * 10_000 + "größer\n".encode() * 9)
    assert len(list(open_lines(path))) == 10_012


def test_training_data_in_another_encoding_is_rejected_before_cleaning(tmp_path: Path) -> None:
    for side, encoding in (("en", "utf-8"), ("de", "cp1252")):
        (tmp_path / side).write_bytes("ein Süßwarenhändler\nohne\n".encode(encoding) * 5)
    corpus = CorpusConfig(source=tmp_path / "en", target=tmp_path / "de")
    with pytest.raises(DataError, match=r"de is not UTF-8"):
        check_readable(corpus)


def test_damaged_utf16_breaks_its_own_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "text"
    lone_surrogate = b"\x00\xd8"
    path.write_bytes(codecs.BOM_UTF16_LE + "a\nb".encode("utf-16-le") + lone_surrogate + "\nc\n".encode("utf-16-le"))
    assert [has_broken_utf8(line) for line in open_lines(path)] == [False, True, False]


@given(st.text(), st.sampled_from(WIDE), st.data())
def test_the_division_into_chunks_does_not_matter(text: str, codec: str, data: st.DataObject) -> None:
    encoded = text.encode(codec)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(encoded)), max_size=4)))
    chunks = [encoded[start:end] for start, end in zip([0, *cuts], [*cuts, len(encoded)], strict=True)]
    assert b"".join(transcode(chunks, codec)) == text.encode()


@given(st.lists(st.sampled_from([b"\r", b"\n", b"a", b"\r\n", b""])))
def test_mac_line_ends_are_those_of_python(chunks: list[bytes]) -> None:
    expected = io.TextIOWrapper(io.BytesIO(b"".join(chunks)), newline=None).read()
    assert b"".join(convert_mac_line_ends(chunks)).decode() == expected


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\rtwo\rthree", ["one", "two", "three"]),
        (b"one\rtwo\r", ["one", "two"]),
        (b"one\rtwo\nthree\r\nfour", ["one\rtwo", "three", "four"]),
        (b"\xef\xbb\xbfone\r\n\r\ntwo", ["one", "", "two"]),
        ("a\u2028b\u2029c\x85d\x0be\n".encode(), ["a\u2028b\u2029c\x85d\x0be"]),
        (b"a\0b\n\0\n", ["a\0b", "\0"]),
        (b"", []),
        (b"\n", [""]),
        (b"\xef\xbb\xbf", []),
    ],
)
def test_line_ends(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    assert list(open_lines(path)) == lines
    assert count_lines(path) == len(lines)


def test_every_form_of_corpus_may_be_utf16(tmp_path: Path) -> None:
    contents = {
        "tsv": "grün\tvert\r\n",
        "jsonl": '{"source": "grün", "target": "vert"}\r\n',
        "tmx": '<?xml version="1.0" encoding="UTF-16"?><tmx version="1.4"><body><tu><tuv xml:lang="de"><seg>grün</seg>'
        '</tuv><tuv xml:lang="fr"><seg>vert</seg></tuv></tu></body></tmx>',
    }
    for form, content in contents.items():
        path = tmp_path / f"corpus.{form}"
        path.write_bytes(content.encode("utf-16"))
        corpus = CorpusConfig(pairs=path)
        check_readable(corpus)
        assert [(pair.source, pair.target) for pair in read_pairs(corpus)] == [("grün", "vert")]


@pytest.mark.parametrize(
    "content",
    [
        "grün\nblau\n".encode(),
        "\ufeffgrün\r\nblau".encode(),
        "grün\nblau\n".encode("utf-16"),
        gzip.compress("grün\nblau\n".encode()),
        b"gr\xc3\xbcn\rblau\r",
    ],
    ids=["plain", "mark", "UTF-16", "gzip", "Mac line ends"],
)
def test_the_standard_input_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert list(read_lines(None)) == ["grün", "blau"]


def test_a_pointer_on_the_standard_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pointer)))
    with pytest.raises(DataError, match="standard input is a Git LFS pointer"):
        list(read_lines(None))


def test_lines_of_a_pipe_are_yielded_before_the_next_ones_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as file, open(writing, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", file)
        lines = read_lines(None)
        for text in ("a", "größer", "c"):
            pipe.write(f"{text}\n".encode())
            assert next(lines) == text
