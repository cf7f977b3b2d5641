"""The linear chain of a tagger: loss, best sequence and marginals equal those of a search through all sequences."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.metrics.labels.spans import OUTSIDE, SCHEMES, Scheme, find_forbidden, find_spans, may_follow
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.nn.linear_chain import ChainScores, LinearChain


@st.composite
def chains(draw: Any) -> tuple[LinearChain, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A chain with random scores and forbidden transitions, emissions (B, T, C), mask (B, T), and cut (B, 2)."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    tags, lengths = draw(st.integers(1, 3)), draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    scale = draw(st.sampled_from([0.0, 1.0, 30.0]))
    allowed = torch.rand(tags, tags, generator=generator) < draw(st.sampled_from([0.6, 1.0]))
    allowed |= torch.eye(tags, dtype=torch.bool)  # at least one sequence of every length is possible
    chain = LinearChain(tags, (allowed, torch.ones(tags, dtype=torch.bool), torch.ones(tags, dtype=torch.bool)))
    chain = chain.double()
    for parameter in chain.parameters():
        parameter.data = scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    longest = max(1, *lengths)
    emissions = scale * torch.randn(len(lengths), longest, tags, generator=generator, dtype=torch.float64)
    mask = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
    return chain, emissions, mask, torch.rand(len(lengths), 2, generator=generator) < 0.3


def all_scores(
    scores: ChainScores, emissions: torch.Tensor, cut: tuple[bool, bool] = (False, False)
) -> dict[tuple[int, ...], float]:
    """The score of every sequence of tags for emissions (T, C) of one chain, added up one by one."""
    transitions, starts, ends = (each.detach() for each in (scores.transitions, scores.start, scores.end))
    found = {}
    for tags in itertools.product(range(emissions.size(1)), repeat=len(emissions)):
        total = sum(float(row[tag]) for row, tag in zip(emissions, tags, strict=True))
        total += sum(float(transitions[pair]) for pair in itertools.pairwise(tags))
        if tags:
            total += (0 if cut[0] else float(starts[tags[0]])) + (0 if cut[1] else float(ends[tags[-1]]))
        found[tags] = total
    return found


@given(chains(), st.randoms(use_true_random=False))
def test_the_loss_is_that_of_all_sequences(data: Any, random: Any) -> None:
    chain, emissions, mask, cut = data
    scores = chain.scores()
    chosen = []
    expected = []
    for row, present, ends in zip(emissions, mask, cut.tolist(), strict=True):
        found = all_scores(scores, row[present], ends)
        tags = random.choice(list(found))
        chosen.append([*tags, *[0] * (len(row) - len(tags))])
        expected.append(found[tags] - torch.tensor(list(found.values()), dtype=torch.float64).logsumexp(0).item())
    result = scores.log_likelihoods(emissions, torch.tensor(chosen), mask, cut).tolist()
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(chains())
def test_the_best_sequence_and_the_marginals_are_those_of_all_sequences(data: Any) -> None:
    chain, emissions, mask, _ = data
    scores = chain.scores()
    best, marginals = scores.best(emissions, mask).tolist(), scores.marginals(emissions, mask)
    for number, (row, present) in enumerate(zip(emissions, mask, strict=True)):
        length = int(present.sum())
        found = all_scores(scores, row[present])
        values = torch.tensor(list(found.values()), dtype=torch.float64)
        assert found[tuple(best[number][:length])] == pytest.approx(max(found.values()), rel=1e-12, abs=1e-9)
        probabilities = values.softmax(0)
        for place, tag in itertools.product(range(length), range(emissions.size(2))):
            own = sum(float(p) for tags, p in zip(found, probabilities, strict=True) if tags[place] == tag)
            assert float(marginals[number, place, tag].detach()) == pytest.approx(own, abs=1e-9)


@settings(max_examples=30)
@given(chains())
def test_the_gradient_of_the_normaliser_is_the_marginals(data: Any) -> None:
    chain, emissions, mask, _ = data
    scores = chain.scores()
    emissions.requires_grad_()
    (gradient,) = torch.autograd.grad(scores.log_normaliser(emissions, mask).sum(), emissions)
    torch.testing.assert_close(gradient[mask], scores.marginals(emissions, mask)[mask], rtol=1e-7, atol=1e-9)
    assert not gradient[~mask].any()


def test_the_gradient_of_the_loss_is_that_of_finite_differences() -> None:
    torch.manual_seed(1)
    emissions, mask = torch.randn(3, 4, 3, dtype=torch.float64), torch.arange(4) < torch.tensor([[4], [1], [2]])
    tags, cut = torch.randint(3, (3, 4)), torch.tensor([[False, False], [True, False], [False, True]])
    parameters = [torch.randn(size, dtype=torch.float64) for size in ((3, 3), (3,), (3,))]

    def loss(emissions: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return ChainScores(*parameters).log_likelihoods(emissions, tags, mask, cut)

    assert torch.autograd.gradcheck(loss, [each.requires_grad_() for each in (emissions, *parameters)])


@given(st.sampled_from(SCHEMES), st.data())
def test_allowed_sequences_are_those_in_which_every_tag_belongs_to_a_span(scheme: Scheme, data: Any) -> None:
    """A sequence follows IOB2, IOBES or BILOU if and only if its strict spans cover all tags except O."""
    prefixes = {"IOB1": "IB", "IOB2": "IB", "IOBES": "IBES", "BILOU": "IBLU"}[scheme]
    names = [OUTSIDE, *(f"{prefix}-{kind}" for prefix in prefixes for kind in "XY")]
    tags = data.draw(st.lists(st.sampled_from(names), max_size=6))
    follows = find_forbidden(tags, scheme) is None
    if scheme == "IOB1":  # B-X only separates adjacent spans of the same type
        separates = [tag[0] != "B" or before[2:] == tag[2:] for before, tag in itertools.pairwise([OUTSIDE, *tags])]
        assert follows == all(separates)
        return
    covered = sum(span.end - span.start for span in find_spans(tags, scheme, "strict"))
    assert follows == (covered == sum(tag != OUTSIDE for tag in tags))


@settings(max_examples=30)
@given(st.lists(st.floats(-20, 20), min_size=60, max_size=60))
def test_forbidden_sequences_are_never_predicted(values: list[float]) -> None:
    labels = ("O", "B-X", "I-X", "B-Y", "I-Y")
    config = TaggingHeadConfig(labels=labels, scheme="IOB2", transitions="valid")
    head: Any = config.build(4, torch.nn.Embedding(2, 4))
    emissions = torch.tensor(values).reshape(2, 6, 5)
    best = head.chain.scores().best(emissions, torch.ones(2, 6, dtype=torch.bool))
    for row in best.tolist():
        assert find_forbidden([labels[tag] for tag in row], "IOB2") is None
    assert not may_follow("I-X", "O", "IOB2") and may_follow("I-X", "B-X", "IOB2")
