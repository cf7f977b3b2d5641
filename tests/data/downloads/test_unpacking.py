"""Archives are unpacked file by file, and cannot write elsewhere, damage a disk, or pass as complete when damaged."""

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.base.errors import DataError
from dragoman.data.downloads.unpacking import check_archive, matching, text_digest, unpack, write_text

TEXT = "a dog runs .\nÄpfel und Birnen\n".encode() * 50


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("corpus/dev/link.dev")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_chosen_files_lose_their_folders(pack: Callable[[Path, dict[str, bytes]], Path], tmp_path: Path) -> None:
    names = ("../../outside.dev", "/corpus/dev/en.dev", "./corpus/dev/de.dev", "corpus/dev/._de.dev", "corpus/README")
    archive = pack(tmp_path / "archive", dict.fromkeys(names, TEXT))
    (out := tmp_path / "a" / "b").mkdir(parents=True)
    written = unpack(archive, out, matching("*.dev"), "archive")
    assert sorted(written) == ["de.dev", "en.dev", "outside.dev"]
    assert sorted(path.name for path in tmp_path.rglob("*.dev")) == sorted(written)
    assert (out / "de.dev").read_bytes() == TEXT


def test_texts_are_compressed_by_their_name(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"corpus/en.txt": TEXT})
    assert unpack(archive, tmp_path, lambda _: "en.txt.gz", "archive") == ["en.txt.gz"]
    assert gzip.decompress((tmp_path / "en.txt.gz").read_bytes()) == TEXT
    assert text_digest(tmp_path / "en.txt.gz", "text") == hashlib.sha256(TEXT).hexdigest()
    write_text(io.BytesIO(TEXT), tmp_path / "again.gz", compress=True)
    assert (tmp_path / "again.gz").read_bytes() == (tmp_path / "en.txt.gz").read_bytes()


def test_archives_that_are_refused(tmp_path: Path) -> None:
    (out := tmp_path / "out").mkdir()
    bomb = zipped(tmp_path / "bomb.zip", {"zeros": bytes(10**6)})
    with pytest.raises(DataError, match="bomb expands to more than 100 times its size"):
        unpack(bomb, out, lambda name: name, "bomb")
    same = zipped(tmp_path / "same.zip", {"a/en": b"1", "b/en": b"2"})
    with pytest.raises(DataError, match="several files 'en'"):
        unpack(same, out, lambda _: "en", "same")
    encrypted = zipped(tmp_path / "encrypted.zip", {"en": TEXT})
    encrypted.write_bytes(
        encrypted.read_bytes().replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\x01")
    )
    with pytest.raises(DataError, match=r"encrypted cannot be unpacked: .*encrypted"):
        unpack(encrypted, out, lambda name: name, "encrypted")


@pytest.mark.parametrize("name", ["whole.zip", "whole.tar.gz", "text.gz"])
def test_damage_is_found(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "text.gz":
        path.write_bytes(gzip.compress(TEXT))
    else:
        (zipped if path.suffix == ".zip" else tarred)(path, {"en": TEXT})
    check_archive(path, "download")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="download is not an archive or is damaged"):
        check_archive(path, "download")
    if name != "text.gz":
        with pytest.raises(DataError, match="download is not an archive or is damaged"):
            unpack(path, tmp_path, lambda _: "en", "download")
