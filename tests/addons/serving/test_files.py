"""Translation of files by the server: every format, hostile files, and the store of translations."""

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

import docx
import httpx
import pytest
from open_documents import body, document
from scripted_server import asked, served, shouting, translator

from dragoman import translate_document
from dragoman.engines.engine import Row


def sent(client: httpx.AsyncClient, name: str, content: bytes, **fields: str) -> Any:
    data = {"source": "en", "target": "de", **fields}
    return client.post("/translate_file", files={"file": (name, content)}, data=data)


def fetched(service: Any, name: str, content: bytes, **fields: str) -> tuple[str, bytes]:
    """Return the name and the content of the translation."""

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        answer = await sent(client, name, content, **fields)
        assert answer.status_code == 200, answer.text
        assert list(answer.json()) == ["translatedFileUrl"]
        return await client.get(answer.json()["translatedFileUrl"])

    answer = asked(service, work)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/octet-stream"
    return unquote(answer.headers["content-disposition"].partition("''")[2]), answer.content


@pytest.mark.parametrize(
    ("name", "content", "translated"),
    [
        ("a.txt", b"A dog.\n\n  Two\tmen\r\n", b"A DOG.\n\n  TWO\tMEN\r\n"),
        ("b c.md", b"# A dog\n\n- *two* `men`\n", b"# A DOG\n\n- *TWO* `men`\n"),
        ("d.HTML", b'<p class="x">a &amp; b</p>', b'<p class="x">A &amp; B</p>'),
        ("news.en", b"A dog.\n", b"A DOG.\n"),
        ("e.srt", b"1\n00:00:01,000 --> 00:00:02,000\na dog\n", b"1\n00:00:01,000 --> 00:00:02,000\nA DOG\n"),
        (
            "e.ssa",
            b"Dialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,a dog",
            b"Dialogue: 0,0:00:01.00,0:00:02.00,,,0,0,0,,A DOG",
        ),
        ("e.lrc", b"[00:01.00]a <00:02.00>dog", b"[00:01.00]A <00:02.00>DOG"),
        ("f.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\na dog\n", b"WEBVTT\n\n00:01.000 --> 00:02.000\nA DOG\n"),
    ],
)
def test_formats_are_recognised_by_file_names(name: str, content: bytes, translated: bytes) -> None:
    with served({"en-de": shouting}) as service:
        stem, _, ending = name.rpartition(".")
        assert fetched(service, name, content) == (f"{stem}.de.{ending.lower()}", translated)
        assert fetched(service, name, content, source="auto")[1] == translated


CATALOGUE = (
    'msgid "a dog"\nmsgstr ""\n\nmsgid "x"\nmsgstr "kept"\n\n'
    'msgid "1 %s"\nmsgid_plural "%d men"\nmsgstr[0] ""\nmsgstr[1] ""\n'
)
SEGMENTS = (
    '<xliff version="1.2"><file source-language="en"><body><trans-unit id="1"><source>a <g id="1">dog</g></source>'
    "</trans-unit><trans-unit id='2'><source>x</source><target>kept</target></trans-unit></body></file></xliff>"
)


def test_files_of_messages_and_open_documents() -> None:
    with served({"en-de": shouting}) as service:
        name, content = fetched(service, "a.po", CATALOGUE.encode())
        assert name == "a.de.po" and b'#, fuzzy\nmsgid "a dog"\nmsgstr "A DOG"\n' in content
        assert fetched(service, "a.json", b'{"a": "a dog {x}"}') == ("a.de.json", b'{"a": "A DOG {x}"}')
        assert b'<g id="1">DOG</g></target>' in fetched(service, "a.xlf", SEGMENTS.encode())[1]
        assert b'target-language="de"' in fetched(service, "a.xliff", SEGMENTS.encode(), source="auto")[1]
        assert body(fetched(service, "a.odt", document("<text:p>a dog</text:p>"))[1]) == "<text:p>A DOG</text:p>"


def test_files_with_translations_through_a_pivot() -> None:
    """The second model reads what the first one wrote, and kept translations are not translated."""

    def numbered(row: Row) -> list[str]:
        return [f"{row.text.lower()} twice"]

    with served({"en-de": shouting, "de-fr": numbered}, pivots=["de"]) as service:
        catalogue = fetched(service, "a.po", CATALOGUE.encode(), target="fr")[1].decode()
        assert 'msgid "a dog"\nmsgstr "a dog twice"' in catalogue and 'msgid "x"\nmsgstr "kept"' in catalogue
        assert 'msgstr[1] "%d men twice"' in catalogue
        segments = fetched(service, "a.xlf", SEGMENTS.encode(), target="fr")[1].decode()
        assert 'source-language="en" target-language="fr"' in segments and "<target>kept</target>" in segments
        target = segments.partition("<target state=")[2].partition("</target>")[0].partition(">")[2]
        assert re.sub("<[^>]*>", "", target) == "a dog twice" and '<g id="1">' in target
        assert fetched(service, "a.json", b'["a dog"]', target="fr")[1] == b'["a dog twice"]'
        page = b'<html lang="en"><p>a dog<p lang="en">a man<p lang="de">ein Hund'
        assert fetched(service, "a.html", page, target="fr")[1] == (
            b'<html lang="fr"><p>a dog twice<p lang="fr">a man twice<p lang="de">ein Hund'
        )


class MirrorAligner:
    """Links word i of n to word n - 1 - i."""

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Any]:
        counts = [len(source.split()) for source in sources]
        return [tuple((place, count - 1 - place) for place in range(count)) for count in counts]

    def settings(self) -> dict[str, Any]:
        return {}


def backwards(row: Row) -> list[str]:
    return [" ".join(reversed(row.text.upper().split()))]


@pytest.mark.parametrize("aligner", [None, MirrorAligner()])
@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("md", "# A *brown* dog\n\n- two `men` run, **and a dog**. It barks.\n"),
        ("html", '<p>A <b>brown</b> dog &amp; <code>men</code>.<img alt="a dog"> Two <i>dogs</i> run.</p>'),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\na <i>brown dog</i>\nruns to two men\n"),
        ("txt", "\ufeffA dog.  It barks.\r\n\tTwo men\r\n"),
    ],
)
def test_the_command_line_and_the_server_write_the_same_document(format: str, content: str, aligner: Any) -> None:
    with served({"en-de": backwards}, aligner=aligner) as service:
        by_server = fetched(service, f"x.{format}", content.encode())[1]
    own = translator("en-de", backwards)
    own.aligner = aligner
    name = {"md": "markdown", "txt": "text"}.get(format, format)
    assert by_server == translate_document(own, content, format=name).content.encode() != content.encode()


def test_word_documents() -> None:
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("a dog")
    document.save(file)
    with served({"en-de": shouting}) as service:
        name, content = fetched(service, "x.docx", file.getvalue())
    assert name == "x.de.docx" and [each.text for each in docx.Document(io.BytesIO(content)).paragraphs] == ["A DOG"]


def bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<a>" + b" " * 100_000_000)
    return file.getvalue()


def entities() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>')
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "told"),
    [
        ("a.bin", b"%PDF-1.7 x", {}, 400, "file: this is a PDF: give it the file name extension .pdf"),
        ("a.po.bak", b"x", {}, 400, "supported extensions are .txt, .text, .md"),
        ("a.txt", b"%PDF-1.7 x", {}, 400, "the file: this is a PDF, not text: give it"),
        ("a.md.gz", b"\x1f\x8b\x08\0x", {}, 400, "the file: this is a compressed file (gzip)"),
        ("a.txt", b"\xff", {}, 400, "broken UTF-8"),
        ("a.txt", b"x", {"target": "fr"}, 400, "fr is not supported"),
        ("a.docx", b"no archive", {}, 400, ""),
        ("a.docx", bomb, {}, 400, ""),
        ("a.docx", entities, {}, 400, ""),
        ("a.txt", b"x" * 200_001, {}, 413, "200,000 bytes"),
    ],
)
def test_uploads_that_are_not_documents(
    name: str, content: bytes | Callable[[], bytes], fields: dict[str, str], status: int, told: str
) -> None:
    upload = content() if callable(content) else content
    with served({"en-de": shouting}, limits={"file_bytes": 200_000}) as service:
        answer = asked(service, lambda client: sent(client, name, upload, **fields))
        assert answer.status_code == status, answer.text
        assert told in answer.json()["error"] and "root:" not in answer.text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data"),
        (b"--x", "multipart/form-data; boundary=x"),
        (b"x" * 1000, "multipart/form-data; boundary=" + "y" * 100),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--", "multipart/form-data; boundary=x"),
        (b'{"file": "a"}', "application/json"),
    ],
)
def test_uploads_that_are_not_forms(body: bytes, kind: str) -> None:
    with served({"en-de": shouting}) as service:
        headers = {"content-type": kind}
        answer = asked(service, lambda client: client.post("/translate_file", content=body, headers=headers))
    assert answer.status_code == 400 and "error" in answer.json(), answer.text


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.txt", "..\\..\\a.txt", "/a.txt", "a\nSet-Cookie: b.txt", "\u202e.txt", "'\".txt"]
)
def test_file_names_are_never_paths(name: str) -> None:
    with served({"en-de": shouting}) as service:
        found, content = fetched(service, name, b"a")
    assert content == b"A" and found.endswith(".de.txt")
    assert not set("/\\\n\u202e") & set(found)


def test_missing_files() -> None:
    with served({"en-de": shouting}) as service:
        for path in ("/download_file/x/y", "/download_file/..%2f..%2fetc/passwd", "/download_file/x/../../a"):
            assert asked(service, lambda client, path=path: client.get(path)).status_code == 404


def test_encodings_of_files() -> None:
    text, page = "Un café. Un chien.\n", '<meta charset="koi8-r"><p>a café'
    with served({"en-de": shouting}) as service:

        async def work(client: httpx.AsyncClient) -> list[Any]:
            answers = [
                await client.post(
                    "/translate_file",
                    files={"file": ("a.html", page.encode("latin-1"), "text/html; charset=ISO-8859-1")},
                    data={"source": "en", "target": "de"},
                ),
                await sent(client, "a.txt", text.encode("latin-1")),
                await sent(client, "a.txt", b"a dog", encoding="klingon"),
                await sent(client, "a.po", CATALOGUE.encode(), encoding="latin1"),
            ]
            page_answer = await client.get(answers[0].json()["translatedFileUrl"])
            return [page_answer.content, *[(answer.status_code, answer.json()["error"]) for answer in answers[1:]]]

        translated, broken, unknown, declared = asked(service, work)
        assert translated == b'<meta charset="windows-1252"><p>A CAF\xc9'
        assert broken[0] == unknown[0] == declared[0] == 400
        assert "line 1: broken UTF-8" in broken[1] and "--" not in broken[1] and "encoding=windows-1252" in broken[1]
        assert "unknown encoding 'klingon'" in unknown[1] and "declare their encoding" in declared[1]
        assert fetched(service, "a.txt", text.encode("latin-1"), encoding="latin1")[1] == text.upper().encode("latin-1")
        assert fetched(service, "a.txt", text.encode("utf-16"), encoding="")[1] == text.upper().encode("utf-16")
