"""`ViewState`: the settings of a view of the workbench. `ViewContent`: the figures and facts that the view shows."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from pydantic import Field

from dragoman.addons.workbench.workspace import Workspace
from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.base.settings.config import Config
from dragoman.figures.figure import Figure

FACTS = "facts.json"


@dataclass(frozen=True)
class ViewContent:
    """What a view shows. figures: the figures by name, the main one first. facts: JSON values beside the figures."""

    figures: Mapping[str, Figure]
    facts: Mapping[str, Any]

    def save(self, folder: str | Path) -> list[Path]:
        """Write the figures in all formats, and the facts as `facts.json`; returns the paths of the files.

        The same content has the same bytes each time. Raises ConfigError if the folder exists and is not empty.
        """
        folder = Path(folder)
        check_new_folder(folder)
        with atomic_folder(folder) as temporary:
            for name, figure in self.figures.items():
                figure.save(temporary, name)
            (temporary / FACTS).write_text(json.dumps(self.facts, ensure_ascii=False, indent=1) + "\n", "utf-8")
            names = sorted(path.name for path in temporary.iterdir())
        return [folder / name for name in names]


class ViewState(Config):
    """A view and its settings. Each subclass is one view."""

    title: ClassVar[str]
    """The title of the view."""

    view: str = Field(description="The name of the view.")

    @abstractmethod
    def content(self, workspace: Workspace) -> ViewContent:
        """Compute what the view shows.

        Raises ConfigError for a model, run, layer or head that does not exist, DataError for a text that is blank or
        too long, and the errors of the computations.
        """

    @property
    def fragment(self) -> str:
        """The fragment of an address, without `#`; `view_state.parse_view_state` is the inverse."""
        fields = [("view", self.view)]
        for name, value in self.model_dump(exclude={"view"}).items():
            if value != type(self).model_fields[name].default:
                fields += [(name, _as_text(each)) for each in (value if isinstance(value, tuple) else (value,))]
        return urlencode(fields)


class SentenceState(ViewState):
    """Settings of the views of one sentence."""

    model: str = Field("", description="Name of the model; empty for the first one.")
    source: str = Field("", description="Source sentence, or the text, for a model without a source.")
    target: str = Field("", description="Translation to inspect; empty for the model's own translation.")
    to: str = Field("", description="Target language, for a model with several.")


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):  # a lone surrogate cannot be encoded: the browser replaces it, too
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(value)
