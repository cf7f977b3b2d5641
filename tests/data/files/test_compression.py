"""Decompression: every format of Python's modules and the zstd command, several members, damage, windows, memory."""

import bz2
import gzip
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest
import zstandard

from dragoman.base.companion import compressor_for
from dragoman.base.errors import DataError
from dragoman.data.files.lines import count_lines, open_lines

TEXT = "".join(f"sentence {number}: ein Süßwarenhändler\n" for number in range(3000)).encode()
LINES = TEXT.decode().splitlines()
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["corpus", "corpus{}", "corpus.txt", "CORPUS{}"])
def test_the_first_bytes_decide_not_the_name(tmp_path: Path, suffix: str, name: str) -> None:
    path = tmp_path / name.format(suffix.upper() if name.isupper() else suffix)
    path.write_bytes(PACKERS[suffix](TEXT))
    assert list(open_lines(path)) == LINES
    assert count_lines(path) == len(LINES)


@pytest.mark.parametrize("suffix", PACKERS)
def test_members_of_several_formats_and_padding(tmp_path: Path, suffix: str) -> None:
    pack = PACKERS[suffix]
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(pack(TEXT[:1000]) + pack(b"") + pack(TEXT[1000:]) + bytes(512))
    assert list(open_lines(path)) == LINES
    path.write_bytes(pack(b""))
    assert list(open_lines(path)) == []


@pytest.mark.parametrize("suffix", PACKERS)
def test_truncated_and_corrupt_files_are_told_apart(tmp_path: Path, suffix: str) -> None:
    content = (
        zstandard.ZstdCompressor(write_checksum=True).compress(TEXT) if suffix == ".zst" else PACKERS[suffix](TEXT)
    )
    path = tmp_path / f"corpus{suffix}"
    for end in (len(content) - 1, len(content) // 2, 20):
        path.write_bytes(content[:end])
        with pytest.raises(DataError, match=r"is truncated: its compressed data end early"):
            list(open_lines(path))
    path.write_bytes(content[:-8] + bytes(byte ^ 0xFF for byte in content[-8:]))
    with pytest.raises(DataError, match=r"is corrupt \(.+\)\. Download or compress it again"):
        list(open_lines(path))


@pytest.mark.parametrize("suffix", PACKERS)
def test_the_writer_of_outputs_writes_what_the_reader_reads(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"output{suffix}"
    pack = compressor_for(path)
    path.write_bytes(pack(TEXT[:500]) + pack(TEXT[500:]))
    assert list(open_lines(path)) == LINES
    assert path.stat().st_size < len(TEXT)


def zstd(path: Path, *options: str) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("the zstd command is not installed")
    with path.open("wb") as output:
        subprocess.run(["zstd", "-q", "-c", *options], input=TEXT, stdout=output, check=True)


@pytest.mark.parametrize("option", ["--long=28", "--long=31", "--fast", "-19"])
def test_the_zstd_command_may_use_any_window(tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "corpus.zst"
    zstd(path, "--ultra", option)
    assert list(open_lines(path)) == LINES
    assert list(open_lines(path)) == LINES
    expected = {"--long=28": "a window of 256 MiB", "--long=31": "a window of 2,048 MiB"}.get(option)
    reported = capsys.readouterr().err
    assert reported.count("a window of") == (expected is not None)
    assert expected is None or expected in reported


def test_a_long_window_takes_only_the_memory_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "corpus.zst"
    zstd(path, "--ultra", "--long=31")
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom dragoman.data.files.lines import open_lines\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nlist(open_lines(Path(sys.argv[1])))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50_000  # kilobytes


def test_skippable_frames_and_dictionaries_of_zstd(tmp_path: Path) -> None:
    path = tmp_path / "corpus.zst"
    skippable = b"\x50*M\x18" + (4).to_bytes(4, "little") + b"size"
    path.write_bytes(skippable + zstandard.compress(TEXT))  # as pzstd writes it
    assert list(open_lines(path)) == LINES
    samples = [line.encode() for line in LINES]
    dictionary = zstandard.train_dictionary(2000, samples)
    path.write_bytes(zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT))
    with pytest.raises(DataError, match=r"zstd dictionary \d+, which is a separate file.*zstd -d -D DICTIONARY"):
        list(open_lines(path))
