"""An encoder-decoder model with tied or separate embeddings."""

from math import inf
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.packing import Packing
from dragoman.models.families.family import (
    DecoderContext,
    ProjectedOutput,
    SideContext,
    check_decodable,
    prefix_errors,
    resolve_scheme,
)
from dragoman.models.families.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from dragoman.models.families.union import DecoderConfig, EncoderConfig
from dragoman.models.initial_embeddings import InitialEmbeddings
from dragoman.models.initialisation import initialise_linear_layers
from dragoman.models.interface import LengthLimit, LengthLimits, Memory, Trial
from dragoman.models.settings import ExcludedTokens, PresetSettings
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection, StartSymbol, VectorProjection, token_table
from dragoman.nn.normalisation import NormConfig
from dragoman.nn.positions.union import PositionsConfig
from dragoman.text.symbols import BOS
from dragoman.text.tokenizers import Tokenizers, VocabularySizes


def _layers(layers: int, heads: int, feedforward: int, norm: str = "post") -> dict[str, Any]:
    stack = {"kind": "transformer", "layers": layers, "heads": heads, "feedforward": feedforward, "norm": norm}
    return {"encoder": dict(stack), "decoder": dict(stack)}


def _deep_and_shallow(encoder: int, decoder: int, heads: int, feedforward: int) -> dict[str, Any]:
    stacks = _layers(encoder, heads, feedforward, "pre")
    return {"encoder": stacks["encoder"], "decoder": {**stacks["decoder"], "layers": decoder}}


PRESETS: dict[str, dict[str, Any]] = {
    # The layers of Transformer-Tiny (Wu et al. 2021, "Good for Misconceived Reasons"). The other values were chosen in
    # experiments (docs/EXPERIMENTS.md). In the same training time, 1.5 times the original width gives higher quality.
    # Quality is much lower with post-norm, and somewhat lower with sinusoidal positions.
    "tiny": {"width": 192, **_layers(4, 4, 256, "pre"), "positions": {"kind": "rotary"}, "dropout": 0.3},
    "small": {"width": 256, **_layers(3, 4, 1024, "pre"), "positions": {"kind": "rotary"}, "dropout": 0.1},
    # Fast students for distillation. They have a deep encoder, which runs once per text, and a single decoder layer,
    # which runs once per token (Kim et al. 2019; Kasai et al. 2021, "Deep Encoder, Shallow Decoder").
    "tiny-fast": {"width": 128, **_deep_and_shallow(6, 1, 4, 512), "positions": {"kind": "rotary"}, "dropout": 0.1},
    "small-fast": {"width": 256, **_deep_and_shallow(6, 1, 4, 1024), "positions": {"kind": "rotary"}, "dropout": 0.1},
    # Vaswani et al. 2017, table 3
    "base": {"width": 512, **_layers(6, 8, 2048), "dropout": 0.1},
    "big": {"width": 1024, **_layers(6, 16, 4096), "dropout": 0.3},
    "rnn": {"width": 256, "encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}, "dropout": 0.2},
}

# The presets that `auto` selects from, each with its maximum corpus size in pairs. On smaller corpora, a preset
# generalises better than the next larger one. On 29,000 pairs, tiny is 2.7 BLEU better than base (Wu et al. 2021).
AUTO_PRESETS = {"tiny": 100_000, "small": 1_000_000, "base": inf}


class ModelConfig(PresetSettings):
    """A translation model. `preset` sets default values, which the other keys override."""

    presets: ClassVar = PRESETS
    automatic: ClassVar = AUTO_PRESETS
    size_unit: ClassVar = "pairs"
    families: ClassVar = ("encoder", "decoder")

    kind: Literal["encoder_decoder"] = "encoder_decoder"
    preset: str | None = Field(
        "auto",
        description="Preset that provides values for omitted settings: tiny, small, base, big, rnn, tiny-fast or "
        "small-fast (for distillation), or auto, which selects a preset by corpus size.",
    )
    width: int = Field(256, ge=2, description="Model width d: size of embeddings and layer inputs (paper: 512).")
    encoder: EncoderConfig = Field(TransformerEncoderConfig(), description="Encoder of the source.")
    decoder: DecoderConfig = Field(TransformerDecoderConfig(), description="Decoder of the target.")
    positions: PositionsConfig | None = Field(
        None,
        description="Position scheme of both sides. If omitted, the preset's scheme is used. null: sinusoidal for a "
        "Transformer, none for other families.",
        json_schema_extra={"kind": "sinusoidal"},
    )
    target_positions: PositionsConfig | None = Field(
        None,
        description="Position scheme of the target side; null: same as `positions`.",
        json_schema_extra={"kind": "sinusoidal"},
    )
    dropout: DropoutConfig = Field(
        DropoutConfig(), description="Dropout rates; a single number sets embedding and residual."
    )
    tie_embeddings: bool = Field(
        True, description="Share one embedding table between source and target. Requires a shared vocabulary."
    )
    tie_projection: bool = Field(True, description="Use the target embedding table as the output projection.")
    projection_bias: bool = Field(False, description="Add a learned bias to the logit of each vocabulary entry.")
    scale_embeddings: bool = Field(True, description="Multiply token vectors by √d before positions are added (paper).")
    embedding_norm: NormConfig | None = Field(
        None,
        description="Normalise the input of the first layer of each side, as in BART. null: not normalised.",
        json_schema_extra={"kind": "layer"},
    )
    start_symbol: StartSymbol = Field(
        "bos",
        description="Symbol before the first token of a translation. bos: <s>, which has its own vector. eos: the "
        "vector of the end symbol, as in fairseq.",
    )
    excluded_tokens: ExcludedTokens = Field(
        (),
        description="Ids of special symbols that are never predicted, such as 0 (padding): their probability is 0.",
    )
    embeddings: InitialEmbeddings = Field(
        InitialEmbeddings(), description="Pretrained word vectors to initialise the embedding tables."
    )

    @property
    def packs(self) -> bool:
        """Whether the model can compute packed states; see `Packing`."""
        return self.encoder.packs and self.decoder.packs

    def build(self, source_size: int, target_size: int, vectors: bool = False) -> "Seq2Seq":
        """Build the model, initialised from torch's default generator.

        vectors: whether the source consists of vectors of length `source_size` instead of text. Raises ConfigError if
        embeddings are tied but the vocabularies differ in size.
        """
        if self.tie_embeddings and not vectors and source_size != target_size:
            raise ConfigError(
                f"model.tie_embeddings requires a shared vocabulary, but the source vocabulary has {source_size} "
                f"entries and the target vocabulary {target_size}: set text.shared=true or model.tie_embeddings=false"
            )
        return Seq2Seq(self, source_size, target_size, vectors)

    def build_for(self, sizes: VocabularySizes) -> "Seq2Seq":
        """Build the model for these vocabulary sizes; see `build`."""
        return self.build(*sizes)

    def check_word_vectors(self) -> None:
        """Check the first lines of the files of word vectors, before the corpora are prepared.

        Raises DataError for an invalid file, ConfigError for vectors of another width than `width`, if that is set.
        """
        has_width = self.preset != "auto" or "width" in self.model_fields_set
        self.embeddings.check(self.width if has_width else None)

    def fill_word_vectors(self, model: "Seq2Seq", tokenizers: Tokenizers) -> dict[str, float]:
        """Copy the word vectors into a model; returns the fraction of entries with a vector for each side with a file.

        Raises the errors of `check_word_vectors`, and DataError if no entry of a vocabulary has a vector.
        """
        self.embeddings.check(self.width)
        return self.embeddings.fill(model.encoder.embedding.tokens, model.decoder.embedding.tokens, tokenizers)


class Seq2Seq(nn.Module):
    """An encoder-decoder model. Built by `ModelConfig.build`.

    vectors: the width of the source vectors, or None if the source consists of tokens.
    """

    def __init__(self, config: ModelConfig, source_size: int, target_size: int, vectors: bool = False) -> None:
        super().__init__()
        width, rate = config.width, config.dropout.embedding
        self.vectors = source_size if vectors else None
        if vectors and config.tie_embeddings:
            raise ConfigError("a vector source has no embedding table to tie: set model.tie_embeddings=false")
        source = VectorProjection(source_size, width) if vectors else token_table(source_size, width)
        target = source if config.tie_embeddings else token_table(target_size, width)
        weight = target.weight if config.tie_projection else token_table(target_size, width).weight
        projection = Projection(weight, config.projection_bias, config.excluded_tokens)
        source_scheme = resolve_scheme(config.positions, config.encoder, "encoder")
        target_scheme = resolve_scheme(config.target_positions or config.positions, config.decoder, "decoder")
        check_decodable(target_scheme, "target_positions")
        if vectors and config.embeddings.source is not None:
            raise ConfigError("a vector source has no embedding table to load: remove model.embeddings.source")
        config.embeddings.freeze(source, target, projection)
        norms = [None if config.embedding_norm is None else config.embedding_norm.build(width) for _ in range(2)]
        source_embedding = Embedding(
            source, source_scheme.build_embedding(width), rate, config.scale_embeddings, norm=norms[0]
        )
        target_embedding = Embedding(
            target,
            target_scheme.build_embedding(width),
            rate,
            config.scale_embeddings,
            norm=norms[1],
            start_symbol=config.start_symbol,
        )
        target_setting = "positions" if config.target_positions is None else "target_positions"
        self.limits = LengthLimits(
            LengthLimit("source", source_embedding.positions.limit, "model.positions.limit"),
            LengthLimit("target", target_embedding.positions.limit, f"model.{target_setting}.limit"),
        )
        with prefix_errors("encoder"):
            self.encoder = config.encoder.build(SideContext(source_embedding, width, config.dropout, source_scheme))
        with prefix_errors("decoder"):
            config.decoder.check_source()
            self.decoder = config.decoder.build(
                DecoderContext(target_embedding, width, config.dropout, target_scheme, projection)
            )
        initialise_linear_layers(self)

    def trial(self, length: int) -> Trial:
        """Return the model inputs for a sentence pair with `length` tokens (or source vectors) per side."""
        device = self.decoder.projection.weight.device
        tokens = torch.full((1, length), BOS, dtype=torch.int64, device=device)
        source = tokens if self.vectors is None else torch.zeros(1, length, self.vectors, device=device)
        return Trial((source, torch.ones_like(tokens, dtype=torch.bool)), tokens)

    def encode_source(self, source: tuple[Tensor, ...]) -> Memory:
        """Encode the source inputs; see `encode`."""
        return self.encode(*source)

    def encode(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Return the memory of tokens (B, S) int64 or vectors (B, S, n) float32; mask is (B, S) bool."""
        return self.encoder(tokens, mask)  # type: ignore[no-any-return]

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor,
        inputs: Tensor,
        source_packing: Packing | None = None,
        packing: Packing | None = None,
    ) -> ProjectedOutput:
        """Predict the token that follows each target input token (teacher forcing).

        source, source_mask: as in `encode`. inputs: (B, T) int64. source_packing, packing: pack the states of source
        and target, if `ModelConfig.packs`; None: they are padded.
        """
        if source_packing is None or packing is None:
            output, _ = self.decoder.step(inputs, self.decoder.start(self.encode(source, source_mask)))
        else:
            memory = self.encoder(source, source_mask, packing=source_packing)
            output, _ = self.decoder.step(inputs, self.decoder.start(memory), packing=packing)  # type: ignore[call-arg]
        return output
