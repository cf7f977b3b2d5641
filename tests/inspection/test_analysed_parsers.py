"""The analysis of parsers and of models of graphs, whose outputs are trees and nodes instead of texts."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from analysed_models import SOURCE, node_predictor, predictor, small_graph
from closeness import assert_close

from dragoman import Predictor, ablate_heads, attention_rollout, decoder_lens, head_importance, inspect, next_tokens
from dragoman.base.errors import ConfigError, DataError
from dragoman.inference.prediction.heads.parsing import TreePrediction
from dragoman.inference.subject import SubjectSettings
from dragoman.inspection.heads import heads_of, heads_off
from dragoman.inspection.importance import head_entropies
from dragoman.inspection.next_tokens import continue_prefix
from dragoman.inspection.relevance import token_relevance

WORDS = SOURCE.split()


def generator() -> Predictor:
    return predictor("transformer", "tree_decoder")


def parsed(model: Predictor) -> TreePrediction:
    (found,) = model.predict(SOURCE)
    assert isinstance(found, TreePrediction)
    return found


@pytest.mark.parametrize("head", ["tree_decoder", "chart"])
def test_the_output_of_a_parser_is_the_score_of_its_tree(head: str) -> None:
    model = predictor("transformer", head)
    subject = model.subject(SOURCE)
    assert_close(subject.values().sum(), parsed(model).score)
    assert subject.target == str(parsed(model).tree.rooted())
    assert len(subject.terms) == len(subject.values())


def test_the_terms_of_a_chart_are_its_constituents() -> None:
    model = predictor("transformer", "chart")
    spans = {(each.start, each.end) for each in parsed(model).tree.constituents}
    terms = [term.partition(": ")[2] for term in model.subject(SOURCE).terms]
    assert sorted(terms) == sorted(" ".join(WORDS[start:end]) for start, end in spans)


@pytest.mark.slow
def test_without_a_head_the_tree_is_predicted_again() -> None:
    model = generator()
    ids, changed = model.subject(SOURCE).target_ids, set()
    before = str(parsed(model).tree.rooted())
    for head in heads_of(model.model)[::4]:  # one of the two heads of every second layer
        ablation = ablate_heads(model, SOURCE, [head])
        assert ablation.predicted_before == before
        with heads_off(model.model, [head]):
            assert ablation.predicted_after == str(parsed(model).tree.rooted())
            assert_close(ablation.after, model.sequence(SOURCE).subject(tuple(ids)).values())
        changed.add(ablation.predicted_after != before)
    assert True in changed


def test_the_next_symbols_are_those_of_the_decoder() -> None:
    model = generator()
    prefix = "(S (NP DT"
    found = next_tokens(model, SOURCE, prefix, count=5)
    assert found.prefix == tuple(prefix.split())
    assert found.probabilities.sum() + found.rest == pytest.approx(1, abs=1e-6)
    symbols = model.model.head.symbols
    for number, probability in zip(found.ids, found.probabilities, strict=True):
        longer = model.sequence(SOURCE).subject((*symbols.parse(prefix), number))
        assert_close(np.exp(longer.values()[3]), probability)


def test_the_best_tree_with_a_prefix_has_the_prefix() -> None:
    model = generator()
    best: Any = continue_prefix(model, SOURCE)
    assert best.prediction == parsed(model)
    symbols = model.model.head.symbols
    for prefix in (symbols.encode(best.prediction.tree)[:4], symbols.parse("(VP (NP DT")):
        found: Any = continue_prefix(model, SOURCE, prefix)
        assert symbols.encode(found.prediction.tree)[: len(prefix)] == prefix
        assert_close(model.sequence(SOURCE).subject(found.ids).values().sum(), found.score)


def test_the_last_layer_of_the_lens_is_the_prediction_of_the_decoder() -> None:
    model = generator()
    lens = decoder_lens(model, SOURCE)
    assert [each.name for each in lens.layers] == ["embeddings", "layer 1", "layer 2"]
    values = [each.actual_probability for each in lens.layers[-1].positions]
    assert_close(np.log(np.array(values, float)), model.subject(SOURCE).values())


def test_rollout_and_relevance_of_a_tree_have_its_symbols() -> None:
    model = generator()
    encoder, decoder = attention_rollout(model, SOURCE)
    assert_close(decoder.values.sum(1), np.ones(len(decoder.queries)))
    assert decoder.queries == model.subject(SOURCE).terms
    assert encoder.queries == decoder.keys[: len(encoder.queries)]
    relevance = token_relevance(model, SOURCE)
    assert relevance.terms == decoder.queries
    assert relevance.of_source.shape == (len(relevance.terms), len(relevance.source))
    assert not np.triu(relevance.of_read, 1).any(), "later symbols have no influence"


def test_invalid_prefixes_and_other_parsers_are_errors() -> None:
    model, chart = generator(), predictor("transformer", "chart")
    with pytest.raises(ConfigError, match=r"this parser has no symbol '\(PP': did you mean \(.*\?"):
        next_tokens(model, SOURCE, "(S (PP")
    with pytest.raises(ConfigError, match=r"no tree of this sentence begins with \)S"):
        continue_prefix(model, SOURCE, ")S")
    with pytest.raises(DataError, match="the prefix has 8 words, but the sentence has 7"):
        next_tokens(model, SOURCE, "(S " + "DT " * 8)
    with pytest.raises(DataError, match="blank"):
        model.subject(" ")
    for analyse in (next_tokens, decoder_lens, token_relevance, continue_prefix):
        with pytest.raises(ConfigError, match="a chart parser scores all spans at once"):
            analyse(chart, SOURCE)  # type: ignore[operator]
    with pytest.raises(ConfigError, match="--word can only be used with a model of tags or masks"):
        model.subject(SOURCE, SubjectSettings(word=1))


def test_a_head_of_a_graph_switched_off_equals_zeros_in_its_projection() -> None:
    model, settings = node_predictor(), SubjectSettings(graph=small_graph())
    for node, head in product("ace", heads_of(model.model)):
        subject = model.subject(node, settings)
        layer = model.model.layers[head.layer - 1]
        kept, width = layer.projection.detach().clone(), layer.projection.size(1) // layer.heads
        with heads_off(model.model, [head]):
            values = subject.values()
        with torch.no_grad():
            layer.projection[:, (head.number - 1) * width : head.number * width] = 0
        try:
            assert_close(values, subject.values())
        finally:
            with torch.no_grad():
                layer.projection.copy_(kept)


def test_the_output_of_a_node_is_the_log_probability_of_its_class() -> None:
    model, graph = node_predictor(), small_graph()
    predictions = model.predict(graph)
    for node, prediction in zip(graph.ids, predictions, strict=True):
        subject = model.subject(node, SubjectSettings(graph=graph))
        assert subject.target == prediction.label
        assert_close(np.exp(subject.values()), [prediction.probabilities[prediction.label]])
    with pytest.raises(DataError, match="no node"):
        model.subject("z", SubjectSettings(graph=graph))


def test_the_entropy_of_a_graph_is_the_mean_over_its_nodes() -> None:
    model, graph = node_predictor(), small_graph()
    subject = model.subject("a", SubjectSettings(graph=graph))
    inspections: list[Any] = [inspect(model, node, graph=graph) for node in graph.ids]
    rows = [each.layers for each in inspections]
    for head, entropy in head_entropies(subject).items():
        weights = [each[head.layer - 1].weights[head.number - 1].astype(float) for each in rows]
        assert_close(entropy, np.mean([-(each * np.log(each)).sum() for each in weights]))
    names = [str(each.head) for each in head_importance(model, ["a"], SubjectSettings(graph=graph))]
    assert names == [f"graph.attention:{layer}:{number}" for layer in (1, 2) for number in (1, 2)]
