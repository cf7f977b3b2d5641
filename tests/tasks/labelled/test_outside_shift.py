"""A tagger whose score of O is lowered: the amount is the best one, and the model folder predicts with it."""

import json
import random
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2

import dragoman
from dragoman.checkpoint.folder import PARAMETERS
from dragoman.data.labelled.corpus import TaggedCorpusConfig
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.read import read_tagged
from dragoman.inference.prediction.heads.chains import TagSequence, lower_tag
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.tagging import WordTagger
from dragoman.inference.prediction.predictor import Predictor
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.nn.linear_chain import ChainScores
from dragoman.tasks.labelled.outside import OutsideShift
from dragoman.text.tokenizers import TextConfig, train_tokenizers
from dragoman.training.ranks.ranks import Ranks

LABELS = ("B-PER", "I-PER", "O")


def strict_f1(gold: Any, predicted: Any) -> float:
    return float(100 * f1_score(gold, predicted, mode="strict", scheme=IOB2, zero_division=0))


def test_sequences_with_a_lower_score_equal_an_enumeration() -> None:
    generator = torch.Generator().manual_seed(1)
    transitions, start, end = (torch.randn(*shape, generator=generator) for shape in ((3, 3), (3,), (3,)))
    chain = ChainScores(transitions, start, end).on_cpu()
    inputs = [ModelInput((2, *range(9, 9 + length), 3), tuple(range(1, 1 + length))) for length in (4, 1, 3)]
    emissions = [torch.randn(len(each.ids), 3, generator=generator).numpy() for each in inputs]
    before = [TagSequence(each, chain, np.zeros(0, np.int64), np.zeros((0, 3))) for each in emissions]
    for each, scores, found in zip(inputs, emissions, lower_tag(before, inputs, 2, 1.5), strict=True):
        lowered = scores[list(each.places)].astype(np.float64) - np.array([0, 0, 1.5])
        totals = {}
        for tags in product(range(3), repeat=len(each.places)):
            steps = sum(float(transitions[pair]) for pair in pairwise(tags))
            own = sum(lowered[place, tag] for place, tag in enumerate(tags))
            totals[tags] = own + steps + float(start[tags[0]] + end[tags[-1]])
        assert tuple(found.numbers) == max(totals, key=totals.__getitem__)
        weights = {tags: np.exp(total) for tags, total in totals.items()}
        last = [sum(weight for tags, weight in weights.items() if tags[-1] == tag) for tag in range(3)]
        assert found.probabilities[-1] == pytest.approx(np.array(last) / sum(weights.values()), abs=1e-6)


class TwoRanks(Ranks):
    """The first of two ranks, the second of which has the same examples."""

    def sum(self, values: Any) -> list[float]:
        return [2 * value for value in values]


@pytest.fixture(scope="module")
def cautious() -> tuple[WordTagger, list[TaggedSentence], list[Any], list[Any]]:
    """A tagger that predicts too few names."""
    rng = random.Random(1)
    sentences = [tuple(rng.choice("abcdefgh") for _ in range(8)) for _ in range(100)]
    tokenizer = train_tokenizers(
        TextConfig.model_validate({"subword": {"kind": "character", "min_frequency": 1}}),
        iter(()),
        map(" ".join, sentences),
    ).source
    reader = WordTagger(tokenizer, TaggingHeadConfig(labels=LABELS, scheme="IOB2", transitions="none"), None)
    examples = [TaggedSentence(words, tuple(rng.choice(("B-PER", "O", "O")) for _ in words)) for words in sentences]
    inputs, generator = reader.encode(examples), np.random.default_rng(1)
    outputs = []
    for example, (row,) in zip(examples, inputs, strict=True):
        logits = generator.normal(size=(len(row.ids), 3)).astype(np.float32)
        logits[list(row.places), 0] += [1.2 * (tag == "B-PER") for tag in example.tags or ()]
        logits[:, 2] += 2
        outputs.append([logits])
    return reader, examples, inputs, outputs


def test_the_amount_with_the_best_f1_is_chosen(cautious: Any) -> None:
    reader, examples, inputs, outputs = cautious
    shift = OutsideShift(reader, "IOB2", "strict")
    lowered, score = shift(examples, inputs, outputs, Ranks("cpu"))

    def f1(amount: float) -> float:
        tags = [
            [LABELS[number] for number in (logits[list(row.places)] - [0, 0, amount]).argmax(1)]
            for (row,), (logits,) in zip(inputs, outputs, strict=True)
        ]
        return strict_f1([list(example.tags) for example in examples], tags)

    assert score.value == max(np.arange(0, 5.5, 0.5), key=f1) > 0
    assert f1(score.value) > f1(0) + 5
    assert lowered[0][0] == pytest.approx(outputs[0][0] - [0, 0, score.value])
    assert shift(examples, inputs, outputs, TwoRanks("cpu"))[1] == score
    few = 15
    assert shift(examples[:few], inputs[:few], outputs[:few], Ranks("cpu"))[1].value == 0


def write_names(path: Path, seed: int, tagged: float) -> Path:
    """Write sentences with names, a part of which is tagged."""
    rng = random.Random(seed)
    lines = []
    for _ in range(80):
        lines += [f"word{rng.randrange(40)} O" for _ in range(5)]
        lines += [f"Name{rng.randrange(30)} {'B-PER' if rng.random() < tagged else 'O'}", ""]
    path.write_text("\n".join(lines))
    return path


def train(folder: Path, **loop: Any) -> Path:
    names = [write_names(folder / name, seed, 0.35 + 0.6 * seed) for seed, name in enumerate(("train", "valid"))]
    dragoman.train(
        {
            "task": {"kind": "tagging"},
            "data": {"train": str(names[0]), "valid": str(names[1])},
            "model": {"preset": "rnn", "width": 16},
            "train": {"max_steps": 24, "validate_every": 12, "threads": 1, **loop},
            "out": str(folder / "run"),
        }
    )
    return folder / "run"


def amounts(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [line["valid_outside_shift"] for line in lines if "valid_outside_shift" in line]


def test_a_model_folder_predicts_with_the_amount(tmp_path: Path) -> None:
    run = train(tmp_path, metric="strict_f1")
    assert max(amounts(run)) > 0
    recorded = {score["metric"]: score["value"] for score in json.loads((run / "meta.json").read_text())["scores"]}
    assert "score of O lowered by (best on this set)" in recorded
    valid = read_tagged(TaggedCorpusConfig(path=tmp_path / "valid"))
    weights = load_file(run / PARAMETERS)

    def f1(change: float) -> float:
        bias = weights["head.emissions.output.bias"].clone()
        bias[1] -= change  # of B-PER and O
        save_file({**weights, "head.emissions.output.bias": bias}, run / PARAMETERS)
        predicted: Any = Predictor.load(run).predict(valid)
        return strict_f1([list(each.tags or ()) for each in valid], [list(each.tags) for each in predicted])

    own, less, more = f1(0), f1(-0.5), f1(0.5)
    assert own == pytest.approx(recorded["F1 (strict)"])
    assert own >= max(less, more) and own > min(less, more)


@pytest.mark.parametrize("loop", [{"tune_outside": False}, {"metric": "accuracy"}])
def test_without_the_choice_the_model_is_what_was_learned(tmp_path: Path, loop: dict[str, Any]) -> None:
    assert amounts(train(tmp_path, max_steps=1, **loop)) == []
