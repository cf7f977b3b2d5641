"""Distillation: the student's recipe, the use of the teacher's translations, and the command's messages."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import tiny_tokenizers, write_tiny_model
from trained_model import FOLDER as FIXTURE
from trained_model import PAIRS

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import read_meta
from dragoman.cli.main import main
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.augmentation.distill import Distillation, TeacherPairs, student_recipe
from dragoman.tasks.translation.config import TranslationRun

KNOWN = PAIRS[:4]
"""Taken from the six sentences that the teacher has memorised."""
TEACHER, STUDENT = Path("teacher"), Path("student")
SMALL = [
    "model.width=8",
    *(f"model.{side}.{setting}" for side in ("encoder", "decoder") for setting in ("layers=1", "heads=2")),
    *(f"model.{side}.feedforward=8" for side in ("encoder", "decoder")),
    "train.max_steps=4",
    "train.validate_every=4",
    "train.checkpoint_every=4",
    "train.average.count=0",
    "train.threads=1",
    "train.precision=float32",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a teacher and a corpus at the path in its recipe that is not its training data."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FIXTURE, TEACHER)
    write(Path("pairs.tsv"), [(source, f"{target} oder nicht") for source, target in KNOWN])
    return tmp_path


def write(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def read(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def distillation(*overrides: str, sources: list[Path] | None = None, **options: Any) -> Distillation:
    recipe = student_recipe(TEACHER, "tiny-fast", STUDENT, sources or [], [*SMALL, *overrides])
    return Distillation(TEACHER, recipe, batch_size=1, **options)


def command(*options: str) -> int:
    return main(["distill", "teacher", "--student", "tiny-fast", "--out", "student", "--batch-size", "1", *options])


def test_one_command_makes_a_student(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The result is an ordinary run folder with the teacher's vocabulary, and its card names the teacher."""
    assert command(*SMALL) == 0
    said = capfd.readouterr()
    assert "4 of 4 lines kept (100.0%)" in said.err
    assert "student: the model of step 4" in said.out
    (pairs,) = (folder / "distilled").glob("*.tsv")
    assert read(pairs) == list(KNOWN)
    assert (STUDENT / "tokenizer.json").read_bytes() == (TEACHER / "tokenizer.json").read_bytes()
    stored = load_settings(STUDENT / "config.yaml", [], TranslationRun)
    assert (stored.model.preset, stored.model.width, stored.train.teacher) == ("tiny-fast", 8, TEACHER)
    assert stored.data.valid == CorpusConfig(pairs=Path("pairs.tsv"))
    assert stored.data.source_language == "en"
    meta = read_meta(STUDENT)
    assert meta.teacher == "teacher, step 600, BLEU 100.00 on pairs.tsv"
    assert list(meta.data) == ["pairs.tsv, translated by teacher"]
    assert f"| Distilled from | {meta.teacher} |" in (STUDENT / "README.md").read_text(encoding="utf-8")
    assert Translator.load(STUDENT, "cpu").translate(["a dog runs ."])

    assert command(*SMALL) == 2
    assert "student already contains a training run: add --resume" in capfd.readouterr().err
    assert main(["train", "--resume", "--out", "student", "train.max_steps=5"]) == 0
    assert read_meta(STUDENT).teacher == meta.teacher


def test_another_student_learns_from_the_same_translations(folder: Path) -> None:
    translator = Translator.load(TEACHER, "cpu")
    (pairs,) = distillation().teacher_pairs(translator)
    assert not pairs.is_finished
    assert pairs.run(translator)["kept"] == len(KNOWN)
    recipe = student_recipe(TEACHER, "small-fast", Path("another"), [], ["train.seed=2"])
    (again,) = Distillation(TEACHER, recipe, batch_size=1).teacher_pairs(translator)
    assert again.is_finished
    others = (distillation(beam=2), distillation(closest=True), distillation("data.cleaning.max_tokens=9"))
    assert len({pairs.output, *(each.teacher_pairs(translator)[0].output for each in others)}) == 4
    write(Path("pairs.tsv"), [PAIRS[0]])
    assert distillation().teacher_pairs(translator)[0].output != pairs.output


def test_corpora_keep_their_weights_tags_and_languages(folder: Path) -> None:
    write(Path("more.tsv"), [(source, target) for source, target in PAIRS[:2]])
    several = '[{"pairs": "pairs.tsv", "weight": 2}, {"pairs": "more.tsv", "name": "more"}]'
    translator = Translator.load(TEACHER, "cpu")
    made = distillation(f"data.train={several}", originals=True)
    run = made.student_run(made.teacher_pairs(translator))
    assert [(str(corpus), corpus.weight) for corpus in run.data.corpora] == [
        ("pairs.tsv, translated by teacher", 2),
        ("more, translated by teacher", 1),
        ("pairs.tsv", 2),
        ("more", 1),
    ]
    settings = run.model_dump(mode="json")
    assert TranslationRun.model_validate(settings) == run
    pairs = made.teacher_pairs(translator)[0]
    tagged = pairs.corpus.model_copy(update={"tags": ("law",), "target_language": "de"})
    marked = Distillation.student_run(made, [TeacherPairs(**{**vars(pairs), "corpus": tagged})]).data.corpora[0]
    assert (marked.tags, marked.target_language) == (("law",), "de")


def test_the_closest_hypothesis_is_taken() -> None:
    """Kim & Rush 2016, section 3.3: by sentence BLEU; of two equally close ones, the more probable."""

    target = tiny_tokenizers().target
    beam = [Translation(text, -1.0, -1.0, (), target) for text in ("a b c x y", "a b c d e", "e d c b a", "a b c d e")]
    pairs = TeacherPairs(TEACHER, CorpusConfig(pairs=Path("x")), Path(), None, None, 1, closest=True)  # type: ignore[arg-type]
    from dragoman.tasks.augmentation.synthesis import Line

    assert pairs.select_translation(Line("q", "a b c d f"), beam) is beam[1]
    assert pairs.select_translation(Line("q", "  "), beam) is beam[0]


def test_the_closest_hypotheses_of_a_corpus(folder: Path) -> None:
    """References in the beam are found; each pair of source and reference counts."""
    translator = Translator.load(TEACHER, "cpu")
    source = PAIRS[0][0]
    request = translator.request(beam=5, nbest=5)
    ((best, *rest),) = translator.translate_nbest([source], request)
    finished = next(each for each in rest if each.finished and each.text != best.text)
    write(Path("pairs.tsv"), [(source, finished.text), (source, best.text), (source, best.text)])
    (pairs,) = distillation(beam=5, closest=True).teacher_pairs(translator)
    counts = pairs.run(translator)
    assert read(pairs.output) == [(source, finished.text), (source, best.text)]
    assert (counts["kept"], counts["duplicates"]) == (2, 1)


def test_any_text_can_be_translated(folder: Path) -> None:
    Path("mono.en").write_text(f"{PAIRS[2][0]}\n\n{PAIRS[2][0]}\n", encoding="utf-8")
    translator = Translator.load(TEACHER, "cpu")
    (pairs,) = distillation(sources=[Path("mono.en")]).teacher_pairs(translator)
    counts = pairs.run(translator)
    assert read(pairs.output) == [PAIRS[2]]
    assert (counts["lines"], counts["empty"], counts["duplicates"]) == (3, 1, 1)


def test_a_student_may_have_another_shape_and_another_vocabulary(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = ["model.decoder.attention={kind: ssru}", "model.target_positions.kind=none", "text.subword.size=270"]
    assert command(*SMALL, *other, "train.max_steps=1") == 0
    messages = " ".join(capfd.readouterr().err.split())
    assert "differ from the teacher's: text.subword.size (270 in this run, 290 in the folder)." in messages
    student = Translator.load(STUDENT, "cpu")
    assert student.tokenizers.source.size <= 270
    assert student.meta.teacher.startswith("teacher, step 600")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--student", "huge-fast"], "unknown preset 'huge-fast': expected one of tiny"),
        (["model.widht=8"], "unknown setting model.widht (from the command line); did you mean model.width?"),
        (["more"], "'more' is not a setting: write key=value"),
        (
            ["data.train.pairs=gone.tsv"],
            "the file gone.tsv, which is data.train.pairs in teacher/config.yaml, does not exist",
        ),
        (["data.valid.pairs=gone.tsv"], "If it has moved, set its new path with data.valid.pairs=FILE"),
        (["--source", "gone.en"], "the file gone.en, which is data.train.0.source"),
        (["--source", "pairs.tsv", "--choice", "closest"], "--choice closest needs references"),
        (["--source", "pairs.tsv", "--originals"], "--originals needs references"),
        (["train.start=nowhere"], "nowhere"),
        (["--beam", "0"], "--beam"),
    ],
)
def test_wrong_use_is_reported(
    folder: Path, capfd: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert command(*options) in (1, 2)
    assert message in " ".join(capfd.readouterr().err.split())
    assert not STUDENT.exists()
    assert not Path("distilled").exists()


def test_invalid_teachers_are_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        student_recipe(Path("nowhere"), "tiny-fast", STUDENT)
    write_tiny_language_model(Path("writer"))
    with pytest.raises(ConfigError, match=r"writer is a language model.*it cannot be distilled into a student"):
        student_recipe(Path("writer"), "tiny-fast", STUDENT)
    write_tiny_model(Path("bare"))  # its config.yaml contains only the model, like that of an imported one
    with pytest.raises(ConfigError, match="the setting data is missing"):
        student_recipe(Path("bare"), "tiny-fast", STUDENT)
    data = ["data.train.pairs=pairs.tsv", "data.valid.pairs=pairs.tsv"]
    assert student_recipe(Path("bare"), "tiny-fast", STUDENT, [], data).train.teacher == Path("bare")


def test_unusable_translations_end_the_distillation(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(Path("pairs.tsv"), [("dog " * 200, "x"), ("\x01", "y")])
    assert command(*SMALL, "data.cleaning.max_tokens=20") == 1
    said = " ".join(capfd.readouterr().err.split())
    assert "the filters dropped all translations of pairs.tsv by teacher" in said
    assert "max_tokens 1" in said
    assert not list(Path("distilled").glob("*.tsv"))
