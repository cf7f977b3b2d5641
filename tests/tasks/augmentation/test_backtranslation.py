"""Back-translation: rules, loops, the journal, resuming, and the command's messages about wrong use."""

import gzip
import json
import lzma
import shutil
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from trained_model import FOLDER as MODEL
from trained_model import PAIRS

from dragoman.base import journal as journals
from dragoman.base.errors import ConfigError, ResourceError
from dragoman.base.journal import OutputJournal, work_folder
from dragoman.base.settings.yaml import parse_yaml
from dragoman.cli.main import main
from dragoman.data.files.lines import open_lines
from dragoman.decode.decoding import Sampling
from dragoman.decode.sampling import SamplingConfig
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.augmentation.backtranslate import BackTranslation
from dragoman.tasks.augmentation.filters import RULES, FilterConfig, ScoredPair, broken_rule, has_control_characters

ALL_OFF = FilterConfig(
    empty=False, duplicates=False, max_tokens=None, unfinished=False, copied=None, max_ratio=None, repeats=None
)
KNOWN = [source for source, _ in PAIRS]
TRANSLATIONS = dict(PAIRS)


@pytest.fixture(scope="module")
def translator() -> Translator:
    """A translator into German. The English text makes it the reverse model of German → English."""
    loaded = Translator.load(MODEL, "cpu")
    loaded.warn_unfinished = False
    return loaded


def task(folder: Path, lines: list[str], **changes: object) -> BackTranslation:
    text = folder / "mono"
    text.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    settings = {"request": Translator.load(MODEL, "cpu").request(beam=1), "filters": FilterConfig(), "batch_size": 1}
    return BackTranslation(MODEL, text, folder / "pairs.tsv", **{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "pair"),
    [
        ("control_characters", ScoredPair("a", "x\ty", True, -0.1)),
        ("control_characters", ScoredPair("a", "x\ny", True, -0.1)),
        ("empty", ScoredPair("a", " ", True, -0.1)),
        ("unfinished", ScoredPair("ein Hund läuft", "a dog is", False, -0.1)),
        (
            "copied",
            ScoredPair("Ein Hund läuft heute schnell nach oben", "a Hund läuft heute schnell nach oben", True, -0.1),
        ),
        (
            "max_ratio",
            ScoredPair("ja", "yes indeed it is so and will be for a long time to come , my dear friend", True, -0.1),
        ),
        ("repeats", ScoredPair("der sehr große Hund", "the very very very very big dog", True, -0.1)),
        ("min_score", ScoredPair("ein Hund", "some cat", True, -2.5)),
        (None, ScoredPair("ein Hund", "a dog", True, -0.1)),
        ("empty", ScoredPair("ein Hund", "…", True, -0.1)),
        ("repeats", ScoredPair("ein Hund", "the end of it the end of it the end of it the end of it", True, -0.1)),
        (None, ScoredPair("der sehr große Hund", "the very very very big dog", True, -0.1)),  # only three times
        (None, ScoredPair("ein Hund", "a dog . . . . . .", True, -0.1)),
        (None, ScoredPair("Hans Maier", "Hans Maier", True, -0.1)),  # names are the same in many languages
        (None, ScoredPair("läuft oben heute", "läuft oben heute", True, -0.1)),  # too short to judge
        (None, ScoredPair("ho ho ho ho ho ho", "ha ha ha ha ha", True, -0.1)),  # the line does so too
    ],
)
def test_each_rule_drops_its_case_and_can_be_switched_off(rule: str | None, pair: ScoredPair) -> None:
    config = FilterConfig(min_score=-2.0)
    assert broken_rule(pair, config) == rule
    if rule in (None, "control_characters"):
        return
    off = config.model_copy(update={rule: False if isinstance(getattr(config, rule), bool) else None})
    assert broken_rule(pair, off) is None


def test_every_rule_is_described_and_only_tabs_and_controls_are_unusable() -> None:
    assert set(FilterConfig.model_fields) <= set(RULES)
    assert [has_control_characters(text) for text in ("a\tb", "a\x85b", "a b", "a\u2028b", "é")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_pairs_are_written_in_order_and_all_lines_are_accounted_for(tmp_path: Path, translator: Translator) -> None:
    lines = [KNOWN[0], "", KNOWN[1], KNOWN[0], "broken \udcff", "a\ttab", KNOWN[2], "dog " * 300, KNOWN[3]]
    done = task(tmp_path, lines)
    counts = done.run(translator)
    expected = "".join(f"{TRANSLATIONS[line]}\t{line}\n" for line in KNOWN[:4])
    assert done.output.read_text() == expected
    assert counts == Counter(lines=9, kept=4, empty=1, duplicates=1, broken_utf8=1, control_characters=1, max_tokens=1)
    assert not work_folder(done.output).exists()


def test_with_every_rule_off_all_readable_lines_become_pairs(tmp_path: Path, translator: Translator) -> None:
    lines = [KNOWN[0], "", KNOWN[0], " "]
    counts = task(tmp_path, lines, filters=ALL_OFF).run(translator)
    assert counts == Counter(lines=4, kept=4)
    pairs = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()]
    assert pairs == [[TRANSLATIONS[KNOWN[0]], KNOWN[0]], ["", ""], [TRANSLATIONS[KNOWN[0]], KNOWN[0]], ["", " "]]


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_compressed_in_and_out(tmp_path: Path, translator: Translator, ending: str) -> None:
    lines = [f"{line} {number}" for number in range(10) for line in KNOWN[:2]]  # more than one window of 16
    plain = task(tmp_path, lines, filters=ALL_OFF)
    plain.run(translator)
    content = plain.text.read_bytes()
    packed = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}[ending](content)
    text = tmp_path / f"mono{ending}"
    text.write_bytes(packed)
    output = tmp_path / f"out.tsv{ending}"
    BackTranslation(MODEL, text, output, plain.request, ALL_OFF, 1).run(translator)
    assert output.read_bytes()[:2] != plain.output.read_bytes()[:2]
    assert list(open_lines(output)) == plain.output.read_text().splitlines()
    assert len(list(open_lines(output))) == len(lines)


class Stopped(Exception):
    """Raised in place of a kill."""


def stop_after(windows: int):
    seen = iter(range(windows - 1))

    def tell(counts: Counter[str]) -> None:
        if next(seen, None) is None:
            raise Stopped

    return tell


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_stopped_run_resumes_to_the_same_bytes(tmp_path: Path, translator: Translator, drawn: bool) -> None:
    lines = [f"{line} {number % 4}" for number in range(6) for line in KNOWN]
    changes = (
        {"request": Request(Sampling(SamplingConfig(temperature=1.3), seed=5)), "filters": ALL_OFF} if drawn else {}
    )
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    counts = task(whole, lines, **changes).run(translator)
    again = task(parts, lines, **changes)
    for _ in range(2):
        with pytest.raises(Stopped):
            again.run(translator, stop_after(1))
        with (work_folder(again.output) / "text").open("ab") as text:
            text.write(b"half a wind")  # written, but not committed
    assert not again.output.exists()
    assert again.run(translator) == counts
    assert again.output.read_bytes() == (whole / "pairs.tsv").read_bytes()
    assert counts["lines"] == len(lines)
    assert (counts["duplicates"] > 10) is not drawn  # found across windows and interruptions


def test_other_settings_are_not_resumed(tmp_path: Path, translator: Translator) -> None:
    lines = [f"{line} {number}" for number in range(9) for line in KNOWN]
    with pytest.raises(Stopped):
        task(tmp_path, lines).run(translator, stop_after(1))
    other = task(tmp_path, lines)
    with pytest.raises(
        ConfigError, match=r"work with other options: filters\.copied \(was 0\.8, now None\), .*delete that folder"
    ):
        BackTranslation(MODEL, other.text, other.output, other.request, ALL_OFF, 1).run(translator)
    (tmp_path / "mono").write_text("another text\n")
    with pytest.raises(ConfigError, match=r"mono has 1 line\(s\), but 16 lines are already done\. Use the text"):
        other.run(translator)


def test_two_processes_cannot_write_the_same_output(tmp_path: Path) -> None:
    with OutputJournal(tmp_path / "out", {}), pytest.raises(ConfigError, match="another process is working"):
        OutputJournal(tmp_path / "out", {})
    with OutputJournal(tmp_path / "out", {}):
        pass


def test_a_damaged_journal_is_reported(tmp_path: Path) -> None:
    with OutputJournal(tmp_path / "out", {}) as journal:
        journal.write(1, b"x")
        journal.commit()
    (work_folder(tmp_path / "out") / "progress.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(ResourceError, match="progress.sqlite"):
        OutputJournal(tmp_path / "out", {})


def test_a_kill_around_the_last_rename_loses_nothing(
    tmp_path: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = task(tmp_path, KNOWN)
    for name in ("replace", "rmtree"):  # before the rename, and between it and the removal of the folder
        with monkeypatch.context() as patch:
            owner = journals.os if name == "replace" else journals.shutil
            patch.setattr(owner, name, lambda *paths: (_ for _ in ()).throw(Stopped))
            with pytest.raises(Stopped):
                done.run(translator)
    assert done.output.exists()
    assert done.run(translator)["kept"] == len(KNOWN)
    assert len(done.output.read_text().splitlines()) == len(KNOWN)
    assert not work_folder(done.output).exists()


def test_an_output_made_meanwhile_is_not_overwritten(tmp_path: Path, translator: Translator) -> None:
    lines = [f"{line} {number}" for number in range(9) for line in KNOWN]
    done = task(tmp_path, lines)
    with pytest.raises(Stopped):
        done.run(translator, stop_after(1))
    (tmp_path / "pairs.tsv").write_text("mine")
    with pytest.raises(ConfigError, match="already exists"):
        done.run(translator)
    assert (tmp_path / "pairs.tsv").read_text() == "mine"


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    (tmp_path / "mono.en").write_text("".join(f"{line}\n" for line in KNOWN))
    return tmp_path


def test_the_command_writes_pairs_and_yaml(mono: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["backtranslate", str(MODEL), "--input", str(mono / "mono.en"), "--out", str(mono / "bt.tsv")]
    assert main([*command, "--language", "en"]) == 0
    said = capfd.readouterr()
    assert f"{len(KNOWN)} of {len(KNOWN)} lines kept (100.0%)" in said.err
    corpora = parse_yaml(said.out.replace("…", "x"), "output").content["data"]["train"]
    assert corpora[1] == {"pairs": str(mono / "bt.tsv"), "tags": ["bt"]}
    assert (mono / "bt.tsv").read_text().splitlines()[0] == f"{TRANSLATIONS[KNOWN[0]]}\t{KNOWN[0]}"
    assert main(command) == 2
    assert "already exists" in capfd.readouterr().err


def test_dropped_lines_are_reported(mono: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (mono / "mono.en").open("a") as file:
        file.write(f"\n{KNOWN[0]}\n")
    command = [
        "backtranslate",
        str(MODEL),
        "-i",
        str(mono / "mono.en"),
        "-o",
        str(mono / "bt.tsv"),
        "min_score=-0.000001",
    ]
    assert main(command) == 0
    said = capfd.readouterr().err.splitlines()
    found = {line.split()[0]: int(line.split()[1]) for line in said if line.startswith("  ")}
    assert found == {"empty": 1, "duplicates": 1, "min_score": len(KNOWN)}
    assert any("no pair was kept" in line for line in said)
    assert (mono / "bt.tsv").read_bytes() == b""


def test_sampling_is_seeded(mono: Path) -> None:
    outputs = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        command = ["backtranslate", str(MODEL), "-i", str(mono / "mono.en"), "-o", str(mono / name), "--seed", seed]
        off = ["unfinished=false", "max_ratio=null", "copied=null", "repeats=null"]
        assert main([*command, "--method", "sample", "--temperature", "2", *off]) == 0
        outputs.append((mono / name).read_bytes())
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--language", "de"],
            "text is in 'de', but the model translates from 'en': back-translation needs a model of the reverse",
        ),
        (["--seed", "3"], "--seed can only be used with --method sample"),
        (["--method", "sample", "--beam", "3"], "--beam can only be used with --method beam"),
        (["max_ratio=0.5"], "max_ratio"),
        (["min_score=1"], "min_score"),
        (["--tags", "law"], "no tag 'law'"),
        (["--to", "fr"], "one target language, de: leave out --to fr"),
        (["--input", "nowhere"], "There is no file nowhere"),
        (["--input", "empty"], "empty is empty"),
        (["--out", "nowhere/bt.tsv"], "the output folder nowhere does not exist"),
    ],
)
def test_wrong_use_is_reported(
    mono: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    monkeypatch.chdir(mono)
    (mono / "empty").touch()
    files = ["--input", "mono.en", "--out", "bt.tsv"]
    assert main(["backtranslate", str(MODEL), *files, *options]) in (1, 2)
    assert message in " ".join(capfd.readouterr().err.split())
    assert not (mono / "bt.tsv").exists()


def test_many_copies_make_the_direction_suspect(mono: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from dragoman.tasks.augmentation.backtranslate import SyntheticPairs, _warn

    _warn(SyntheticPairs(mono / "bt.tsv", Counter(lines=10, copied=3, kept=7), None))
    assert "translates from the language of the text" in capfd.readouterr().err
    _warn(SyntheticPairs(mono / "bt.tsv", Counter(lines=10, copied=2, kept=8), None))
    assert "language of the text" not in capfd.readouterr().err


def test_another_model_or_method_is_not_resumed(tmp_path: Path) -> None:
    copied = tmp_path / "model"
    shutil.copytree(MODEL, copied)
    first = task(tmp_path, KNOWN)
    other = BackTranslation(copied, first.text, first.output, first.request, first.filters, 1)
    assert first.settings() == other.settings()
    with (copied / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    assert first.settings() != other.settings()
    drawn = BackTranslation(MODEL, first.text, first.output, Request(Sampling()), first.filters, 1)
    assert json.dumps(drawn.settings()) != json.dumps(first.settings())
