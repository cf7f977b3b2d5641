"""Combinations of settings that cannot work are rejected when the settings are read."""

from pathlib import Path

import pytest

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.tasks.translation.config import TranslationRun

INCOMPATIBLE = (
    # dot products require queries and keys of equal width; general and additive scores do not
    "model: {encoder: {attention: {query_width: 16, key_width: 32}}}",
    # the width must be divisible by the number of heads
    "model: {width: 100, encoder: {heads: 8}}",
    # without W_O, the concatenated heads must have d components in total, for the residual connection
    "model: {encoder: {attention: {combine: concatenate, value_width: 5}}}",
    # tied keys and values share one matrix, which cannot have two widths
    "model: {encoder: {attention: {tie_keys_and_values: true, value_width: 40}}}",
    # hard attention is available only over the source, because decisions in the encoder cannot be assigned to a
    # decoder step with a reward
    "model: {encoder: {attention: {kind: hard}}}",
    # with a single position, `adaptive` has no effect
    "model: {decoder: {cross_attention: {kind: hard, adaptive: true, max_positions: 1}}}",
    # a window over the source would require aligned positions in the two languages
    "model: {decoder: {cross_attention: {kind: window}}}",
    # linear attention does not compute weights for pairs of positions, so nothing can be added to their scores or
    # values
    "model: {encoder: {attention: {kind: linear}}, positions: {kind: alibi}}",
    # average and ssru do not compare pairs of positions, so position embeddings must be added to the token
    # embeddings, or omitted
    "model: {decoder: {attention: {kind: ssru}}, positions: {kind: rotary}}",
    # average and ssru are causal, so they cannot be used in an encoder
    "model: {encoder: {attention: {kind: ssru}}}",
    # linear attention does not compute weights, so dropout cannot be applied to them
    "model: {encoder: {attention: {kind: linear}}, dropout: {attention: 0.1}}",
    # relative, rotary and alibi require self-attention
    "model: {encoder: {kind: recurrent}, positions: {kind: rotary}}",
    # rotary position embeddings rotate pairs of components, so the key width must be even
    "model: {encoder: {attention: {key_width: 15}}, positions: {kind: rotary}}",
    # relative position embeddings without either table have no effect
    "model: {positions: {kind: relative, keys: false, values: false}}",
    # a decoder does not know the length of its output in advance
    "model: {positions: {kind: fraction}}",
    # d components can represent only d positions
    "model: {width: 64, positions: {kind: one_hot, join: add, limit: 65}}",
    # the number of active experts cannot exceed the number of experts
    "model: {encoder: {experts: {count: 2, active: 3}}}",
    # the decoder would have no access to the source
    "model: {decoder: {kind: recurrent, bridge: none, attention: null}}",
    # as above
    "model: {decoder: {kind: bytenet, stacked: false}}",
    # as above, but allowed in language models
    "model: {decoder: {cross_attention: null}}",
    # the stack ends below the first residual connection
    "model: {encoder: {kind: recurrent, layers: 2, connections: {kind: residual, first_layer: 3}}}",
    # tied tables require a shared vocabulary
    "{text: {shared: false}, model: {tie_embeddings: true}}",
    # source vectors have no vocabulary that could be shared
    "text: {vectors: {width: 40}, shared: true}",
    # freezing a table that is tied to the projection would also freeze the projection
    "model: {embeddings: {target: vectors.txt, frozen: true}}",
    # leave_one_out requires at least two samples
    "train: {objective: {kind: sequence_reward, samples: 1}}",
    # a schedule that decays until the end of the run requires a limit on the length of the run
    "train: {schedule: {kind: cosine}}",
)
"""Lines of a recipe, each below the reason why it is rejected."""


@pytest.mark.parametrize("line", INCOMPATIBLE)
def test_incompatible_settings_are_rejected(line: str, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(line + "\n", encoding="utf-8")
    corpora = {"data.train.pairs": "train.tsv", "data.valid.pairs": "valid.tsv", "out": "run"}
    with pytest.raises(ConfigError) as caught:
        load_settings(recipe, corpora, TranslationRun)
    assert "unknown setting" not in str(caught.value)
