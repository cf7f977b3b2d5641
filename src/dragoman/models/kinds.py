"""Kinds of models. One record per kind describes what a model is, what it can do, and how to use it.

To add a kind, write a config whose `build_for` builds the module, and register a record here. Everything else (model
folders, cards, descriptions, error messages) reads the record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.models.interface import Side
from dragoman.models.language_model import LanguageModelConfig
from dragoman.models.seq2seq import ModelConfig
from dragoman.models.settings import ModelSettings

VERBS: Mapping[str, str] = {
    "translate": "translate",
    "generate": "continue texts",
    "score": "score texts",
    "predict": "predict labels",
    "align": "align words",
    "inspect": "show its attention",
    "fuse": "be fused with a search",
    "export": "be exported",
    "teach": "be distilled into a student",
}
"""The verbs that models can serve, each as it reads after "it cannot"."""


@dataclass(frozen=True)
class ModelKind:
    """The properties of one kind of model.

    name: the value of `model.kind` in config.yaml. config: the class of its settings, which builds it. title: its name
    in messages, without an article. sides: the texts it processes: `source` is read, `target` is predicted. activity: a
    verb in the third person for the model card, such as "translates". verbs: the keys of `VERBS` that it serves. use:
    how to use it, for messages. example: the same for the model card, with `{option}` and `{argument}` where a target
    language is chosen; if empty, `use` is shown. tokenizers: whether its folder contains any.
    """

    name: str
    config: type[ModelSettings]
    title: str
    sides: tuple[Side, ...]
    activity: str
    verbs: frozenset[str]
    use: str
    example: str = ""
    tokenizers: bool = True

    @property
    def noun(self) -> str:
        """The title with its article, such as "a translation model"."""
        return f"{'an' if self.title[:1] in 'aeiou' else 'a'} {self.title}"

    @property
    def reads_source(self) -> bool:
        """Whether it reads a source text."""
        return "source" in self.sides

    def languages(self, source: str | None, target: str | None) -> str | None:
        """The languages of its sides, such as "en → de"; None if all are unknown."""
        named = {"source": source, "target": target}
        if not any(named[side] for side in self.sides):
            return None
        return " → ".join(named[side] or side for side in self.sides)

    def refusal(self, verb: str) -> str:
        """Return a message that completes a folder's name: why the verb is unavailable, and what to use instead."""
        return f"is {self.noun}; it cannot {VERBS[verb]}: use {self.use}"


KINDS: dict[str, ModelKind] = {}
"""All registered kinds by name."""


def register(kind: ModelKind) -> ModelKind:
    """Add a kind to the registry and return it. Raises ValueError for an unknown verb and for a name in use."""
    if unknown := kind.verbs - VERBS.keys():
        raise ValueError(f"unknown verbs: {', '.join(sorted(unknown))}; choose among {', '.join(VERBS)}")
    if KINDS.setdefault(kind.name, kind) != kind:
        raise ValueError(f"there is another kind of model called {kind.name!r}: choose another name")
    return kind


TRANSLATION_MODEL = register(
    ModelKind(
        name="encoder_decoder",
        config=ModelConfig,
        title="translation model",
        sides=("source", "target"),
        activity="translates",
        verbs=frozenset({"translate", "score", "align", "inspect", "export", "teach"}),
        use="`dragoman translate`, or `Translator.load` in Python",
        example="`dragoman translate FOLDER{option} < source.txt > target.txt`, or in Python "
        "`dragoman.Translator.load(FOLDER).translate([…]{argument})`",
    )
)
LANGUAGE_MODEL = register(
    ModelKind(
        name="decoder_only",
        config=LanguageModelConfig,
        title="language model",
        sides=("target",),
        activity="continues",
        verbs=frozenset({"generate", "score", "inspect", "fuse"}),
        use="`dragoman generate` and `score`, or `LanguageModel.load` in Python",
        example="`dragoman generate FOLDER --prompt TEXT`, or in Python `dragoman.LanguageModel.load(FOLDER)"
        ".generate([…])`",
    )
)


def kind_of(section: Mapping[str, Any]) -> ModelKind:
    """Return the kind of model that a section `model` describes; old translation models do not name their kind.

    Raises ConfigError for an unknown kind.
    """
    name = section.get("kind", TRANSLATION_MODEL.name)
    if name not in KINDS:
        raise ConfigError(
            f"model.kind: unknown kind '{name}': expected one of {', '.join(KINDS)}. A newer dragoman may support it"
        )
    return KINDS[name]


def parse_model(section: Mapping[str, Any], origin: str) -> ModelSettings:
    """Parse a section `model`. Raises ConfigError as `parse_settings` does."""
    return parse_settings(section, kind_of(section).config, origin)
