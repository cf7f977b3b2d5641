"""`NamedModels`: the models of one kind of a server, by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, TypeVar

from dragoman.addons.serving.errors import NotFound, RequestError


class Named(Protocol):
    """A model with a name."""

    @property
    def name(self) -> str:
        """The name in requests."""
        ...


Model = TypeVar("Model", bound=Named)


class NamedModels(Mapping[str, Model]):
    """Models by name. A request names one of them, unless there is only one."""

    noun: ClassVar[str] = "model"
    """What they are, for messages."""

    def __init__(self, models: Sequence[Model] = ()) -> None:
        self._models = {model.name: model for model in models}

    def __getitem__(self, name: str) -> Model:
        return self._models[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def choose(self, name: str | None) -> Model:
        """Return the model with a name, or the only model if it is None. Raises NotFound or RequestError otherwise."""
        listed = ", ".join(self._models)
        if not self._models:
            raise NotFound(f"this server has no {self.noun}", "model")
        if name is None and len(self._models) > 1:
            raise RequestError(
                f"Invalid request: model: this server has several models: name one of {listed}", field="model"
            )
        if name is not None and name not in self._models:
            raise NotFound(f"there is no {self.noun} of this name: this server has {listed}", "model")
        return next(iter(self._models.values())) if name is None else self._models[name]
