"""Taggers with transitions: training, long sentences in several inputs, prediction, inspection and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from closeness import close_to

from dragoman import Predictor, evaluate_labels, inspect, train
from dragoman.base.errors import ConfigError, DataError
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.inference.prediction.outputs import compute_outputs
from dragoman.metrics.labels.spans import find_forbidden
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.tasks.labelled.job import collate_rows
from dragoman.tasks.labelled.objective import chain_loss
from dragoman.text.tokenizers import TextConfig, train_tokenizers

LABELS = ["B-X", "B-Y", "I-X", "I-Y", "O"]
WORDS = tuple("the old dog and a young cat saw many small birds over there".split())
MACHINE = {"device": "cpu", "precision": "float32", "threads": 1}


def build(transitions: str, length: int | None = None) -> Predictor:
    torch.manual_seed(1)
    head = {"kind": "tagging", "labels": LABELS, "scheme": "IOB2", "transitions": transitions}
    encoder = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    config = EncoderOnlyConfig.model_validate({"preset": None, "width": 8, "encoder": encoder, "head": head})
    text = TextConfig.model_validate({"subword": {"kind": "word"}, "shared": True})
    tokenizers = train_tokenizers(text, [" ".join(WORDS)], [" ".join(WORDS)])
    model: Any = config.build_for(tokenizers.sizes)
    for parameter in model.head.parameters():
        torch.nn.init.normal_(parameter, std=2)
    return Predictor(model, tokenizers.source, config.head, length)


def best_sequence(emissions: np.ndarray, chain: Any) -> list[str]:
    """Viterbi with lists."""
    transitions, start, end = (each.tolist() for each in (chain.transitions, chain.start, chain.end))
    paths = [(start[tag] + emissions[0, tag], [tag]) for tag in range(5)]
    for row in emissions[1:].tolist():
        paths = [
            max((score + transitions[path[-1]][tag] + row[tag], [*path, tag]) for score, path in paths)
            for tag in range(5)
        ]
    return [LABELS[tag] for tag in max((score + end[path[-1]], path) for score, path in paths)[1]]


@pytest.mark.parametrize("transitions", ["learned", "valid"])
@pytest.mark.parametrize("length", [None, 8])
def test_the_sequence_of_a_sentence_is_the_best_one_even_if_it_is_divided(transitions: str, length: int | None) -> None:
    predictor = build(transitions, length)
    sentences = [WORDS, WORDS[3:7], WORDS[:1], (), WORDS[::-1]]
    encoded = predictor.encode([TaggedSentence(words) for words in sentences])
    assert max(len(each.inputs) for each in encoded) == (1 if length is None else 3)
    together = predictor.predict(list(map(list, sentences)))
    for one, alone in zip(together, predictor.predict(list(map(list, sentences)), batch_tokens=1), strict=True):
        assert one.as_json()["tags"] == alone.as_json()["tags"]
        assert one.as_json()["probabilities"] == close_to(alone.as_json()["probabilities"])
    with torch.no_grad():
        chain = predictor.model.head.chain.scores()
    for words, each, prediction in zip(sentences, encoded, together, strict=True):
        outputs = compute_outputs(predictor.model, each.inputs, predictor.device)
        emissions = np.concatenate(
            [out.emissions[list(one.places)] for out, one in zip(outputs, each.inputs, strict=True)]
        )
        tags = prediction.as_json()["tags"]
        assert tags == (best_sequence(emissions, chain) if words else [])
        assert all(0 < probability <= 1 for probability in prediction.as_json()["probabilities"])
        if transitions == "valid":
            assert find_forbidden(tags, "IOB2") is None


def test_the_parts_of_a_divided_sentence_have_no_start_and_end_scores_where_it_is_cut() -> None:
    predictor = build("learned", 8)
    reader: Any = predictor._reader
    sentence = TaggedSentence(WORDS, tuple(LABELS[number % 5] for number in range(len(WORDS))))
    (inputs,) = reader.encode([sentence])
    rows = list(zip(inputs, reader.target(sentence, inputs), strict=True))
    batch = collate_rows(rows, range(len(rows)))
    assert batch.cut is not None
    assert batch.cut.tolist() == [[False, True], *[[True, True]] * (len(rows) - 2), [True, False]]
    with torch.no_grad():
        outputs = predictor.model(*batch.model_inputs)
        whole = float(chain_loss(outputs, batch))
        parts = [float(chain_loss(predictor.model(*one.model_inputs), one)) for one in batch.split(len(rows))]
    assert whole == pytest.approx(sum(parts), rel=1e-5)
    chain = outputs.chain
    expected = 0.0
    for number, (each, target) in enumerate(rows):
        emissions = outputs.emissions[number, list(each.places)]
        scores = torch.zeros(5) if number else chain.start
        gold = float(scores[target[0]] + emissions[0, target[0]])
        scores = scores + emissions[0]
        for before, tag, row in zip(target, target[1:], emissions[1:], strict=False):
            gold += float(chain.transitions[before, tag] + row[tag])
            scores = torch.stack([(scores + chain.transitions[:, new]).logsumexp(0) for new in range(5)]) + row
        end = chain.end if number == len(rows) - 1 else torch.zeros(5)
        expected += float((scores + end).logsumexp(0)) - gold - float(end[target[-1]])
    assert whole == pytest.approx(expected, rel=1e-5)


def recipe(folder: Path, tags: str = "B-X I-X", **changes: Any) -> dict[str, Any]:
    """Tags that depend on the tag of the word before: the second of two equal words is the inside of a span."""
    first, second = tags.split()
    draw = np.random.default_rng(1)
    lines = []
    for _ in range(40):
        for word in draw.choice(["dog", "and", "cat"], 4):
            outside = "O" if "-" in tags else "C"
            lines += [f"{word} {outside}"] if word == "and" else [f"{word} {first}", f"{word} {second}"]
        lines.append("")
    (folder / "data.conll").write_text("\n".join(lines) + "\n")
    return {
        "task": {"kind": "tagging"},
        "data": {"train": str(folder / "data.conll"), "valid": str(folder / "data.conll")},
        "model": {
            "preset": None,
            "width": 16,
            "dropout": 0,
            "encoder": {"kind": "convolutional", "layers": 1, "kernel": 1},
            "head": {"transitions": "valid", "dropout": 0, **changes.pop("head", {})},
        },
        "train": {"max_steps": 60, "validate_every": 60, "schedule": {"kind": "cosine", "peak": 0.05}, **MACHINE},
        "out": str(folder / "run"),
        **changes,
    }


def test_transitions_are_learned(tmp_path: Path) -> None:
    """The encoder reads each word for itself, so that only the transitions can tell B-X from I-X."""
    settings = recipe(tmp_path)
    train(settings, quiet=True)
    predictor = Predictor.load(tmp_path / "run")
    report = evaluate_labels(predictor, tmp_path / "data.conll").reports[0]
    assert {each.key: each.value for each in report.scores}["conlleval_f1"] > 99
    inspection = inspect(predictor, ["dog", "dog", "and"], word=2)
    assert inspection.target == "I-X for 'dog' (word 2)" and inspection.relevance is not None
    emission = compute_outputs(predictor.model, predictor.encode([["dog", "dog", "and"]])[0].inputs, predictor.device)
    assert inspection.relevance.value == close_to(float(emission[0].emissions[2, 1]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tags": "N V"}, "the tags mark no spans: set model.head.transitions=learned"),
        ({"tags": "I-X I-X", "head": {"scheme": "IOB2"}}, "sentence 1: IOB2 does not allow I-X after O"),
        ({"head": {"scheme": "words"}}, "transitions=valid needs tags that mark spans"),
    ],
)
def test_tags_that_do_not_fit(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        train(recipe(tmp_path, **changes), quiet=True)


def test_weights_of_classes_do_not_apply_to_sequences(tmp_path: Path) -> None:
    settings = recipe(tmp_path)
    settings["train"]["objective"] = {"class_weights": "balanced"}
    with pytest.raises(ConfigError, match="train.objective does not apply to sequences of tags"):
        train(settings, quiet=True)
