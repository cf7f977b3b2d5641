"""Corpora inside .zip archives: paths that continue into an archive, and damaged or ambiguous archives."""

import zipfile
from pathlib import Path

import pytest

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import check_readable, read_sides
from dragoman.data.files.lines import open_lines
from dragoman.data.preparation.fingerprint import file_digest


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "both.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        members.mkdir("corpus")
        members.writestr("corpus/train.en", "a dog\na cat\n")
        members.writestr("corpus/train.de", "ein Hund\neine Katze\n")
    return path


def test_members_are_corpora_like_any_file(archive: Path) -> None:
    corpus = CorpusConfig(source=archive / "corpus" / "train.en", target=archive / "corpus" / "train.de")
    check_readable(corpus)
    assert read_sides(corpus) == (["a dog", "a cat"], ["ein Hund", "eine Katze"])


def test_an_archive_of_one_file_stands_for_the_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as members:
        members.writestr("x/y.txt", "hello\r\n")
    assert list(open_lines(tmp_path / "one.zip")) == ["hello"]


def test_the_digest_depends_on_the_member(archive: Path, tmp_path: Path) -> None:
    digests = {file_digest(archive / "corpus" / name, tmp_path) for name in ("train.en", "train.de")}
    assert len(digests | {file_digest(archive, tmp_path)}) == 3


def test_errors_name_the_members(archive: Path) -> None:
    with pytest.raises(
        DataError, match=r"archive of 2 files.*--source .*both.zip/corpus/train.en --target .*/train.de\. It contains"
    ):
        next(open_lines(archive))
    with pytest.raises(DataError, match=r"contains no file corpus/train\.fr\. Did you mean .*both.zip/corpus/train.en"):
        next(open_lines(archive / "corpus" / "train.fr"))
    with pytest.raises(DataError, match=r"contains no file zzz\. It contains"):
        next(open_lines(archive / "zzz"))
    with pytest.raises(DataError, match="There is no file"):
        next(open_lines(archive.parent / "none.zip" / "a"))


def test_damaged_archives_are_data_errors(archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    start = content.index(b"corpus/train.en") + len("corpus/train.en")
    content[start : start + 4] = b"\xff\xff\xff\xff"
    archive.write_bytes(content)
    with pytest.raises(DataError, match="is corrupt"):
        list(open_lines(archive / "corpus" / "train.en"))
    archive.write_bytes(content[:60])
    with pytest.raises(DataError, match="is corrupt"):
        list(open_lines(archive / "corpus" / "train.en"))


def test_encrypted_members_are_data_errors(archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    for marker, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = content.find(marker)
        while position >= 0:
            content[position + flag] |= 1
            position = content.find(marker, position + 4)
    archive.write_bytes(content)
    with pytest.raises(DataError, match="Extract the file first"):
        list(open_lines(archive / "corpus" / "train.en"))
