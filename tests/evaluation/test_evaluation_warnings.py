"""`evaluate` says what its scores rest on, prints them as they are ready, and chooses BLEU's tokeniser."""

import json
from pathlib import Path

import pytest
import sacrebleu
from tiny_model import write_tiny_model

import dragoman
from dragoman import Translator
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.evaluation.results import Evaluation
from dragoman.metrics.edit_rate import count_edits
from dragoman.metrics.ter import TER

REFERENCE = [f"this is sentence number {number} of the test" for number in range(120)]


def warnings(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line.removeprefix("warning: ") for line in capfd.readouterr().err.splitlines() if "warning: " in line]


def test_an_ordinary_test_set_causes_no_warning(capfd: pytest.CaptureFixture[str]) -> None:
    dragoman.evaluate(reference=REFERENCE, hypothesis=[REFERENCE, REFERENCE[::-1]], metric=["chrf"])
    assert warnings(capfd) == []


def test_blank_references_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reference = ["" if number % 3 == 1 else line for number, line in enumerate(REFERENCE)]
    (tmp_path / "ref").write_text("\n".join(reference) + "\n")
    dragoman.evaluate(reference=tmp_path / "ref", hypothesis=REFERENCE, metric=["bleu"])
    (warning,) = warnings(capfd)
    assert warning.startswith(
        f"40 of 120 references are blank ({tmp_path / 'ref'}, first in line 2): every translation"
    )
    # of several references, each is counted
    dragoman.evaluate(reference=[REFERENCE, [*REFERENCE[:-1], " "]], hypothesis=REFERENCE, metric=["bleu"])
    (warning,) = warnings(capfd)
    assert warning.startswith(
        "1 of 120 references are blank (reference 2, first in line 120): they count as references"
    )
    # a line that is blank everywhere separates documents
    both = [*REFERENCE[:60], "", *REFERENCE[60:]]
    dragoman.evaluate(reference=both, hypothesis=both, metric=["bleu"])
    assert warnings(capfd) == []


@pytest.mark.parametrize(("line", "count"), [("word " * 700, "700"), ("猫は寝る" * 100, "400")])
def test_very_long_lines_are_reported(line: str, count: str, capfd: pytest.CaptureFixture[str]) -> None:
    reference = [*REFERENCE[:4], line, *REFERENCE[5:]]
    dragoman.evaluate(reference=reference, hypothesis=reference, metric=["chrf"])
    (warning,) = warnings(capfd)
    assert warning.startswith(f"1 of 120 lines of reference have more than 300 words (line 5: {count})")


def test_small_sets_are_reported_if_systems_are_compared(capfd: pytest.CaptureFixture[str]) -> None:
    small = REFERENCE[:20]
    dragoman.evaluate(reference=small, hypothesis=small, metric=["chrf"])
    assert warnings(capfd) == []
    found = dragoman.evaluate(reference=small, hypothesis=[small, small[::-1]], metric=["chrf"])
    assert warnings(capfd)[0].startswith("the test set has only 20 sentences")
    assert "not significant at 0.05" in str(found) or ", significant at 0.05" in str(found)
    # the resampled sets of one sentence are all equal, so its p-value would always be 1/1001
    found = dragoman.evaluate(reference=small[:1], hypothesis=[small[:1], ["nothing"]], metric=["chrf"])
    assert "too few sentences for a significance test (1)" in str(found) and "significant at" not in str(found)
    assert found.comparisons[0].as_json()["sentences"] == 1


def test_fast_scores_are_complete_before_ter_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr("dragoman.metrics.ter.count_edits", lambda *texts: events.append("ter") or count_edits(*texts))

    def record(part: Evaluation) -> None:
        events.append(" ".join(part.systems[0].scores))

    systems = {"one": REFERENCE[:2], "two": REFERENCE[1:3]}
    found = dragoman.evaluate(reference=REFERENCE[:2], hypothesis=systems, on_result=record)
    assert events == ["bleu chrf lecture", *["ter"] * 4, "ter"]  # once per line and system, although they are compared
    assert list(found.systems[0].scores) == ["bleu", "chrf", "ter", "lecture"]
    assert list(found.comparisons[0].metrics) == ["bleu", "chrf", "ter"]
    for name, lines in systems.items():
        (scores,) = (each.scores for each in found.systems if each.system == name)
        assert scores["ter"] == TER().score(lines, REFERENCE[:2])


def test_the_command_prints_parts_or_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("ref", "a b c d\ne f g h\n"), ("hyp", "a b d c\ne f g h\n")):
        (tmp_path / name).write_text(text)
    files = ["--reference", str(tmp_path / "ref"), "--hypothesis", str(tmp_path / "hyp")]
    assert main(["evaluate", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" = ")[0].strip() for line in lines] == [
        str(tmp_path / "hyp"),
        "BLEU",
        "chrF2",
        "lecture BLEU (non-standard)",
        "TER",
    ]
    assert main(["evaluate", *files, "--json"]) == 0
    (system,) = json.loads(capsys.readouterr().out)["systems"]
    assert [score["name"] for score in system["scores"]] == ["BLEU", "chrF2", "TER", "lecture BLEU (non-standard)"]


@pytest.mark.parametrize(("option", "expected"), [([], "char"), (["--tokenizer", "ja-mecab"], "ja-mecab-0.996-IPA")])
def test_japanese_against_itself_scores_100(
    option: list[str], expected: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ref").write_text("彼は昨日、公園を散歩した。\n猫が寝ている。\n", encoding="utf-8")
    files = ["--reference", str(tmp_path / "ref"), "--hypothesis", str(tmp_path / "ref")]
    assert main(["evaluate", *files, *option, "--metric", "bleu"]) == 0
    out, err = capfd.readouterr()
    assert "BLEU = 100.00" in out and f"|tok:{expected}|" in out
    assert ("have no spaces between words, and no target language is set" in err) == (not option)


def test_near_is_better_than_another_sentence_and_significantly(tmp_path: Path) -> None:
    clauses = [
        a + b + c
        for a in ("他昨天", "我们明天", "老师今天")
        for b in ("去公园", "在家里", "到学校")
        for c in ("散步了", "读书", "写字", "吃饭了")
    ]
    near = [line[:-1] + "们" for line in clauses]
    found = dragoman.evaluate(
        reference=clauses,
        hypothesis={"other": clauses[1:] + clauses[:1], "near": near},
        metric=["bleu"],
        tokenizer="zh",
    )
    comparison = found.comparisons[0].metrics["bleu"]
    expected = sacrebleu.corpus_bleu(near, [clauses], tokenize="zh").score
    assert comparison.second.value == expected and comparison.difference > 0 and comparison.p_value < 0.05


def test_the_models_language_chooses_the_tokeniser(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    path = tmp_path / "model" / "meta.json"
    for language, expected in (("zh-Hant", "tok:zh|"), ("ja", "tok:ja-mecab"), ("de", "tok:13a|")):
        path.write_text(json.dumps({**json.loads(path.read_text()), "target_language": language}))
        translator = Translator.load(tmp_path / "model", "cpu", "torch")
        found = dragoman.evaluate(translator, source=["a b"], reference=["c d"], metric=["bleu"])
        assert expected in found["bleu"].signature
        assert expected in found.systems[0].by_length[0].score.signature


def test_an_unknown_tokeniser_is_rejected_before_anything_is_read() -> None:
    with pytest.raises(ConfigError, match="unknown tokeniser 'mecab'"):
        dragoman.evaluate("no model", reference="none", source="none", tokenizer="mecab")
