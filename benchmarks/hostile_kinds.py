"""Hostile clients of a translation server, one of each kind, in a process of their own."""

import asyncio
import io
import json
import multiprocessing
import os
import random
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

Address = tuple[str, int]


def request(route: str, body: bytes, kind: str, client: str, extra: str = "") -> bytes:
    """Return the bytes of a request. client: its address."""
    head = f"POST {route} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return f"{head}x-forwarded-for: {client}\r\n{extra}\r\n".encode() + body


def post_json(route: str, values: object, client: str) -> bytes:
    """Return the bytes of a request with a JSON body."""
    return request(route, json.dumps(values).encode(), "application/json", client)


def post_file(name: str, content: bytes, client: str, languages: tuple[str, str]) -> bytes:
    """Return the bytes of a form with a file."""
    parts = [
        f'--x\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in zip(("source", "target"), languages, strict=True)
    ]
    parts.append(f'--x\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + content)
    return request("/translate_file", b"".join([*parts, b"\r\n--x--\r\n"]), "multipart/form-data; boundary=x", client)


def zip_bomb() -> bytes:
    """Return a Word document of 1 MB that would be 1 GB."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w", force_zip64=True) as document:
            document.write(b"<w:document>")
            for _ in range(1000):
                document.write(b" " * 1_000_000)
    return file.getvalue()


def packed(document: str, size: int) -> bytes:
    """Return an Office file whose document, of `size` repeated pieces, takes much more memory than the file.

    document: such as `word/document.xml`; the pieces are runs of Word, or cells of Excel.
    """
    pieces = {
        "word/document.xml": (
            "<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'><w:body><w:p>",
            "<w:r><w:t>a dog </w:t></w:r>",
            "</w:p></w:body></w:document>",
        ),
        "xl/sharedStrings.xml": (
            "<sst xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'>",
            "<si><t>a dog</t></si>",
            "</sst>",
        ),
    }
    start, piece, end = pieces[document]
    prefix = "application/vnd.openxmlformats-officedocument."
    types = {
        "word/document.xml": {"word/document.xml": "wordprocessingml.document.main"},
        "xl/sharedStrings.xml": {
            "xl/workbook.xml": "spreadsheetml.sheet.main",
            "xl/sharedStrings.xml": "spreadsheetml.sharedStrings",
        },
    }
    declared = "".join(
        f'<Override PartName="/{name}" ContentType="{prefix}{kind}+xml"/>' for name, kind in types[document].items()
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", f"<Types>{declared}</Types>")
        archive.writestr("xl/workbook.xml", "<workbook><sheets/></workbook>")
        archive.writestr(document, start + size * piece + end)
    return file.getvalue()


EXPRESSIONS = {
    "override": (
        "a.ass",
        "[Events]\nFormat: Layer, Start, End, Style, Text\nDialogue: 0,0:00:01.00,0:00:03.00,D,{\\",
        "a",
        "\\b}dog",
    ),
    "blanks": ("a.md", "---\ndescription: |\n  a", " ", "b\n---\n"),
    "arguments": ("a.json", '{"a": "', "{n, plural, one {", '"}'),
    "punctuation": ("a.txt", "中", ".", "a"),
    "tags": ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n", "<i", "dog"),
    "roles": ("a.rst", "", ":a:a", "`dog`"),
    "groups": ("a.tex", "", "\\a{$", "dog"),
}
"""Files with a long run of one piece, for which a pattern that is not linear takes minutes: name, start, piece, end."""

Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def attacks(texts: Sequence[str], languages: tuple[str, str]) -> dict[str, Callable[[str], Attack]]:
    """Return each kind of hostile client: a function from the client's address to what it does with a connection."""
    source, target = languages
    long_text = " ".join(texts)[:9_900]
    words = long_text.split()
    forms = [[f"{random.choice(words)} {random.choice(words)}" for _ in range(20)] for _ in range(10)]
    common = {"source": source, "target": target}
    bomb, html = zip_bomb(), b"<a " * 66_000
    runs, cells = packed("word/document.xml", 190_000), packed("xl/sharedStrings.xml", 150_000)
    repeated = [
        (name, (start + piece * (400_000 // len(piece)) + end).encode())
        for name, start, piece, end in EXPRESSIONS.values()
    ]
    book = ("\n".join(texts) + "\n").encode()[:900_000]

    def whole(make: Callable[[str], bytes], wait: float = 10.0) -> Callable[[str], Attack]:
        """Send a request, wait for a part of the answer at most `wait` seconds, and disconnect."""

        def attack(client: str) -> Attack:
            data = make(client)

            async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(data)
                await writer.drain()
                await asyncio.wait_for(reader.read(100), wait)

            return run

        return attack

    def dripping(head: str, chunk: bytes, pause: float) -> Callable[[str], Attack]:
        """Send a head, and the same chunk again and again."""

        def attack(client: str) -> Attack:
            async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(
                    f"POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: {client}\r\n"
                    f"content-type: application/json\r\n{head}".encode()
                )
                while not reader.at_eof():
                    writer.write(chunk)
                    await writer.drain()
                    await asyncio.sleep(pause)

            return run

        return attack

    def crowd(count: int, head: bytes) -> Callable[[str], Attack]:
        """Open many further connections, send the beginning of a request on each, and leave them open."""

        def attack(client: str) -> Attack:
            async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writers = [writer]
                try:
                    for _ in range(count):
                        _, each = await asyncio.open_connection(*writer.get_extra_info("peername")[:2])
                        writers.append(each)
                    for each in writers:
                        each.write(head.replace(b"CLIENT", client.encode()))
                    await asyncio.sleep(30)
                finally:
                    for each in writers:
                        each.transport.abort()

            return run

        return attack

    started = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: CLIENT\r\n"
    chunked = "transfer-encoding: chunked\r\n\r\n"
    return {
        "slow body": dripping("content-length: 100000\r\n\r\n", b"{", 1),
        "endless body": dripping(chunked, b"1000\r\n" + b"x" * 4096 + b"\r\n", 0),
        "endless headers": dripping("", b"x-a: " + b"x" * 4000 + b"\r\n", 0),
        "endless trailers": dripping(chunked + "0\r\n", b"x-a: " + b"x" * 4000 + b"\r\n", 0),
        "endless chunk extension": dripping(chunked + "1;", b"x=y;" * 1000, 0),
        "100,000 forms": whole(
            lambda client: post_json(
                "/v1/translate",
                {"text": "A dog.", **common, "constraints": [[f"w{number}" for number in range(100_000)]]},
                client,
            )
        ),
        "as many forms as allowed": whole(
            lambda client: post_json(
                "/v1/translate", {"text": list(texts[:128]), **common, "constraints": forms}, client
            )
        ),
        "glossary": whole(
            lambda client: post_json(
                "/v1/translate",
                {
                    "text": long_text,
                    **common,
                    "beam": 8,
                    "guard": True,
                    "glossary": {word: [f"{word} {number}" for number in range(20)] for word in words[:500]},
                },
                client,
            )
        ),
        "largest beam": whole(
            lambda client: post_json(
                "/v1/translate",
                {"text": long_text, **common, "beam": 8, "nbest": 6, "guard": True, "alignment": True},
                client,
            )
        ),
        "nested JSON": whole(
            lambda client: request("/translate", b"[" * 500_000 + b"]" * 400_000, "application/json", client)
        ),
        "100,000 texts": whole(lambda client: post_json("/translate", {"q": ["a"] * 100_000, **common}, client)),
        "HTML that never ends": whole(lambda client: post_file("a.html", html, client, languages)),
        "HTML as text": whole(
            lambda client: post_json("/translate", {"q": "<a " * 3_300, **common, "format": "html"}, client)
        ),
        "zip bomb": whole(lambda client: post_file("a.docx", bomb, client, languages)),
        "large file": whole(lambda client: post_file("a.txt", book, client, languages), 20),
        "dropped in the search": whole(lambda client: post_json("/translate", {"q": long_text, **common}, client), 0.3),
        "dropped stream": whole(
            lambda client: post_json("/v1/translate", {"text": long_text, **common, "stream": True}, client)
        ),
        "regular expressions": whole(lambda client: post_file(*random.choice(repeated), client, languages), 20),
        "memory of runs": whole(lambda client: post_file("a.docx", runs, client, languages), 20),
        "memory of cells": whole(lambda client: post_file("a.xlsx", cells, client, languages), 20),
        "silent connections": crowd(300, b""),
        "half-open connections": crowd(300, started),
        "idle connections": crowd(300, started + b"\r\n"),
        "wrong keys": whole(
            lambda client: request(
                "/translate", b"{}", "application/json", client, f"authorization: Bearer dgm_{random.random()}\r\n"
            )
        ),
        "not received": whole(lambda client: post_json("/translate", {"q": long_text, **common}, client) * 50, 0.0),
    }


async def attack_again_and_again(
    address: Address, attack: Attack, tries: Counter[str], name: str, until: float
) -> None:
    """Run an attack with a new connection each time, until a time of `time.perf_counter`."""
    while time.perf_counter() < until:
        writer = None
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(*address)
            tries[name] += 1
            await asyncio.wait_for(attack(reader, writer), max(0.1, min(30, until - time.perf_counter())))
        if writer is not None:
            writer.transport.abort()
        await asyncio.sleep(0.1)


async def attack_together(address: Address, hostile: dict[str, Attack], seconds: float) -> Counter[str]:
    """Run one client of each kind for some time. Returns the number of connections of each."""
    tries, until = Counter[str](), time.perf_counter() + seconds
    tasks = [
        asyncio.create_task(attack_again_and_again(address, attack, tries, name, until))
        for name, attack in hostile.items()
    ]
    await asyncio.wait(tasks, timeout=seconds + 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return tries


def _serve_commands(connection: Connection, address: Address, texts: Sequence[str], languages: tuple[str, str]) -> None:
    os.nice(19)  # elsewhere, the hostile clients have processors of their own
    hostile = {
        name: attack(f"10.9.0.{number}") for number, (name, attack) in enumerate(attacks(texts, languages).items())
    }
    connection.send(list(hostile))
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            names, seconds = connection.recv()
            connection.send(asyncio.run(attack_together(address, {name: hostile[name] for name in names}, seconds)))


class HostileProcess:
    """The process of the hostile clients, so that their work does not delay the measured clients.

    names: all kinds.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.names: list[str] = connection.recv()

    def begin(self, names: Sequence[str], seconds: float) -> None:
        """Run one client of each kind for some time."""
        self._connection.send((names, seconds))

    def result(self) -> Counter[str]:
        """Wait for the end, and return the number of connections of each kind."""
        tries: Counter[str] = self._connection.recv()
        return tries


@contextmanager
def hostile_process(address: Address, texts: Sequence[str], languages: tuple[str, str]) -> Iterator[HostileProcess]:
    """Start the process, and end it at the end of the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_commands, args=(theirs, address, texts, languages), daemon=True)
    process.start()
    theirs.close()
    try:
        yield HostileProcess(ours)
    finally:
        ours.close()
        process.terminate()
        process.join()
