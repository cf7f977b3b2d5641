"""Tasks on random symbols, linear probes and norms of gradients (dragoman.addons.lecture)."""

import pytest
import torch
from torch import Generator

from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.text.symbols import BOS
from lecture_code.gradient_norms import factor_per_position, gradient_norms
from lecture_code.probing import fit_probe
from lecture_code.symbol_tasks import (
    FIRST,
    Copying,
    Examples,
    Recall,
    accuracy_by_position,
    draw_batches,
    fit,
    losses,
)


def built(vocabulary: int, attends: bool = True, width: int = 32, **settings: object) -> Seq2Seq:
    torch.manual_seed(1)
    side = {"kind": "recurrent", "cell": "gru"}
    decoder = side if attends else {**side, "attention": None}
    model = {"preset": None, "width": width, "dropout": 0.0, "encoder": side, "decoder": decoder, **settings}
    return ModelConfig.model_validate(model).build(vocabulary, vocabulary)


def test_copies_and_reversals_follow_the_start_symbol() -> None:
    straight = Copying(5).draw(3, 4, Generator().manual_seed(1))
    assert torch.equal(straight.labels, straight.source)
    assert torch.equal(straight.inputs[:, 1:], straight.labels[:, :-1]) and bool((straight.inputs[:, 0] == BOS).all())
    assert int(straight.source.min()) >= FIRST and int(straight.source.max()) < Copying(5).vocabulary
    backwards = Copying(5, reverse=True).draw(3, 4, Generator().manual_seed(1))
    assert torch.equal(backwards.source, straight.source) and torch.equal(backwards.labels, straight.source.flip(1))


def test_recall_asks_for_every_position_equally_often() -> None:
    task = Recall(symbols=7, longest=5)
    examples = task.draw(4000, 4, Generator().manual_seed(2))
    positions = examples.inputs[:, 0] - FIRST - 7
    assert torch.equal(examples.labels[:, 0], examples.source[torch.arange(4000), positions])
    assert int(examples.inputs.max()) < task.vocabulary
    assert torch.bincount(positions).tolist() == pytest.approx([1000] * 4, rel=0.1)


def test_batches_have_every_length_and_depend_on_the_seed_only() -> None:
    first, second = (list(draw_batches(Copying(), 40, 2, 3, seed=4)) for _ in range(2))
    assert {each.source.size(1) for each in first} == {1, 2, 3}
    assert all(torch.equal(one.source, other.source) for one, other in zip(first, second, strict=True))


def test_losses_are_negative_log_probabilities() -> None:
    task = Copying(6)
    model, examples = built(task.vocabulary).eval(), task.draw(3, 4, Generator().manual_seed(1))
    logits = model(examples.source, torch.ones(3, 4, dtype=torch.bool), examples.inputs).logits()
    expected = -logits.log_softmax(2).gather(2, examples.labels[:, :, None])[:, :, 0]
    torch.testing.assert_close(losses(model, examples), expected)


@pytest.mark.slow
def test_a_model_learns_to_copy_and_not_to_reverse() -> None:
    task, attends = Copying(4), built(Copying(4).vocabulary)
    assert fit(attends, draw_batches(task, 150, 32, 3, seed=1), 150, peak=1e-2) < 0.5
    examples = task.draw(300, 3, Generator().manual_seed(2))
    accuracy = accuracy_by_position(attends, examples)
    assert accuracy.shape == (3,) and float(accuracy.mean()) > 0.85
    reversed_labels = Examples(examples.source, examples.inputs, examples.labels.flip(1))
    assert float(accuracy_by_position(attends, reversed_labels).mean()) < 0.6
    untrained = accuracy_by_position(built(task.vocabulary).eval(), examples)
    assert float(untrained.mean()) < 0.5


@pytest.mark.parametrize("attends", [True, False])
def test_gradient_norms_equal_those_of_the_embedding_table(attends: bool) -> None:
    """Every source symbol occurs once and only in the source, so ∂L/∂E[x_i] is √d times ∂L/∂x_i."""
    model = built(20, attends, width=16, tie_embeddings=False, tie_projection=False).double().eval()
    source = torch.tensor([[7, 5, 9, 12]])
    examples = Examples(source, torch.tensor([[1, 6, 8]]), torch.tensor([[6, 8, 4]]))
    for label in (None, 1):
        values = losses(model, examples)
        total = values.sum() if label is None else values[:, label].sum()
        (table,) = torch.autograd.grad(total, [model.encoder.embedding.tokens.weight])
        torch.testing.assert_close(4 * gradient_norms(model, examples, label), table[source[0]].norm(dim=1))


def test_the_mean_is_over_the_examples() -> None:
    model = built(20).eval()
    examples = Copying(6).draw(2, 5, Generator().manual_seed(3))
    single = [gradient_norms(model, Examples(*(part[row : row + 1] for part in examples))) for row in (0, 1)]
    torch.testing.assert_close(gradient_norms(model, examples), torch.stack(single).mean(0), rtol=1e-4, atol=1e-7)


def test_a_factor_per_position_is_a_geometric_mean() -> None:
    assert factor_per_position([5, 7], [8.0, 2.0]) == pytest.approx(0.5)


def test_a_probe_equals_scikit_learns_ridge_regression() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = Generator().manual_seed(1)
    vectors = torch.randn(300, 5, generator=generator) * torch.tensor([1.0, 5.0, 0.1, 1.0, 2.0])
    classes = (vectors[:, 1] + 3 * vectors[:, 3] > 0).long() + (vectors[:, 0] > 0.5).long()
    probe = fit_probe(vectors[:200], classes[:200], 3)
    inputs = ((vectors.double() - probe.mean) / probe.scale).numpy()
    wanted = torch.nn.functional.one_hot(classes, 3).double().numpy()
    ridge = linear_model.Ridge(alpha=1e-6 * 200).fit(inputs[:200], wanted[:200])
    torch.testing.assert_close(probe.weights[:-1], torch.from_numpy(ridge.coef_.T.copy()), rtol=1e-4, atol=1e-7)
    expected = (ridge.predict(inputs[200:]).argmax(1) == classes[200:].numpy()).mean()
    assert probe.accuracy(vectors[200:], classes[200:]) == pytest.approx(float(expected))
    assert probe.accuracy(vectors[200:], classes[200:]) > 0.6


def test_a_probe_of_random_classes_is_at_chance() -> None:
    generator = Generator().manual_seed(2)
    vectors, classes = torch.randn(2000, 4, generator=generator), torch.randint(0, 4, (2000,), generator=generator)
    assert fit_probe(vectors[:1000], classes[:1000], 4).accuracy(vectors[1000:], classes[1000:]) < 0.33
