"""Kinds of models. One record per kind describes its settings, its abilities and its usage.

To add a kind, define a config whose `build_for` builds the module, and register a record with `register`. Model
folders, model cards, descriptions and error messages are based on the record, and so is `dragoman.load`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.models.interface import Side
from dragoman.models.kinds.aligner import WordAlignerConfig
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.models.kinds.ngram import NgramConfig
from dragoman.models.kinds.node_classifier import NodeClassifierConfig
from dragoman.models.kinds.statistical import StatisticalConfig
from dragoman.models.settings import ModelSettings

ABILITIES: Mapping[str, str] = {
    "translate": "translate",
    "generate": "continue texts",
    "score": "score texts",
    "predict": "predict labels of texts",
    "classify_nodes": "classify the nodes of a graph",
    "align": "align words",
    "inspect": "show its computation",
    "ensemble": "be a member of an ensemble",
    "fuse": "be fused with a search",
    "export": "be exported",
    "teach": "be distilled into a student",
}
"""The abilities of models, each with the phrase that completes "it cannot" in messages.

`inference.abilities` has a protocol for each ability of a loaded object. Models are fused, exported, combined in an
ensemble and distilled without such an object.
"""

Loader = Callable[..., Any]
"""Loads the object of a model folder.

It is called with the path of the folder, and with those of its keyword arguments that are given, such as `device` (the
name of a device) and `engine`. A kind that supports `ensemble` may also be loaded from a list of paths.
"""

Wording = Callable[[Mapping[str, Any], str | None], Mapping[str, Any]]
"""Returns the fields of a record that differ for a model, given its `model` section and the task of its training."""


def _same_wording(section: Mapping[str, Any], task: str | None) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class ModelKind:
    """The properties of one kind of model.

    name: the value of `model.kind` in config.yaml. config: the settings class, which builds the model. title: the name
    in messages, without an article. sides: the texts that it processes: `source` is the input, `target` is predicted.
    activity: a verb in the third person for the model card, such as "translates". abilities: the supported keys of
    `ABILITIES`. use: usage for messages. loader: loads the object that has these abilities: a function, or its name as
    in an entry point, `module:attribute`, so that the module is imported only if a model of this kind is loaded; None
    for a kind whose models are only trained and described. example: usage for the model card, with placeholders
    `{option}` and `{argument}` for the target language; if empty, `use` is shown. tokenizers: whether model folders
    contain tokenizers. has_updates: whether training updates parameters; False for models that are estimated from
    counts. input: what the model processes, for the model card. wording: the title, sides, activity and example of a
    model that differ from those of its kind; see `describe_kind`.
    """

    name: str
    config: type[ModelSettings]
    title: str
    sides: tuple[Side, ...]
    activity: str
    abilities: frozenset[str]
    use: str
    loader: str | Loader | None = None
    example: str = ""
    tokenizers: bool = True
    has_updates: bool = True
    input: str = "text"
    wording: Wording = _same_wording

    @property
    def noun(self) -> str:
        """The title with its article, such as "a translation model"."""
        return f"{'an' if self.title.startswith(('a', 'e', 'i', 'o', 'u', 'n-')) else 'a'} {self.title}"

    @property
    def reads_source(self) -> bool:
        """Whether the model has a source text."""
        return "source" in self.sides

    def languages(self, source: str | None, target: str | None) -> str | None:
        """Return the languages of the sides, such as "en → de", or None if all are unknown."""
        named = {"source": source, "target": target}
        if not any(named[side] for side in self.sides):
            return None
        return " → ".join(named[side] or side for side in self.sides)

    @property
    def predicts_text(self) -> bool:
        """Whether the model predicts texts token by token, so that the probability of a text is defined."""
        return "target" in self.sides

    def refusal(self, ability: str) -> str:
        """Return the predicate of a message that an ability is missing, to be appended to the name of a folder."""
        return f"is {self.noun}; it cannot {ABILITIES[ability]}: use {self.use}"

    def load(self, folder: Path | Sequence[Path], device: str | None = None, **options: object) -> Any:
        """Return the object that the loader makes of a model folder, or of several folders as an ensemble.

        options: keyword arguments of the loader. Raises ConfigError for an option that the loader does not have and for
        a kind without a loader, and the errors of the loader.
        """
        loader = self._loader()
        if loader is None:
            raise ConfigError(f"{folder} is {self.noun}, whose kind names no `loader`: use {self.use}")
        given = options if device is None else {"device": device, **options}
        for name in given.keys() - self.options:
            raise ConfigError(f"{name} does not apply to {folder}, which is {self.noun}: remove it")
        return loader(folder, **given)

    @property
    def options(self) -> frozenset[str]:
        """The names of the keyword arguments of the loader."""
        loader = self._loader()
        return frozenset() if loader is None else frozenset(signature(loader).parameters)

    def _loader(self) -> Loader | None:
        return _resolve(self.loader) if isinstance(self.loader, str) else self.loader


def _resolve(name: str) -> Loader:
    """Return the attribute of a module, given its name as in an entry point."""
    module, _, attribute = name.partition(":")
    found: Loader = attrgetter(attribute)(import_module(module))
    return found


KINDS: dict[str, ModelKind] = {}
"""All registered kinds by name."""


def register(kind: ModelKind) -> ModelKind:
    """Add a kind to the registry and return it. Raises ValueError for an unknown ability and for a name in use."""
    if unknown := kind.abilities - ABILITIES.keys():
        raise ValueError(f"unknown abilities {', '.join(sorted(unknown))}; expected some of {', '.join(ABILITIES)}")
    if KINDS.setdefault(kind.name, kind) != kind:
        raise ValueError(f"another kind of model is registered as {kind.name!r}: choose another name")
    return kind


_HEADS: Mapping[str, Mapping[str, str]] = {
    "classification": {"activity": "classifies"},
    "regression": {"activity": "predicts numbers for"},
    "tagging": {"activity": "tags the words of"},
    "span": {"activity": "answers questions about"},
    "tree_decoder": {"title": "parser", "activity": "parses"},
    "chart": {"title": "chart parser", "activity": "parses"},
    "masked_language_model": {
        "title": "masked language model",
        "activity": "fills masks in",
        "example": "`echo 'The old <mask> sat.' | dragoman predict FOLDER`, or in Python "
        "`dragoman.Predictor.load(FOLDER).predict([…])`. `train.start=FOLDER` trains it to predict labels",
    },
    "replaced_token_detection": {
        "title": "detector of replaced tokens, with a masked language model as its generator",
        "activity": "recognises replaced tokens in",
        "example": "`train.start=FOLDER` trains it to predict labels. `dragoman predict FOLDER` fills masks with the "
        "generator",
    },
    "several": {
        "title": "prediction model for several tasks",
        "example": "`dragoman predict FOLDER --task NAME < texts.txt`, or in Python "
        "`dragoman.Predictor.load(FOLDER, task=NAME).predict([…])`",
    },
    "none": {
        "title": "text encoder",
        "activity": "represents",
        "example": "`dragoman predict FOLDER --vectors < texts.txt`, or in Python "
        "`dragoman.Predictor.load(FOLDER).vectors([…])`. `train.start=FOLDER` trains it to predict labels",
    },
}
"""The wording of prediction models that depends on the kind of the head."""


_TASKS: Mapping[str, Mapping[str, Any]] = {
    "denoising": {
        "title": "denoising encoder–decoder",
        "sides": ("target",),
        "activity": "restores",
        "example": "`train.start=FOLDER` trains it to translate. `dragoman evaluate perplexity FOLDER --text TEXT` "
        "prints the perplexity of restoring corrupted text",
    },
    "summarization": {
        "title": "summarization model",
        "activity": "summarizes",
        "example": "`dragoman translate FOLDER < texts.txt > summaries.txt`, or in Python "
        "`dragoman.Translator.load(FOLDER).translate([…])`",
    },
    "text_to_text": {
        "title": "text-to-text model",
        "activity": "answers",
        "example": "`dragoman translate FOLDER < prompts.txt > outputs.txt`, or in Python "
        "`dragoman.Translator.load(FOLDER).translate([…])`, with prompts as the template of the training data makes "
        "them",
    },
}
"""The wording of encoder–decoders that depends on the task that they were trained for."""


def _wording_of_head(section: Mapping[str, Any], task: str | None) -> Mapping[str, Any]:
    head = section.get("head")
    return _HEADS.get(head.get("kind", ""), {}) if isinstance(head, Mapping) else {}


def _wording_of_task(section: Mapping[str, Any], task: str | None) -> Mapping[str, Any]:
    return _TASKS.get(task or "", {})


TRANSLATION_MODEL = register(
    ModelKind(
        name="encoder_decoder",
        config=ModelConfig,
        title="translation model",
        sides=("source", "target"),
        activity="translates",
        abilities=frozenset({"translate", "score", "align", "inspect", "ensemble", "export", "teach"}),
        use="`dragoman translate`, or `Translator.load` in Python",
        loader="dragoman.inference.translation.translator:Translator.load",
        example="`dragoman translate FOLDER{option} < source.txt > target.txt`, or in Python "
        "`dragoman.Translator.load(FOLDER).translate([…]{argument})`",
        wording=_wording_of_task,
    )
)
LANGUAGE_MODEL = register(
    ModelKind(
        name="decoder_only",
        config=LanguageModelConfig,
        title="language model",
        sides=("target",),
        activity="continues",
        abilities=frozenset({"generate", "score", "inspect", "fuse", "export"}),
        use="`dragoman generate` and `score`, or `LanguageModel.load` in Python",
        loader="dragoman.inference.generation.language_model:LanguageModel.load",
        example="`dragoman generate FOLDER --prompt TEXT`, or in Python `dragoman.LanguageModel.load(FOLDER)"
        ".generate([…])`",
    )
)
NGRAM_MODEL = register(
    ModelKind(
        name="ngram",
        config=NgramConfig,
        title="n-gram language model",
        sides=("target",),
        activity="continues",
        abilities=frozenset({"generate", "score", "inspect", "fuse", "export"}),
        use=LANGUAGE_MODEL.use,
        loader="dragoman.inference.generation.language_model:LanguageModel.load",
        example=LANGUAGE_MODEL.example,
        has_updates=False,
    )
)
STATISTICAL_MODEL = register(
    ModelKind(
        name="statistical",
        config=StatisticalConfig,
        title="statistical translation model",
        sides=("source", "target"),
        activity="translates",
        abilities=frozenset({"translate", "score", "teach"}),
        use="`dragoman translate`, or `Translator.load` in Python",
        loader="dragoman.inference.translation.translator:Translator.load",
        example="`dragoman translate FOLDER < source.txt > target.txt`, or in Python "
        "`dragoman.Translator.load(FOLDER).translate([…])`",
        has_updates=False,
    )
)
PREDICTION_MODEL = register(
    ModelKind(
        name="encoder_only",
        config=EncoderOnlyConfig,
        title="prediction model",
        sides=("source",),
        activity="predicts labels of",
        abilities=frozenset({"predict", "score", "inspect", "export"}),
        use="`dragoman predict`, or `Predictor.load` in Python",
        loader="dragoman.inference.prediction.predictor:Predictor.load",
        example="`dragoman predict FOLDER < texts.txt`, or in Python `dragoman.Predictor.load(FOLDER).predict([…])`",
        wording=_wording_of_head,
    )
)
NODE_CLASSIFIER = register(
    ModelKind(
        name="node_classifier",
        config=NodeClassifierConfig,
        title="node classifier",
        sides=(),
        activity="classifies the nodes of",
        abilities=frozenset({"classify_nodes", "inspect"}),
        use="`dragoman predict --input NODES edges=EDGES`, or `NodePredictor.load` in Python",
        loader="dragoman.inference.prediction.nodes:NodePredictor.load",
        example="`dragoman predict FOLDER --input nodes.tsv edges=edges.tsv`, or in Python "
        "`dragoman.NodePredictor.load(FOLDER).predict(graph)`",
        tokenizers=False,
        input="graphs",
    )
)
WORD_ALIGNER = register(
    ModelKind(
        name="word_aligner",
        config=WordAlignerConfig,
        title="word aligner",
        sides=("source", "target"),
        activity="aligns the words of",
        abilities=frozenset({"align"}),
        use="`dragoman align --model`, or `WordAligner.load` in Python",
        loader="dragoman.statistical.alignment.word_aligner:WordAligner.load",
        example="`dragoman align --model FOLDER --source source.txt --target target.txt`, or in Python "
        "`dragoman.WordAligner.load(FOLDER).align([…], […])`",
        tokenizers=False,
        has_updates=False,
    )
)


def describe_kind(section: Mapping[str, Any], task: str | None = None) -> ModelKind:
    """Return the kind of model described by a `model` section, with the wording for this model.

    task: the kind of the task of the run. Raises ConfigError for an unknown kind.
    """
    kind = kind_of(section)
    return replace(kind, **kind.wording(section, task))


def kind_of(section: Mapping[str, Any]) -> ModelKind:
    """Return the kind of model described by a `model` section.

    A section without a kind, as in recipes, describes a translation model. Raises ConfigError for an unknown kind.
    """
    name = section.get("kind", TRANSLATION_MODEL.name)
    if name not in KINDS:
        raise ConfigError(
            f"model.kind: unknown kind '{name}': expected one of {', '.join(KINDS)}. A newer dragoman may support it"
        )
    return KINDS[name]


def parse_model(section: Mapping[str, Any], origin: str) -> ModelSettings:
    """Parse a `model` section. Raises ConfigError for invalid settings, like `parse_settings`."""
    return parse_settings(section, kind_of(section).config, origin)
