"""The head that generates linearised trees with a decoder (Vinyals et al. 2015, "Grammar as a Foreign Language")."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.models.families.family import (
    DecoderContext,
    ProjectedOutput,
    check_decodable,
    prefix_errors,
    resolve_scheme,
)
from dragoman.models.families.transformer import TransformerDecoder, TransformerDecoderConfig
from dragoman.models.heads.trees import TreeHead
from dragoman.models.interface import Memory, State
from dragoman.nn.dropout import DropoutConfig
from dragoman.nn.embedding import Embedding, Projection, token_table
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.union import PositionsConfig
from dragoman.text.trees.symbols import TreeSymbols


class TreeDecoderHeadConfig(TreeHead):
    """A decoder that generates the tree as a sequence of brackets and tags: parsing as translation.

    The words of the sentence are not generated, and each of the other symbols is one vocabulary entry, as in
    `(S (NP DT NN )NP . )S`. YAML: `head: {kind: tree_decoder}`.
    """

    kind: Literal["tree_decoder"] = "tree_decoder"
    decoder: TransformerDecoderConfig = Field(
        TransformerDecoderConfig(layers=2, heads=4, feedforward=512, norm="pre"),
        description="Decoder of the tree. Its width is that of the encoder.",
    )
    aligned: bool = Field(
        True,
        description="Add the state of the encoder for the next word to the embedding of each symbol, so that the "
        "decoder does not have to learn which word is next. false: only attention connects the decoder to the words "
        "(Vinyals et al. 2015).",
    )
    positions: PositionsConfig | None = Field(
        RotaryConfig(),
        description="Position scheme of the decoder, without a limit of positions. null: sinusoidal.",
    )
    dropout: DropoutConfig = Field(
        DropoutConfig(), description="Dropout rates of the decoder; a single number sets embedding and residual."
    )
    tagged: bool = Field(
        True,
        description="Generate the tags of the words. false: all words have the same symbol XX (Vinyals et al. 2015, "
        "section 2.2); in the predicted trees, punctuation has its most frequent tag.",
    )
    constrained: bool = Field(
        True,
        description="Generate only trees with exactly the words of the sentence. false: other outputs are repaired, "
        "and the repairs are counted.",
    )
    openings: int = Field(
        10,
        ge=1,
        description="Maximum number of constituents that begin at the same word, if the output is constrained.",
    )
    beam: int = Field(4, ge=1, le=100, description="Beam size of the search for a tree. 1: greedy search.")

    @field_validator("dropout", mode="before")
    @classmethod
    def _spread_one_rate(cls, value: Any) -> Any:
        return {"embedding": value, "residual": value} if isinstance(value, int | float) else value

    @property
    def symbols(self) -> TreeSymbols:
        """The vocabulary of the decoder."""
        return TreeSymbols(self.known_labels, self.known_tags if self.tagged else None)

    def build(self, width: int, table: nn.Embedding) -> "TreeDecoderHead":
        """Build the decoder for states of this width.

        table: the token vectors (V, d), which this head does not use. Raises ConfigError for incompatible settings.
        """
        with prefix_errors("head"):
            self.decoder.check_source()
            scheme = resolve_scheme(self.positions, self.decoder, "decoder")
            check_decodable(scheme, "model.head.positions")
            tokens = token_table(self.symbols.size, width)
            positions = scheme.build_embedding(width)
            if positions.limit is not None:
                raise ConfigError(
                    f"positions of kind {scheme.kind} with {positions.limit} positions would cut trees: choose a kind "  # type: ignore[attr-defined]
                    "without a limit for model.head.positions, such as rotary"
                )
            embedding = Embedding(tokens, positions, self.dropout.embedding)
            context = DecoderContext(embedding, width, self.dropout, scheme, Projection(tokens.weight))
            return TreeDecoderHead(self.decoder.build(context), width, self)


class TreeDecoderHead(nn.Module):
    """A Transformer decoder of trees."""

    def __init__(self, decoder: TransformerDecoder, width: int, config: TreeDecoderHeadConfig) -> None:
        super().__init__()
        self.decoder, self.config, self.symbols = decoder, config, config.symbols
        self.align = nn.Linear(width, width) if config.aligned else None

    def forward(self, memory: Memory) -> "TreeDecoderOutput":
        """Return an output from which trees are scored or generated on demand."""
        return TreeDecoderOutput(memory, self)

    def step(self, tokens: Tensor, state: State, following: Tensor) -> tuple[ProjectedOutput, State]:
        """Process symbols (R, T) int64. See `Decoder.step`.

        following: (R, T, d), the state of the encoder for the word that follows each symbol.
        """
        decoder = self.decoder
        step = decoder.read(tokens, state)
        embedded = step.embedded if self.align is None else step.embedded + self.align(following)
        states, attention, after = decoder.run_layers(embedded, state, step)
        return ProjectedOutput(decoder.norm(states, step.mask), decoder.projection, attention), after


@dataclass(frozen=True)
class TreeDecoderOutput:
    """The encoded sentences, whose trees the decoder scores or generates."""

    memory: Memory
    head: TreeDecoderHead

    def logits(self, inputs: Tensor, positions: Tensor) -> Tensor:
        """Return the logits (B, T, V) of the symbol after each input symbol (B, T) int64 (teacher forcing).

        positions: (B, T) int64, the first token of the word that follows each input symbol, or EOS after the last word.
        """
        rows = torch.arange(len(positions), device=positions.device).unsqueeze(1)
        state = self.head.decoder.start(self.memory)
        return self.head.step(inputs, state, self.memory.states[rows, positions])[0].logits()

    def aligned(self, positions: Tensor) -> "AlignedDecoder":
        """Return a decoder for the search. positions: (B, W + 1) int64, the first token of each word, and EOS."""
        rows = torch.arange(len(positions), device=positions.device).unsqueeze(1)
        return AlignedDecoder(self.head, self.memory.states[rows, positions])


@dataclass(frozen=True)
class AlignedDecoder:
    """A decoder of trees that keeps track of the next word. Implements `Decoder` for one batch of sentences.

    words: (B, W + 1, d), the states of the first tokens of the words, and of EOS.
    """

    head: TreeDecoderHead
    words: Tensor

    def start(
        self,
        memory: Memory | None,
        attention: bool = False,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> State:
        """Return the state before the first symbol. See `Decoder.start`."""
        inner = self.head.decoder.start(memory, attention, left_padding, capacity)
        number = torch.zeros(len(self.words), dtype=torch.int64, device=self.words.device)
        return State(self.words, (inner, number), max_length=inner.max_length, capacity=capacity)

    def step(self, tokens: Tensor, state: State) -> tuple[ProjectedOutput, State]:
        """Process symbols (R, T) int64. See `Decoder.step`."""
        inner, number = state.cache
        words: Tensor = state.memory
        symbols = self.head.symbols
        is_word = (tokens >= symbols.first_word) & (tokens < symbols.first_opening)
        following = number.unsqueeze(1) + is_word.cumsum(1)  # (R, T)
        sentences = torch.arange(len(tokens), device=tokens.device).unsqueeze(1) // state.beam_size
        vectors = words[sentences, following.clamp_max(words.size(1) - 1)]
        output, after = self.head.step(tokens, inner.with_capacity(state.capacity), vectors)
        return output, state.after(tokens.size(1), (after, following[:, -1]))


def teacher_inputs(symbols: Tensor, start: int, padding: int) -> Tensor:
    """Return the inputs (B, T) of the decoder for symbols (B, T) with their end: shifted by one, after `start`.

    Negative symbols are padding.
    """
    shifted = torch.roll(symbols, 1, 1)
    shifted[:, 0] = start
    return shifted.masked_fill(shifted < 0, padding)
