"""The head of a tagger, with one prediction per word: of each word for itself, or of whole sequences (CRF)."""

from dataclasses import dataclass
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.metrics.labels.spans import OUTSIDE, may_follow
from dragoman.models.heads.context import ContextConfig, ContextScores
from dragoman.models.heads.labelled import LabelledHead
from dragoman.models.interface import Memory
from dragoman.nn.dropout import Dropout
from dragoman.nn.linear_chain import ChainScores, LinearChain
from dragoman.nn.precision import to_at_least_float32


class TaggingHeadConfig(LabelledHead):
    """One of C classes for each word, from the state of its first token. YAML: `head: {kind: tagging}`."""

    kind: Literal["tagging"] = "tagging"
    features: int | None = Field(
        None,
        ge=0,
        description="Number of further columns that the model reads, such as parts of speech: each value is a symbol "
        "before the tokens of its word. null: the number of columns in `features` of the training data.",
    )
    scheme: Literal["IOB1", "IOB2", "IOBES", "BILOU", "words"] | None = Field(
        None,
        description="Scheme in which the tags mark spans, for the metrics. words: the tags mark no spans. null: "
        "recognised from the tags of the training data; tags that fit no scheme are an error.",
    )
    transitions: Literal["none", "learned", "valid"] | None = Field(
        None,
        description="Scores of successive tags (a linear-chain CRF; Lample et al. 2016). none: the tag of each word is "
        "predicted for itself. learned: each pair of successive tags has a learned score, and the best sequence of "
        "tags is predicted. valid: as learned, and sequences that the scheme does not allow, such as O I-X in IOB2, "
        "are never predicted. null: learned for tags that mark spans, unless train.objective is set; otherwise none.",
    )

    context: ContextConfig | None = Field(
        None,
        description="Add to the scores of tags a linear function of the factors of the word and its neighbours, the "
        "features of a classical CRF. Needs `model.factors`. null: no such scores, unless preset=auto selects the "
        "preset words.",
    )

    @model_validator(mode="after")
    def _check_scheme(self) -> Self:
        if self.transitions == "valid" and self.scheme == "words":
            raise ValueError("transitions=valid needs tags that mark spans: use transitions=learned")
        return self

    @property
    def has_transitions(self) -> bool:
        """Whether sequences of tags are predicted. A head whose setting still depends on the data predicts each tag."""
        return self.transitions not in (None, "none")

    def build(self, width: int, table: nn.Embedding) -> "TokenHead | ChainHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        context = None
        if self.context is not None:
            context = ContextScores(self.classes, self.features or 0, self.context)
        head = TokenHead(width, self.classes, self.dropout, context)
        return ChainHead(head, self._allowed()) if self.has_transitions else head

    def _allowed(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Return which tags may follow each other, begin and end a sentence; None if all may. See `LinearChain`."""
        scheme, labels = self.scheme, self.labels
        if self.transitions != "valid" or scheme is None or scheme == "words" or labels is None:
            return None
        following = [[may_follow(tag, previous, scheme) for tag in labels] for previous in labels]
        starts = [may_follow(tag, OUTSIDE, scheme) for tag in labels]
        ends = [may_follow(OUTSIDE, tag, scheme) for tag in labels]
        return torch.tensor(following), torch.tensor(starts), torch.tensor(ends)


class TokenHead(nn.Module):
    """Maps the state of each token to `outputs` numbers, to which those of a `ContextScores` are added."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, outputs: int, dropout: float, context: ContextScores | None = None) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(width, outputs)
        self.context = context

    @property
    def reads_tokens(self) -> bool:
        """Whether the scores also depend on the tokens."""
        return self.context is not None

    def forward(self, memory: Memory, tokens: Tensor | None = None) -> Tensor:
        """Return the outputs (B, S, outputs) for states (B, S, d), in float32 or wider.

        tokens: those of the states, if the head reads them.
        """
        scores = to_at_least_float32(self.output(self.dropout(memory.states)))
        return scores if self.context is None or tokens is None else scores + self.context(tokens)


@dataclass(frozen=True)
class ChainOutput:
    """The scores of sequences of tags. emissions: (B, S, C), the score of each tag at each token."""

    emissions: Tensor
    chain: ChainScores


class ChainHead(nn.Module):
    """A `TokenHead` whose outputs are the emissions of a linear-chain CRF (Lample et al. 2016, section 2.2)."""

    timed = (("forward", "head"),)

    def __init__(self, emissions: TokenHead, allowed: tuple[Tensor, Tensor, Tensor] | None = None) -> None:
        """allowed: as in `LinearChain`."""
        super().__init__()
        self.emissions = emissions
        self.chain = LinearChain(emissions.output.out_features, allowed)

    @property
    def reads_tokens(self) -> bool:
        """See `TokenHead.reads_tokens`."""
        return self.emissions.reads_tokens

    def forward(self, memory: Memory, tokens: Tensor | None = None) -> ChainOutput:
        """Return the emissions for states (B, S, d) and the scores of successive tags, in float32 or wider.

        tokens: as in `TokenHead.forward`.
        """
        return ChainOutput(self.emissions(memory, tokens), self.chain.scores())
