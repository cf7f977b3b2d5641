"""Shards of a bulk translation: formats, manifest, resuming, and refusals; everything except Ray itself."""

import gzip
import json
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from bulk_shards import texts, without_ray, write_shards
from hypothesis import given, settings
from hypothesis import strategies as st
from repository import ROOT
from tiny_model import write_tiny_model

import dragoman
from dragoman.addons.bulk.cluster import Actors, join_cluster
from dragoman.addons.bulk.format import Window
from dragoman.addons.bulk.job import with_absolute_paths
from dragoman.addons.bulk.json_lines import JsonLines
from dragoman.addons.bulk.translate_shards import translate_shards
from dragoman.base.errors import ConfigError, DataError, ModelError, ResourceError
from dragoman.cli.main import main
from dragoman.inference.translation.files.translate_file import translate_file
from dragoman.inference.translation.translator import Translator

SEARCH = {"beam": 1, "search": {"maximum_length": 6}}
HOW = {**SEARCH, "batch_size": 1, "engine": "torch", "quiet": True}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bulk") / "model"
    write_tiny_model(folder)
    return folder


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ray(monkeypatch)


def entries(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.usefixtures("alone")
def test_shards_keep_their_records_in_order(model: Path, tmp_path: Path) -> None:
    files, out = write_shards(tmp_path / "in"), tmp_path / "out"
    done = translate_shards(model, tmp_path / "in", out, source_field="t.en", **HOW)
    translator = Translator.load(model, engine="torch")
    assert (done.shards, done.records) == (5, 36)
    for file in (files[0], files[1], files[4]):  # for lines of text, the file that `dragoman translate` writes
        translate_file(model, file, tmp_path / file.name, **HOW)
        assert (out / file.name).read_bytes() == (tmp_path / file.name).read_bytes()
    before = zstandard.decompress(files[2].read_bytes()).decode().splitlines()
    with zstandard.open(out / "c.jsonl.zst", "rt", encoding="utf-8") as lines:
        after = lines.read().splitlines()
    assert [line.partition(', "translation": ')[0] + "}" for line in after] == before
    assert [json.loads(line)["translation"] for line in after] == translator.translate(texts(9), **SEARCH)
    table = pq.read_table(out / "d.parquet")
    assert table.column_names == ["t.en", "id", "translation"]
    assert table.drop_columns("translation").equals(pq.read_table(files[3]))
    assert table.column("translation").to_pylist() == translator.translate(texts(9, 200), **SEARCH)
    assert table.schema.metadata[b"made by"] == b"a test"
    assert pq.ParquetFile(out / "d.parquet").metadata.row_group(0).column(0).compression == "GZIP"


@pytest.mark.usefixtures("alone")
def test_a_second_run_translates_the_remaining_shards(model: Path, tmp_path: Path) -> None:
    write_shards(tmp_path / "in")
    out = tmp_path / "out"
    (tmp_path / "in" / "b.txt.gz").rename(tmp_path / "later.txt.gz")
    translate_shards(model, tmp_path / "in", out, source_field="t.en", **HOW)
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    (tmp_path / "later.txt.gz").rename(tmp_path / "in" / "b.txt.gz")
    (out / "a.txt").unlink()
    with (out / "manifest.jsonl").open("ab") as file:
        file.write(b'{"shard": "b.txt.gz", "dig')  # a kill in the middle of a line
    (out / ".b.txt.gz.1234.partial").mkdir()
    done = translate_shards(model, tmp_path / "in", out, source_field="t.en", **HOW)
    after = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert done.records == 36
    assert {name for name in after if before.get(name) != after[name]} == {"a.txt", "b.txt.gz", "manifest.jsonl"}
    assert [entry["shard"] for entry in entries(out)[1:]][-2:] == ["a.txt", "b.txt.gz"]
    assert len(gzip.decompress((out / "b.txt.gz").read_bytes()).splitlines()) == 9


@pytest.mark.usefixtures("alone")
def test_changes_are_refused_by_name(model: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "a.txt", tmp_path / "out"
    source.write_text("a dog\n")
    translate_shards(model, source, out, **HOW)
    with pytest.raises(ConfigError, match=r"decoding.beam \(was 1, now 2\)"):
        translate_shards(model, source, out, **{**HOW, "beam": 2})
    with pytest.raises(ConfigError, match=r"on_error \(was 'stop', now 'blank'\)"):
        translate_shards(model, source, out, on_error="blank", **HOW)
    (out / "a.txt").write_text("x\n")
    with pytest.raises(ConfigError, match=r"a.txt has changed since it was completed: delete it"):
        translate_shards(model, source, out, **HOW)
    (out / "a.txt").unlink()
    translate_shards(model, source, out, **HOW)
    source.write_text("a cat\n")
    with pytest.raises(ConfigError, match=r"a.txt has changed since it was translated: delete .*out/a.txt"):
        translate_shards(model, source, out, **HOW)
    write_tiny_model(tmp_path / "other", seed=2)
    with pytest.raises(ConfigError, match=r"model \(was "):
        translate_shards(tmp_path / "other", source, out, **HOW)


@pytest.mark.usefixtures("alone")
def test_an_invalid_line_is_located_and_completed_shards_are_kept(model: Path, tmp_path: Path) -> None:
    good, bad, out = tmp_path / "good.txt", tmp_path / "bad.txt", tmp_path / "out"
    good.write_text("a dog\n")
    bad.write_bytes(b"a dog\n" * 20 + b"\xff\n")
    with pytest.raises(DataError, match=r"bad.txt, line 21: broken UTF-8"):
        translate_shards(model, [good, bad], out, **HOW)
    assert sorted(os.listdir(out)) == ["good.txt", "manifest.jsonl"]
    bad.write_bytes(b"a dog\n" * 21)
    assert translate_shards(model, [good, bad], out, **HOW).records == 22


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("on_error", ["replace", "blank"])
def test_invalid_lines_are_repaired_or_left_blank(
    model: Path, tmp_path: Path, on_error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, objects = tmp_path / "a.txt", tmp_path / "b.jsonl"
    text.write_bytes(b"a dog\n\xff two\n" + b"a dog " * 400 + b"\n")
    objects.write_bytes(b'{"t": "a \xff", "u": "\xfe"}\n{"t": "a \\ud800"}\n\n{"t": null}\n{"t": "a \\ud83d\\ude00"}\n')
    translate_shards(model, [text, objects], tmp_path / "out", on_error=on_error, source_field="t", **HOW)
    translate_file(model, text, tmp_path / "whole", on_error=on_error, **HOW)
    assert (tmp_path / "out" / "a.txt").read_bytes() == (tmp_path / "whole").read_bytes()
    lines = (tmp_path / "out" / "b.jsonl").read_text("utf-8").splitlines()
    repaired = Translator.load(model, engine="torch").translate(["a �", "a �", "", "", "a 😀"], **SEARCH)
    wanted = repaired if on_error == "replace" else ["", "", *repaired[2:]]
    assert [json.loads(line)["translation"] if line else "" for line in lines] == wanted
    assert lines[0].startswith('{"t": "a �", "u": "�", ')
    outcome = "repaired" if on_error == "replace" else "left blank"
    assert f"3 line(s) with broken UTF-8 were {outcome}: line a.txt:2, " in " ".join(capsys.readouterr().err.split())
    assert entries(tmp_path / "out")[1]["counts"] != {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "not a JSON object"),
        ('{"t": "a"', "not valid JSON"),
        ('{"s": "a"}', "there is no field 't'"),
        ('{"t": 1}', "is not text, but int"),
        ('{"t": "a", "translation": "b"}', "already has a field 'translation'"),
        ('{"t": "a \\ud800"}', "escaped lone surrogate"),
    ],
)
def test_an_invalid_object_is_located(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"t": "a"}}\n{line}\n')
    with pytest.raises(DataError, match=rf"a.jsonl, line 2: .*{message}"):
        list(JsonLines("t", "translation").windows(path, 10, "stop"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"s": ["a"]}, "has no column 't', which --source-field names: expected one of s"),
        ({"t": ["a"], "translation": ["b"]}, "already has a column 'translation'"),
        ({"t": [1]}, "does not contain strings, but int64"),
    ],
)
@pytest.mark.usefixtures("alone")
def test_an_invalid_table_is_named(model: Path, tmp_path: Path, columns: dict[str, list[object]], message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        translate_shards(model, tmp_path / "a.parquet", tmp_path / "out", source_field="t", **HOW)
    assert not (tmp_path / "out").exists()
    (tmp_path / "a.parquet").write_text("no table")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        translate_shards(model, tmp_path / "a.parquet", tmp_path / "out", source_field="t", **HOW)


@given(
    st.dictionaries(st.text(min_size=1).filter(lambda key: key not in ("t", "translation")), st.text() | st.floats()),
    st.text(),
    st.sampled_from([None, 1, " "]),
)
@settings(max_examples=50)
def test_an_object_keeps_its_other_fields(others: dict[str, object], translation: str, blanks: object) -> None:
    line = json.dumps({**others, "t": "x"}, indent=None, separators=None if blanks is None else (" , ", " : "))
    (after,) = JsonLines("t", "translation").lines(Window(1, ["x"], [f" {line} "]), [translation])
    assert repr(json.loads(after)) == repr({**json.loads(line), "translation": translation})
    assert "\n" not in after


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_full_disk_keeps_completed_shards(model: Path, tmp_path: Path) -> None:
    small, large, out = tmp_path / "a.txt", tmp_path / "b.jsonl", tmp_path / "out"
    small.write_text("a dog\n")
    large.write_text(f'{{"id": "{"x" * 100}", "t": "two dogs"}}\n' * 25)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, hard))
    try:
        with pytest.raises(ResourceError, match=r"cannot write .*b.jsonl: File too large. Free some space"):
            translate_shards(model, [small, large], out, source_field="t", **HOW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert sorted(os.listdir(out)) == ["a.txt", "manifest.jsonl"]
    assert translate_shards(model, [small, large], out, source_field="t", **HOW).records == 26


@pytest.mark.usefixtures("alone")
def test_a_machine_with_another_model_does_not_translate(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("a dog\n")
    found = iter(["one", "other"])  # on the machine that runs the command, and on an actor's machine
    monkeypatch.setattr("dragoman.addons.bulk.job.fingerprint_of", lambda folders: next(found))
    with pytest.raises(ModelError, match=r"would translate differently .*: model \(was 'one', now 'other'\)"):
        translate_shards(model, tmp_path / "a.txt", tmp_path / "out", **HOW)
    assert not (tmp_path / "out").exists()


def test_invalid_files_and_folders_are_reported_before_a_model_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "x" / "a.txt").write_text("a\n")
    (tmp_path / "b.jsonl").write_text("{}\n")
    (tmp_path / "empty").mkdir()
    wrong = {
        "no such file": ("none.txt", "out", {}),
        "no file matches": ("*.csv", "out", {}),
        "is empty": ("empty", "out", {}),
        "would have the same output file": (["a.txt", "x/a.txt"], "out", {}),
        "would overwrite it": ("a.txt", ".", {}),
        "--source-field can only be used with files that have fields": ("a.txt", "out", {"source_field": "t"}),
        "name the field to translate": ("b.jsonl", "out", {}),
        "choose another": ("b.jsonl", "out", {"source_field": "t", "target_field": "t"}),
    }
    for message, (given_, out, fields) in wrong.items():
        inputs = [tmp_path / each for each in ([given_] if isinstance(given_, str) else given_)]
        with pytest.raises((ConfigError, DataError), match=message):
            translate_shards(tmp_path / "no model", inputs, tmp_path / out, **fields)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("alone")
def test_a_folder_with_other_content_is_not_touched(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a dog\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="contains letter.txt, but no manifest"):
        translate_shards(model, tmp_path / "a.txt", out, **HOW)
    (out / "manifest.jsonl").write_text("my manifest\n")
    with pytest.raises(ConfigError, match="is not a dragoman manifest"):
        translate_shards(model, tmp_path / "a.txt", out, **HOW)
    assert (out / "manifest.jsonl").read_text() == "my manifest\n"


@pytest.mark.usefixtures("alone")
def test_sampling_a_shard_equals_sampling_the_file(model: Path, tmp_path: Path) -> None:
    file, how = write_shards(tmp_path / "in")[0], {"batch_size": 1, "engine": "torch", "quiet": True}
    drawn = dragoman.Sampling.of(top_k=5, seed=3, settings={"maximum_length": 6})
    translate_shards(model, file, tmp_path / "out", sampling=drawn, **how)
    translate_file(model, file, tmp_path / "whole", sampling=drawn, **how)
    assert (tmp_path / "out" / "a.txt").read_bytes() == (tmp_path / "whole").read_bytes()


def test_files_of_the_search_get_absolute_paths(model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.tsv").write_text("dog\tHund\n")
    request = with_absolute_paths(Translator.load(model, engine="torch").request(unknown="words.tsv"))
    assert request.settings()["decoding"]["unknown"]["path"] == str(tmp_path / "words.tsv")


def test_actors_share_the_processors() -> None:
    assert Actors.of([8, 4, 0, 4], None, None) == Actors(4, 4)
    assert Actors.of([8, 4], None, 3) == Actors(3, 3)
    assert Actors.of([8, 4], 2, 1) == Actors(2, 1)
    with pytest.raises(ConfigError, match="processors suffice for 2"):
        Actors.of([2], 3, 1)
    with pytest.raises(ConfigError, match="no machine of the cluster has more than 4"):
        Actors.of([4, 4], None, 8)
    with pytest.raises(ConfigError, match="no available processors"):
        Actors.of([0], None, None)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[ray\]'"), join_cluster("auto"):
        pass


def test_rays_client_needs_its_own_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "grpc", None)
    with pytest.raises(ConfigError, match=r"or pip install 'ray\[client\]'"), join_cluster("ray://head:10001"):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "out"], "Missing option '--input'"),
        (["-i", ".", "-o", "out", "--nbest", "2"], "No such option: --nbest"),
        (["-i", ".", "-o", "out", "--seed", "2"], "--seed can only be used with --sample"),
        (["-i", ".", "-o", "out", "--sample", "--beam", "2"], "--beam can only be used without --sample"),
        (["-i", ".", "-o", "out", "pyproject.toml"], "To translate several files"),
    ],
)
def test_unsuitable_options(
    options: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["translate-shards", "no model", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("alone")
def test_the_command_line_takes_patterns_and_search_settings(model: Path, tmp_path: Path) -> None:
    files = write_shards(tmp_path / "in", count=6)
    (tmp_path / "terms.tsv").write_text("dog\tHund\n")
    command = ["translate-shards", str(model), "search.minimum_length=3", "--cluster", "auto", "--glossary"]
    command += [str(tmp_path / "terms.tsv"), "-i", str(tmp_path / "in" / "*.txt*"), "-o", str(tmp_path / "out"), "-q"]
    assert main(command) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["a.txt", "b.txt.gz", "e.txt", "manifest.jsonl"]
    assert "Hund" in (tmp_path / "out" / "a.txt").read_text("utf-8").splitlines()[0]
    assert len((tmp_path / "out" / "a.txt").read_text("utf-8").splitlines()) == len(files[0].read_text().splitlines())
    assert dragoman.translate_shards is translate_shards
