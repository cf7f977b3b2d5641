"""A server under load, compared with its engine: latency of a single user, throughput of lists and of single sentences,
and ten minutes of many connections.

    python benchmarks/serving.py MODEL SOURCE [--precision int8] [--threads N] [--workers N] [--turns 5]
        [--connections 200] [--minutes 10]

`dragoman serve MODEL` runs as a separate process, on the loopback interface only, without cache and rate limits; this
process sends requests, with one thread. The texts are the lines of SOURCE. The engine is the same, with the same number
of threads, in this process. Alternately: the engine with one text at a time, and the server with one client; the engine
with all texts, and the server with 4 clients that send lists of 32 sentences; the server with single sentences from all
connections. Then all connections send single sentences for --minutes. Printed: counts by status, latencies, and the
memory of the server's processes (PSS), sampled every second, without the first minute.
"""

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

from dragoman.data.files.lines import open_lines
from dragoman.inference.translation.translator import Translator

LIST, LIST_CLIENTS = 32, 4
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")
FREE = "access: {requests_per_minute: null, tokens_per_minute: null}\nqueue: {cache_entries: 0}\nlog: false\n"


@dataclass
class Answers:
    """Counts of responses by status, latencies (seconds) of those with status 200, and the total time."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    took: float = 0.0


@contextmanager
def server(model: Path, *options: str, settings: str = FREE) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Start a server; yields its process and its address. settings: the content of its `serve.yaml`."""
    config = Path("/tmp") / f"dragoman-serving-{time.time_ns()}.yaml"
    config.write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "dragoman", "serve", str(model), "--config", str(config), "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"listening at http://(\S+):(\d+)", line):
                yield process, (found[1], int(found[2]))
                break
            print(line, end="")
        else:
            raise SystemExit("the server did not start")
    finally:
        process.send_signal(signal.SIGTERM)
        print(f"the server ended with status {process.wait(60)}")
        config.unlink()


def memory(process: int) -> float:
    """Return the memory in MiB of a process and its descendants; shared pages count once."""
    total = 0.0
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) / 1024
        for task in Path(f"/proc/{process}/task").iterdir():
            total += sum(memory(int(child)) for child in (task / "children").read_text().split())
    return total


def request_of(texts: str | Sequence[str], languages: tuple[str, str]) -> bytes:
    """Return the bytes of a request."""
    body = json.dumps({"q": texts, "source": languages[0], "target": languages[1]}).encode()
    head = "POST /translate HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
    return f"{head}{len(body)}\r\n\r\n".encode() + body


class Client(asyncio.Protocol):
    """One connection that sends one request after another; minimal, because it competes with the server for CPU."""

    def __init__(self, requests: Iterable[bytes], until: float, answers: Answers) -> None:
        self._requests, self._until, self._answers = iter(requests), until, answers
        self._got, self._began = b"", 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._got += data
        head = self._got.find(b"\r\n\r\n")
        if head < 0 or (length := LENGTH.search(self._got, 0, head + 2)) is None:
            return
        if len(self._got) < head + 4 + int(length[1]):
            return
        status = int(self._got[9:12])
        self._answers.statuses[status] += 1
        if status == 200:
            self._answers.seconds.append(time.perf_counter() - self._began)
        self._got = b""
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))

    def _ask(self) -> None:
        self._began = time.perf_counter()
        request = next(self._requests, None) if self._began < self._until else None
        if request is None:
            self.done.set_result(None)
            self._transport.close()
        else:
            self._transport.write(request)


async def asked(address: tuple[str, int], shares: Sequence[Iterable[bytes]], seconds: float = 1e9) -> Answers:
    """Run one client per share, concurrently."""
    answers, began, loop = Answers(), time.perf_counter(), asyncio.get_running_loop()
    clients = [Client(share, began + seconds, answers) for share in shares]
    await asyncio.gather(*(loop.create_connection(partial(_same, each), *address) for each in clients))
    await asyncio.gather(*(each.done for each in clients))
    answers.took = time.perf_counter() - began
    return answers


def _same(client: Client) -> Client:
    return client


def percentiles(seconds: Sequence[float]) -> str:
    """Format percentiles of latencies in milliseconds."""
    cuts = quantiles(seconds, n=100)
    return f"p50 {1000 * median(seconds):.1f}, p95 {1000 * cuts[94]:.1f}, p99 {1000 * cuts[98]:.1f} ms"


def side_by_side(
    translator: Translator,
    texts: Sequence[str],
    address: tuple[str, int],
    languages: tuple[str, str],
    arguments: argparse.Namespace,
) -> None:
    """Measure the engine and the server alternately."""
    single = [request_of(text, languages) for text in texts]
    lists = [request_of(texts[first : first + LIST], languages) for first in range(0, len(texts), LIST)]
    waits, alone, all_ratios, one_ratios, rates = [], [], [], [], []
    few = len(texts) // 5
    for turn in range(arguments.turns):
        mine = texts[turn % 5 * few :][:few]
        seconds = []
        for text in mine:
            began = time.perf_counter()
            translator.translate([text])
            seconds.append(time.perf_counter() - began)
        lone = asyncio.run(asked(address, [[request_of(text, languages) for text in mine]]))
        alone.append((median(seconds), median(lone.seconds)))
        waits.append(median(lone.seconds) - median(seconds))
        one_rate = len(mine) / sum(seconds)
        began = time.perf_counter()
        translator.translate(texts)
        offline = len(texts) / (time.perf_counter() - began)
        listed = asyncio.run(asked(address, [lists[place::LIST_CLIENTS] for place in range(LIST_CLIENTS)]))
        many = arguments.connections
        crowd = asyncio.run(asked(address, [single[place::many] for place in range(many)]))
        if set(listed.statuses) | set(crowd.statuses) | set(lone.statuses) != {200}:
            raise SystemExit(f"some requests failed: {listed.statuses} {crowd.statuses} {lone.statuses}")
        rates.append((one_rate, offline, len(texts) / listed.took, len(texts) / crowd.took))
        all_ratios.append(rates[-1][2] / offline)
        one_ratios.append(rates[-1][3] / one_rate)
    engine, served = (1000 * median(each) for each in zip(*alone, strict=True))
    one, offline, listed_rate, crowd_rate = (median(each) for each in zip(*rates, strict=True))
    print(f"single user: engine {engine:.2f} ms, server {served:.2f} ms; difference {1000 * median(waits):+.2f} ms")
    print(f"engine, sentences/s: one at a time {one:.0f}, all at once {offline:.0f}")
    print(f"server, sentences/s: lists of {LIST} {listed_rate:.0f}, single ones {crowd_rate:.0f}")
    for name, ratios in (("lists / all at once", all_ratios), ("single / one at a time", one_ratios)):
        print(f"{name}: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


async def endured(
    address: tuple[str, int], process: int, single: Sequence[bytes], connections: int, minutes: float
) -> None:
    """Run all connections concurrently for the given time."""
    sizes: list[float] = []

    async def watch() -> None:
        while True:
            sizes.append(await asyncio.to_thread(memory, process))
            await asyncio.sleep(1)

    watching = asyncio.create_task(watch())
    shares = [islice(cycle(single), place, None) for place in range(connections)]
    answers = await asked(address, shares, 60 * minutes)
    watching.cancel()
    later = sizes[60:] or sizes
    print(f"{connections} connections, {answers.took / 60:.1f} minutes: {dict(answers.statuses)}")
    print(f"{answers.statuses[200] / answers.took:.0f} sentences/s, {percentiles(answers.seconds)}")
    middle = median(later)
    print(f"memory after a minute: {middle:.0f} MiB, {min(later) / middle - 1:+.1%} to {max(later) / middle - 1:+.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--languages", default="en-de", help="precision of the model, as for `dragoman serve`")
    parser.add_argument("--precision", default="int8", choices=["float32", "int8"])
    parser.add_argument("--threads", type=int, help="threads of the engine (default: one per processor)")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    texts = [line for line in open_lines(arguments.source) if line.strip()]
    source, target = arguments.languages.split("-")
    options = [
        "--languages",
        arguments.languages,
        "--precision",
        arguments.precision,
        "--workers",
        str(arguments.workers),
    ]
    if arguments.threads:
        options += ["--threads", str(arguments.threads)]
    with server(arguments.model, *options) as (process, address):
        translator = Translator.load(arguments.model, precision=arguments.precision, threads=arguments.threads)
        translator.translate(texts[:100])
        if arguments.turns:
            side_by_side(translator, texts, address, (source, target), arguments)
        if arguments.minutes:
            single = [request_of(text, (source, target)) for text in texts]
            asyncio.run(endured(address, process.pid, single, arguments.connections, arguments.minutes))


if __name__ == "__main__":
    main()
