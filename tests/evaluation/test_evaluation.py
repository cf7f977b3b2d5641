"""`dragoman.evaluate`, `score`, `check_data`, `average` and `export` as functions: values, files or lists, errors."""

import gzip
from pathlib import Path

import pytest
import sacrebleu
from cards import rows, text
from tiny_language_model import write_tiny_language_model
from tiny_model import SOURCES, TARGETS, write_tiny_model

import dragoman
from dragoman import LanguageModel, Translator
from dragoman.base.errors import ConfigError, DataError, DragomanError, ModelError
from dragoman.cli.main import main
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.inputs import Lines

REFERENCE = ["the cat sat on the mat .", "a dog runs in the park .", "two men are asleep here ."]
OTHER = ["a cat was sitting on the mat .", "one dog runs in the park .", "two men sleep here ."]
FIRST = ["the cat sat on a mat .", "a dog runs in the park .", "two men sleep ."]
SECOND = ["mat .", "a dog .", "two women ."]


def written(folder: Path, name: str, lines: list[str]) -> Path:
    text = "".join(f"{line}\n" for line in lines).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return folder / name


def test_scores_equal_sacrebleus_for_files_and_lists(tmp_path: Path) -> None:
    expected = sacrebleu.corpus_bleu(FIRST, [REFERENCE]), sacrebleu.corpus_chrf(FIRST, [REFERENCE])
    path = written(tmp_path, "reference.gz", REFERENCE)
    given: list[tuple[Lines, Lines]] = [
        (REFERENCE, FIRST),
        (path, tuple(FIRST)),
        (str(path), written(tmp_path, "first", FIRST)),
    ]
    for reference, hypothesis in given:
        found = dragoman.evaluate(reference=reference, hypothesis=hypothesis, metric=["bleu", "chrf"])
        assert (found["bleu"].value, found["chrf"].value) == tuple(each.score for each in expected)
        assert found["bleu"].signature.startswith("nrefs:1|case:mixed") and list(found.systems[0].scores) == [
            "bleu",
            "chrf",
        ]
    assert found.systems[0].system == str(tmp_path / "first")
    assert found.systems[0].translations == tuple(FIRST)


def test_several_references_and_named_systems(tmp_path: Path) -> None:
    paths = [written(tmp_path, "a", REFERENCE), written(tmp_path, "b", OTHER)]
    expected = sacrebleu.corpus_bleu(SECOND, [REFERENCE, OTHER]).score
    for references in (paths, [REFERENCE, OTHER]):
        found = dragoman.evaluate(reference=references, hypothesis={"one": FIRST, "two": SECOND}, metric=["bleu"])
        assert [each.system for each in found.systems] == ["one", "two"]
        assert found.systems[1].scores["bleu"].value == expected
        (comparison,) = found.comparisons
        assert (comparison.first, comparison.second, list(comparison.metrics)) == ("one", "two", ["bleu"])
        assert comparison.metrics["bleu"].difference == pytest.approx(expected - found["bleu"].value)
        assert str(found).count("\n") == 5
        intervals = comparison.metrics["bleu"].first_interval, comparison.metrics["bleu"].second_interval
        assert rows(found) == [["system", "BLEU"]] + [
            [name, f"{score:.2f} ({interval.low:.2f}–{interval.high:.2f})"]
            for name, score, interval in zip(("one", "two"), (found["bleu"].value, expected), intervals, strict=True)
        ]
        assert "two against one, paired bootstrap" in text(found)
    unnamed = dragoman.evaluate(reference=REFERENCE, hypothesis=[FIRST, SECOND], metric=["ter"])
    assert [each.system for each in unnamed.systems] == ["hypothesis 1", "hypothesis 2"]


def test_a_model_may_be_loaded_or_a_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    translator = Translator.load(tmp_path / "model", "cpu", "torch")
    outputs = translator.translate(SOURCES, beam=2)
    expected = sacrebleu.corpus_chrf(outputs, [TARGETS]).score
    for model in (translator, tmp_path / "model", str(tmp_path / "model")):
        found = dragoman.evaluate(model, source=SOURCES, reference=TARGETS, beam=2, metric=["chrf"], device="cpu")
        assert found["chrf"].value == expected and found.systems[0].translations == tuple(outputs)
        assert sum(group.sentences for group in found.systems[0].by_length) == 3
    scores = dragoman.score(translator, TARGETS, SOURCES)
    each = translator.score(SOURCES, TARGETS)
    assert [(one.log_probability, one.tokens) for one in scores.each] == [
        (one.log_probability, one.tokens) for one in each
    ]
    assert ["token", f"{scores.total.per_token:.3f}", f"{scores.total.tokens:,}"] in rows(scores)
    assert scores.total.log_probability == sum(one.log_probability for one in each) and scores.unit == "pairs"
    assert capfd.readouterr().out == ""


def test_documents_under_a_language_model(tmp_path: Path) -> None:
    write_tiny_language_model(tmp_path / "model")
    model = LanguageModel.load(tmp_path / "model", "cpu")
    path = written(tmp_path, "text", ["a dog runs", "", "two dogs"])
    expected = model.score(["a dog runs", "two dogs"])
    assert dragoman.score(tmp_path / "model", path, documents="blank_line").each == tuple(expected)
    assert dragoman.score(model, ["a dog runs", "two dogs"]).each == tuple(expected)
    for wrong in ({"source": ["x"]}, {"tags": ["bt"]}):
        with pytest.raises(ConfigError, match=r"--(source|tags) can only be used with a translation model"):
            dragoman.score(model, ["a"], **wrong)  # type: ignore[arg-type]
    with pytest.raises(DragomanError):
        dragoman.evaluate(tmp_path / "model", source=["a"], reference=["b"])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"reference": REFERENCE}, ConfigError, "nothing to evaluate"),
        ({"reference": [], "hypothesis": FIRST}, ConfigError, "no reference to compare with"),
        ({"reference": REFERENCE, "hypothesis": FIRST[:2]}, DataError, "reference has 3 lines and hypothesis has 2"),
        (
            {"reference": [REFERENCE, OTHER[1:]], "hypothesis": FIRST},
            DataError,
            "reference 1 has 3 lines and reference 2",
        ),
        (
            {"reference": REFERENCE, "hypothesis": FIRST, "metric": ["blue"]},
            ConfigError,
            "unknown metric 'blue': expected one of",
        ),
        (
            {"reference": REFERENCE, "hypothesis": FIRST, "metric": ["spBLEU"]},
            ConfigError,
            "use --metric bleu --tokenizer flores200",
        ),
        ({"reference": REFERENCE, "hypothesis": FIRST, "beam": 3}, ConfigError, "--beam can only be used with a model"),
        ({"reference": "nowhere.de", "hypothesis": FIRST}, DataError, "There is no file nowhere.de"),
        ({"model": "m", "reference": REFERENCE}, ConfigError, "give the sentences to translate"),
        ({"model": "m", "source": FIRST, "reference": REFERENCE}, ModelError, "m"),
    ],
)
def test_errors_are_exceptions(settings: dict[str, object], error: type[DragomanError], message: str) -> None:
    with pytest.raises(error, match=message):
        dragoman.evaluate(**settings)  # type: ignore[arg-type]


def test_a_corpus_is_checked_from_settings_or_a_config(tmp_path: Path) -> None:
    source = written(tmp_path, "a", ["one two three", "", "four", "four"])
    target = written(tmp_path, "b", ["eins zwei drei", "x", "vier", "vier"])
    corpus = {"source": source, "target": target}
    report = dragoman.check_data(corpus, {"max_words": 2})
    assert report.counts == {"empty": 1, "max_words": 1, "duplicates": 1} and report.kept == 1
    assert report.dropped["empty"].tolist() == [2]
    assert dragoman.check_data(CorpusConfig(source=source, target=target)).counts == {"empty": 1, "duplicates": 1}
    assert dragoman.check_data({"text": source}).counts == {"empty": 1, "duplicates": 1}
    with pytest.raises(ConfigError, match=r"unknown setting max_word \(from Python\); did you mean max_words"):
        dragoman.check_data(corpus, {"max_word": 2})


def test_averages_and_exports_do_not_overwrite_anything(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "a")
    write_tiny_model(tmp_path / "b")
    assert dragoman.average([tmp_path / "a", str(tmp_path / "b")], tmp_path / "mean") == tmp_path / "mean"
    with pytest.raises(ConfigError, match="is one of the models to average"):
        dragoman.average([tmp_path / "a", tmp_path / "b"], tmp_path / "b")
    with pytest.raises(ConfigError, match="unknown format 'onnx': expected one of ctranslate2, marian"):
        dragoman.export(tmp_path / "a", tmp_path / "c", to="onnx")
    with pytest.raises(ConfigError, match="unknown quantization 'int4': expected one of float32, int8"):
        dragoman.export(tmp_path / "a", tmp_path / "c", quantization="int4")
    with pytest.raises(ConfigError, match="--quantization can only be used with --to ctranslate2"):
        dragoman.export(tmp_path / "a", tmp_path / "c", to="marian", quantization="int8")


def test_quiet_commands_print_only_errors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "a")
    command = ["average", str(tmp_path / "a"), str(tmp_path / "a"), "-o"]
    assert main([*command, str(tmp_path / "b"), "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    assert main([*command, str(tmp_path / "a"), "-q"]) == 2
    assert capfd.readouterr().err.startswith("error: --out ")
    assert main([*command, str(tmp_path / "c")]) == 0
    assert "wrote the mean of 2 checkpoints to" in capfd.readouterr().err  # it was quiet for one command only
