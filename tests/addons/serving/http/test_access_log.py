"""The log and the metrics of each request: its client, and the name and tokens of its key."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from scripted_server import asked, served, shouting

from dragoman.addons.serving.access.keys import Keys
from dragoman.addons.serving.http.metrics import Metrics
from dragoman.base.errors import ConfigError

BODY = {"q": "a dog", "source": "en", "target": "de"}


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("clients", ["none", "hash", "address"])
def test_the_log_names_clients(clients: str, capfd: pytest.CaptureFixture[str]) -> None:
    access = {"trusted_proxies": ["127.0.0.1"]}
    senders = ["203.0.113.5", "203.0.113.5", "198.51.100.7", "2001:db8::1", "2001:db8::2"]

    async def work(client: httpx.AsyncClient) -> None:
        for sender in senders:
            await client.post("/translate", json=BODY, headers={"x-forwarded-for": sender})
        await client.get("/nothing", headers={"x-forwarded-for": senders[0]})

    with served({"en-de": shouting}, access=access, log=True, log_clients=clients) as service:
        asked(service, work)
    log = capfd.readouterr().err
    found = [entry.get("client") for entry in entries(log)]
    assert len(found) == 6
    if clients == "address":
        assert found == ["203.0.113.5", "203.0.113.5", "198.51.100.7", *["2001:db8::/64"] * 2, "203.0.113.5"]
        return
    assert not any(sender in log for sender in senders)
    if clients == "none":
        assert found == [None] * 6
    else:  # one hash per client
        assert found[0] == found[1] == found[5] and found[3] == found[4] and len({*found}) == 3
        assert all(re.fullmatch("[0-9a-f]{12}", str(each)) for each in found)


def test_the_log_is_a_file_which_may_be_renamed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "requests.log"
    with served({"en-de": shouting}, log=True, log_file=file) as service:
        asked(service, lambda client: client.get("/languages"))
        file.rename(tmp_path / "requests.log.1")
        asked(service, lambda client: client.get("/health"))
    routes = [entries(path.read_text())[0]["route"] for path in (tmp_path / "requests.log.1", file)]
    assert routes == ["/languages", "/health"] and entries(capfd.readouterr().err) == []


def test_a_log_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with served({"en-de": shouting}, log=True, log_file=tmp_path) as service, pytest.raises(ConfigError) as error:
        asked(service, lambda client: client.get("/languages"))
    assert str(error.value) == f"cannot write log_file {tmp_path}: Is a directory"


def test_a_salt_is_used_for_one_server_only(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        with served({"en-de": shouting}, log=True) as service:
            asked(service, lambda client: client.get("/languages"))
    first, second = entries(capfd.readouterr().err)
    assert first["client"] != second["client"]


def test_requests_and_tokens_of_each_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Keys(tmp_path / "keys.db") as keys:
        ada, bob = keys.add("ada"), keys.add("bob")

    async def work(client: httpx.AsyncClient) -> str:
        for text in ("a dog", "a cat runs"):
            await client.post("/translate", json={**BODY, "q": text, "api_key": ada.text})
        await client.post("/detect", json={"q": "a"}, headers={"authorization": f"Bearer {bob.text}"})
        await client.post("/translate", json={**BODY, "api_key": "dgm_wrong"})
        return (await client.get("/metrics")).text

    with served({"en-de": shouting}, access={"keys": tmp_path / "keys.db"}, log=True) as service:
        text = asked(service, work)
    assert 'dragoman_key_requests_total{key="ada"} 2.0' in text and 'dragoman_key_requests_total{key="bob"} 1.0' in text
    tokens = dict(re.findall(r'dragoman_key_source_tokens_total\{key="(\w+)"\} (\S+)', text))
    assert float(tokens["ada"]) > 0 and float(tokens["bob"]) == 0 and {*tokens} == {"ada", "bob"}
    log = entries(capfd.readouterr().err)
    names = [(entry.get("key"), entry.get("key_name"), entry.get("refused")) for entry in log]
    assert names[:4] == [
        (ada.key.id, "ada", None),
        (ada.key.id, "ada", None),
        (bob.key.id, "bob", None),
        (None, None, "malformed"),
    ]


def test_the_number_of_labels_is_limited() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.record_key(f"key {number}", 3)
    metrics.record_key("key 0", 3)
    text = metrics.text().decode()
    assert text.count("dragoman_key_requests_total{") == 201
    assert 'dragoman_key_requests_total{key="other"} 800.0' in text and 'key_requests_total{key="key 0"} 2.0' in text
