"""The latency of ordinary clients of a server, without and beside one hostile client of each kind.

    python benchmarks/hostile_clients.py MODEL SOURCE [--connections 200] [--pause 2] [--minutes 10] [--turns 5]

`dragoman serve MODEL` runs as a separate process with its default limits and quotas. Ordinary clients send single
sentences of SOURCE over --connections connections, and pause for --pause seconds after each answer. In half of the
turns, the hostile clients run beside them, in a third process. Every client has its own address, in an X-Forwarded-For
header that the server trusts. Printed: counts by status, latencies, the latency of GET /health, which shows how long
the server's event loop is blocked, and the memory of the server's processes (PSS) over time.

    python benchmarks/hostile_clients.py MODEL SOURCE --each SECONDS [--kinds NAME…]

runs each kind of hostile client alone beside the ordinary ones, for SECONDS. At the end, the server receives SIGTERM
while all hostile clients are at work, and the time until it ends is printed.
"""

import argparse
import asyncio
import itertools
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from hostile_kinds import Address, HostileProcess, hostile_process, post_json
from serving import Answers, Client, memory, percentiles, server

from dragoman.data.files.lines import open_lines

SETTINGS = "access: {trusted_proxies: [127.0.0.1]}\nqueue: {cache_entries: 0}\nlog: false\n"
HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


class Visitor(Client):
    """An ordinary client, which pauses after each answer."""

    pause = 2.0

    def _ask(self) -> None:
        if self._began:
            asyncio.get_running_loop().call_later(self.pause * random.uniform(0.5, 1.5), super()._ask)
        else:
            super()._ask()


class Probe(Visitor):
    """A client that measures the delay of the server's event loop."""

    pause = 0.05


async def turn(
    address: Address, shares: Sequence[Iterator[bytes]], process: HostileProcess, names: Sequence[str], seconds: float
) -> tuple[Answers, Answers, Counter[str]]:
    """Run the ordinary clients for some time, beside hostile ones.

    Returns the answers of the ordinary clients and of the probe, and the number of connections of each hostile kind.
    """
    answers, delays, loop = Answers(), Answers(), asyncio.get_running_loop()
    began = time.perf_counter()
    if names:
        process.begin(names, seconds)
    clients: list[Client] = [Visitor(share, began + seconds, answers) for share in shares]
    clients.append(Probe(itertools.repeat(HEALTH), began + seconds, delays))
    await asyncio.gather(*(loop.create_connection(partial(_same, each), *address) for each in clients))
    ended = await asyncio.gather(*(each.done for each in clients), return_exceptions=True)
    answers.statuses[0] += sum(isinstance(each, BaseException) for each in ended)
    answers.took = time.perf_counter() - began
    tries = await asyncio.to_thread(process.result) if names else Counter[str]()
    return answers, delays, tries


def _same(client: Client) -> Client:
    return client


class Measurement:
    """Ordinary clients of a server, with the texts that they send."""

    def __init__(
        self,
        address: Address,
        texts: Sequence[str],
        languages: tuple[str, str],
        connections: int,
        process: HostileProcess,
    ) -> None:
        source, target = languages
        self._address, self._connections, self._process = address, connections, process
        self._ordinary = [
            post_json(
                "/translate", {"q": text, "source": source, "target": target}, f"10.1.{index // 200}.{index % 200}"
            )
            for index, text in enumerate(islice(cycle(texts), 20_000))
        ]
        self._places = itertools.count(random.randrange(1000), 97)

    async def turn(self, label: str, names: Sequence[str], seconds: float) -> tuple[Answers, Answers, Counter[str]]:
        """Run and print one turn. names: the hostile kinds."""
        shares = [islice(cycle(self._ordinary), next(self._places), None) for _ in range(self._connections)]
        answers, delays, tries = await turn(self._address, shares, self._process, names, seconds)
        print(f"{label}: {report(answers, delays)}", flush=True)
        return answers, delays, tries


def report(answers: Answers, delays: Answers) -> str:
    """Describe the answers of the ordinary clients, and the delay of the event loop."""
    rate = answers.statuses[200] / answers.took
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(answers.statuses.items()) if count)
    return (
        f"{{{statuses}}}, {rate:.0f} per second, {percentiles(answers.seconds)}; "
        f"/health {percentiles(delays.seconds)}, max {1000 * max(delays.seconds):.0f} ms"
    )


async def measure_each(measurement: Measurement, process: int, names: Sequence[str], seconds: float) -> None:
    """Run each hostile kind alone."""
    await measurement.turn("none", (), seconds)
    for name in names:
        await measurement.turn(name, (name,), seconds)
        await asyncio.sleep(2)
        print(f"    memory {memory(process):.0f} MiB", flush=True)


async def measure(measurement: Measurement, process: int, names: Sequence[str], minutes: float, turns: int) -> None:
    """Measure without and beside hostile clients, alternately."""
    sizes: list[tuple[float, float]] = []
    began = time.monotonic()

    async def watch() -> None:
        while True:
            sizes.append((time.monotonic() - began, await asyncio.to_thread(memory, process)))
            await asyncio.sleep(2)

    watching = asyncio.create_task(watch())
    tries = Counter[str]()
    found = {name: (Answers(), Answers()) for name in ("without", "beside")}
    for number in range(turns):
        for name in ("without", "beside") if number % 2 == 0 else ("beside", "without"):
            label = f"turn {number}, {name} hostile clients"
            *answers, attempts = await measurement.turn(
                label, names if name == "beside" else (), 60 * minutes / turns / 2
            )
            tries.update(attempts)
            for total, each in zip(found[name], answers, strict=True):
                total.statuses.update(each.statuses)
                total.seconds += each.seconds
                total.took += each.took
    await asyncio.sleep(10)
    watching.cancel()
    for name, (total, delays) in found.items():
        print(f"{name} hostile clients: {report(total, delays)}")
    print(f"attempts of hostile clients: {dict(tries)}")
    step = max(1, len(sizes) // 20)
    chosen = [*sizes[:-1:step], sizes[-1]]
    print("memory: " + ", ".join(f"{moment / 60:.1f} min {size:.0f} MiB" for moment, size in chosen))
    with suppress(ValueError):
        print(f"largest: {max(size for _, size in sizes):.0f} MiB")


def measure_end(server: subprocess.Popen[str], process: HostileProcess, names: Sequence[str]) -> None:
    """Print how long the server takes to end, beside hostile clients."""
    process.begin(names, 5)
    time.sleep(2)
    began = time.perf_counter()
    server.send_signal(signal.SIGTERM)
    server.wait(60)
    print(f"ended {time.perf_counter() - began:.1f} s after SIGTERM, beside hostile clients", flush=True)
    process.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--languages", default="en-de")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--pause", type=float, default=2)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--each", type=float, metavar="SECONDS", help="run each hostile kind alone")
    parser.add_argument("--kinds", nargs="*", metavar="NAME", help="hostile kinds (default: all)")
    arguments = parser.parse_args()
    Visitor.pause = arguments.pause
    texts = [line.strip() for line in open_lines(arguments.source) if line.strip()]
    source, target = arguments.languages.split("-")
    with (
        server(arguments.model, "--languages", arguments.languages, settings=SETTINGS) as (process, address),
        hostile_process(address, texts, (source, target)) as hostile,
    ):
        if unknown := set(arguments.kinds or ()).difference(hostile.names):
            parser.error(f"unknown kinds {unknown}: choose from {hostile.names}")
        names = arguments.kinds or hostile.names
        measurement = Measurement(address, texts, (source, target), arguments.connections, hostile)
        if arguments.each:
            asyncio.run(measure_each(measurement, process.pid, names, arguments.each))
        else:
            asyncio.run(measure(measurement, process.pid, names, arguments.minutes, arguments.turns))
        measure_end(process, hostile, names)


if __name__ == "__main__":
    main()
