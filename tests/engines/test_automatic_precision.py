"""The precision is chosen by the measured cost of int8, which is stored in the model folder."""

import json
from pathlib import Path

import pytest
import torch
from tiny_model import SOURCES, TARGETS, write_tiny_model

from dragoman import Translator, measure_precision_cost, train
from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.folder import CARD, PRECISION, fingerprint, load_model_folder, write_model_folder
from dragoman.checkpoint.precision_cost import Int8Cost, PrecisionCost, PrecisionScores, read_precision_cost
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.main import main
from dragoman.engines.native import automatic_precision, calibration
from dragoman.engines.native.automatic_precision import choose_precision
from dragoman.evaluation.evaluate import evaluate
from dragoman.native.build import best_library, compiled_library
from dragoman.native.compiler import available
from dragoman.native.library import code_bits
from dragoman.tasks.translation import precision_cost, precision_measurement
from dragoman.tasks.translation.precision_measurement import ValidationPairs
from dragoman.training.progress.final_steps import FinalSteps

COUNT = 100


def cost_of(loss: float, bits: int = 8, differing_lines: int = 65) -> PrecisionCost:
    int8 = Int8Cost(bleu=40 - loss, chrf=60, bits=bits, differing_lines=differing_lines, speed=1.7)
    return PrecisionCost(
        model="",
        data="val",
        data_fingerprint="",
        sentences=1014,
        set_size=1014,
        beam=5,
        bleu_signature="",
        chrf_signature="",
        float32=PrecisionScores(bleu=40, chrf=60),
        int8=(int8,),
    )


@pytest.mark.parametrize(
    ("loss", "bits", "speed", "precision", "said"),
    [
        (0.11, 8, 1.7, "int8", "1.7 times as fast as float32 on this processor; BLEU changes by -0.11 on 1,014"),
        (-0.3, 8, 1.7, "int8", "BLEU changes by +0.30"),
        (0.19, 8, 1.01, "int8", "--precision float32"),
        (0.21, 8, 1.7, "float32", "BLEU changes by -0.21 on 1,014 validation sentences, 65 of which"),
        (0.0, 8, 1.0, "float32", "int8 is not faster on this processor (1.00 times"),
        (0.0, 8, 0.4, "float32", "(0.40 times"),
        (0.0, 7, 1.7, "float32", "not been measured with 7 bits, which this processor uses. measure"),
    ],
)
def test_int8_is_chosen_if_it_costs_little_and_is_faster(
    loss: float, bits: int, speed: float, precision: str, said: str
) -> None:
    chosen = choose_precision(cost_of(loss), bits, speed, "measure it")
    assert chosen.precision == precision
    assert said in chosen.reason and chosen.reason.startswith(precision) and "\n" not in chosen.reason


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose outputs have nothing in common with the references, so that no precision loses BLEU."""
    folder = tmp_path_factory.mktemp("measured") / "model"
    write_tiny_model(folder)
    source, target = (folder.parent / name for name in ("en", "de"))
    source.write_text("\n".join((SOURCES * COUNT)[:COUNT]) + "\n")
    target.write_text("\n".join((TARGETS * COUNT)[:COUNT]) + "\n")
    measure_precision_cost(folder, source, target)
    return folder


@pytest.fixture(autouse=True)
def int8_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic_precision, "relative_speed", lambda precision, library: 2.0)


def test_the_measurement_is_stored_with_the_model(measured: Path) -> None:
    cost = read_precision_cost(measured)
    assert cost is not None
    assert (cost.sentences, cost.set_size, cost.beam) == (COUNT, COUNT, 5)
    assert cost.data == f"{measured.parent / 'en'} + {measured.parent / 'de'}"
    assert {each.bits for each in cost.int8} >= {code_bits(best_library())}
    float32 = Translator.load(measured, precision="float32").translate((SOURCES * COUNT)[:COUNT])
    int8 = Translator.load(measured, precision="int8").translate((SOURCES * COUNT)[:COUNT])
    found = cost.of_bits(code_bits(best_library()))
    assert found is not None and found.speed > 0
    assert found.differing_lines == sum(one != other for one, other in zip(float32, int8, strict=True))
    card = (measured / CARD).read_text()
    assert "## Precision\n\nMeasured on the CPU with beam 5 on 100 pairs" in card
    assert card.index("## Precision") < card.index("## Use")


def test_who_sets_nothing_gets_int8_with_one_line(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Translator.load(measured).engine.precision == "int8"
    message = capsys.readouterr().err
    assert message.startswith("Precision int8: 2.0 times as fast") and message.count("\n") == 1
    for settings, precision in (
        ({"precision": None}, "float32"),
        ({"precision": "float32"}, "float32"),
        ({"precision": "int8"}, "int8"),
        ({"engine": "torch"}, "float32"),
    ):
        assert Translator.load(measured, **settings).engine.precision == precision
        assert capsys.readouterr().err == ""
    assert Translator.load(measured, engine="native").engine.precision == "int8"
    assert Translator.load([measured, measured]).engine.precision == "float32"
    assert Translator.load(measured).translate(SOURCES) == Translator.load(measured, precision="int8").translate(
        SOURCES
    )


def test_commands(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["translate", str(measured), "-i", str(measured.parent / "en"), "-o"]
    assert main([*arguments, str(tmp_path / "reported")]) == 0
    assert "Precision int8" in capsys.readouterr().err
    assert main([*arguments, str(tmp_path / "quiet"), "--precision", "auto", "--quiet"]) == 0
    assert "Precision" not in capsys.readouterr().err
    assert main([*arguments, str(tmp_path / "out"), "--precision", "float32"]) == 0
    assert "Precision" not in capsys.readouterr().err
    exact = (tmp_path / "out").read_text().splitlines()
    result = evaluate(measured, source=measured.parent / "en", reference=measured.parent / "de", metric=["bleu"])
    assert list(result.systems[0].translations) == exact
    assert "Precision" not in capsys.readouterr().err


def test_a_model_that_was_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    assert Translator.load(tmp_path / "model").engine.precision == "float32"
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and f"`dragoman evaluate precision-cost {tmp_path / 'model'}`" in message


def test_a_measurement_of_other_parameters_is_not_used(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    write_tiny_model(folder, seed=2)
    (folder / PRECISION).write_bytes((measured / PRECISION).read_bytes())
    assert Translator.load(folder).engine.precision == "float32"
    assert "has changed since int8 was measured" in capsys.readouterr().err
    loaded = load_model_folder(folder, torch.device("cpu"))
    config = (folder / "config.yaml").read_text()
    write_model_folder(folder, model_parameters(loaded.model), config, loaded.text, loaded.meta)
    assert not (folder / PRECISION).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format_version": 2}', '{"format_version": 1}', "[" * 9999])
def test_a_damaged_measurement_is_ignored(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path)
    (tmp_path / PRECISION).write_text(content)
    assert Translator.load(tmp_path).engine.precision == "float32"
    assert f"{tmp_path / PRECISION} is ignored" in capsys.readouterr().err


def test_without_a_compiler(
    measured: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("XDG_CACHE_HOME", "HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    assert Translator.load(measured).engine.precision == "float32"
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "PyTorch in float32" in message


def test_each_width_of_codes_is_measured(measured: Path) -> None:
    widths = {code_bits(compiled_library(each)) for each in available()}
    cost = read_precision_cost(measured)
    assert cost is not None and {each.bits for each in cost.int8} == widths
    assert {code_bits(compiled_library(each)) for each in available() if each.name != "avx2"} == {8}


def test_what_cannot_be_measured(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = measured.parent / "en", measured.parent / "de"
    write_tiny_model(tmp_path / "model")
    with pytest.raises(ConfigError, match="names no validation set: give --source"):
        measure_precision_cost(tmp_path / "model")
    with pytest.raises(ConfigError, match="need both sides"):
        measure_precision_cost(tmp_path / "model", source)
    with pytest.raises(ModelError, match="does not exist"):
        measure_precision_cost(tmp_path / "none", source, target)
    for name, lines in (("few.en", SOURCES), ("few.de", TARGETS)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="3 sentence pairs are too few .*: at least 100 are needed"):
        measure_precision_cost(tmp_path / "model", tmp_path / "few.en", tmp_path / "few.de")
    pair = ["--source", str(source), "--reference", str(target)]
    assert main(["evaluate", "precision-cost", *pair]) == 2
    assert "Missing argument" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "model")]) == 2
    assert "--source FILE" in capsys.readouterr().err
    assert main(["evaluate", "precision-cost", str(tmp_path / "model"), *pair, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == COUNT


@pytest.mark.slow
def test_a_large_set_is_sampled_and_a_slow_measurement_ends(
    measured: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_tiny_model(tmp_path)
    monkeypatch.setattr(precision_measurement, "MAX_SENTENCES", 220)
    sources, targets = (SOURCES * 100)[:250], (TARGETS * 100)[:250]
    pairs = ValidationPairs("many", sources, targets, [()] * 250)
    cost = precision_measurement.measure_precision_cost(tmp_path, pairs)
    assert (cost.sentences, cost.set_size) == (220, 250)
    assert "on the first 220 of 250 pairs of many" in (tmp_path / CARD).read_text()
    monkeypatch.setattr(precision_measurement, "_SECONDS", 0.0)
    assert precision_measurement.measure_precision_cost(tmp_path, pairs).sentences == 100
    assert (tmp_path / CARD).read_text().count("## Precision") == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DataError("a set with few pairs"), "int8 was not measured: a set with few pairs"),
        (ModelError("NaN"), "warning: int8 was not measured: NaN"),
        (OSError("disk"), "warning: int8 was not measured: OSError: disk"),
        (MemoryError(), "warning: int8 was not measured: MemoryError"),
    ],
)
def test_a_failure_never_ends_a_training(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(precision_cost, "measure", fail)
    precision_cost.measure_after_training(Path("x"), ValidationPairs("val", (), (), ()), FinalSteps(None))
    assert capsys.readouterr().err.startswith(said)


def test_training_measures_its_model(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = {"source": str(measured.parent / "en"), "target": str(measured.parent / "de")}
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    recipe = {
        "data": {"train": pairs, "valid": pairs, "cleaning": {"enabled": False}},
        "text": {"subword": {"size": 280}},
        "model": {"preset": None, "width": 8, "encoder": stack, "decoder": stack},
        "train": {"max_steps": 2, "device": "cpu", "threads": 1, "average": {"count": 0}},
        "out": str(tmp_path / "run"),
    }
    threads = torch.get_num_threads()
    folder = train(recipe).folder
    torch.set_num_threads(threads)
    cost = read_precision_cost(folder)
    assert cost is not None and cost.sentences == COUNT and cost.model == fingerprint(folder)
    assert "int8: BLEU changes by" in capsys.readouterr().err
    assert "## Precision" in (folder / CARD).read_text()
    (folder / PRECISION).unlink()
    assert main(["evaluate", "precision-cost", str(folder)]) == 0, "by the validation set in config.yaml"
    again = read_precision_cost(folder)
    assert again is not None and again.data_fingerprint == cost.data_fingerprint
    assert [each.bleu for each in again.int8] == [each.bleu for each in cost.int8]


def test_sections_of_a_card() -> None:
    assert with_section("# T\n\n## Use\n\nrun\n", "P", ["a"]) == "# T\n\n## P\n\na\n\n## Use\n\nrun\n"
    assert with_section("# T\n\n## P\n\nold\n\n## Use\n", "P", ["a"]) == "# T\n\n## P\n\na\n\n## Use\n"
    assert with_section("# T\n\n## P\n\nold\n", "P", ["a"]) == "# T\n\n## P\n\na\n"
    assert with_section("my own\n", "P", ["a"]) == "my own\n\n## P\n\na\n"


def test_the_speed_of_int8_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = best_library()
    monkeypatch.setattr(calibration, "cache_folders", lambda: [tmp_path / "missing" / "file", tmp_path / "dragoman"])
    (tmp_path / "missing").write_text("a file, so that the first folder cannot be created")
    monkeypatch.setattr(calibration, "_measure_speed", lambda precision: 1.5)
    calibration.relative_speed.cache_clear()
    assert calibration.relative_speed("int8", library) == 1.5
    (file,) = (tmp_path / "dragoman").glob("int8-speed-*.json")
    for content, expected in (('{"speed": 2.5}', 2.5), ("{", 1.5), ('{"speed": NaN}', 1.5), ("[]", 1.5)):
        file.write_text(content)
        calibration.relative_speed.cache_clear()
        assert calibration.relative_speed("int8", library) == expected
    calibration.relative_speed.cache_clear()
