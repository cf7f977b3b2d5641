"""The alert rules, the dashboard, and the files for Compose and logrotate: what they name exists."""

import gzip
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed_queries import ALERTS, DASHBOARD, DEPLOY
from prometheus_client import Histogram
from scripted_server import served, shouting
from typer.main import get_command
from waiting import wait_until

from dragoman.addons.serving.access.access import Access
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.errors import reasons
from dragoman.addons.serving.http.access_log import AccessLog
from dragoman.addons.serving.http.metrics import Metrics


def series() -> dict[str, set[str]]:
    """The names of the server's time series, each with its labels."""
    found = {}
    collectors: set[Any] = {*Metrics().registry._names_to_collectors.values()}
    for collector in collectors:
        labels = set(collector._labelnames)
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}
        for suffix in suffixes.get(collector._type, ("",)):
            extra = {"le"} if isinstance(collector, Histogram) and suffix == "_bucket" else set()
            found[collector._name + suffix] = labels | extra
    return found


def expressions() -> list[str]:
    rules = [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return rules + panels + [each["query"] for each in DASHBOARD["templating"]["list"]]


def test_metrics_and_labels_exist() -> None:
    known = series()
    used = {name for each in expressions() for name in re.findall(r"\bdragoman_\w+", each)}
    assert used <= {*known} and len(used) > 10
    for expression in expressions():
        for name, selector in re.findall(r"\b(dragoman_\w+)\{([^}]*)\}", expression):
            assert {*re.findall(r"(\w+)\s*=", selector)} <= known[name] | {"instance", "job"}, expression
        labels = {each.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for each in group.split(",")}
        names = re.findall(r"\bdragoman_\w+", expression)
        assert labels <= set().union({"instance"}, *(known[name] for name in names)), expression


def test_each_metric_is_on_the_dashboard() -> None:
    shown = " ".join(expressions())
    assert not [
        name for name in series() if name.removesuffix("_bucket") not in shown and not name.endswith(("_sum", "_count"))
    ]


def test_reasons_and_routes_exist() -> None:
    known = reasons()
    paths = set()
    with served({"en-de": shouting}) as service:
        from dragoman.addons.serving.access.access import Access
        from dragoman.addons.serving.http.application import Application

        config = service.config  # type: ignore[attr-defined]
        paths = {*Application(service, Access(config.access), config, Metrics()).openapi()["paths"]}
    for expression in expressions():
        for label, wanted in (("reason", known), ("route", paths)):
            for values in re.findall(rf'{label}=~?"([^"]+)"', expression):
                assert {*values.split("|")} <= wanted, expression


def test_the_form_of_rules_and_panels() -> None:
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert {*rule} <= {"alert", "expr", "for", "labels", "annotations"} and rule["labels"]["severity"]
        assert {*rule["annotations"]} == {"summary", "description"}
    for expression in expressions():
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_compose_file_starts_the_image_with_options_that_exist() -> None:
    service: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["dragoman"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    from dragoman.addons.serving.commands.serve import serve

    options = {option for each in get_command(_app(serve)).params for option in each.opts}
    assert {word for word in service["command"] if word.startswith("--")} <= options
    assert service["ports"] == ["127.0.0.1:5000:5000"] and service["read_only"] is True


def test_compose_accepts_its_file() -> None:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("there is no docker-compose")
    command = [program, "--file", DEPLOY / "compose.yaml", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _app(command: Any) -> Any:
    import typer

    app = typer.Typer()
    app.command()(command)
    return app


def test_logrotate_loses_no_line_of_a_running_server(tmp_path: Path) -> None:
    program = shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin")
    if program is None:
        pytest.skip("there is no logrotate")
    (tmp_path / "log").mkdir(mode=0o755)
    settings = (DEPLOY / "logrotate.conf").read_text("utf-8").replace("/var/log/dragoman", str(tmp_path / "log"))
    (tmp_path / "logrotate.conf").write_text(settings)
    (tmp_path / "logrotate.conf").chmod(0o644)
    config = ServeConfig.model_validate({"models": [], "log_file": tmp_path / "log" / "requests.log"})
    log, written, is_over = AccessLog(Access(config.access), "none", config.log_file), 0, False

    def write() -> None:
        nonlocal written
        while not is_over:
            log.write({"line": written})
            written += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            command = [program, "--force", "--state", tmp_path / "state", tmp_path / "logrotate.conf"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
            wait_until((tmp_path / "log" / "requests.log").exists)
    finally:
        is_over = True
        thread.join()
    lines = []
    for path in (tmp_path / "log").iterdir():
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines += [json.loads(line)["line"] for line in text.splitlines()]
    assert sorted(lines) == list(range(written)) and len([*(tmp_path / "log").iterdir()]) == 6
