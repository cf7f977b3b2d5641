"""A run on a small corpus estimates statistical models too, and its folder translates with the best system."""

import json
import shutil
from pathlib import Path

import pytest
from adjectives import sentences
from training_runs import MACHINE

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.meta import RecordedScore, SystemRecord
from dragoman.checkpoint.systems import NEURAL, verdict_of, write_systems
from dragoman.cli.main import main
from dragoman.decode.decoding import Sampling
from dragoman.inference.load import model_for
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.statistical_translation.estimate import Estimation
from dragoman.tasks.train import load_recipe, train
from dragoman.tasks.translation import systems
from dragoman.tasks.translation.systems import requested_systems

SOURCE = "The red dog sees the old house."


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("corpus")
    for name, pairs in (("train", sentences(150, 1)), ("valid", sentences(20, 2))):
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return {
        "data": {"train": {"pairs": f"{folder}/train.tsv"}, "valid": {"pairs": f"{folder}/valid.tsv"}},
        "model": {"preset": "tiny", "width": 16},
        "text": {"subword": {"size": 300}},
        "train": {**MACHINE, "max_steps": 1, "ema": None},
        "systems": ["dictionary", "phrase_based"],
        "out": str(folder / "run"),
    }


@pytest.fixture(scope="module")
def trained(recipe: dict[str, object]) -> Path:
    """The folder of a run with one update, whose phrase-based model is much better."""
    return train(recipe, quiet=True).folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of the folder, which a test may change."""
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


def test_models_that_take_too_much_of_a_time_limit_are_left_out(
    recipe: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(systems, "_SHARE", 0.0)
    limited = {**MACHINE, "max_steps": 1, "max_minutes": 60, "ema": None}
    folder = train({**recipe, "train": limited, "out": str(tmp_path / "run")}, quiet=True).folder
    assert not (folder / "systems").exists() and read_meta(folder).systems == ()
    assert "a phrase-based model was left out: it takes more than a quarter" in capsys.readouterr().err


def test_systems_are_recorded_best_first(trained: Path) -> None:
    """The metadata and the card have the scores of all systems on the same validation pairs, by the same metrics."""
    records = read_meta(trained).systems
    assert [each.name for each in records] == ["phrase_based", "dictionary", NEURAL]
    assert [each.folder for each in records] == ["systems/phrase_based", "systems/dictionary", ""]
    bleu = [each.score("BLEU") for each in records]
    assert all(bleu)
    assert len({(each.signature, each.data) for each in bleu if each}) == 1
    values = [each.value for each in bleu if each]
    assert values == sorted(values, reverse=True)
    card = (trained / "README.md").read_text()
    assert f"| phrase-based model | {values[0]:.2f} |" in card
    assert card.index("| phrase-based model") < card.index("| neural model")


def test_folder_translates_with_the_best_system(trained: Path) -> None:
    """`load` and `Translator.load` open the best system, and `system` selects another; each is a folder of its own."""
    best = dragoman.load(trained)
    assert best.kind.name == "statistical"
    assert best.translate([SOURCE]) == Translator.load(trained).translate([SOURCE])
    assert best.translate([SOURCE]) == dragoman.load(trained / "systems" / "phrase_based").translate([SOURCE])
    assert best.translate([SOURCE]) == ["Le chien rouge voit le maison vieux."]
    neural = dragoman.load(trained, system=NEURAL)
    assert neural.kind.name == Translator.load(trained, system=NEURAL).kind.name == "encoder_decoder"
    dictionary = dragoman.load(trained, system="dictionary").translate([SOURCE])
    assert (
        dictionary == dragoman.load(trained / "systems" / "dictionary").translate([SOURCE]) != best.translate([SOURCE])
    )


def test_commands_choose_the_system(trained: Path, tmp_path: Path) -> None:
    """`translate` and `evaluate` use the best system, or that of `--system`."""
    (tmp_path / "input").write_text(f"{SOURCE}\n")

    def output(*options: str) -> str:
        path = tmp_path / f"output{len(list(tmp_path.iterdir()))}"
        arguments = ["translate", str(trained), "-q", "-i", str(tmp_path / "input"), "-o", str(path), *options]
        assert main(arguments) == 0
        return path.read_text()

    assert output() == output("--system", "phrase_based") == "Le chien rouge voit le maison vieux.\n"
    assert output("--system", "neural", "--beam", "1") != output()
    pairs = sentences(10, 3)
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    best, neural = (
        dragoman.evaluate(trained, source=sources, reference=references, metric=["bleu"], system=each, quiet=True)
        for each in (None, NEURAL)
    )
    assert best["bleu"].value > 80 > neural["bleu"].value


def test_training_judges_the_system_that_the_folder_translates_with(
    recipe: dict[str, object], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict is on the phrase-based model; it is stored, on the card, printed, and that of `evaluate`."""
    found = read_meta(trained).verdict
    assert found is not None and found.system == "phrase_based" and not found.is_poor and found.sentences == 20
    assert found.model.scores[0].value == pytest.approx(read_meta(trained).systems[0].scores[0].value)
    assert "which is better than the neural model by" in found.choice and "--system neural" in found.choice
    assert not any("task.kind" in line for line in found.advice)
    section = (trained / "README.md").read_text().partition("## Is it good?")[2].partition("\n## ")[0]
    assert found.sentence in section and "--system neural" in section and str(trained.parent) not in section
    corpus = recipe["data"]["valid"]["pairs"]  # type: ignore[index]
    assert main(["evaluate", str(trained), "--pairs", corpus, "--metric", "bleu"]) == 0
    printed = capsys.readouterr().out
    assert found.explanation in printed
    assert main(["evaluate", str(trained), "--pairs", corpus, "--metric", "bleu", "--system", "neural", "-q"]) == 0
    assert "These are the scores of the neural model. " in capsys.readouterr().out


def test_training_warns_of_a_model_that_is_worse_than_simple_systems(
    recipe: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A neural model with one update is worse than a dictionary: the result, its text and a warning say so."""
    result = train({**recipe, "systems": [], "out": str(tmp_path / "run")})
    assert result.verdict is not None and result.verdict.is_worse and result.verdict.system == NEURAL
    assert result.verdict == read_meta(result.folder).verdict == verdict_of(result.folder, NEURAL)
    assert verdict_of(result.folder, "phrase_based") is None
    assert f"{result.validation['bleu'].value:.1f} (" in str(result) and result.verdict.explanation in str(result)
    assert "warning: " in (shown := capsys.readouterr().err) and result.verdict.sentence in shown.replace("\n", " ")
    assert "train.max_steps=1 ended" in result.verdict.advice[0]


def test_the_neural_model_translates_what_the_best_system_does_not_support(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines with terms, prefixes and samples are those of `system=neural`, with one warning; others are the best's."""
    best, neural = dragoman.load(trained), dragoman.load(trained, system=NEURAL)
    capsys.readouterr()
    other = "The white cat runs."
    texts = [other, SOURCE, f"{SOURCE} {SOURCE}"]
    glossary = {"dog": "chiot"}
    found, expected = (model.translate(texts, glossary=glossary, beam=2) for model in (best, neural))
    assert found[1:] == expected[1:] and "chiot" in found[1]
    assert found[0] == best.translate([other], beam=2)[0] != expected[0]
    drawn = Sampling.of(samples=2, seed=5, top_k=3)
    samples = [[each.text for line in model.sample(texts, drawn) for each in line] for model in (best, neural)]
    assert samples[0] == samples[1]
    prefixed = [model.translate(texts, prefixes=["Le", "", "La"], beam=1) for model in (best, neural)]
    assert prefixed[0][0] == prefixed[1][0] and prefixed[0][2] == prefixed[1][2] and prefixed[0][1] != prefixed[1][1]
    warnings = [line for line in capsys.readouterr().err.splitlines() if "of the folder translates" in line]
    assert len(warnings) == 1 and "does not support" in warnings[0] and "--system" not in warnings[0]
    with pytest.raises(ConfigError, match="does not support required phrases, glossaries"):
        dragoman.load(trained, system="phrase_based").translate(texts, glossary=glossary)


def test_inspection_uses_the_neural_model(trained: Path) -> None:
    """Other abilities than translation are those of the folder's own model, and so is an ensemble."""
    assert model_for("inspect", trained).kind.name == "encoder_decoder"
    assert model_for("score", trained).kind.name == "encoder_decoder"
    assert dragoman.load([trained, trained]).kind.name == "encoder_decoder"
    with pytest.raises(ConfigError, match="ensemble consists of the neural models"):
        dragoman.load([trained, trained], system="phrase_based")


def test_neural_model_wins(folder: Path) -> None:
    """If the neural model has the best score, the folder translates with it."""
    records = [each for each in read_meta(folder).systems if each.name != NEURAL]
    write_systems(folder, [SystemRecord(name=NEURAL, scores=(RecordedScore(metric="BLEU", value=99),)), *records])
    assert dragoman.load(folder).kind.name == "encoder_decoder"
    assert dragoman.load(folder, system="phrase_based").kind.name == "statistical"


def test_ties_are_won_by_the_neural_model(tmp_path: Path) -> None:
    """Of equally good systems, the neural model is the first: it can do more."""
    record = SystemRecord(name="dictionary", folder="x", scores=(RecordedScore(metric="BLEU", value=12),))
    neural = record.model_copy(update={"name": NEURAL})
    ranked = systems.Systems([record], "bleu").ranked(neural)
    assert [each.name for each in ranked] == [NEURAL, "dictionary"]


def test_unknown_and_missing_systems_are_reported(folder: Path) -> None:
    """A name that the folder does not have is rejected, and so is a folder that was copied without its systems."""
    with pytest.raises(ConfigError, match="no system 'rules': expected one of phrase_based, dictionary, neural"):
        dragoman.load(folder, system="rules")
    shutil.rmtree(folder / "systems")
    with pytest.raises(ModelError, match="phrase_based is missing: copy the whole folder, or .*--system neural"):
        dragoman.load(folder)
    assert dragoman.load(folder, system=NEURAL).kind.name == "encoder_decoder"


def test_folder_without_systems(folder: Path) -> None:
    """A folder without a record is its own and only system."""
    meta = json.loads((folder / "meta.json").read_text())
    del meta["systems"]
    (folder / "meta.json").write_text(json.dumps(meta))
    assert dragoman.load(folder).kind.name == dragoman.load(folder, system=NEURAL).kind.name == "encoder_decoder"
    with pytest.raises(ConfigError, match="no system 'phrase_based': expected one of neural"):
        dragoman.load(folder, system="phrase_based")


def test_resumed_run_keeps_its_systems(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run estimates only the systems that are missing, and records all of them again."""
    estimated = []
    original = Estimation.run

    def counted(self: Estimation) -> object:
        estimated.append(self._run.out.name)
        return original(self)

    monkeypatch.setattr(Estimation, "run", counted)
    shutil.rmtree(folder / "systems" / "dictionary")
    train(folder, {"train.max_steps": 2}, resume=True, quiet=True)
    assert estimated == ["dictionary"]
    assert [each.name for each in read_meta(folder).systems] == ["phrase_based", "dictionary", NEURAL]
    assert read_meta(folder).step in (1, 2)


def test_automatic_systems(recipe: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` estimates both models for small plain corpora only; names require data that the models support."""
    monkeypatch.setattr(systems, "LARGEST", 1000)
    run = load_recipe({**recipe, "systems": "auto"}, {})
    both = "dictionary", "phrase_based"
    assert requested_systems(run, 1000) == both
    assert requested_systems(run, 1001) == ()
    tagged = {"text.tags": ["polite"]}
    assert requested_systems(load_recipe({**recipe, "systems": "auto"}, tagged), 1) == ()
    assert requested_systems(load_recipe({**recipe, "systems": []}, {}), 1) == ()
    assert requested_systems(load_recipe(recipe, {}), 10**6) == both
    with pytest.raises(ConfigError, match="do not support tags"):
        requested_systems(load_recipe(recipe, tagged), 1)
