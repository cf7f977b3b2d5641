"""The latency of ordinary clients of a server, without and beside one hostile client of each kind.

    python benchmarks/hostile_clients.py MODEL SOURCE [--connections 200] [--pause 2] [--minutes 10] [--turns 5]

`dragoman serve MODEL` runs as a separate process with its default limits and quotas. Ordinary clients send single
sentences of SOURCE over --connections connections, and pause for --pause seconds after each answer. In half of the
turns, the hostile clients run beside them. Every client has its own address, in an X-Forwarded-For header that the
server trusts. Printed: counts by status, latencies, and the memory of the server's processes (PSS) over time.

    python benchmarks/hostile_clients.py MODEL SOURCE --schemathesis MINUTES

sends requests to the server that are generated from its OpenAPI document, for MINUTES.
"""

import argparse
import asyncio
import io
import itertools
import json
import random
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from dragoman.data.corpora.lines import open_lines
from serving import Answers, Client, memory, percentiles, server

Address = tuple[str, int]
SETTINGS = "access: {trusted_proxies: [127.0.0.1]}\nqueue: {cache_entries: 0}\nlog: false\n"


class Visitor(Client):
    """An ordinary client, which pauses after each answer."""

    pause = 2.0

    def _ask(self) -> None:
        if self._began:
            asyncio.get_running_loop().call_later(self.pause * random.uniform(0.5, 1.5), super()._ask)
        else:
            super()._ask()


def request(route: str, body: bytes, kind: str, client: str, extra: str = "") -> bytes:
    """Return the bytes of a request. client: its address."""
    head = f"POST {route} HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
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
        archive.writestr("word/document.xml", b"<w:document>" + b" " * 1_000_000_000)
    return file.getvalue()


Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def attacks(texts: Sequence[str], languages: tuple[str, str]) -> dict[str, Callable[[str], Attack]]:
    """Return each kind of hostile client: a function from the client's address to what it does with a connection."""
    source, target = languages
    long_text = " ".join(texts)[:9_900]
    words = long_text.split()
    forms = [[f"{random.choice(words)} {random.choice(words)}" for _ in range(20)] for _ in range(10)]
    common = {"source": source, "target": target}
    bomb, html = zip_bomb(), b"<a " * 66_000
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
                    f"POST /translate HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {client}\r\n"
                    f"content-type: application/json\r\n{head}".encode()
                )
                while not reader.at_eof():
                    writer.write(chunk)
                    await writer.drain()
                    await asyncio.sleep(pause)

            return run

        return attack

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


async def turn(
    address: Address, shares: Sequence[Iterator[bytes]], hostile: dict[str, Attack], seconds: float, tries: Counter[str]
) -> Answers:
    """Run the ordinary clients for some time, beside the hostile ones."""
    answers, loop = Answers(), asyncio.get_running_loop()
    began = time.perf_counter()
    hostile_tasks = [
        asyncio.create_task(attack_again_and_again(address, attack, tries, name, began + seconds))
        for name, attack in hostile.items()
    ]
    visitors = [Visitor(share, began + seconds, answers) for share in shares]
    await asyncio.gather(*(loop.create_connection(partial(_same, each), *address) for each in visitors))
    ended = await asyncio.gather(*(each.done for each in visitors), return_exceptions=True)
    answers.statuses[0] += sum(isinstance(each, BaseException) for each in ended)
    answers.took = time.perf_counter() - began
    for task in hostile_tasks:
        task.cancel()
    await asyncio.gather(*hostile_tasks, return_exceptions=True)
    return answers


def _same(client: Client) -> Client:
    return client


async def measure(
    address: Address, process: int, texts: Sequence[str], languages: tuple[str, str], arguments: argparse.Namespace
) -> None:
    """Measure without and beside hostile clients, alternately."""
    sizes: list[tuple[float, float]] = []
    began = time.monotonic()

    async def watch() -> None:
        while True:
            sizes.append((time.monotonic() - began, await asyncio.to_thread(memory, process)))
            await asyncio.sleep(2)

    watching = asyncio.create_task(watch())
    hostile = {
        name: attack(f"10.9.0.{number}") for number, (name, attack) in enumerate(attacks(texts, languages).items())
    }
    source, target = languages
    ordinary = [
        post_json("/translate", {"q": text, "source": source, "target": target}, f"10.1.{index // 200}.{index % 200}")
        for index, text in enumerate(islice(cycle(texts), 20_000))
    ]
    places = itertools.count(random.randrange(1000), 97)
    seconds, tries = 60 * arguments.minutes / arguments.turns / 2, Counter[str]()
    found: dict[str, Answers] = {"without": Answers(), "beside": Answers()}
    for number in range(arguments.turns):
        for name in ("without", "beside") if number % 2 == 0 else ("beside", "without"):
            shares = [islice(cycle(ordinary), next(places), None) for _ in range(arguments.connections)]
            answers = await turn(address, shares, hostile if name == "beside" else {}, seconds, tries)
            print(f"turn {number}, {name} hostile clients: {dict(answers.statuses)}, {percentiles(answers.seconds)}")
            found[name].statuses.update(answers.statuses)
            found[name].seconds += answers.seconds
            found[name].took += answers.took
    watching.cancel()
    for name, answers in found.items():
        rate = answers.statuses[200] / answers.took
        print(
            f"{name} hostile clients: {dict(answers.statuses)}, {rate:.0f} per second, {percentiles(answers.seconds)}"
        )
    print(f"attempts of hostile clients: {dict(tries)}")
    step = max(1, len(sizes) // 12)
    print("memory: " + ", ".join(f"{moment / 60:.1f} min {size:.0f} MiB" for moment, size in sizes[::step]))


def run_schemathesis(address: Address, minutes: float) -> None:
    """Send generated requests until the time is over. Reports server errors and answers that violate the schema."""
    until, runs = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < until:
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"http://{address[0]}:{address[1]}/openapi.json",
            "--checks",
            "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance",
            "--max-examples",
            "200",
            "--seed",
            str(runs),
            "--request-timeout",
            "30",
        ]
        remaining = until - time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            if subprocess.run(command, timeout=remaining + 5, check=False).returncode:
                raise SystemExit(f"schemathesis found a failure with seed {runs}")
            runs += 1
    print(f"{runs} complete runs of schemathesis in {minutes:g} minutes: no failure")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--languages", default="en-de")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--pause", type=float, default=2)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--schemathesis", type=float, metavar="MINUTES")
    arguments = parser.parse_args()
    Visitor.pause = arguments.pause
    texts = [line.strip() for line in open_lines(arguments.source) if line.strip()]
    source, target = arguments.languages.split("-")
    with server(arguments.model, "--languages", arguments.languages, settings=SETTINGS) as (process, address):
        if arguments.schemathesis:
            run_schemathesis(address, arguments.schemathesis)
        else:
            asyncio.run(measure(address, process.pid, texts, (source, target), arguments))


if __name__ == "__main__":
    main()
