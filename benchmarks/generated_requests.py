"""Requests that schemathesis and hypothesis generate, against a running server.

    python benchmarks/generated_requests.py MODEL [--minutes 60] [--examples 100]

`dragoman serve MODEL` runs as a separate process, one without and one with API keys, by turns. Each turn consists of

- a run of schemathesis, whose requests follow or violate the server's OpenAPI document, in all its media types,
- requests of hypothesis that are mostly valid, so that texts and files of every format are translated.

A failure is an answer whose status, content type or body is not in the document, and every server error (5xx), because
the server has no other clients. The memory of the server (PSS) is printed after each turn.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from serving import memory, server

SECONDS = 20
"""The timeout of a request; longer than the default, so that other programs on the machine do not cause failures."""

CHECKS = "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"
EXTENSIONS = "txt md html htm srt vtt docx odt po pot xlf xliff json arb pdf TXT".split()
KINDS = "all number url email emoji markup placeholder mention hashtag path escape".split()
WORDS = (
    "a dog runs . , ! man two & &amp; <b> </b> <a href='x'> <script> {name} %s https://example.org/a 😆 # ** _ ` "
    "[x](y) --- msgid msgstr \" ' "
    "\n \r\n \t \u00a0 \u200d \u202e 1 00:00:01,000 --> 00:00:02,000 WEBVTT { } [ ] : \\ ยาว 中文"
).split(" ")

texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join),
    st.text(max_size=80),
    st.sampled_from(["", " ", "\n", "a" * 3000, "a dog . " * 900, "ſ" * 500, "\x00", "a\n" * 500]),
)
others = ["en", "de", "auto", "EN", "fr", "", "x" * 300]
sources = st.sampled_from(["en"] * 20 + ["auto"] * 10 + ["en-GB"] * 5 + others)
targets = st.sampled_from(["de"] * 30 + others)
names = st.builds("{}.{}".format, st.text(max_size=20), st.sampled_from(EXTENSIONS))
phrases = st.lists(st.one_of(texts, st.lists(texts, max_size=4)), max_size=4)
glossaries = st.dictionaries(texts, st.one_of(st.none(), texts, st.lists(texts, max_size=3)), max_size=5)
libretranslate = st.fixed_dictionaries(
    {"q": st.one_of(texts, st.lists(texts, max_size=5)), "source": sources, "target": targets},
    optional={
        "format": st.sampled_from(["text", "html", "", "markdown"]),
        "alternatives": st.integers(0, 6),
        "api_key": st.just(""),
    },
)
version_1 = st.fixed_dictionaries(
    {"text": st.one_of(texts, st.lists(texts, max_size=5)), "target": targets},
    optional={
        "source": sources,
        "format": st.sampled_from(["text", "html", "markdown"]),
        "nbest": st.integers(1, 6),
        "beam": st.integers(1, 9),
        "length_penalty": st.one_of(st.floats(0, 10), st.sampled_from(["mean", "none", None])),
        "glossary": glossaries,
        "constraints": phrases,
        "keep": st.lists(st.sampled_from(KINDS), max_size=4),
        "guard": st.booleans(),
        "alignment": st.booleans(),
        "stream": st.booleans(),
    },
)
detections = st.fixed_dictionaries({"q": st.one_of(texts, st.lists(texts, max_size=5))})
suggestions = st.fixed_dictionaries({"q": texts, "s": texts, "source": sources, "target": targets})
json_requests = st.one_of(
    st.tuples(st.just("/translate"), libretranslate),
    st.tuples(st.just("/v1/translate"), version_1),
    st.tuples(st.just("/detect"), detections),
    st.tuples(st.just("/suggest"), suggestions),
)
files = st.tuples(names, st.one_of(texts.map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=300)))


class Checker:
    """Checks answers against the OpenAPI document of a server."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self.statuses: Counter[str] = Counter()

    def check(self, answer: httpx.Response, method: str, path: str) -> None:
        """Raise AssertionError for an answer that is not documented, and for a server error."""
        shown = f"{method} {path}: {answer.status_code} {answer.text[:200]}"
        self.statuses[f"{path} {answer.status_code}"] += 1
        assert answer.status_code < 500, shown
        responses = self._document["paths"][path][method.lower()]["responses"]
        assert str(answer.status_code) in responses, f"undocumented status: {shown}"
        kind = answer.headers["content-type"].partition(";")[0]
        content = responses[str(answer.status_code)]["content"]
        assert kind in content, f"undocumented type {kind}: {shown}"
        if kind == "application/json":
            schema = {**content[kind]["schema"], "components": self._document["components"]}
            errors = [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(answer.json())]
            assert not errors, f"{errors[0]}: {shown}"
        elif kind == "application/x-ndjson":
            lines = [json.loads(line) for line in answer.text.splitlines()]
            assert lines, shown
            assert "internal" not in str(lines[-1].get("error", "")), shown


def run_hypothesis(url: str, key: str | None, examples: int, number: int) -> Counter[str]:
    """Send mostly valid requests. Returns the number of answers by route and status."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=2 * SECONDS) as client:
        checker = Checker(client.get("/openapi.json").json())
        options = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )

        @seed(number)
        @options
        @given(json_requests, st.booleans())
        def send_values(request: tuple[str, dict[str, Any]], as_form: bool) -> None:
            path, values = request
            if as_form and path != "/v1/translate":
                form = {name: value for name, value in values.items() if value is not None}
                checker.check(client.post(path, data=_replace_surrogates(form)), "POST", path)
            else:
                checker.check(client.post(path, json=values), "POST", path)

        @seed(number)
        @options
        @given(files, sources, targets)
        def send_file(file: tuple[str, bytes], source: str, target: str) -> None:
            name, content = file
            answer = client.post(
                "/translate_file",
                data={"source": source, "target": target},
                files={"file": (name.encode("utf-8", "replace").decode(), content)},
            )
            checker.check(answer, "POST", "/translate_file")
            if answer.status_code == 200:
                path = re.sub(r"^https?://[^/]+", "", answer.json()["translatedFileUrl"])
                assert client.get(path).status_code == 200, path

        send_values()
        send_file()
        for path in ("/languages", "/frontend/settings", "/health", "/health/ready"):
            checker.check(client.get(path), "GET", path)
        return checker.statuses


def _replace_surrogates(value: Any) -> Any:
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def run_schemathesis(url: str, key: str | None, examples: int, number: int) -> None:
    """Send requests that schemathesis generates. Raises SystemExit if it finds a failure."""
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json", "--checks", CHECKS]
    command += [
        "--max-examples",
        str(examples),
        "--seed",
        str(number),
        "--request-timeout",
        str(2 * SECONDS),
        "--warnings",
        "off",
    ]
    if key is not None:
        command += ["--header", f"Authorization: Bearer {key}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    if found.returncode:
        raise SystemExit(f"{found.stdout}\nschemathesis found a failure with seed {number}")
    print(next((line.strip() for line in found.stdout.splitlines() if " generated, " in line), ""), flush=True)


@contextmanager
def running(model: Path, languages: str, folder: Path, with_keys: bool) -> Iterator[tuple[int, str, str | None]]:
    """Start a server; yields its process id, its URL, and a valid key."""
    lines, key = [f"suggestions: {folder / 'suggestions.jsonl'}", "log: false", f"limits: {{seconds: {SECONDS}}}"], None
    if with_keys:
        database = folder / "keys.db"
        command = [sys.executable, "-m", "dragoman", "keys", "add", "--quiet", "--requests-per-minute", "1000000"]
        command += ["--tokens-per-minute", "100000000", "--database", str(database), str(time.time_ns())]
        key = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
        lines.append(f"access: {{keys: {database}}}")
    with server(model, "--languages", languages, settings="\n".join(lines)) as (process, (host, port)):
        yield process.pid, f"http://{host}:{port}", key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--languages", default="en-de")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    began, number, statuses = time.monotonic(), arguments.seed, Counter[str]()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(arguments.model, arguments.languages, Path(folder), with_keys=False) as free,
        running(arguments.model, arguments.languages, Path(folder), with_keys=True) as closed,
    ):
        while time.monotonic() - began < 60 * arguments.minutes:
            for process, url, key in (free, closed):
                minutes, access = (time.monotonic() - began) / 60, "no key" if key is None else "a key"
                print(f"{minutes:.1f} min, seed {number}, {access}: ", end="", flush=True)
                run_schemathesis(url, key, arguments.examples, number)
                statuses += run_hypothesis(url, key, arguments.examples, number)
                print(f"    memory {memory(process):.0f} MiB", flush=True)
            number += 1
    print(f"no failure in {(time.monotonic() - began) / 60:.0f} minutes; answers to hypothesis: {dict(statuses)}")


if __name__ == "__main__":
    main()
