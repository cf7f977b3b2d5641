"""The commands of docs/how-to/models/understanding.md and README.md, run with a table of German requests."""

import json
import re
import shlex
import signal
import time
from pathlib import Path

import httpx
import pytest
from documented import ROOT, _command
from training_runs import Server

from dragoman import Client
from dragoman.cli.main import main

REQUESTS = {
    "sehr zufrieden": ("Danke, alles bestens!", "Tolle Ware, gerne wieder", "Der Kundendienst war sehr freundlich"),
    "Frage zur Lieferung": ("Wann kommt mein Paket?", "Wo ist die Sendung", "Wie lange dauert der Versand"),
    "Rückgabe oder Umtausch": ('Die Hose ist zu groß ("XL")', "Kann ich das umtauschen?", "Ich schicke es zurück"),
}
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/how-to/models/understanding.md")
}


def commands(page: str) -> list[str]:
    """Return the commands in the fenced blocks of a page that concern prediction models."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("dragoman ")]
    return [line.partition("  #")[0].strip() for line in lines if "runs/requests" in line]


def write_requests(folder: Path) -> None:
    ends = ("bitte", "danke", "heute", "schon", "noch", "endlich", "wirklich", "morgen")
    rows = [f"{text} {end}\t{label}" for label, texts in REQUESTS.items() for text in texts for end in ends]
    (folder / "train.tsv").write_text("\n".join(rows * 4) + "\n")
    (folder / "valid.tsv").write_text("\n".join(rows[::5]) + "\n")
    (folder / "test.tsv").write_text("\n".join(rows[1::5]) + "\n")
    (folder / "texts.txt").write_text("Wo bleibt mein Paket?\n\nDanke, alles bestens!\n")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_exists(page: str) -> None:
    listed = commands(PAGES[page])
    assert len(listed) >= 3
    assert [reason for line in listed if "data.train" not in line for reason in _command(line)] == []


def test_three_commands_from_a_table_to_a_served_classifier(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_requests(tmp_path)
    train, evaluate, serve = commands(PAGES["README.md"])[:3]
    assert [train, evaluate, serve] == commands(PAGES["docs/how-to/models/understanding.md"])[:3]
    assert main([*shlex.split(train)[1:], "--quiet"]) == 0
    capsys.readouterr()
    assert main([*shlex.split(evaluate)[1:], "--quiet"]) == 0
    assert re.search(r"baseline: always '(" + "|".join(REQUESTS) + ")'", capsys.readouterr().out)
    (predict,) = [
        line
        for line in commands(PAGES["docs/how-to/models/understanding.md"])
        if line.startswith("dragoman predict runs")
    ][:1]
    assert main([*shlex.split(predict)[1:], "--quiet"]) == 0
    predictions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in predictions] == ["1", "2", "3"]
    assert [predictions[number]["label"] for number in (0, 2)] == ["Frage zur Lieferung", "sehr zufrieden"]
    assert set(predictions[1]["probabilities"]) == set(REQUESTS)

    (tmp_path / "stderr").write_text("")
    process = server.start(tmp_path, *shlex.split(serve)[1:], "--port", "0")
    while not (address := re.search(r"listening at (\S+)", process.said)):
        assert process.is_alive, process.said
        time.sleep(0.02)
    with Client(address[1]) as client:
        assert client.predict("Wo bleibt mein Paket?")["label"] == "Frage zur Lieferung"
    metrics = httpx.get(f"{address[1]}/metrics").text
    assert 'dragoman_predicted_texts_total{model="requests"} 1.0' in metrics and 'task="classification"' in metrics
    process.kill(signal.SIGTERM)
    assert process.wait() == 0, process.said
