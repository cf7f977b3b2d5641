"""Invalid and malicious files of messages, XLIFF and OpenDocument texts are answered with 400 and the reason."""

from typing import Any

import httpx
from open_documents import packed
from scripted_server import asked, served, shouting

ENTITIES = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><xliff version="1.2">&b;</xliff>'
FRENCH = 'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "A dog runs."\nmsgstr "b"\n\nmsgid "These are men."\nmsgstr ""\n'
FILES: dict[str, tuple[bytes, str]] = {
    "a.json": (b'{"a": ', "line 1, column 7: invalid JSON"),
    "b.json": (b"[" * 50_000, "nested too deeply"),
    "a.po": (b"a dog", "line 1: not a line of a gettext catalogue"),
    "b.po": (FRENCH.encode(), "in the language 'fr'"),
    "a.xlf": (ENTITIES.encode(), "document type"),
    "b.xliff": (b"<xliff version='1.2'>" + b"<g>" * 10_000, "nested more than 200 deep"),
    "a.odt": (b"a dog", "not an OpenDocument text"),
    "a.xyz": (b"a: b", "supported extensions are .txt"),
    "a.docx": (packed({"content.xml": "<a/>"}), "this is an OpenDocument text (.odt), not docx"),
    "c.json": (b"\x89PNG\r\n\x1a\n\0\0", "this is a PNG image"),
}


def test_invalid_files() -> None:
    files = {**FILES, "b.odt": (packed({"content.xml": b"<a>" + b" " * (65 << 20)}), "would unpack to")}

    async def work(client: httpx.AsyncClient) -> dict[str, tuple[int, Any]]:
        answers = {}
        for name, (content, _) in files.items():
            for source in ("en", "auto"):
                data = {"source": source, "target": "de"}
                answer = await client.post("/translate_file", files={"file": (name, content)}, data=data)
                answers[f"{name} {source}"] = answer.status_code, answer.json()
        return answers

    with served({"en-de": shouting}) as service:
        answers = asked(service, work)
    for key, (status, answer) in answers.items():
        assert status == 400 and files[key.partition(" ")[0]][1] in answer["error"], (key, answer)
        assert "--" not in answer["error"]
