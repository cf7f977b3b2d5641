"""The commands of docs/understanding.md and README.md, run with a table of German requests."""

import json
import re
import shlex
from pathlib import Path

import pytest
from documented import ROOT, _command

from dragoman.cli.main import main

REQUESTS = {
    "sehr zufrieden": ("Danke, alles bestens!", "Tolle Ware, gerne wieder", "Der Kundendienst war sehr freundlich"),
    "Frage zur Lieferung": ("Wann kommt mein Paket?", "Wo ist die Sendung", "Wie lange dauert der Versand"),
    "Rückgabe oder Umtausch": ('Die Hose ist zu groß ("XL")', "Kann ich das umtauschen?", "Ich schicke es zurück"),
}
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/understanding.md")}


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


def test_three_commands_from_a_table_to_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_requests(tmp_path)
    first = commands(PAGES["README.md"])[:3]
    assert first == commands(PAGES["docs/understanding.md"])[:3]
    outputs = []
    for command in first:
        assert main([*shlex.split(command)[1:], "--quiet"]) == 0
        outputs.append(capsys.readouterr().out)
    assert re.search(r"baseline: always '(sehr zufrieden|Frage zur Lieferung|Rückgabe oder Umtausch)'", outputs[1])
    predictions = [json.loads(line) for line in outputs[2].splitlines()]
    assert [each["id"] for each in predictions] == ["1", "2", "3"]
    assert [predictions[number]["label"] for number in (0, 2)] == ["Frage zur Lieferung", "sehr zufrieden"]
    assert set(predictions[1]["probabilities"]) == set(REQUESTS)
