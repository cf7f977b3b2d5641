"""The state of a view as the fragment of an address."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.addons.workbench.view_state import MAX_CHARACTERS, VIEWS, parse_view_state
from dragoman.addons.workbench.views.view import ViewState
from dragoman.base.errors import ConfigError


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a setting, from its JSON schema."""
    if "anyOf" in schema:  # a setting that may be empty
        return values(schema["anyOf"][0])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("type") == "integer":
        return st.integers(schema.get("minimum", -99), schema.get("maximum", 99))
    if schema.get("type") == "number":
        return st.floats(schema.get("minimum", -99), schema.get("maximum", 99), allow_nan=False)
    if schema.get("type") == "boolean":
        return st.booleans()
    if schema.get("type") == "array":
        return st.lists(values(schema["items"]), max_size=3)
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def states(draw: st.DrawFn) -> ViewState:
    """A state of any view, with some settings."""
    state = draw(st.sampled_from(list(VIEWS.values())))
    properties = {name: each for name, each in state.model_json_schema()["properties"].items() if name != "view"}
    chosen = draw(st.sets(st.sampled_from(sorted(properties))))
    return state.model_validate({name: draw(values(properties[name])) for name in chosen})


@given(states())
def test_a_fragment_restores_its_state(state: ViewState) -> None:
    assert parse_view_state(state.fragment) == state
    assert parse_view_state(f"http://127.0.0.1:1234/#{state.fragment}") == state
    assert parse_view_state(f"#{state.fragment}").fragment == state.fragment


@given(states())
def test_equal_states_have_equal_fragments(state: ViewState) -> None:
    spelt_out = {**state.model_dump(), "view": state.view}
    assert type(state).model_validate(spelt_out).fragment == state.fragment


@given(st.text(max_size=60))
def test_any_text_is_a_state_or_is_refused(text: str) -> None:
    try:
        state = parse_view_state(text)
    except ConfigError:
        return
    assert parse_view_state(state.fragment) == state


def test_fragments_of_a_browser_are_understood() -> None:
    """URLSearchParams writes spaces as +, and leaves other characters than Python does."""
    state = parse_view_state("view=attention&source=2+%2B+2+%3D+4%21+*~&layer=2&drawing=lines")
    assert state.model_dump(exclude_defaults=True) == {"source": "2 + 2 = 4! *~", "layer": 2, "drawing": "lines"}


def test_settings_with_several_values_are_repeated() -> None:
    state = parse_view_state("view=training&runs=a&runs=b%2Fc")
    assert state.model_dump()["runs"] == ("a", "b/c")
    assert state.fragment == "view=training&runs=a&runs=b%2Fc"


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("", "names no view"),
        ("layer=2", "names no view"),
        ("view=atention", "unknown view 'atention': expected view=translate, attention"),
        ("view=attention&laier=2", "unknown setting laier (the address); did you mean layer?"),
        ("view=training&layer=2", "unknown setting layer (the address)"),
        ("view=attention&layer=two", "layer: should be a valid integer"),
        ("view=attention&layer=-1", "layer: should be greater than or equal to 0, not '-1'"),
        ("view=attention&layer=1&layer=2", "layer is given 2 times"),
        ("view=attention&drawing=cloud", "drawing: should be 'map' or 'lines', not 'cloud'"),
        ("view=attention&source=%ff", "invalid address"),
        ("attention", "invalid address"),
        ("view=attention&source=" + "a" * MAX_CHARACTERS, "shorten the text"),
    ],
)
def test_messages_name_the_setting(fragment: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_view_state(fragment)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
