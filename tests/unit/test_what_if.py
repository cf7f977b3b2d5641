"""The state of the view of changed computations: what it computes, for translation and language models."""

import pytest
from tiny_language_model import write_tiny_language_model
from workbench_server import write_workspace

from dragoman.analysis.views.what_if import WhatIfState
from dragoman.analysis.workspace import Workspace
from dragoman.base.errors import ConfigError
from dragoman.inspect.figures.bars import Bars
from dragoman.text.symbols import EOS
from dragoman.translation.translator import Translator

HEAD = "decoder.cross_attention:2:1"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("workspace")
    write_tiny_language_model(folder / "lm")
    return Workspace([*write_workspace(folder), folder / "lm"], "cpu")


def test_nothing_switched_off_changes_nothing(workspace: Workspace) -> None:
    content = WhatIfState(source="a dog runs").content(workspace)
    assert content.facts["change"] == 0.0
    assert content.facts["before"]["text"] == content.facts["after"]["text"]
    assert list(content.figures) == ["next"]


@pytest.mark.parametrize("position", [1, 2, 99])
def test_probabilities_sum_to_one(workspace: Workspace, position: int) -> None:
    content = WhatIfState(source="a dog runs", position=position, count=5).content(workspace)
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


def test_a_language_model_continues_a_forced_token(workspace: Workspace) -> None:
    state = WhatIfState(model="lm", source="a dog runs")
    own = state.content(workspace).facts
    assert own["before"]["text"] == "a dog runs"
    forced = state.model_copy(update={"prefix": f"{own['after']['ids'][0]}.{own['alternatives'][0]}"})
    assert forced.content(workspace).facts["after"]["ids"][:2] == [*map(int, forced.prefix.split("."))]


def test_messages_name_the_setting(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="there is no head decoder.cross_attention:7:1"):
        WhatIfState(source="a dog", off=("decoder.cross_attention:7:1",)).content(workspace)
    with pytest.raises(ConfigError, match="is not a head"):
        WhatIfState(source="a dog", off=("x",)).content(workspace)
    with pytest.raises(ConfigError, match="the prefix contains the id 99999"):
        WhatIfState(source="a dog", prefix="99999").content(workspace)
    with pytest.raises(ValueError, match="token ids separated by dots"):
        WhatIfState(source="a dog", prefix="a.b")
