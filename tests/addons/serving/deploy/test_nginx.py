"""deploy/nginx.conf, run by nginx in front of two servers, and the example of serve.yaml."""

import io
import shutil
import socket
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import docx
import httpx
import pytest
from repository import ROOT
from scripted_server import FREE, Script, listening, served, shouting
from waiting import PATIENCE, wait_until

from dragoman.addons.serving.config import ServeConfig
from dragoman.base.settings.load import load_settings
from dragoman.engines.engine import Row

DEPLOY = ROOT / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
BEHIND_NGINX: dict[str, Any] = {"access": {**FREE, "trusted_proxies": ["127.0.0.1"]}}


def accepts(port: int) -> bool:
    """Return whether a program of this machine accepts connections to a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionError:
        return False
    return True


@contextmanager
def proxied(folder: Path, servers: list[str], *changes: tuple[str, str]) -> Iterator[str]:
    """The address of nginx in front of these servers. changes: further replacements in its settings."""
    assert NGINX is not None
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    addresses = [(f"127.0.0.1:500{number}", url.removeprefix("http://")) for number, url in enumerate(servers)]
    for old, new in (*addresses, ("127.0.0.1:8080", f"127.0.0.1:{port}"), *changes):
        assert old in text, old
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: process.poll() is not None or accepts(port), interval=0.05)
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def two_servers(folder: Path, script: Script, *changes: tuple[str, str], **settings: Any) -> Iterator[str]:
    """The address of nginx in front of two servers with the same script."""
    settings = {**BEHIND_NGINX, **settings}
    with (
        served({"en-de": script}, **settings) as one,
        served({"en-de": script}, **settings) as other,
        listening(one) as first,
        listening(other) as second,
        proxied(folder, [first, second], *changes) as url,
    ):
        yield url


def translated(url: str, text: str) -> str:
    answer = httpx.post(f"{url}/translate", json={"q": text, "source": "en", "target": "de"}, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["translatedText"])


def uploaded(url: str, name: str, content: bytes, client: Any = httpx) -> httpx.Response:
    fields = {"source": "en", "target": "de"}
    answer: httpx.Response = client.post(
        f"{url}/translate_file", files={"file": (name, content)}, data=fields, timeout=PATIENCE
    )
    return answer


def word_document(padding: int) -> bytes:
    """Return a Word file with a sentence, and with pictures of this many bytes."""
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("a dog")
    document.save(file)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("word/media/picture.bin", bytes(padding))
    return file.getvalue()


@needs_nginx
def test_stopping_one_of_two_servers_loses_no_request(tmp_path: Path) -> None:
    with (
        served({"en-de": lambda row: ["one"]}) as one,
        served({"en-de": shouting}) as other,
        listening(other) as second,
        ExitStack() as ending,
    ):
        first = ending.enter_context(listening(one))
        with proxied(tmp_path, [first, second]) as url:
            assert {translated(url, "two") for _ in range(20)} == {"one", "TWO"}, "both are asked"
            ending.close()
            assert {translated(url, "two") for _ in range(20)} == {"TWO"}


@pytest.mark.slow
@needs_nginx
def test_documents_through_nginx(tmp_path: Path) -> None:
    """Large ones are accepted, and the link can be opened whichever server has the file."""
    with two_servers(tmp_path, shouting) as url:
        answers = [uploaded(url, "a.docx", word_document(2_000_000)) for _ in range(2)]
        for answer in answers:
            assert answer.status_code == 200, answer.text
            link = answer.json()["translatedFileUrl"]
            assert link.startswith(f"{url}/download_file/")
            contents = [httpx.get(link) for _ in range(6)]
            assert {each.status_code for each in contents} == {200}
            assert docx.Document(io.BytesIO(contents[0].content)).paragraphs[0].text == "A DOG"
        missing = httpx.get(f"{url}/download_file/x/y")
        assert missing.status_code == 404 and "expired" in missing.json()["error"]


@needs_nginx
def test_errors_of_nginx_have_the_form_of_the_servers(tmp_path: Path) -> None:
    with two_servers(tmp_path, shouting) as url:
        large = [
            uploaded(url, "a.docx", word_document(12_000_000)),
            httpx.post(f"{url}/translate", json={"q": "a" * 2_000_000, "source": "en", "target": "de"}),
        ]
    for answer in large:
        assert answer.status_code == 413 and list(answer.json()) == ["error"], answer.text
    with proxied(tmp_path, [f"http://127.0.0.1:{free_port()}" for _ in range(2)]) as url:
        answer = httpx.get(f"{url}/languages")
    assert (answer.status_code, list(answer.json()), answer.headers["retry-after"]) == (503, ["error"], "5")


@pytest.mark.slow
@needs_nginx
def test_what_has_begun_is_not_repeated(tmp_path: Path) -> None:
    """A request that takes too long fails alone: no other server repeats it, and both serve others meanwhile."""
    begun, answered = list[str](), threading.Event()

    def script(row: Row) -> list[str]:
        begun.append(row.text)
        if "slow" in row.text:
            assert answered.wait(PATIENCE)
        return shouting(row)

    changes = [("1210s", "2s"), ("proxy_next_upstream_timeout 3s", "proxy_next_upstream_timeout 1s")]
    with two_servers(tmp_path, script, *changes, limits={"seconds": 2}, queue={"cache_entries": 0}) as url:
        fields = {"q": "slow text", "source": "en", "target": "de"}
        answer = uploaded(url, "a.txt", b"slow document")
        assert answer.status_code == 503 and "try again" in answer.json()["error"]
        answered.set()
        answered = threading.Event()
        assert httpx.post(f"{url}/translate", json=fields, timeout=PATIENCE).status_code == 503
        answered.set()
        assert {translated(url, "quick") for _ in range(4)} == {"QUICK"}
    assert begun.count("slow document") <= 1 and begun.count("slow text") <= 1


@needs_nginx
def test_sentences_are_streamed_through_nginx(tmp_path: Path) -> None:
    received = threading.Event()

    def script(row: Row) -> list[str]:
        assert "quick" in row.text or received.wait(PATIENCE)
        return shouting(row)

    fields = {"text": ["quick.", "slow."], "source": "en", "target": "de", "stream": True}
    with (
        two_servers(tmp_path, script, queue={"batch_lines": 1}) as url,
        httpx.stream("POST", f"{url}/v1/translate", json=fields) as answer,
    ):
        lines = list[str]()
        for line in answer.iter_lines():
            received.set()
            lines += [line] if line else []
    assert len(lines) >= 3


@needs_nginx
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_links_contain_prefix_and_https(tmp_path: Path) -> None:
    """The lines of the settings that are comments work, too."""
    subject, key, certificate = "/CN=127.0.0.1", tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", subject, "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    subprocess.run(command, check=True, capture_output=True)
    port = free_port()
    changes = [
        (f"# {line}", line)
        for line in ("listen 127.0.0.1:8443", "ssl_certificate ", "ssl_certificate_key ", "location /mt/")
    ]
    with (
        two_servers(tmp_path, shouting, *changes, ("127.0.0.1:8443", f"127.0.0.1:{port}")) as url,
        httpx.Client(verify=False) as client,
    ):
        for address in (f"{url}/mt", f"https://127.0.0.1:{port}", f"https://127.0.0.1:{port}/mt"):
            link = uploaded(address, "a.txt", b"a dog", client).json()["translatedFileUrl"]
            assert link.startswith(f"{address}/download_file/")
            assert client.get(link).content == b"A DOG"
        assert "page/page.js" in client.get(f"{url}/mt/").text
        assert client.get(f"{url}/mt/page/page.js").status_code == 200


def test_the_settings() -> None:
    found = load_settings(DEPLOY / "serve.yaml", (), ServeConfig)
    assert found.models[0].source == "en" and found.host == "127.0.0.1"
