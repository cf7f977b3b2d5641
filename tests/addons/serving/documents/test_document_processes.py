"""Files are parsed and written in processes that can be ended: one that hangs or grows costs one answer."""

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from scripted_server import asked, served, shouting
from stand_in_translators import StandIn, backwards
from waiting import PATIENCE

from dragoman.addons.documents.formats.union import get_format
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.pipeline import DocumentPipeline
from dragoman.addons.serving.config import LimitsConfig
from dragoman.addons.serving.documents import processes
from dragoman.addons.serving.documents.processes import DocumentProcesses
from dragoman.base.errors import DataError
from dragoman.inference.control.control import Control

HOSTILE = """
import re, os
from dragoman.addons.documents.formats import union
from dragoman.addons.documents.formats.format import TextFormat
from dragoman.addons.serving.documents.worker import main
parse = union.FORMATS["srt"]._parse_text
def hostile(text, languages):
    if "hang" in text:
        re.fullmatch("(a+)+b", "a" * 99)  # holds the lock of the interpreter for years
    if "grow" in text:
        bytes(10 ** 9)
    if "die" in text:
        os.abort()
    return parse(text, languages)
union.FORMATS["srt"] = TextFormat(hostile)
main()
"""
CUE = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n"
FIELDS = {"source": "en", "target": "de"}


def cues(text: str) -> dict[str, tuple[str, str]]:
    """Return a file that is large enough for a process of its own."""
    return {"file": ("a.srt", CUE.format(text) + CUE.format("a dog") * 600)}


@pytest.fixture(scope="module")
def hostile() -> Iterator[Any]:
    """A server that reads subtitles in processes in which some words do harm."""
    limits = {"file_seconds": PATIENCE, "file_megabytes": 200}
    with pytest.MonkeyPatch.context() as patch, served({"en-de": shouting}, limits=limits) as service:
        patch.setattr(processes, "_COMMAND", HOSTILE)
        yield service
        service.close()


@pytest.mark.parametrize("items", [1, 2000])
def test_a_document_of_a_process_is_the_same(items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_MESSAGE_ITEMS", items)
    documents = {
        "html": "<p>Two <b>big</b> dogs<sup>1</sup> &amp; a <a href=x title='a cat'>cat</a> <b>#tag</b>.</p>\n",
        "markdown": "# Two *big* dogs\n\nA `code` and a [cat](x).\n",
        "po": 'msgid "two %d dogs"\nmsgstr ""\n',
    }
    pool = DocumentProcesses(LimitsConfig())
    translator = StandIn(backwards)
    request = replace(translator.request(), control=Control.of(glossary={"#tag": "#Wort"}))
    pipeline = DocumentPipeline(translator, request, "en")  # type: ignore[arg-type]
    try:
        for name, content in documents.items():
            with pool.open(name, 100_000) as format:
                written = []
                for each in (format, get_format(name)):
                    decoded = each.decode(content.encode(), "the file")
                    document = pipeline.segment(each.parse(decoded.content, Languages("en", "de")))
                    texts = [" ".join(word for word, _ in backwards(each.text.split())) for each in document.sentences]
                    texts = [text.replace("#TAG", "#Wort") for text in texts]
                    assert texts
                    alignments = translator.align([each.text for each in document.sentences], texts)
                    written.append(decoded.encode(document.write(texts, alignments)))
            assert written[0] == written[1] != content.encode()
            assert name != "html" or b"<b>#Wort" in written[0]
        with pool.open("json", 100_000) as format, pytest.raises(DataError, match="JSON"):
            format.parse("{")
    finally:
        pool.close()


def test_a_small_document_has_no_process() -> None:
    pool = DocumentProcesses(LimitsConfig())
    with pool.open("html", 1000) as format:
        assert format is get_format("html")


def test_a_file_that_hangs_costs_one_answer(hostile: Any) -> None:
    async def work(client: httpx.AsyncClient) -> tuple[httpx.Response, ...]:
        first = await client.post("/translate_file", files=cues("a cat"), data=FIELDS)  # imports the formats
        hostile._limits = hostile._limits.model_copy(update={"file_seconds": 3})
        file = asyncio.create_task(client.post("/translate_file", files=cues("hang"), data=FIELDS))
        seconds = []
        while not file.done():
            begin = time.monotonic()
            short = await client.post("/translate", json={"q": "a dog", **FIELDS})
            seconds.append(time.monotonic() - begin)
            await asyncio.sleep(0.05)
        assert len(seconds) > 1 and max(seconds) < 2.5, seconds
        hostile._limits = hostile._limits.model_copy(update={"file_seconds": PATIENCE})
        return first, short, await file, await client.post("/translate_file", files=cues("a cat"), data=FIELDS)

    first, short, hung, last = asked(hostile, work)
    assert (first.status_code, short.status_code, hung.status_code, last.status_code) == (200, 200, 503, 200)
    assert "longer than 3 seconds" in hung.json()["error"]


def test_a_file_that_grows_or_crashes_costs_one_answer(hostile: Any) -> None:
    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/translate_file", files=cues(each), data=FIELDS) for each in ("grow", "die", "a dog")
        ]

    large, ended, fine = asked(hostile, work)
    assert (large.status_code, ended.status_code, fine.status_code) == (413, 413, 200)
    assert "200 megabytes of memory (limits.file_megabytes)" in large.json()["error"]


def test_the_end_of_the_server_ends_a_file_that_hangs(hostile: Any) -> None:
    async def work(client: httpx.AsyncClient) -> tuple[httpx.Response, float]:
        hostile._limits = hostile._limits.model_copy(update={"file_seconds": 10 * PATIENCE})
        file = asyncio.create_task(client.post("/translate_file", files=cues("hang"), data=FIELDS))
        while not any(each._worker for each in hostile.documents._open):
            await asyncio.sleep(0.05)
        (format,) = hostile.documents._open
        pid = format._worker[0]
        begin = time.monotonic()
        hostile.abort()
        answer = await file
        hostile.close()
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.05)
        return answer, time.monotonic() - begin

    answer, seconds = asked(hostile, work)
    assert answer.status_code == 503 and "shutting down" in answer.json()["error"]
    assert seconds < 10
