"""The check of an export: the exported settings are read back and compared, so that no setting is overlooked."""

from typing import Any

from dragoman.base.errors import ModelError
from dragoman.base.settings.load import flatten
from dragoman.models.settings import ModelSettings


def check_same_settings(ours: ModelSettings, theirs: ModelSettings, program: str, ignored: tuple[str, ...]) -> None:
    """Raise ModelError with the settings in which an exported model differs after it was read back.

    ours: the settings of the model. theirs: those that were read back. program: the name of the other program's model.
    ignored: keys, or prefixes of keys, that are not compared.
    """
    before, after = (flatten(each.model_dump(mode="json")) for each in (ours, theirs))
    differences = [
        f"model.{key} is {_format_value(before.get(key))}, but {program} uses {_format_value(after.get(key))}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and not key.startswith(ignored)
    ]
    if differences:
        raise ModelError(f"{program} cannot express this model:\n  " + "\n  ".join(differences))


def _format_value(value: Any) -> str:
    return "null" if value is None else str(value).lower()
