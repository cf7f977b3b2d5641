"""Reads the state of a view of the workbench from the fragment of an address.

`#view=attention&source=a+dog+runs&layer=2&head=3` names a view and its settings. Settings with their default value are
omitted, so equal states have equal fragments. The browser, the server and `dragoman workbench figures` use the same
form.
"""

from typing import Any, get_origin
from urllib.parse import parse_qsl

from pydantic import ValidationError

from dragoman.addons.workbench.views.alignment import AlignmentState
from dragoman.addons.workbench.views.attention import AttentionState
from dragoman.addons.workbench.views.compare import CompareState
from dragoman.addons.workbench.views.positions import PositionsState
from dragoman.addons.workbench.views.training import TrainingState
from dragoman.addons.workbench.views.translate import TranslateState
from dragoman.addons.workbench.views.tree import TreeState
from dragoman.addons.workbench.views.view import ViewState
from dragoman.addons.workbench.views.what_if import WhatIfState
from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import describe_unknown, describe_value, invalid_settings

VIEWS: dict[str, type[ViewState]] = {
    state.model_fields["view"].default: state
    for state in (
        TranslateState,
        AttentionState,
        WhatIfState,
        TreeState,
        AlignmentState,
        CompareState,
        TrainingState,
        PositionsState,
    )
}
"""The state class of each view, in the order of the navigation."""

MAX_CHARACTERS = 100_000
"""Maximum length of a fragment. The longest sentence that can be inspected is far shorter."""

_WHERE = "the address"


def parse_view_state(address: str) -> ViewState:
    """Return the state in the fragment of an address; also accepts the fragment alone, with or without `#`.

    Raises ConfigError for an unknown view, an unknown or repeated setting, and an invalid value.
    """
    _, separator, after = address.partition("#")
    fragment = after if separator else address
    if len(fragment) > MAX_CHARACTERS:
        raise ConfigError(
            f"the address has {len(fragment)} characters: the limit is {MAX_CHARACTERS}; shorten the text"
        )
    try:
        pairs = parse_qsl(fragment, keep_blank_values=True, strict_parsing=bool(fragment), errors="strict")
    except ValueError:  # also UnicodeDecodeError
        raise ConfigError(
            f"invalid address: expected #view=NAME&SETTING=VALUE after it, not {fragment[:80]!r}"
        ) from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    (view, *others) = values.get("view", [""])
    if view not in VIEWS or others:
        named = f"unknown view {view!r}" if view else "the address names no view"
        raise ConfigError(f"{named}: expected view={', '.join(VIEWS)}")
    return _validate(VIEWS[view], values)


def _validate(state: type[ViewState], values: dict[str, list[str]]) -> ViewState:
    given: dict[str, Any] = {}
    for name, texts in values.items():
        field = state.model_fields.get(name)
        if field is not None and get_origin(field.annotation) is tuple:
            given[name] = texts
        elif len(texts) > 1:
            raise ConfigError(f"{name} is given {len(texts)} times ({_WHERE}): remove all but one")
        else:
            given[name] = texts[0]
    names = list(state.model_fields)
    try:
        return state.model_validate_strings(given)
    except ValidationError as error:
        lines = [
            describe_unknown(detail["loc"], detail["input"], _WHERE, names, names)
            if detail["type"] == "extra_forbidden"
            else describe_value(str(detail["loc"][0]), detail, _WHERE)
            for detail in error.errors()
        ]
        raise invalid_settings(list(dict.fromkeys(lines))) from None
