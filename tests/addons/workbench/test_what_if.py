"""The state of the view of changed computations: what it computes, for translation and language models."""

import numpy as np
import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import tiny_config, write_tiny_model
from workbench_server import write_workspace

from dragoman.addons.workbench.views.what_if import WhatIfState
from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.figures.bars import Bars
from dragoman.inference.subject import SubjectSettings
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.heads import heads_off
from dragoman.inspection.lens import decoder_lens
from dragoman.inspection.next_tokens import continue_prefix, next_tokens
from dragoman.text.symbols import BOS, EOS, PAD

HEAD = "decoder.cross_attention:2:1"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("workspace")
    write_tiny_language_model(folder / "lm")
    recurrent = tiny_config(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent"})
    write_tiny_model(folder / "recurrent", config=recurrent)
    return Workspace([*write_workspace(folder), folder / "lm", folder / "recurrent"], "cpu")


def test_nothing_switched_off_changes_nothing(workspace: Workspace) -> None:
    content = WhatIfState(source="a dog runs").content(workspace)
    assert content.facts["change"] == 0.0
    assert content.facts["before"]["text"] == content.facts["after"]["text"]
    assert list(content.figures) == ["next", "lens"]


@pytest.mark.parametrize("model", ["one", "lm", "recurrent"])
@pytest.mark.parametrize("position", [1, 2, 99])
@pytest.mark.parametrize("layer", [None, 0, 1])
def test_probabilities_sum_to_one(workspace: Workspace, model: str, position: int, layer: int | None) -> None:
    layer = None if model == "recurrent" else layer
    state = WhatIfState(model=model, source="a dog runs", position=position, layer=layer, count=5)
    content = state.content(workspace)
    bars = content.figures["next"]
    assert isinstance(bars, Bars) and bars.rest is not None
    assert len(bars.values) == 5
    assert sum(bars.values) + bars.rest == pytest.approx(1, abs=1e-6)
    assert content.facts["position"] <= len(content.facts["after"]["tokens"])


def test_the_forced_own_output_has_the_same_score(workspace: Workspace) -> None:
    own = WhatIfState(source="a dog runs").content(workspace).facts["after"]
    assert own["ids"][-1] == EOS
    prefix = ".".join(map(str, own["ids"][:-1]))
    forced = WhatIfState(source="a dog runs", prefix=prefix).content(workspace).facts["after"]
    assert forced["ids"][: len(own["ids"]) - 1] == own["ids"][:-1]
    translator = workspace.model("one").loaded
    assert isinstance(translator, Translator)
    best = translator.translate_nbest(["a dog runs"])[0][0]
    assert own["text"] == best.text
    terms = own["log_probabilities"] if best.finished else own["log_probabilities"][:-1]
    assert sum(terms) == pytest.approx(best.log_probability, abs=1e-5 * len(terms))


def test_heads_off_change_the_original_output_and_are_searched_again(workspace: Workspace) -> None:
    content = WhatIfState(source="a dog runs", off=(HEAD,)).content(workspace)
    effect = content.figures["effect"]
    assert isinstance(effect, Bars)
    assert sum(effect.values) == pytest.approx(content.facts["change"], abs=1e-9)
    assert content.facts["change"] != 0.0
    assert content.facts["off"] == [HEAD]
    given = WhatIfState(source="a dog runs", target="ein Hund", off=(HEAD,)).content(workspace)
    assert given.facts["after"]["text"] == given.facts["before"]["text"] == "ein Hund"


def test_the_search_without_heads_is_that_of_pytorch(workspace: Workspace) -> None:
    """The engine of the workspace may be another, which does not switch heads off."""
    translator = workspace.model("one").translator
    reference = Translator.load(workspace.model("one").folder, "cpu", engine="torch")
    found = []
    for each in (translator, reference):
        with heads_off(each.model, [HEAD]):
            found.append(continue_prefix(each, "two dogs sleep ."))
    without, usual = found[0], continue_prefix(translator, "two dogs sleep .")
    assert without.text == found[1].text
    assert without.log_probability == found[1].log_probability
    assert abs(without.log_probability - usual.log_probability) > 1e-4
    facts = WhatIfState(source="two dogs sleep .", off=(HEAD,)).content(workspace).facts
    assert facts["after"]["text"] == without.text


def test_alternatives_are_those_after_a_layer_of_the_changed_output(workspace: Workspace) -> None:
    loaded = workspace.model("one").loaded
    state = WhatIfState(source="a dog runs", off=(HEAD,), position=2)
    content = state.content(workspace)
    target = tuple(content.facts["after"]["ids"][:-1])
    with heads_off(loaded.model, [HEAD]):
        lens = decoder_lens(loaded, "a dog runs", SubjectSettings(target=target), state.count)
        direct = next_tokens(loaded, "a dog runs", target[:1], count=state.count)
    np.testing.assert_allclose(content.figures["next"].arrays()["values"], direct.probabilities, rtol=1e-5)
    np.testing.assert_array_equal(
        content.figures["lens"].arrays()["probabilities"], lens.predictions().arrays()["probabilities"]
    )
    for layer, prediction in enumerate(lens.layers):
        found = state.model_copy(update={"layer": layer}).content(workspace)
        assert found.facts["alternatives"] == [
            None if each in (PAD, BOS) else each for each in prediction.positions[1].ids
        ]
        np.testing.assert_array_equal(found.figures["next"].arrays()["values"], prediction.positions[1].probabilities)


def test_a_decoder_without_a_lens_has_the_reason(workspace: Workspace) -> None:
    state = WhatIfState(model="recurrent", source="a dog runs")
    content = state.content(workspace)
    assert "lens" not in content.figures
    assert content.facts["without_lens"].startswith("this decoder has no prediction after each layer")
    with pytest.raises(ConfigError, match="or leave out the layer"):
        state.model_copy(update={"layer": 1}).content(workspace)


def test_a_language_model_continues_a_forced_token(workspace: Workspace) -> None:
    state = WhatIfState(model="lm", source="a dog runs")
    own = state.content(workspace).facts
    assert own["before"]["text"] == "a dog runs"
    forced = state.model_copy(update={"prefix": f"{own['after']['ids'][0]}.{own['alternatives'][0]}"})
    assert forced.content(workspace).facts["after"]["ids"][:2] == [*map(int, forced.prefix.split("."))]


def test_messages_name_the_setting(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="there is no head decoder.cross_attention:7:1"):
        WhatIfState(source="a dog", off=("decoder.cross_attention:7:1",)).content(workspace)
    with pytest.raises(ConfigError, match="there is no layer 3: the decoder has layers 1 to 2"):
        WhatIfState(source="a dog", layer=3).content(workspace)
    with pytest.raises(ConfigError, match="is not a head"):
        WhatIfState(source="a dog", off=("x",)).content(workspace)
    with pytest.raises(ConfigError, match="the prefix contains the id 99999"):
        WhatIfState(source="a dog", prefix="99999").content(workspace)
    with pytest.raises(ValueError, match="token ids separated by dots"):
        WhatIfState(source="a dog", prefix="a.b")
