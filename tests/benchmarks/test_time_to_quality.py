"""benchmarks/time_to_quality: minutes to a threshold, table and picture, contenders, processes that train."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from benchmark_modules import BENCHMARKS, benchmark_modules
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from dragoman.base.settings.load import load_settings
from dragoman.tasks.translation.config import TranslationRun

FOLDER = BENCHMARKS / "time_to_quality"
MODULES = (
    "contenders", "ledger", "machine", "picture", "pieces", "results", "sitting", "table", "trainers.dragoman",
    "trainers.plain", "programs.plain", "sizes", "worker",
)  # fmt: skip
MACHINE = {"processor": "Z1", "cores": 2, "instructions": ["avx2"]}


@pytest.fixture(scope="module")
def quality() -> Iterator[SimpleNamespace]:
    """The benchmark's modules, and those of benchmarks/training that it uses."""
    with benchmark_modules(["time_to_quality", "training"], MODULES) as modules:
        yield modules


def line(name: str, points: list[tuple[float, float]], **changed: Any) -> dict[str, Any]:
    return {
        "name": name, "title": f"the {name}", "fitted": False, "machine": MACHINE, "threads": 2, "seed": 1,
        "minutes": 44.0, "updates": 100, "tokens": 60_000, "seconds": 600.0, "cpu_seconds": 1140.0,
        "own_seconds": 0.0, "sittings": 1, "facts": {"parameters": 1_500_000, "precision": "float32"},
        "signature": "nrefs:1", "points": [{"minutes": x, "updates": 1, "bleu": y} for x, y in points], **changed,
    }  # fmt: skip


def test_minutes_are_interpolated_between_two_points(quality: SimpleNamespace) -> None:
    points = [{"minutes": x, "bleu": y} for x, y in ((2.0, 20.0), (1.0, 10.0), (4.0, 32.0), (5.0, 31.0))]
    minutes_to = quality.results.minutes_to
    assert minutes_to(points, 15.0) == 1.5
    assert minutes_to(points, 29.0) == 3.5
    assert minutes_to(points, 8.0) == 1.0  # the time before the first point is unknown
    assert minutes_to(points, 33.0) is None
    assert minutes_to([], 1.0) is None


@given(steps=st.lists(st.tuples(st.floats(0.1, 5), st.floats(0.1, 9)), min_size=2, max_size=20), share=st.floats(0, 1))
def test_minutes_of_a_rising_curve_are_those_of_numpy(
    quality: SimpleNamespace, steps: list[tuple[float, float]], share: float
) -> None:
    minutes, scores = np.cumsum(np.array(steps), axis=0).T
    threshold = float(scores[0] + share * (scores[-1] - scores[0]) * 0.999)
    points = [{"minutes": float(x), "bleu": float(y)} for x, y in zip(minutes, scores, strict=True)]
    assert quality.results.minutes_to(points, threshold) == pytest.approx(np.interp(threshold, scores, minutes))


def test_of_two_lines_of_a_run_the_later_one_counts(quality: SimpleNamespace, tmp_path: Path) -> None:
    results, path = quality.results, tmp_path / "results.jsonl"
    short, longer = line("joey", [(1, 5)], minutes=44.0), line("joey", [(1, 5), (90, 31)], minutes=90.0)
    fitted = [line("dragoman", [(1, 30)], fitted=True, minutes=limit) for limit in (20.0, 44.0)]
    for each in (short, longer, *fitted, longer):
        results.add(each, path)
    assert path.read_text("utf-8").count("\n") == 4
    other = tmp_path / "other.jsonl"
    results.add(line("joey", [(1, 6)], machine={**MACHINE, "processor": "Z2"}), other)
    found = results.read([path, other, tmp_path / "none.jsonl"])
    assert [(each["name"], each["minutes"]) for each in found] == [
        ("joey", 90.0), ("dragoman", 20.0), ("dragoman", 44.0), ("joey", 44.0),
    ]  # fmt: skip


def test_the_table_has_means_over_seeds_and_dashes(quality: SimpleNamespace) -> None:
    lines = [
        line("dragoman", [(2, 20), (4, 40)], fitted=True, own_seconds=25.0),
        line("dragoman", [(4, 20), (8, 40)], fitted=True, own_seconds=175.0, seed=2),
        line("joey", [(10, 20), (30, 36)], minutes=90.0, facts={}),
        line("plain", [(1, 20), (2, 40)]),
        line("plain", [(1, 20), (2, 29)], seed=2),
        line("joey", [(10, 20)], machine={**MACHINE, "processor": "Z2"}),
    ]
    text = quality.table.table(lines)
    first, second = text.split("Z2, ")
    assert first.startswith(
        "Z1, 2 cores (avx2), 2 threads\n\n| program | minutes to 30 | minutes to 35 | minutes to 38 |"
    )
    _, _, ours, theirs, partly = first.strip().splitlines()[2:]
    cells = [cell.strip() for cell in ours.strip("|").split("|")]
    assert cells == [
        "the dragoman", "4.5", "5.2", "5.7", "40.0 (6)", "44", "100", "100", "14.3%", "1.9", "1.5", "float32", "2",
    ]  # fmt: skip
    cells = [cell.strip() for cell in theirs.strip("|").split("|")]
    assert cells[:6] == ["the joey", "22.5 (5.0×)", "28.8 (5.5×)", "–", "36.0 (30)", "90"]
    assert cells[8:] == ["–", "1.9", "–", "–", "1"]
    assert partly.startswith("| the plain | – | – | – | 34.5 (2) |")  # one of the seeds did not reach it
    assert second.splitlines()[-1].startswith("| the joey | – | – | – | 20.0 (10) |")
    assert quality.table.table([]) == "there are no results yet"


@pytest.mark.slow
def test_the_picture_is_drawn(quality: SimpleNamespace, tmp_path: Path) -> None:
    lines = [line("dragoman", [(0.5, 20), (44, 40)]), line("joey", [(10, 20)], machine={**MACHINE, "processor": "Z2"})]
    quality.picture.draw([], tmp_path / "none.png")
    quality.picture.draw(lines[:1], tmp_path / "one.png")
    quality.picture.draw(lines, tmp_path / "two.png")
    assert not (tmp_path / "none.png").exists()
    sizes = [(tmp_path / name).read_bytes()[:24] for name in ("one.png", "two.png")]
    assert all(head[:8] == b"\x89PNG\r\n\x1a\n" for head in sizes)
    heights = [int.from_bytes(head[20:24], "big") for head in sizes]
    assert heights[1] == 2 * heights[0]  # one panel per machine


def test_a_machine_reports_its_instruction_sets(quality: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(
        "cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nflags\t\t: fpu sse avx2 fma\n\nflags\t\t: amx_tile\n"
    )
    found = quality.machine.machine(path)
    assert found["processor"] == "AMD EPYC (family 25 model 1)"
    assert found["instructions"] == ["avx2", "fma"]
    assert found["cores"] >= 1


def test_the_default_gets_only_two_files_and_a_limit(
    quality: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "data")
    out = tmp_path / "run"

    def command(seed: int, **options: Any) -> list[str]:
        task = quality.worker.Task(tmp_path, tmp_path, "small", 1, False, "cpu", 1, seed, {"minutes": 44.0, **options})
        return list(quality.trainers_dragoman.command(task, out))

    files = [f"data/multi30k/{name}.{language}.gz" for name in ("train", "val") for language in ("en", "de")]
    options = ("--source", "--target", "--valid-source", "--valid-target")
    given = [word for pair in zip(options, files, strict=True) for word in pair]
    assert command(1) == ["train", *given, "--out", str(out), "train.max_minutes=44"]
    assert command(2)[-1] == "train.seed=2"
    out.mkdir()
    (out / "config.yaml").touch()
    assert command(1)[-1] == "--resume"
    assert command(1, recipe="r.yaml")[1] == str(FOLDER / "recipes" / "r.yaml")


def test_the_earlier_recipe_is_unchanged(quality: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "data")
    before = next(each for each in quality.contenders.CONTENDERS if "recipe" in each.options)
    run = load_settings(FOLDER / "recipes" / before.options["recipe"], [], TranslationRun)
    ours = run.train
    assert (ours.optimiser.kind, ours.ema, ours.dropout_epochs, ours.average.count) == ("muon", None, 0.0, 8)
    assert (run.model.width, run.model.encoder.layers, run.data.batch.tokens, run.text.subword.size) == (
        192,
        4,
        2048,
        6000,
    )
    assert (ours.schedule.kind, ours.schedule.peak, ours.schedule.warmup) == ("cosine", 0.003, 500)


def test_contenders_are_found_by_name(quality: SimpleNamespace) -> None:
    everybody = quality.contenders.CONTENDERS
    assert quality.contenders.chosen([]) == list(everybody)
    assert quality.contenders.chosen(["joey", "dragoman"]) == [everybody[3], everybody[0]]
    assert len({each.name for each in everybody}) == len({each.title for each in everybody}) == len(everybody)
    assert all((FOLDER / "trainers" / f"{each.trainer}.py").exists() for each in everybody)
    interpreter, plain = quality.sitting.interpreter, everybody[-1]
    assert interpreter({"plain": "p"}, plain) == "p"
    assert interpreter({"plain": "p", "plain-0.3": "q"}, plain) == "q"
    assert interpreter({}, plain) == sys.executable


def test_dragomans_loop_has_the_functions_that_the_clock_wraps(quality: SimpleNamespace) -> None:
    from dragoman.training.run import loop
    from dragoman.training.updates.engine import Engine

    places = [(loop._Loop, name) for name in vars(loop._Loop) if callable(vars(loop._Loop)[name])]
    places += [(Engine, "launch"), (loop, "choose_final")]
    before = {(place, name): getattr(place, name) for place, name in places}
    try:
        quality.trainers_dragoman.attach(SimpleNamespace(), lambda folder: [], {})
        changed = {name for place, name in places if getattr(place, name) is not before[place, name]}
    finally:
        for (place, name), value in before.items():
            setattr(place, name, value)
    assert changed == {
        "_restore", "_updates", "_after_step", "_validate", "_checkpoint", "_save_training", "launch", "choose_final",
    }  # fmt: skip


class Copier:
    """Returns the source, including its end; `lasting` omits the end."""

    def __init__(self, lasting: bool = False) -> None:
        self.lasting = lasting

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        return source[..., None]

    def decode(self, inputs: torch.Tensor, memory: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        assert torch.equal(padding, memory[..., 0] == 0)
        assert torch.equal(inputs[:, 1:], self.states(inputs[:, 1:].size(1), memory)[..., 0])
        return self.states(inputs.size(1), memory)

    def states(self, length: int, memory: torch.Tensor) -> torch.Tensor:
        first = memory[:, :1]
        return (
            first.expand(-1, length, -1)
            if self.lasting
            else torch.cat([memory, first.expand(-1, 9, -1)], 1)[:, :length]
        )

    def project(self, states: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(states[..., 0], 12)


def test_greedy_takes_the_best_piece_until_the_end_of_each_sentence(quality: SimpleNamespace) -> None:
    corpus = {"pad": 0, "bos": 1, "eos": 2}
    source = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0], [2, 0, 0, 0]])
    assert quality.trainers_plain.greedy(Copier(), source, corpus) == [[4, 5, 6], [7], [8, 9], []]
    assert quality.trainers_plain.greedy(Copier(lasting=True), source, corpus) == [[4] * 16, [7] * 16, [8] * 16, []]


def test_greedy_reads_the_plain_model_as_training_does(quality: SimpleNamespace) -> None:
    torch.manual_seed(3)
    model = quality.programs_plain.PlainTransformer(quality.sizes.Sizes(16, 1, 2, 24), 12, 0).eval()
    source = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0]])
    found = quality.trainers_plain.greedy(model, source, {"pad": 0, "bos": 1, "eos": 2})
    for row, ids in enumerate(found):
        best = model(source[row : row + 1], torch.tensor([[1, *ids]]))[0].argmax(-1).tolist()
        assert best[: len(ids)] == ids


def test_pieces_of_the_peers_are_decoded_to_the_text(
    quality: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentencepiece")
    sentences = {
        "en": ["A dog runs.", "Two men, one horse", ""],
        "de": ["Ein Hund läuft.", "Zwei Männer, ein Pferd", ""],
    }
    for name in ("train", "val"):
        for language, lines in sentences.items():
            (tmp_path / f"{name}.{language}.gz").write_bytes(
                gzip.compress("".join(each + "\n" for each in lines).encode())
            )
    monkeypatch.setattr(quality.pieces, "PIECES", 60)
    corpus = tmp_path / "corpus"
    for _ in range(2):
        quality.pieces.write_corpus(corpus, tmp_path)
    ids = quality.pieces.read_lines(corpus / "valid.target")
    processor = quality.pieces.processor_of(corpus)
    assert quality.pieces.detokenised(ids, processor) == sentences["de"]
    assert quality.pieces.read_lines(corpus / "text" / "train.source") == sentences["en"]
    facts = json.loads((corpus / "corpus.json").read_text())
    assert facts == {"size": 60, "pad": 0, "bos": 1, "eos": 2, "unk": 3}
    assert "<unk>" not in quality.pieces.detokenised(["<unk> 5"], processor)[0]


def conditions(quality: SimpleNamespace, data: Path, **changed: Any) -> Any:
    given = {"machine": MACHINE, "threads": 2, "minutes": 44.0, "every": 0.5, "seed": 1, "bf16": False}
    return quality.sitting.Conditions(data=data, **{**given, **changed})


def test_a_run_is_read_and_scored_and_keeps_its_conditions(quality: SimpleNamespace, tmp_path: Path) -> None:
    references = ["Ein Hund läuft über den Strand .", "Zwei Männer reiten auf einem Pferd ."]
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "valid.target").write_text("".join(each + "\n" for each in references))
    contender = quality.contenders.Contender("it", "the it", "it")
    run = quality.sitting.Run(contender, conditions(quality, tmp_path), tmp_path)
    ledger, mark = run.ledger, quality.ledger.Mark
    texts = {10: ["Ein Hund läuft über das Gras .", references[1]], 30: references}
    for updates, seconds in ((10, 60.0), (20, 100.0), (30, 120.0), (40, 150.0)):
        ledger.add(mark(updates, 9 * updates, seconds, 2 * seconds, 5.0, updates in texts, 2))
        if updates in texts:
            ledger.write_translations(updates, texts[updates])
    assert not run.done
    (run.folder / "done.json").write_text(json.dumps({"minutes": 44.0, "facts": {"torch": "2"}}))
    assert run.done
    found = run.line()
    expected = [float(BLEU().corpus_score(texts[updates], [references]).score) for updates in (10, 30)]
    assert [(point["minutes"], point["updates"]) for point in found["points"]] == [(1.0, 10), (2.0, 30)]
    assert [point["bleu"] for point in found["points"]] == pytest.approx(expected)
    assert (found["updates"], found["tokens"], found["seconds"], found["sittings"]) == (30, 270, 120.0, 2)
    assert "case:mixed|eff:no|tok:13a" in found["signature"]
    assert not quality.sitting.Run(contender, conditions(quality, tmp_path, minutes=90.0), tmp_path).done
    with pytest.raises(quality.sitting.Failed, match="threads was 2 and is 1"):
        quality.sitting.Run(contender, conditions(quality, tmp_path, threads=1), tmp_path)


def test_a_missing_program_is_reported(quality: SimpleNamespace, tmp_path: Path) -> None:
    contender = quality.contenders.Contender("it", "the it", "nothing_of_this_name")
    run = quality.sitting.Run(contender, conditions(quality, tmp_path), tmp_path)
    with pytest.raises(quality.sitting.Failed, match="nothing_of_this_name is not installed for"):
        run.sit(sys.executable)


def test_a_program_ends_with_the_process_that_started_it() -> None:
    reading, writing = os.pipe()
    code = f"import child; child._end_with_parent({reading})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=FOLDER, pass_fds=(reading,))
    os.close(reading)
    assert process.poll() is None
    os.close(writing)
    assert process.wait(60) == 1
