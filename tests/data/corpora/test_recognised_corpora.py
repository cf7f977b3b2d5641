"""Files that are not corpora: pointers, web pages, markup, error messages and binary files are named."""

import gzip
import io
import json
import pickle
import sqlite3
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dragoman.base.errors import DataError
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import check_readable, read_pairs
from dragoman.data.files.lines import open_lines, read_text

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"
HTML = (
    "<!DOCTYPE html>\n<html lang=en>\n<head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>\n"
)
SGML = (
    '<refset setid="test" srclang="any" trglang="de">\n<doc sysid="ref" docid="a">\n<p>\n<seg id="1">Ein Hund.</seg>\n'
    '<seg id="2">Zwei < drei </seg>\n</p>\n</doc>\n</refset>\n'
)
ERROR = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>No such key.</Message></Error>'
PO = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n#: a.c:1\nmsgid "Open"\nmsgstr "Öffnen"\n'
XLIFF = '<xliff version="1.2"><file><body><trans-unit id="1"><source>a</source></trans-unit></body></file></xliff>'


def office(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, "text")
    return content.getvalue()


def tar() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "ä"}) as file:
        member = tarfile.TarInfo("de-en/train.de")
        member.size = 4
        file.addfile(member, io.BytesIO(b"Hund"))
    return content.getvalue()


def database() -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table pairs (source text)")
        return connection.serialize()


def array() -> bytes:
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    return content.getvalue()


FOREIGN: dict[str, tuple[str | bytes, str]] = {
    "lfs": (LFS, "a Git LFS pointer, not a text file. Fetch the file: git lfs pull"),
    "annex": ("/annex/objects/SHA256E-s12--0fb1.en.gz\n", "a git-annex pointer"),
    "annex link": ("../../.git/annex/objects/Qm/4x/SHA256E-s12--0fb1/SHA256E-s12--0fb1", "a git-annex pointer"),
    "xet": ("# xet version 0\nfilesize = 12\nhash = 'ab'\n", "a Git Xet pointer"),
    "dvc": ("outs:\n- md5: 0fb1\n  size: 12\n  path: train.en\n", "a DVC pointer"),
    "html": (HTML, "a web page (HTML, '404 Not Found')"),
    "nginx": ("<html>\r\n<head><title>502</title></head>\r\n<body>\r\n", "a web page (HTML"),
    "xhtml": (f'<?xml version="1.0"?>\n<!-- a -->\n{HTML}', "a web page"),
    "sgm": (SGML, "a test set in SGML or XML (WMT)"),
    "wmt xml": ('<?xml version="1.0"?>\n<dataset id="a"><doc id="b"><src lang="en"><seg id="1">A</seg></src>',
                "a test set in SGML or XML (WMT)"),
    "europarl": ('<CHAPTER ID="1">\nResumption\n<SPEAKER ID="1" NAME="x">\nI declare\n<P>\n', "text with SGML markup"),
    "iwslt": ("<url>http://www.ted.com/1</url>\n<keywords>talks</keywords>\nHello.\n", "text with SGML markup"),
    "opus": ('<?xml version="1.0"?>\n<text>\n<s id="1">A</s>\n</text>', "an XML file (its root element is <text>)"),
    "tmx": ('<tmx version="1.4"><header/><body></body></tmx>', "a translation memory (TMX)"),
    "xliff": (XLIFF, "an XLIFF file"),
    "xliff 2": ('<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"/>', "an XLIFF file"),
    "po": (PO, "a gettext catalogue (PO)"),
    "srt": ("1\r\n00:00:01,000 --> 00:00:02,000\r\nHello.\r\n", "a subtitle file"),
    "vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n", "a subtitle file"),
    "s3": (ERROR, "the error message of a server (NoSuchKey)"),
    "github api": ('{"message": "Not Found", "documentation_url": "https://example.org"}', "an error message in JSON"),
    "hugging face": ('{"error":"Repository not found"}', "an error message in JSON"),
    "raw github": ("404: Not Found", "an error message (404: Not Found)"),
    "curl": ("curl: (22) The requested URL returned error: 404\n", "an error message (curl: (22)"),
    "rsync": ('rsync: link_stat "/a" failed: No such file or directory (2)\nrsync error: x\n', "an error message (rsy"),
    "json": ('{\n  "a": "b",\n  "c": "d"\n}\n', "a JSON document"),
    "array": ('[{"source": "a"},\n{"source": "b"}]', "a JSON array"),
    "jsonl": ('{"a": "b"}\n{"a": "c"}\n{"a": "d"}\n', "JSON Lines"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF"),
    "rtf": (r"{\rtf1\ansi Hello}", "a document in rich text format"),
    "docx": (office("[Content_Types].xml", "word/document.xml"), "a Word document (.docx)"),
    "xlsx": (office("xl/workbook.xml", "[Content_Types].xml"), "an Excel workbook (.xlsx)"),
    "odt": (office("mimetype", "content.xml"), "an OpenDocument file"),
    "parquet": (b"PAR1\x15\x04\x15\x10" + bytes(range(64)), "a Parquet file"),
    "sqlite": (database(), "a database (SQLite)"),
    "pickle": (pickle.dumps({"source": ["a"] * 9}), "a Python pickle"),
    "old pickle": (pickle.dumps([("a", "b")], protocol=2), "a Python pickle"),
    "numpy": (array(), "a NumPy array"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a JPEG image"),
    "tar": (tar(), "a tar archive (its first file is de-en/train.de), not a text file. Extract it, and use its"),
    "tgz": (gzip.compress(tar()), "a tar archive"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\x04", "an archive (7z)"),
    "lz4": (b"\x04\x22\x4d\x18\x64\x40\xa7\0", "a compressed file (LZ4), not a text file. Decompress it: lz4 -d"),
    "zeros": (bytes(5000), "a file of zero bytes"),
    "unknown": (bytes(range(256)) * 9, "a binary file"),
    "compressed page": (gzip.compress(HTML.encode()), "a web page"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_not_a_text_is_named(tmp_path: Path, name: str) -> None:
    content, message = FOREIGN[name]
    path = tmp_path / "corpus.en"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        next(open_lines(path))
    assert str(caught.value).startswith(f"{path} is {message}")
    with pytest.raises(DataError):
        check_readable(CorpusConfig(source=path, target=path))


TEXTS = (
    "<html> is the root element of a page.\nA second line.\n",
    "<p>A paragraph</p>\n<b>bold</b>\n",
    "<seg> is an element of TMX.\n<doc>\n",
    "<url> is a tag.\nkeywords\n",
    '<?xml version="1.0"?>\nis the first line of a file.\n',
    "<!DOCTYPE html>\nThis line declares the type of a page.\n",
    "404 Not Found\nThe page was not found.\n",
    "Entry not found\n",
    "{0} files were deleted.\n{1} files remain.\n",
    '{"a": "b"}\n',
    "[Music]\n[Applause]\n",
    "version https://git-lfs.github.com/spec/v1\nis the first line of a pointer.\n",
    "msgid is a keyword.\nmsgstr is another one.\n",
    "1\n2\n3\n",
    "MZ\nID3 tags\nBZh9 is a signature\nRIFF\n",
    "BZh91\nPAR1\n",
    "BM was a company.\n",
    "%PDF- is a signature.\n",
    "fatal: the wound was.\ncurl: to form into ringlets\n",
    "(lp0\n",
    "0" * 600 + "\n",
    "WEBVTT is a format.\n",
    "a\0b\n" * 3,
    "\x1b[1mbold\x1b[0m\n" * 99,
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_may_resemble_another_format(tmp_path: Path, text: str) -> None:
    path = tmp_path / "corpus.en"
    path.write_text(text, encoding="utf-8")
    assert "\n".join(open_lines(path)) + "\n" == text
    assert "".join(read_text(path)) == text


def test_the_segments_of_a_test_set_are_extracted_by_the_command_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "test set.sgm"
    path.write_text(SGML, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        next(open_lines(path))
    command = str(caught.value).partition("Extract its segments: ")[2]
    subprocess.run(command, shell=True, check=True)
    assert list(open_lines(tmp_path / "test set.sgm.txt")) == ["Ein Hund.", "Zwei < drei "]


def test_an_archive_is_extracted_by_the_command_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "a b.tgz"
    path.write_bytes(gzip.compress(tar()))
    with pytest.raises(DataError) as caught:
        next(open_lines(path))
    subprocess.run(str(caught.value).partition("use its files: ")[2], shell=True, check=True, cwd=tmp_path)
    assert list(open_lines(tmp_path / "de-en" / "train.de")) == ["Hund"]


def test_a_file_that_is_named_like_a_compressed_file_is_still_recognised(tmp_path: Path) -> None:
    path = tmp_path / "train.en.gz"
    path.write_text(HTML)
    with pytest.raises(DataError, match="is a web page"):
        next(open_lines(path))


def test_a_link_of_git_annex_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "train.en"
    path.symlink_to(Path(".git/annex/objects/aa/bb/SHA256E-s1--0/SHA256E-s1--0"))
    with pytest.raises(DataError, match=r"is a link to .*, which does not exist: git annex get"):
        next(open_lines(path))


@pytest.mark.parametrize("form", ["auto", "jsonl", "tmx", "tsv"])
@pytest.mark.parametrize("name", ["lfs", "html", "pdf", "tar", "sqlite"])
def test_every_form_of_corpus_names_foreign_files(tmp_path: Path, form: str, name: str) -> None:
    content, message = FOREIGN[name]
    path = tmp_path / f"corpus.{form}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    settings = {"source_code": "de", "target_code": "fr"} if form == "tmx" else {}
    corpus = CorpusConfig.model_validate({"pairs": path, "format": form, **settings})
    for read in (check_readable, lambda each: list(read_pairs(each))):
        with pytest.raises(DataError) as caught:
            read(corpus)
        assert message.partition(",")[0].partition(" (")[0] in str(caught.value)


def test_a_json_file_as_jsonl_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps({"source": "a", "target": "b"}, indent=1))
    with pytest.raises(DataError, match=r"line 1: not valid JSON .*`jq -c \.` writes objects in this form"):
        check_readable(CorpusConfig(pairs=path, format="jsonl"))
