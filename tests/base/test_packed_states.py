"""Packed states: their places, the batches that have them, and the runs that choose them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from training_runs import SETTINGS, write_corpus

from dragoman.base.packing import MULTIPLE, Packing
from dragoman.base.settings.load import load_settings
from dragoman.cli.main import main
from dragoman.data.batches.batch import collate, collate_text
from dragoman.data.batches.shapes import BatchShapes
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.dropout import scale_dropout
from dragoman.tasks.registry import open_job
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.objectives.scheduled_sampling import ConstantRatioConfig, ScheduledSampling
from dragoman.training.objectives.cross_entropy import CrossEntropy

LENGTHS = st.lists(st.integers(0, 7), min_size=1, max_size=20).filter(any)


def mask_of(lengths: list[int], extra: int = 0) -> np.ndarray:
    return np.arange(max(lengths) + extra) < np.array(lengths)[:, None]


@settings(max_examples=40)
@given(lengths=LENGTHS, extra=st.integers(0, 2), size=st.sampled_from([0, 100]), repeated=st.booleans())
def test_unpacked_states_have_the_packed_states_at_their_tokens(
    lengths: list[int], extra: int, size: int, repeated: bool
) -> None:
    mask = mask_of(lengths, extra)
    packing = Packing.of(mask, size)
    if repeated:
        packing, mask = packing.repeated(), np.concatenate([mask, mask])
    assert packing.count == mask.sum() == packing.tokens.sum()
    assert packing.tokens.size(1) % MULTIPLE == 0 and packing.tokens.size(1) >= packing.count
    padded = torch.randn(*mask.shape, 3, dtype=torch.float64, requires_grad=True)
    packed = packing.pack(padded)
    real = torch.from_numpy(mask)
    torch.testing.assert_close(packed[0, : packing.count], padded[real])
    torch.testing.assert_close(packing.unpack(packed)[real], padded[real])
    torch.testing.assert_close(packed[0, packing.rows(real)], padded[real])
    # the gradient reaches each token once, and padding never
    weight = torch.randn_like(padded) * real[..., None]
    (gradient,) = torch.autograd.grad((packing.unpack(packed * packing.tokens[..., None]) * weight).sum(), padded)
    torch.testing.assert_close(gradient[real], weight[real])
    assert not gradient[~real].any()


@pytest.mark.parametrize("attention", ["soft", "window"])
def test_a_language_model_has_the_same_loss_with_packed_states(attention: str) -> None:
    torch.manual_seed(3)
    stack = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 16, "attention": {"kind": attention}}
    config = LanguageModelConfig.model_validate({"preset": None, "width": 8, "decoder": stack})
    assert config.packs
    model = config.build(30).double()
    padded = collate_text([[1, 7, 8, 9], [4, 5], [1, 2, 3, 4, 5, 6, 7]], range(3))
    results = []
    for batch in (padded, padded.with_packing(50), BatchShapes((9,), 0).apply(padded), BatchShapes((9,)).apply(padded)):
        model.zero_grad()
        with scale_dropout(0.0):
            loss = CrossEntropy()(model, batch)
        loss.total.backward()
        results.append((loss.total.detach(), [each.grad.clone() for each in model.parameters()]))
    for each in results[1:]:
        torch.testing.assert_close(each, results[0], rtol=1e-9, atol=1e-10)


def test_scheduled_sampling_has_padded_states_for_packed_batches() -> None:
    torch.manual_seed(3)
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    model = ModelConfig.model_validate({"preset": None, "width": 8, "encoder": stack, "decoder": stack}).build(30, 30)
    padded = collate([[7, 8, 9], [5]], [[4], [5, 6, 7, 8]], range(2))
    objective = CrossEntropy(predict=ScheduledSampling(ConstantRatioConfig(value=0.3)))
    totals = []
    for batch in (padded, padded.with_packing()):
        torch.manual_seed(1)
        with scale_dropout(0.0):
            totals.append(objective(model.train(), batch).total)
    torch.testing.assert_close(totals[1], totals[0])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["model.decoder.attention.kind=ssru", "model.target_positions.kind=sinusoidal"], "kind soft, window or hard"),
        (["train.objective.kind=sequence_reward"], "the loss sequence_reward"),
    ],
    ids=["attention", "rewards"],
)
def test_a_run_that_cannot_pack_says_why(
    settings: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["train", *write_corpus(tmp_path, 20), *SETTINGS, *settings, "data.batch.packed=true", "--quiet"]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "data.batch.packed=true is not possible" in error and reason in error and "Remove the setting" in error
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_no_columns_are_added_beyond_the_longest_example() -> None:
    """A model with a table of positions has no more of them."""
    limited = {"kind": "learned", "limit": 6}
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    settings = {"preset": None, "width": 8, "encoder": stack, "decoder": stack, "positions": limited}
    model = ModelConfig.model_validate(settings).build(30, 30).eval()
    padded = collate([[7, 8, 9, 5, 6], [5]], [[4], [5, 6, 7, 8, 9]], range(2))
    totals = [
        CrossEntropy()(model, BatchShapes((6, 6), packed).apply(padded)).total.detach() for packed in (None, 0, 100)
    ]
    for total in totals:
        torch.testing.assert_close(total, CrossEntropy()(model, padded).total.detach())


def test_a_run_with_few_shapes_has_the_batches_of_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = ["data={train: {source: train.a, target: train.b}, valid: {source: valid.a, target: valid.b}}"]
    write_corpus(tmp_path)
    shapes = {}
    for few_shapes in (False, True):
        options = [*corpus, f"out=run{few_shapes}", *SETTINGS, f"data.batch.few_shapes={few_shapes}"]
        job = open_job(load_settings(None, options, TranslationRun))
        try:
            job.prepare()
            plan = job.plan(0)
            batches = list(job.batches(plan, 0, 0, False))
            longest = (job.lengths.max(0) + 1).tolist()
        finally:
            job.close()
        assert sorted(row for batch in batches for row in batch.rows) == list(range(200))
        shapes[few_shapes] = [(*batch.source.shape, batch.labels.size(1)) for batch in batches]
        real = np.array([[float(side.sum()) for side in (b.source_mask, b.target_mask)] for b in batches]).sum(0)
        sizes = np.array([[rows * source, rows * target] for rows, source, target in shapes[few_shapes]]).sum(0)
        if not few_shapes:
            np.testing.assert_allclose(plan.padding_waste, 1 - real / sizes)
    assert all(rows * max(source, target) <= 200 for rows, source, target in shapes[True])
    for _, *columns in shapes[True]:
        assert all(each % 8 == 0 or each == limit for each, limit in zip(columns, longest, strict=True))
    assert len(set(shapes[True])) < 0.5 * len(set(shapes[False]))


@pytest.mark.parametrize(
    ("precision", "packed"), [pytest.param("float32", False, marks=pytest.mark.slow), ("bfloat16", True)]
)
def test_the_choice_is_stored_with_the_run(
    precision: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run keeps it on any machine."""
    monkeypatch.chdir(tmp_path)
    options = [*SETTINGS, "train.max_steps=2", f"train.precision={precision}", "--quiet"]
    assert main(["train", *write_corpus(tmp_path, 20), *options]) == 0
    stored = load_settings(tmp_path / "run" / "config.yaml", [], TranslationRun)
    assert stored.data.batch.packed is packed
    automatic = stored.data.batch.model_copy(update={"packed": "auto"})
    assert automatic.with_stored_choices(stored.data.batch).packed is packed
