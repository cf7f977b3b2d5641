"""The server of the workbench: its routes, what it refuses, and that it computes only what somebody waits for."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from waiting import PATIENCE
from workbench_server import WorkbenchServer, log_step, workbench_served, write_workspace

from dragoman import Translator, inspect
from dragoman.addons.workbench import packing
from dragoman.addons.workbench.view_state import MAX_CHARACTERS
from dragoman.addons.workbench.views.attention import AttentionState
from dragoman.addons.workbench.views.translate import TranslateState
from dragoman.addons.workbench.views.view import ViewContent
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.cancellation import Cancelled, check_cancelled
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main

SENTENCE = "source=a+dog+runs"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def server(folders: list[Path]) -> Iterator[WorkbenchServer]:
    with workbench_served(folders) as found:
        yield found


@pytest.fixture
def client(server: WorkbenchServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=PATIENCE) as found:
        yield found


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
    """The JSON values, and the arrays of each figure, as the browser reads them."""
    start = 4 + int.from_bytes(content[:4], "little")
    assert start % 8 == 0
    values = json.loads(content[4:start])
    arrays = {
        name: {
            key: np.frombuffer(
                content, each["dtype"], int(np.prod(each["shape"])), offset=start + each["offset"]
            ).reshape(each["shape"])
            for key, each in figure["arrays"].items()
        }
        for name, figure in values["figures"].items()
    }
    assert all(each["offset"] % 8 == 0 for figure in values["figures"].values() for each in figure["arrays"].values())
    return values, arrays


def test_the_workspace_lists_models_and_runs(client: httpx.Client) -> None:
    listed = client.get("/workspace").json()
    models = {each["name"]: each["languages"] for each in listed["models"]}
    assert models == {"one": ["en", "de"], "two": ["en", "de"]}
    assert listed["runs"] == ["run"]
    assert listed["limits"] == {"tokens": 512, "characters": MAX_CHARACTERS}


def test_the_weights_arrive_without_loss(client: httpx.Client, folders: list[Path]) -> None:
    content = client.post("/content?figure=heads", content=f"view=attention&model=two&{SENTENCE}&target=ein+Hund")
    values, arrays = unpacked(content.content)
    assert values["state"] == f"view=attention&model=two&{SENTENCE}&target=ein+Hund"
    assert list(values["figures"]) == ["heads"] and values["facts"]["target"] == "ein Hund"
    maps = inspect(Translator.load(folders[1], "cpu", engine="torch"), "a dog runs", target="ein Hund").kinds
    for layer, each in enumerate(maps["decoder.cross_attention"]):
        np.testing.assert_array_equal(arrays["heads"][f"row-{layer}"][1:], each.weights)
        assert values["figures"]["heads"]["rows"] == list(each.queries)


def test_a_saved_figure_is_the_one_that_the_command_writes(
    client: httpx.Client, folders: list[Path], tmp_path: Path
) -> None:
    state = f"view=attention&{SENTENCE}&layer=1&head=2"
    assert (
        main(["workbench", "figures", f"{client.base_url}#{state}", str(folders[0]), "-o", str(tmp_path / "out")]) == 0
    )
    names = {"heads", "head", "lines"}
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert set(files) == {f"{name}.{suffix}" for name in names for suffix in ("svg", "png", "json", "csv")} | {
        "facts.json"
    }
    for name in names:
        for suffix, kind in (("svg", "image/svg+xml"), ("json", "application/json"), ("csv", "text/csv")):
            answer = client.post(f"/file?figure={name}&format={suffix}", content=state)
            assert answer.content == files[f"{name}.{suffix}"]
            assert answer.headers["content-type"].startswith(kind)


@pytest.mark.slow
def test_the_command_opens_all_models_of_an_address(
    client: httpx.Client, folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = f"view=attention&model=two&{SENTENCE}"
    command = ["workbench", "figures", f"#{state}", str(folders[0]), "-o", str(tmp_path / "out")]
    assert main(command) == 2
    assert "there is no model 'two': the loaded models are one" in capsys.readouterr().err
    assert main([*command, str(folders[1])]) == 0
    answer = client.post("/file?figure=heads&format=svg", content=state)
    assert answer.content == (tmp_path / "out" / "heads.svg").read_bytes()


@pytest.mark.parametrize(
    ("route", "state", "message"),
    [
        ("/content", "view=nothing", "unknown view 'nothing'"),
        ("/content", "view=attention&layers=2", "unknown setting layers (the address); did you mean layer?"),
        ("/content", "view=attention", "the text is blank"),
        ("/content", f"view=attention&{SENTENCE}&model=three", "there is no model 'three': the loaded models are one"),
        ("/content", f"view=attention&{SENTENCE}&layer=7", "there is no layer 7"),
        ("/content", f"view=attention&{SENTENCE}&head=7", "there is no head 7"),
        ("/content", "view=attention&source=" + "a+dog+" * 600, "at most 512 per side"),
        ("/content?figure=x", f"view=attention&{SENTENCE}", "no figure 'x': its figures are heads"),
        ("/content", "view=training&runs=x", "there is no run 'x': the runs are run"),
        ("/file?format=gif", f"view=attention&{SENTENCE}", "there is no format 'gif'"),
    ],
)
def test_refused_requests_say_why(client: httpx.Client, route: str, state: str, message: str) -> None:
    answer = client.post(route, content=state)
    assert answer.status_code == 400
    assert message in answer.json()["error"] and "\n" not in answer.json()["error"]


def test_a_body_without_end_is_refused(client: httpx.Client) -> None:
    answer = client.post("/content", content=b"a" * (5 * MAX_CHARACTERS))
    assert answer.status_code == 413 and "100,000 characters" in answer.json()["error"]


def test_only_this_machine_is_answered(client: httpx.Client) -> None:
    state = f"view=attention&{SENTENCE}"
    assert client.get("/workspace", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"Host": "localhost:1"}).status_code == 200
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert client.post("/content", content=state, headers=headers).status_code == 403
    policy = client.get("/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "trusted-types 'none'" in policy
    assert client.get("/page/../app.py").status_code == 404
    assert client.get("/page/views/attention.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/shared/scheduler.js").status_code == 200


def test_a_request_that_nobody_waits_for_is_cancelled(
    server: WorkbenchServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    started = threading.Event()

    def slow(state: Any, workspace: Workspace) -> ViewContent:
        events.append(state.source)
        started.set()
        try:
            while True:
                check_cancelled()
                time.sleep(0.01)
        except Cancelled:
            events.append("cancelled")
            raise

    monkeypatch.setattr(TranslateState, "content", slow)
    with _asking(server.address, "first"):
        assert started.wait(PATIENCE)
        with _asking(server.address, "second"):
            pass
    # the second one was not started, because its client had left before the first one ended, or it was cancelled, too
    assert client.post("/content", content=f"view=attention&{SENTENCE}").status_code == 200
    assert events[:2] == ["first", "cancelled"] and events.count("cancelled") == len(events) / 2


@contextmanager
def _asking(address: str, text: str) -> Iterator[None]:
    """Send a request, and close its connection at the end without having received an answer."""
    place, content = urlsplit(address), f"view=translate&source={text}"
    with socket.create_connection((place.hostname, place.port)) as connection:
        head = f"POST /content HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(f"{head}{content}".encode())
        yield


def test_too_many_weights_are_refused(monkeypatch: pytest.MonkeyPatch, folders: list[Path]) -> None:
    workspace = Workspace(folders[:1], "cpu")
    state = AttentionState(source="a dog runs")
    content = state.content(workspace)
    assert packing.pack(content, state.fragment, ["heads"])
    monkeypatch.setattr(packing, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match="shorten the text, or use `dragoman inspect`"):
        packing.pack(content, state.fragment, ["heads"])


def test_news_of_a_run_arrive_when_its_log_grows(server: WorkbenchServer, folders: list[Path]) -> None:
    run, received = folders[2], threading.Event()

    def train() -> None:
        step = 30
        while not received.wait(0.2):
            log_step(run, step)
            step += 1

    training = threading.Thread(target=train)
    with httpx.stream("GET", f"{server.address}news", timeout=PATIENCE) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        training.start()
        try:
            event = next(line for line in stream.iter_lines() if line)
        finally:
            received.set()
            training.join()
    assert json.loads(event.removeprefix("data: ")) == ["run"]


def test_a_half_written_line_is_read_when_it_is_complete(client: httpx.Client, folders: list[Path]) -> None:
    log = folders[2] / "log.jsonl"

    def steps() -> int:
        values, _ = unpacked(client.post("/content", content="view=training").content)
        return int(values["facts"]["steps"]["run"])

    before = steps()
    with log.open("a", encoding="utf-8") as file:
        file.write(f'{{"step": {before + 1}, "lo')
        file.flush()
        assert steps() == before
        file.write('ss": 0.5}\n')
        file.flush()
        assert steps() == before + 1


def test_folders_that_are_no_models_are_refused(tmp_path: Path) -> None:
    assert main(["workbench", str(tmp_path / "none")]) == 1
    log_step(tmp_path, 1)
    with pytest.raises(ConfigError, match="no model is loaded"):
        Workspace([tmp_path]).model()
