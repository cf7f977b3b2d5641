"""Kinds of models. One record per kind describes its settings, its abilities and its usage.

To add a kind, define a config whose `build_for` builds the module, and register a record with `register`. Model
folders, model cards, descriptions and error messages are based on the record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.models.architectures.encoder_only import EncoderOnlyConfig
from dragoman.models.architectures.language_model import LanguageModelConfig
from dragoman.models.architectures.lexicon_tables import WordAlignerConfig
from dragoman.models.architectures.ngram import NgramConfig
from dragoman.models.architectures.node_classifier import NodeClassifierConfig
from dragoman.models.architectures.seq2seq import ModelConfig
from dragoman.models.architectures.statistical import StatisticalConfig
from dragoman.models.interface import Side
from dragoman.models.settings import ModelSettings

VERBS: Mapping[str, str] = {
    "translate": "translate",
    "generate": "continue texts",
    "score": "score texts",
    "predict": "predict labels of texts",
    "classify_nodes": "classify the nodes of a graph",
    "align": "align words",
    "inspect": "show its attention",
    "fuse": "be fused with a search",
    "export": "be exported",
    "teach": "be distilled into a student",
}
"""The verbs that models can support, each with the phrase that completes "it cannot" in messages."""


@dataclass(frozen=True)
class ModelKind:
    """The properties of one kind of model.

    name: the value of `model.kind` in config.yaml. config: the settings class, which builds the model. title: the name
    in messages, without an article. sides: the texts that it processes: `source` is the input, `target` is predicted.
    activity: a verb in the third person for the model card, such as "translates". verbs: the supported keys of `VERBS`.
    use: usage for messages. example: usage for the model card, with placeholders `{option}` and `{argument}` for the
    target language; if empty, `use` is shown. tokenizers: whether model folders contain tokenizers. has_updates:
    whether training updates parameters; False for models that are estimated from counts. input: what the model
    processes, for the model card.
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
    has_updates: bool = True
    input: str = "text"

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

    def refusal(self, verb: str) -> str:
        """Return the predicate of a message that the verb is not supported, to be appended to the name of a folder."""
        return f"is {self.noun}; it cannot {VERBS[verb]}: use {self.use}"


KINDS: dict[str, ModelKind] = {}
"""All registered kinds by name."""


def register(kind: ModelKind) -> ModelKind:
    """Add a kind to the registry and return it. Raises ValueError for an unknown verb and for a name in use."""
    if unknown := kind.verbs - VERBS.keys():
        raise ValueError(f"unknown verbs {', '.join(sorted(unknown))}; expected some of {', '.join(VERBS)}")
    if KINDS.setdefault(kind.name, kind) != kind:
        raise ValueError(f"another kind of model is registered as {kind.name!r}: choose another name")
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
        verbs=frozenset({"generate", "score", "inspect", "fuse", "export"}),
        use="`dragoman generate` and `score`, or `LanguageModel.load` in Python",
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
        verbs=frozenset({"generate", "score", "fuse", "export"}),
        use=LANGUAGE_MODEL.use,
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
        verbs=frozenset({"translate", "score", "teach"}),
        use="`dragoman translate`, or `Translator.load` in Python",
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
        verbs=frozenset({"predict", "score", "inspect", "export"}),
        use="`dragoman predict`, or `Predictor.load` in Python",
        example="`dragoman predict FOLDER < texts.txt`, or in Python `dragoman.Predictor.load(FOLDER).predict([…])`",
    )
)
NODE_CLASSIFIER = register(
    ModelKind(
        name="node_classifier",
        config=NodeClassifierConfig,
        title="node classifier",
        sides=(),
        activity="classifies the nodes of",
        verbs=frozenset({"classify_nodes", "inspect"}),
        use="`dragoman predict --input NODES edges=EDGES`, or `NodePredictor.load` in Python",
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
        verbs=frozenset({"align"}),
        use="`dragoman align --model`, or `WordAligner.load` in Python",
        example="`dragoman align --model FOLDER --source source.txt --target target.txt`, or in Python "
        "`dragoman.WordAligner.load(FOLDER).align([…], […])`",
        tokenizers=False,
        has_updates=False,
    )
)


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


def describe_kind(section: Mapping[str, Any], task: str | None = None) -> ModelKind:
    """Return the kind of model described by a `model` section, with the wording for its head or for its task.

    task: the kind of the task of the run. Raises ConfigError for an unknown kind.
    """
    kind, head = kind_of(section), section.get("head")
    if kind.name == TRANSLATION_MODEL.name:
        return replace(kind, **_TASKS.get(task or "", {}))
    if kind.name != PREDICTION_MODEL.name or not isinstance(head, Mapping):
        return kind
    return replace(kind, **_HEADS.get(head.get("kind", ""), {}))  # type: ignore[arg-type]


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
