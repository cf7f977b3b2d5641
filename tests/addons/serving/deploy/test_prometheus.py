"""Prometheus itself: each alert fires when it must, and it answers every query about a server that it has scraped."""

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from deployed_queries import ALERTS, DASHBOARD, DEPLOY
from scripted_server import FREE
from tiny_model import write_tiny_model
from waiting import PATIENCE, is_ready, wait_until

from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.server import _run

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*"}
"""What Grafana puts in place of its variables."""


def names_of_alerts() -> set[str]:
    return {rule["alert"] for group in ALERTS["groups"] for rule in group["rules"]}


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool (Debian: prometheus)")
def test_each_alert_fires_and_is_silent_when_it_must(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    text = Path(__file__).with_name("alerts_test.yaml").read_text("utf-8")
    tested = {case["alertname"] for group in yaml.safe_load(text)["tests"] for case in group["alert_rule_test"]}
    assert tested == names_of_alerts()
    file = tmp_path / "alerts_test.yaml"
    file.write_text(text.replace("[RULES]", f"[{DEPLOY / 'alerts.yaml'}]"), encoding="utf-8")
    for command in (["check", "rules", str(DEPLOY / "alerts.yaml")], ["test", "rules", str(file)]):
        done = subprocess.run([PROMTOOL, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool (Debian: prometheus)")
def test_each_query_of_the_dashboard_is_valid(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(panel_queries())]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run([PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{len(rules)} rules found" in done.stdout, done.stdout + done.stderr


def panel_queries() -> list[str]:
    """The queries of the dashboard, as Grafana sends them."""
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    for variable, value in VARIABLES.items():
        queries = [query.replace(variable, value) for query in queries]
    assert not [query for query in queries if "$" in query]
    return queries


@contextmanager
def scraping(target: str, folder: Path) -> Iterator[httpx.Client]:
    """A Prometheus with the alert rules that scrapes this server every 100 ms."""
    assert PROMETHEUS is not None
    jobs = [{"job_name": "dragoman", "static_configs": [{"targets": [target]}]}]
    settings = {"global": {"scrape_interval": "100ms", "scrape_timeout": "100ms"}, "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(yaml.safe_dump({**settings, "rule_files": [str(DEPLOY / "alerts.yaml")]}))
    with socket.create_server(("127.0.0.1", 0)) as found:
        address = f"127.0.0.1:{found.getsockname()[1]}"
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with (
        subprocess.Popen([PROMETHEUS, *options], cwd=folder, stderr=subprocess.PIPE, text=True) as process,
        httpx.Client(base_url=f"http://{address}/api/v1", timeout=PATIENCE) as client,
    ):
        try:
            yield client
        finally:
            process.kill()
            process.communicate()


def values(client: httpx.Client, query: str) -> list[dict[str, object]]:
    """Return the series that a query finds. An error in the query is an error of the test."""
    answer = client.get("/query", params={"query": query}).json()
    assert answer["status"] == "success", (query, answer)
    return list(answer["data"]["result"])


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server with one model and no limits."""
    write_tiny_model(folder)
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    model = {"path": str(folder), "source": "en", "target": "de"}
    settings = {"models": [model], "engine": {"name": "torch"}, "port": port, "access": FREE, "log": False}
    started: Future[Any] = Future()
    thread = threading.Thread(target=_run, args=(ServeConfig.model_validate(settings), None, started.set_result))
    thread.start()
    shut_down = started.result(PATIENCE)
    try:
        wait_until(lambda: is_ready(f"http://127.0.0.1:{port}"), "the server does not start")
        yield f"127.0.0.1:{port}"
    finally:
        shut_down()
        thread.join(PATIENCE)


@pytest.mark.slow  # Prometheus begins to scrape after five seconds
@pytest.mark.skipif(PROMETHEUS is None, reason="there is no prometheus (Debian: prometheus)")
def test_it_answers_each_query_about_a_server(tmp_path: Path) -> None:
    with serving(tmp_path / "tiny") as address, scraping(address, tmp_path) as client:

        def translate() -> None:
            for fields, status in (({"q": "a dog", "source": "en", "target": "de"}, 200), ({"q": "a dog"}, 400)):
                assert httpx.post(f"http://{address}/translate", json=fields, timeout=PATIENCE).status_code == status

        def is_found(query: str) -> bool:
            try:
                return bool(values(client, query))
            except httpx.TransportError:  # it starts
                return False

        translate()
        wait_until(lambda: is_found("dragoman_requests_total"), interval=0.1)
        translate()  # a rate needs two samples that differ
        wait_until(lambda: is_found('rate(dragoman_failed_requests_total{reason="invalid"}[1m]) > 0'), interval=0.1)
        for query in panel_queries():
            # this server has no language models, no predictions and no keys
            unused = re.search(r"dragoman_(generated|completions|predicted|key)_", query)
            assert values(client, query) or unused, query
        groups = client.get("/rules").json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert {rule["name"] for rule in rules} == names_of_alerts()
        assert not [rule["name"] for rule in rules if values(client, rule["query"])], "nothing is wrong here"
        # the counters of failures exist before the first failure, so that it is an increase
        assert values(client, 'dragoman_failed_requests_total{reason="internal"} == 0')
