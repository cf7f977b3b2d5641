"""Readers of questions in the formats of SQuAD: offsets, impossible questions, and errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import QuestionCorpusConfig
from dragoman.data.labelled.examples import Answer, Question
from dragoman.data.labelled.read import read_questions

CONTEXT = "Bo met Cy 😀 in Bonn. Cy left Bonn."


def squad(*questions: dict[str, Any], context: Any = CONTEXT) -> str:
    return json.dumps(
        {"version": "x", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}
    )


def question(*answers: tuple[str, int], **keys: Any) -> dict[str, Any]:
    found = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": "q", "question": "Who?", "answers": found, **keys}


def read(folder: Path, text: str, labelled: bool = True) -> list[Question]:
    path = folder / "x.json"
    path.write_text(text, encoding="utf-8")
    return read_questions(QuestionCorpusConfig(path=path), labelled)


def test_both_versions_of_squad(tmp_path: Path) -> None:
    impossible = question(id="r", is_impossible=True, plausible_answers=[{"text": "Bo", "answer_start": 0}])
    text = squad(question(("Bo", 0), ("Bonn", 15), is_impossible=False), impossible)
    assert read(tmp_path, text) == [
        Question("q", "Who?", CONTEXT, (Answer("Bo", 0), Answer("Bonn", 15)), title="t"),
        Question("r", "Who?", CONTEXT, (), True, title="t"),
    ]
    assert read(tmp_path, "\ufeff" + text) == read(tmp_path, text)


def test_one_object_per_line(tmp_path: Path) -> None:
    flat = {"id": 7, "question": "Who?", "context": CONTEXT, "answers": {"text": ["Cy"], "answer_start": [7]}}
    expected = Question("7", "Who?", CONTEXT, (Answer("Cy", 7),))
    assert read(tmp_path, json.dumps(flat) + "\n\n") == [expected]
    other = {**flat, "id": "8", "answers": [{"text": "Cy", "answer_start": 7}]}
    assert [each.id for each in read(tmp_path, f"{json.dumps(flat)}\n{json.dumps(other)}\n")] == ["7", "8"]
    with pytest.raises(DataError, match="line 2 .question 7.: the `id` occurs twice"):
        read(tmp_path, f"{json.dumps(flat)}\n{json.dumps(flat)}\n")


@pytest.mark.parametrize(
    ("answer", "start"),
    [
        (("Bo", 1), 0),  # near, and another "Bo" is far away
        (("Cy", 8), 7),
        (("left", 0), 24),  # the only one
        (("met", -1), 3),
        (("left", 10_000), 24),
    ],
)
def test_wrong_offsets_are_corrected_if_unambiguous(
    tmp_path: Path, answer: tuple[str, int], start: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = read(tmp_path, squad(question(answer)))
    assert found.answers == (Answer(answer[0], start),)
    assert found.context.startswith(answer[0], found.answers[0].start)
    assert "offsets of 1 answers were wrong" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            squad(question(("Di", 0))),
            r"data\[0\].paragraphs\[0\].qas\[0\] .question q.: the answer 'Di' does not occur",
        ),
        (squad(question(("Bonn", 10_000))), "occurs 2 times elsewhere. Fix `answer_start`"),
        (squad(question(("nn", 24))), "occurs 2 times elsewhere"),  # equally near
        (squad(question()), "there is no answer. Add one, or set `is_impossible`"),
        (squad(question(("Bo", 0), is_impossible=True)), "`is_impossible` is true, but there are answers"),
        (squad(question(("Bo", 0), is_impossible="no")), "`is_impossible` is not true or false"),
        (squad(question(("Bo", 0)), question(("Bo", 0))), "the `id` occurs twice"),
        (squad(question(("Bo", 0), id=None)), "the question has no `id`"),
        (squad({"id": "q", "answers": []}), "the text `question` is missing"),
        (squad(question(("Bo", 0)), context=5), r"paragraphs\[0\]: the text `context` is missing"),
        (squad(question(("", 0))), "an answer has no `text`"),
        (squad(question(("Bo", True))), "is not a whole number"),
        (squad(question(answers="Bo")), "`answers` is neither"),
        ('{"data": 5}', "not in the format of SQuAD"),
        ("[]", "not in the format of SQuAD"),
        ('{\n "data": [,]}', "line 2, column 11: not valid JSON"),
        (squad(), "is empty"),
        ("", "is empty"),
    ],
)
def test_errors_name_the_question(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_questions_without_answers_are_read_for_prediction(tmp_path: Path) -> None:
    (found,) = read(tmp_path, squad(question()), labelled=False)
    assert (found.answers, found.impossible, found.answered) == ((), False, False)
    (found,) = read(tmp_path, squad({"id": "q", "question": "Who?"}), labelled=False)
    assert not found.answered
