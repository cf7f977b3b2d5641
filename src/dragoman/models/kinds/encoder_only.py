"""A model that predicts labels: an encoder with a head."""

from dataclasses import replace
from math import inf
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.models.families.causal import CausalEncoderConfig
from dragoman.models.families.family import SideContext, prefix_errors, resolve_scheme
from dragoman.models.families.hierarchical import HierarchicalEncoderConfig
from dragoman.models.families.ngrams import NgramEncoderConfig
from dragoman.models.families.transformer import TransformerEncoderConfig
from dragoman.models.families.union import EncoderConfig
from dragoman.models.heads.context import ContextConfig
from dragoman.models.heads.pairs import divide_pairs
from dragoman.models.heads.replaced_tokens import ReplacedTokenHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, TextEncoding, TextHeadConfig
from dragoman.models.heads.union import HeadConfig, SeveralHeads, SeveralHeadsConfig
from dragoman.models.initialisation import initialise_linear_layers
from dragoman.models.interface import LengthLimit, Memory, Trial
from dragoman.models.kinds.electra_generator import GeneratorConfig, SharedEmbedding
from dragoman.models.settings import PresetSettings
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, token_table
from dragoman.nn.factors import FactoredTokens, WordFactorsConfig
from dragoman.nn.normalisation import NormConfig
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import PositionsConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import VocabularySizes


def _transformer(width: int, layers: int, **settings: Any) -> dict[str, Any]:
    stack = {"layers": layers, "heads": max(2, width // 64), "feedforward": 4 * width, "norm": "pre"}
    encoder = {"kind": "transformer", **stack, "activation": "gelu"}
    return {"width": width, "encoder": encoder, "dropout": 0.1, "positions": {"kind": "rotary"}, **settings}


def _bert(width: int, layers: int, heads: int) -> dict[str, Any]:
    norm = {"kind": "layer", "epsilon": 1e-12}
    stack = {"layers": layers, "heads": heads, "feedforward": 4 * width, "norm": "post", "normalisation": norm}
    return {
        "width": width,
        "encoder": {"kind": "transformer", **stack, "activation": "gelu"},
        "dropout": 0.1,
        "positions": {"kind": "learned", "limit": 512},
        "segments": 2,
        "scale_embeddings": False,
        "embedding_norm": norm,
    }


PRESETS: dict[str, dict[str, Any]] = {
    # The sizes of BERT-Tiny, Mini, Small and Medium (Turc et al. 2019), with pre-norm and rotary positions, which
    # are trained more easily on little text.
    "tiny": _transformer(128, 2),
    "mini": _transformer(256, 4),
    "small": _transformer(512, 4),
    "medium": _transformer(512, 8),
    # The sizes and the structure of BERT base and large (Devlin et al. 2019, section 3), for the import of weights and
    # for comparisons.
    "base": _bert(768, 12, 12),
    "large": _bert(1024, 24, 16),
    "rnn": {
        "width": 256,
        "encoder": {"kind": "recurrent", "cell": "lstm", "layers": 1},
        "dropout": 0.3,
    },
    # Sums of the vectors of words, their beginnings, endings and shapes, for taggers.
    "words": {
        "width": 128,
        "encoder": {"kind": "recurrent", "cell": "lstm", "layers": 1},
        "dropout": 0.5,
        "factors": {},
        "scale_embeddings": False,
    },
    "mean": {"width": 256, "encoder": {"kind": "mean"}, "dropout": 0.3},
    "ngrams": {"width": 2, "encoder": {"kind": "ngrams"}, "dropout": 0.0},
}

TextEncoderConfig = Annotated[
    EncoderConfig | CausalEncoderConfig | HierarchicalEncoderConfig | NgramEncoderConfig, Field(discriminator="kind")
]

# The presets that `auto` selects from, each with its maximum number of examples.
AUTO_PRESETS = {"tiny": 200_000, "mini": inf}

_TAGGED_SENTENCES = 20_000
"""Number of sentences up to which `auto` selects an LSTM for taggers (EXPERIMENTS.md, "Sequences of tags")."""


class EncoderOnlyConfig(PresetSettings):
    """An encoder with a head, which predicts labels. `preset` sets default values, which the other keys override."""

    presets: ClassVar = PRESETS
    automatic: ClassVar = AUTO_PRESETS
    size_unit: ClassVar = "examples"
    families: ClassVar = ("encoder",)

    kind: Literal["encoder_only"] = "encoder_only"
    preset: str | None = Field(
        "auto",
        description="Preset that provides values for omitted settings: tiny (2 layers of width 128), mini (4 of 256), "
        "small (4 of 512), medium (8 of 512), base (12 of 768) and large (24 of 1024) with the structure of BERT, rnn "
        "(a bidirectional LSTM), words (one that reads factors of words, for taggers), mean (the mean of the "
        "embeddings, without layers), ngrams (a linear model of n-grams, estimated in seconds), or auto. auto selects "
        "a preset by the number of examples; for classes and numbers, ngrams if it is better on the validation set "
        "than short runs of the others; words, with model.head.context={}, for up to 20,000 tagged sentences.",
    )
    width: int = Field(128, ge=2, description="Model width d: size of embeddings and layer inputs.")
    encoder: TextEncoderConfig = Field(TransformerEncoderConfig(), description="Encoder of the text.")
    positions: PositionsConfig | None = Field(
        None,
        description="Position scheme. If omitted, the preset's scheme is used. null: sinusoidal for a Transformer, "
        "none for other encoders.",
        json_schema_extra={"kind": "sinusoidal"},
    )
    dropout: DropoutConfig = Field(
        DropoutConfig(), description="Dropout rates. A single number sets embedding and residual."
    )
    segments: int = Field(
        0,
        ge=0,
        description="Number of segment vectors, which are added to the embeddings: 2 distinguishes the texts of a pair "
        "(BERT). 0: none.",
    )
    matches: bool = Field(
        False,
        description="Add a vector to each token that occurs in both texts of a pair, or in a question and its context "
        "(exact match; Chen et al. 2017, section 3.2).",
    )
    factors: WordFactorsConfig | None = Field(
        None,
        description="Factors of the words that a tagger reads: it reads one token for each word, the first, and adds "
        "the vectors of the word, its beginnings and endings of 1 to 4 characters, its shape, and the further columns. "
        "null: it reads all tokens of a word, and the further columns as symbols.",
    )
    scale_embeddings: bool = Field(True, description="Multiply token vectors by √d before positions are added.")
    embedding_norm: NormConfig | None = Field(
        None,
        description="Normalisation of the sum of token, position and segment vectors (BERT). null: none.",
        json_schema_extra={"kind": "layer"},
    )
    head: HeadConfig = Field(ClassificationHeadConfig(), description="Head, which the task determines.")
    generator: GeneratorConfig | None = Field(
        None,
        description="Masked language model that draws the replaced tokens which the model learns to detect (ELECTRA). "
        "The task sets it if train.replaced_tokens is positive. null: none.",
    )

    @model_validator(mode="after")
    def _check_matches(self) -> Self:
        if self.matches and getattr(self.head, "encodes_separately", False):
            raise ValueError(
                "model.matches compares two texts that are read as one, but model.head.pair encodes each text for "
                "itself: set model.head.pair=joined, or remove model.matches"
            )
        return self

    @model_validator(mode="after")
    def _check_sentences(self) -> Self:
        if self.encoder.sentence_language is None:
            return self
        heads = self.head.heads or {} if isinstance(self.head, SeveralHeadsConfig) else {"": self.head}
        if others := [each.kind for each in heads.values() if not isinstance(each, TextHeadConfig)]:
            raise ValueError(
                f"model.encoder of kind {self.encoder.kind} represents whole documents, but a head of kind {others[0]} "
                "reads the states of tokens: choose another encoder"
            )
        if any(
            getattr(each, "texts", None) == 2 or getattr(each, "encodes_separately", False) for each in heads.values()
        ):
            raise ValueError(
                f"model.encoder of kind {self.encoder.kind} reads one document, not pairs of texts: choose another "
                "encoder"
            )
        return self

    @model_validator(mode="after")
    def _check_linear(self) -> Self:
        if self.is_linear:
            head = self.head
            if not isinstance(head, TextHeadConfig) or head.encodes_separately or head.hidden:
                raise ValueError(
                    "model.encoder of kind ngrams is a linear model of classes or numbers: remove model.head.hidden "
                    "and model.head.pair, or choose another model.preset, such as rnn"
                )
        return self

    @model_validator(mode="after")
    def _check_factors(self) -> Self:
        if self.factors is not None and not isinstance(self.head, TaggingHeadConfig | SeveralHeadsConfig):
            raise ValueError(
                "model.factors is for taggers, which read words: remove it, or choose another model.preset than words"
            )
        if self.factors is None and getattr(self.head, "context", None) is not None:
            raise ValueError("model.head.context reads factors of words: set model.preset=words, or model.factors={}")
        return self

    @model_validator(mode="after")
    def _check_generator(self) -> Self:
        detects = isinstance(self.head, ReplacedTokenHeadConfig)
        if detects and self.generator is None:
            raise ValueError(
                "a head of kind replaced_token_detection needs a generator: set train.replaced_tokens=50, or "
                "model.generator={}"
            )
        if self.generator is not None and not detects:
            raise ValueError(
                "model.generator is used only by replaced-token detection: set train.replaced_tokens=50 in a run with "
                "task.kind=masked_language_model, or remove model.generator"
            )
        return self

    def resolve(self, size: int) -> Self:
        """See `PresetSettings.resolve`; with few tagged sentences, `auto` selects an LSTM that reads factors of words,
        beside a linear function of those of neighbouring words, unless `encoder` is set.
        """
        is_tagger = isinstance(self.head, TaggingHeadConfig) and "encoder" not in self.model_fields_set
        if self.preset != "auto" or not is_tagger or size > _TAGGED_SENTENCES:
            return super().resolve(size)
        chosen = self.with_preset("words")
        if chosen.factors is None or "context" in chosen.head.model_fields_set:
            return chosen
        return chosen.model_copy(update={"head": chosen.head.model_copy(update={"context": ContextConfig()})})

    @property
    def is_linear(self) -> bool:
        """Whether the model is a linear model of n-grams, which is estimated without updates."""
        return isinstance(self.encoder, NgramEncoderConfig)

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings with the preset and the settings of the head that depend on the data of a stored run."""
        settings = super().with_stored_choices(stored)
        own, resolved = settings.head.model_dump(), stored.head.model_dump()
        chosen = {name: resolved.get(name) if value is None else value for name, value in own.items()}
        width = stored.width if settings.is_linear else settings.width  # which depends on the number of classes
        return settings.model_copy(update={"head": type(settings.head).model_validate(chosen), "width": width})

    def build_for(self, sizes: VocabularySizes) -> "EncoderOnly":
        """Build the model for the source vocabulary, initialised from torch's default generator.

        Raises ConfigError for incompatible settings, and for a source of vectors instead of text.
        """
        if sizes.vectors:
            raise ConfigError("a model with a head reads text: remove text.vectors")
        width, scheme = self.width, resolve_scheme(self.positions, self.encoder, "encoder")
        embedding, table = self._build_embedding(sizes.source, scheme)
        context = SideContext(embedding, width, self.dropout, scheme)
        limit = LengthLimit("source", embedding.positions.limit, "model.positions.limit")
        with prefix_errors("encoder"):
            encoder = self.encoder.build(context)
        head = self.head.build(width, table)
        generator = None
        if self.generator is not None:
            with prefix_errors("generator"):
                settings, own_width = self.generator.scale(self.encoder, width)
                shared = SharedEmbedding(embedding, width, own_width)
                own_encoder = settings.build(replace(context, embedding=cast("Embedding", shared), width=own_width))
            generator = EncoderOnly(own_width, limit, own_encoder, self.generator.head.build(own_width, table))
        model = EncoderOnly(
            width,
            limit,
            encoder,
            head,
            generator=generator,
            sentence_language=self.encoder.sentence_language,
            reads_factors=self.factors is not None,
        )
        initialise_linear_layers(model)
        return model

    def _build_embedding(self, size: int, scheme: PositionScheme) -> tuple[Embedding, nn.Embedding]:
        """Return the embeddings of `size` vocabulary entries, and the token vectors that they contain."""
        segments = None
        if self.segments:
            segments = nn.Embedding(self.segments, self.width)
            nn.init.normal_(segments.weight, std=self.width**-0.5)
        matches = token_table(1, self.width) if self.matches else None
        table = token_table(size, self.width)
        if self.factors is not None:
            table = FactoredTokens(size, self.width, self.factors)
        norm = None if self.embedding_norm is None else self.embedding_norm.build(self.width)
        positions = scheme.build_embedding(self.width)
        dropout, scaled = self.dropout.embedding, self.scale_embeddings
        return Embedding(table, positions, dropout, scaled, segments=segments, norm=norm, matches=matches), table


class EncoderOnly(nn.Module):
    """An encoder with a head. Built by `EncoderOnlyConfig.build_for`.

    generator: the masked language model that draws replaced tokens, whose embeddings are those of the encoder; None
    without one.
    """

    def __init__(
        self,
        width: int,
        limit: LengthLimit,
        encoder: Any,
        head: nn.Module,
        *,
        generator: "EncoderOnly | None" = None,
        sentence_language: str | None = None,
        reads_factors: bool = False,
    ) -> None:
        """width: width of the states d. limit: the maximum text length. encoder: an nn.Module, an `Encoder`.

        sentence_language: as in `EncoderFamily`. reads_factors: whether tokens have factors.
        """
        super().__init__()
        self.sentence_language, self.reads_factors = sentence_language, reads_factors
        self.width, self.limit = width, limit
        self.encoder, self.head, self.generator = encoder, head, generator

    @property
    def limits(self) -> tuple[LengthLimit]:
        """The maximum text length."""
        return (self.limit,)

    def trial(self, length: int) -> Trial:
        """Return the model inputs for a text, or two texts that are encoded separately, of `length` tokens."""
        device = next(self.parameters()).device
        tokens = torch.full((1, length), BOS, dtype=torch.int64, device=device)
        if self.encodes_separately:
            tokens[:, max(0, length // 2 - 1)] = EOS
        return Trial((tokens, torch.ones_like(tokens, dtype=torch.bool)))

    def encode(self, tokens: Tensor, mask: Tensor, packed: bool = False) -> Memory:
        """Return the states of tokens (B, S) int64; mask is (B, S) bool, False at padding.

        Tokens may have factors (B, S, 1 + K), if the model has vectors for them; see `FactoredTokens`.

        packed: whether a row may contain several documents, each of which starts with BOS. Only encoders that pack
        documents (`EncoderFamily.packs_documents`) support this.
        """
        return self.encoder(tokens, mask, packed) if packed else self.encoder(tokens, mask)  # type: ignore[no-any-return]

    def of_task(self, name: str) -> "EncoderOnly":
        """Return the encoder with the head of one task, as a model with the same parameters.

        This model must have several heads. Raises KeyError for an unknown task.
        """
        assert isinstance(self.head, SeveralHeads), "the model has several heads"
        return EncoderOnly(
            self.width,
            self.limit,
            self.encoder,
            self.head[name],
            sentence_language=self.sentence_language,
            reads_factors=self.reads_factors,
        )

    @property
    def encodes_separately(self) -> bool:
        """Whether a row has two texts, each with its own BOS and EOS, which are encoded separately."""
        return isinstance(self.head, TextEncoding) and self.head.encodes_separately

    def vectors(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors (B, d) of texts: the summaries of their states.

        If the head encodes the texts of a pair separately, these are the vectors that it compares. The arguments are
        those of `encode`, with one text per row.
        """
        memory, head = self.encode(tokens, mask), self.head
        return head.vectors(memory) if isinstance(head, TextEncoding) and head.encodes_separately else memory.summary

    def forward(self, tokens: Tensor, mask: Tensor, packed: bool = False) -> Any:
        """Return the outputs of the head, usually a tensor. The arguments are those of `encode`.

        If the texts of a pair are encoded separately, a row contains both, and the second begins with its own BOS.
        """
        if self.encodes_separately:
            tokens, mask = divide_pairs(tokens, mask)
        memory = self.encode(tokens, mask, packed)
        return self.head(memory, tokens) if getattr(self.head, "reads_tokens", False) else self.head(memory)
