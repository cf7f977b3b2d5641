"""On a terminal, `predict` prints lines for a reader: short, aligned and with rounded numbers."""

import io
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dragoman.data.labelled.examples import LabelledText, Question, TaggedSentence
from dragoman.inference.prediction.heads.answering import AnswerPrediction
from dragoman.inference.prediction.heads.classification import ClassPrediction
from dragoman.inference.prediction.heads.filling import Fill, FillPrediction
from dragoman.inference.prediction.heads.regression import ValuePrediction
from dragoman.inference.prediction.heads.tagging import TagPrediction
from dragoman.inference.prediction.predict import predict
from dragoman.inference.prediction.readable import ReadablePredictions
from dragoman.models.kinds.registry import PREDICTION_MODEL


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Reviews:
    """A predictor that finds the word "good"."""

    kind, task, labels = PREDICTION_MODEL, "classification", ("bad", "very good")

    def predict(self, texts: Any, *, batch_tokens: int = 1, first: int = 1) -> list[ClassPrediction]:
        share = [0.987654 if "good" in text else 0.123456 for text in texts]
        return [ClassPrediction(self.labels[each > 0.5], {"bad": 1 - each, "very good": each}) for each in share]


def test_a_terminal_gets_a_table_and_a_pipe_json(tmp_path: Path) -> None:
    source = tmp_path / "texts.txt"
    source.write_text("The food was good.\nThe staff was rude.\n")
    terminal, pipe, chosen = Terminal(), io.StringIO(), Terminal()
    assert predict(Reviews(), source, terminal) == 2
    assert terminal.getvalue() == "very good   99%  The food was good.\nbad         88%  The staff was rude.\n"
    predict(Reviews(), source, pipe)
    assert [json.loads(line)["label"] for line in pipe.getvalue().splitlines()] == ["very good", "bad"]
    predict(Reviews(), source, chosen, format="jsonl")
    assert chosen.getvalue() == pipe.getvalue()


def tags(words: list[str], names: list[str]) -> TagPrediction:
    return TagPrediction(tuple(words), tuple(names), (1.0,) * len(words), " ".join(words), ())


def test_tags_are_below_their_words() -> None:
    table = ReadablePredictions((), 40)
    words, names = ["Ruth", "lives", "in", "東京", "."], ["B-PER", "O", "O", "B-LOC", "O"]
    above, below, blank = table(TaggedSentence(tuple(words)), tags(words, names)).split("\n")[:3]
    assert above == "Ruth   lives  in  東京   ." and below == "B-PER  O      O   B-LOC  O" and blank == ""


@given(st.lists(st.tuples(st.sampled_from(["a", "語", "word", "B" * 30]), st.sampled_from(["O", "B-LOC"])), min_size=1))
def test_wrapped_tags_lose_nothing_and_fit(rows: list[tuple[str, str]]) -> None:
    words, names = map(list, zip(*rows, strict=True))
    lines = ReadablePredictions((), 40)(None, tags(words, names)).splitlines()[:-1]
    assert [word for line in lines[::2] for word in line.split()] == words
    assert [name for line in lines[1::2] for name in line.split()] == names
    assert all(cell_len(line) <= 40 for line in lines)


def test_long_texts_are_cut_to_the_width_of_the_terminal() -> None:
    line = ReadablePredictions((), 30)(LabelledText(("two\nlines " * 10,)), ValuePrediction(0.123456789))
    assert line == "    0.1235  two lines two lin…\n"


def test_answers_and_fills() -> None:
    table = ReadablePredictions((), 60)
    question = Question("1", "Who?", "Ruth came.", ())
    assert table(question, AnswerPrediction("Ruth", 0, 4, 3.0, None)) == "Who?\n  Ruth\n"
    assert "(no answer)" in table(question, AnswerPrediction("", 0, 0, 3.0, 4.0))
    fills = FillPrediction(((Fill(" old", 0.75, 7), Fill(" red", 0.2, 8)),), "The old house.")
    assert table(None, fills) == "The old house.\n  old 75%, red 20%\n"


def test_numbers_of_other_predictions_are_rounded() -> None:
    class Own:
        def as_json(self) -> dict[str, Any]:
            return {"angle": 1 / 3, "parts": [2 / 3, "ä"]}

    assert json.loads(ReadablePredictions((), 60)(None, Own())) == {"angle": 0.3333, "parts": [0.6667, "ä"]}
