"""Next-sentence prediction: pairs, their labels, the loss, and a run that learns it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dragoman import Predictor, train
from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import document_blocks
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masked import MaskedBatch, MaskedCollator
from dragoman.data.batches.masking import MASK, Masker, MaskingConfig
from dragoman.data.batches.sentence_pairs import PairMaker
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.tasks.masked_language_model.objective import NextSentenceObjective, next_sentence_loss
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import TextConfig, VocabularySizes, train_tokenizers
from dragoman.training.objectives.cross_entropy import CrossEntropy

LINES = [f"the {noun} number {number} runs over the green grass" for number, noun in enumerate(["dog", "cat"] * 20)]
TOKENIZER = train_tokenizers(
    TextConfig.model_validate({"subword": {"kind": "bpe", "size": 300}, "tags": [MASK]}), LINES, []
).source
TEXTS: list[NDArray[np.int64]] = [np.array(TOKENIZER.encode(line)) for line in LINES]


def maker(documents: list[int] | None = None) -> PairMaker:
    return PairMaker(TOKENIZER, lambda row: TEXTS[row], documents or list(range(len(TEXTS))), 1)


def collate(length: int | None = None) -> MaskedBatch:
    collator = MaskedCollator(Masker(MaskingConfig(), TOKENIZER, 1), 0, length, maker())
    return collator([document_blocks(ids.tolist(), 1000)[0] for ids in TEXTS], range(len(TEXTS)))


def test_half_of_the_second_texts_are_from_other_documents() -> None:
    counts = {0: 0, 1: 0}
    for epoch in range(25):
        for row, ids in enumerate(TEXTS):
            pair = maker().divide(ids, epoch, row)
            first, second = pair.parts
            counts[pair.continues] += 1
            assert TOKENIZER.decode(first) == LINES[row][: len(TOKENIZER.decode(first))]  # a whole word ends it
            if pair.continues:
                assert np.array_equal(np.concatenate(pair.parts), ids)
            else:
                others = [TOKENIZER.decode(text) for number, text in enumerate(TEXTS) if number != row]
                assert any(TOKENIZER.decode(second).strip() in other for other in others)
                assert len(second) <= len(ids) - len(first)
    assert abs(counts[1] - 500) < 3 * np.sqrt(250)


def test_a_text_of_the_same_document_is_never_the_other_one() -> None:
    pairs = [maker([7] * len(TEXTS)).divide(ids, 0, row) for row, ids in enumerate(TEXTS)]
    assert {pair.continues for pair in pairs} == {1}


def test_pairs_depend_on_seed_epoch_and_row_only_and_single_words_are_not_divided() -> None:
    first, second = maker().divide(TEXTS[3], 2, 3), maker().divide(TEXTS[3], 2, 3)
    assert first.continues == second.continues
    assert all(np.array_equal(*parts) for parts in zip(first.parts, second.parts, strict=True))
    assert maker().divide(np.array(TOKENIZER.encode("grass")), 0, 0).continues == NO_LABEL


@pytest.mark.parametrize("length", [None, 90])
def test_rows_have_an_end_after_each_text_and_the_label_at_their_beginning(length: int | None) -> None:
    batch = collate(length)
    assert batch.continues is not None
    assert int((batch.inputs == BOS).sum()) == len(TEXTS) and int((batch.inputs == EOS).sum()) == 2 * len(TEXTS)
    assert torch.equal(batch.continues != NO_LABEL, batch.inputs == BOS)
    assert not (batch.target_mask & ((batch.inputs == BOS) | (batch.inputs == EOS))).any()
    parts = batch.split(3)
    labels = torch.cat([part.continues[part.continues != NO_LABEL] for part in parts if part.continues is not None])
    assert torch.equal(labels, batch.continues[batch.continues != NO_LABEL])


def test_the_loss_does_not_depend_on_how_a_batch_is_cut() -> None:
    torch.manual_seed(1)
    head = {"kind": "masked_language_model", "next_sentence": True}
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    config = EncoderOnlyConfig.model_validate({"preset": None, "width": 8, "encoder": stack, "head": head})
    model = config.build_for(VocabularySizes(TOKENIZER.size, TOKENIZER.size)).eval()
    batch = collate()
    objective = NextSentenceObjective(CrossEntropy(0.0), 0.5, 3.0)
    whole = objective(model, batch)
    parts = [objective(model, part) for part in batch.split(4)]
    torch.testing.assert_close(sum(part.total for part in parts), whole.total, rtol=1e-5, atol=1e-4)
    tokens = CrossEntropy(0.0)(model, batch)
    output = model(*batch.model_inputs)
    states = output.states[:, 0]
    logits = model.head.next_sentence(torch.tanh(model.head.pooler(states)))
    expected = torch.nn.functional.cross_entropy(logits, batch.continues[:, 0], reduction="sum")
    torch.testing.assert_close(next_sentence_loss(output, batch)[0], expected)
    torch.testing.assert_close(whole.total, tokens.total + 0.5 * 3.0 * expected)


def recipe(folder: Path, **settings: Any) -> dict[str, Any]:
    folder.joinpath("text.txt").write_text("\n".join(LINES) + "\n")
    text = {"text": str(folder / "text.txt")}
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    machine = {"device": "cpu", "precision": "float32", "threads": 1}
    return {
        "task": {"kind": "masked_language_model"},
        "data": {"train": text, "valid": text, "block": 24, "pack": True},
        "text": {"subword": {"kind": "bpe", "size": 300}},
        "model": {"preset": None, "width": 8, "encoder": stack, "segments": 2},
        "train": {"max_steps": 2, "next_sentence": 1.0, **machine, **settings},
        "out": str(folder / "run"),
    }


def test_a_run_reports_the_accuracy_of_next_sentences_and_resumes(tmp_path: Path) -> None:
    result = train(recipe(tmp_path), quiet=True)
    assert 0 <= result.validation["next_sentence"].value <= 100
    assert train(recipe(tmp_path, max_steps=3), resume=True, quiet=True).step == 3
    head: Any = Predictor.load(tmp_path / "run", "cpu").head
    assert head.next_sentence
    values = recipe(tmp_path)
    values["model"]["head"] = {"next_sentence": False}
    with pytest.raises(ConfigError, match=r"remove model\.head\.next_sentence=false"):
        train(values, quiet=True)
