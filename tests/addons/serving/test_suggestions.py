"""Suggested translations."""

import json
import stat
from io import FileIO
from pathlib import Path

import pytest
from scripted_server import posted, served, shouting

from dragoman.addons.serving.errors import Overloaded
from dragoman.addons.serving.suggestions import Suggestions
from dragoman.base.errors import ConfigError

FIELDS = {"q": "a dog\nruns", "s": "ein Hund\nläuft \u2028", "source": "EN", "target": "de"}


def test_suggestions_are_appended(tmp_path: Path) -> None:
    kept = tmp_path / "suggestions.jsonl"
    with served({"en-de": shouting}, suggestions=kept) as service:
        for _ in range(2):
            answer = posted(service, "/suggest", **FIELDS)
            assert (answer.status_code, answer.json()) == (200, {"success": True})
        for wrong in ({"s": " "}, {"target": "fr"}, {"source": "de"}, {"q": "a" * 20_000}):
            answer = posted(service, "/suggest", **{**FIELDS, **wrong})
            assert answer.status_code in (400, 413) and "error" in answer.json(), wrong
    lines = [json.loads(line) for line in kept.read_bytes().split(b"\n")[:-1]]
    wanted = {"source": "en", "target": "de", "text": FIELDS["q"], "suggestion": FIELDS["s"]}
    assert [{name: line[name] for name in wanted} for line in lines] == [wanted] * 2
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_suggestions_are_rejected_without_a_file() -> None:
    with served({"en-de": shouting}) as service:
        assert posted(service, "/suggest", **FIELDS).status_code == 403


def test_a_full_suggestions_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    few = Suggestions(kept, 150)
    few.add("en", "de", "a", "b")
    before = kept.read_bytes()
    with pytest.raises(Overloaded, match="no further suggestions"):
        few.add("en", "de", "c" * 60, "d")
    assert kept.read_bytes() == before
    with pytest.raises(ConfigError, match="cannot be stored"):
        Suggestions(tmp_path / "none" / "kept", 150)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Overloaded, match="at the moment"):
        Suggestions(Path("/dev/full"), 1000).add("en", "de", "a dog", "ein Hund")
    error = capfd.readouterr().err
    assert "No space left" in error and "dog" not in error


def test_a_partly_written_line_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Half(FileIO):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            return super().write(data[: len(data) // 2])

    kept = Suggestions(tmp_path / "kept", 1000)
    kept.add("en", "de", "a", "b")
    before = (tmp_path / "kept").read_bytes()
    monkeypatch.setattr("dragoman.addons.serving.suggestions.FileIO", Half)
    with pytest.raises(Overloaded):
        kept.add("en", "de", "c", "d")
    assert (tmp_path / "kept").read_bytes() == before
