"""`Variants`: a union of config classes to which other packages can add their own."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import Field, GetCoreSchemaHandler, SerializeAsAny, WrapValidator

from dragoman.base.settings.config import ADDED_MEMBERS, Config, is_group, kinds, union_members, union_members_by_field

T = TypeVar("T", bound=type[Config])


class Variants:
    """The registry of a union that is discriminated by `kind`, and its discriminator.

    After `OwnConfig = Annotated[A | B, variants]` and `variants.extend(OwnConfig)`, settings of this type accept the
    built-in classes A and B and all registered classes.
    """

    def __init__(self, noun: str, base: type[Config] = Config, methods: tuple[str, ...] = ("build",)) -> None:
        """noun: the name of a variant in messages, without an article. base: the class that every variant extends.
        methods: the methods of `base` of which every variant overrides at least one."""
        self.noun, self.base, self.methods = noun, base, methods
        self.classes: dict[str, type[Config]] = {}
        self._built_in: frozenset[str] = frozenset()

    def extend(self, union: Any) -> None:
        """Let the registered classes extend `union`, wherever the members of a union are listed."""
        members = frozenset(filter(is_group, union_members(union)))
        self._built_in |= {kind for member in members for kind in kinds(member)}
        ADDED_MEMBERS[members] = self.classes

    def register(self, config: T) -> T:
        """Add a config class to the union, and return it, so that this method can be used as a decorator.

        Registering a class again replaces it if it is defined in the same module under the same name, as when a
        notebook cell is repeated. Raises TypeError for a class without a `kind` or without the methods of a variant,
        and ValueError for a kind that is in use.
        """
        if not (inspect.isclass(config) and issubclass(config, self.base)):
            raise TypeError(f"a {self.noun} is a subclass of {self.base.__name__}, which {config!r} is not")
        tags = kinds(config)
        if len(tags) != 1:
            raise TypeError(f'{config.__name__} has no kind: add a field such as kind: Literal["own"] = "own"')
        missing = all(getattr(config, name, None) is getattr(self.base, name, None) for name in self.methods)
        if missing:
            raise TypeError(f"{config.__name__} has to define {' or '.join(self.methods)}")
        (kind,) = tags
        known = self.classes.get(kind)
        if kind in self._built_in or (known is not None and _definition(known) != _definition(config)):
            raise ValueError(f"another {self.noun} is registered as {kind!r}: choose another kind")
        self.classes[kind] = config
        union_members_by_field.cache_clear()
        return config

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        tagged = Annotated[source, Field(discriminator="kind"), WrapValidator(self._validate), SerializeAsAny()]
        return handler.generate_schema(tagged)

    def _validate(self, value: Any, validate_built_in: Callable[[Any], Any]) -> Any:
        kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
        if isinstance(kind, str) and kind in self.classes:
            return self.classes[kind].model_validate(value)
        return validate_built_in(value)


def _definition(config: type[Config]) -> tuple[str, str]:
    return config.__module__, config.__qualname__
