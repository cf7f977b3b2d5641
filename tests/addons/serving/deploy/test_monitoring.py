"""The alert rules, the dashboard, and the files for Compose and logrotate: what they name exists."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Histogram
from repository import ROOT
from scripted_server import served, shouting
from typer.main import get_command

from dragoman.addons.serving.errors import RequestError
from dragoman.addons.serving.http.metrics import Metrics

DEPLOY = ROOT / "deploy"
ALERTS = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))
DASHBOARD = json.loads((DEPLOY / "dashboard.json").read_text("utf-8"))


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


def reasons(kind: type[RequestError]) -> set[str]:
    return {kind.reason} | {reason for each in kind.__subclasses__() for reason in reasons(each)}


def test_reasons_and_routes_exist() -> None:
    known = reasons(RequestError)
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


def _app(command: Any) -> Any:
    import typer

    app = typer.Typer()
    app.command()(command)
    return app


def test_logrotate_accepts_its_file(tmp_path: Path) -> None:
    program = shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin")
    if program is None:
        pytest.skip("there is no logrotate")
    command = [program, "--debug", "--state", tmp_path / "state", DEPLOY / "logrotate.conf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "error" not in done.stderr
