"""A hierarchical encoder of documents: words → sentences → document (Yang et al. 2016)."""

from typing import Literal, NamedTuple, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.models.families.family import EncoderFamily, SideContext
from dragoman.models.families.recurrent import RecurrentEncoderConfig
from dragoman.models.interface import Memory
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.scorers import AdditiveConfig, ScorerConfig
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.embedding import Embedding
from dragoman.nn.mask import Mask
from dragoman.nn.positions.union import NoPositionsConfig
from dragoman.text.symbols import EOS, PAD


class HierarchicalEncoderConfig(EncoderFamily):
    """A recurrence and attention over the words of each sentence, and over the sentences of the document.

    Selected by `encoder: {kind: hierarchical}`. In its input, every sentence ends with EOS.
    """

    kind: Literal["hierarchical"] = "hierarchical"
    words: RecurrentEncoderConfig = Field(RecurrentEncoderConfig(), description="Encoder of the words of a sentence.")
    sentences: RecurrentEncoderConfig | None = Field(
        RecurrentEncoderConfig(),
        description="Encoder of the sentences of a document, as in the paper. It carries information between "
        "sentences, so that a neighbour of the decisive sentence may get its weight. null: none; the weights then "
        "belong to the sentences alone.",
    )
    scorer: ScorerConfig = Field(
        AdditiveConfig(),
        description="Function that scores a word or a sentence for a learned query. additive: wᵀtanh(Vh + b), as in "
        "the paper.",
    )
    language: str = Field("en", description="Language whose rules divide texts into sentences, such as en.")
    sentence_length: int = Field(
        64, ge=2, description="Maximum number of tokens of a sentence. Longer sentences are divided."
    )

    @property
    def sentence_language(self) -> str:
        """See `EncoderFamily.sentence_language`."""
        return self.language

    def build(self, context: SideContext) -> "HierarchicalEncoder":
        """Build both levels. Raises ConfigError for incompatible settings."""
        return HierarchicalEncoder(self, context)


class Pooling(nn.Module):
    """Soft attention of a learned query: the weighted mean of states, without projections."""

    def __init__(self, width: int, scorer: ScorerConfig, dropout: float) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(1, 1, width))
        nn.init.normal_(self.query, std=width**-0.5)
        config = SoftAttentionConfig(scorer=scorer, projections=False)
        self.attention = config.build(AttentionSizes(width, width, width, 1, dropout))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the means (B, d) of states (B, S, d) with mask (B, S) bool, False at padding."""
        padding = Mask.padding(mask)
        memory = self.attention.project_memory(states, padding)
        return self.attention.cross_attend(self.query.expand(len(states), -1, -1), memory, padding).squeeze(1)


class Sentences(NamedTuple):
    """The sentences of B documents.

    tokens, mask: (M, W), the tokens of all M sentences, and False at padding. rows: (B, N) int64, the number of each
    sentence of a document. present: (B, N) bool, False at padding. positions: (M, W) int64, the position of each token
    in the flattened documents.
    """

    tokens: Tensor
    mask: Tensor
    rows: Tensor
    present: Tensor
    positions: Tensor


class HierarchicalEncoder(nn.Module):
    """Two levels of recurrence and attention. Implements `Encoder`. Padding must follow the text."""

    timed = (("forward", "encoder"),)

    def __init__(self, config: HierarchicalEncoderConfig, context: SideContext) -> None:
        super().__init__()
        width, dropout = context.width, context.dropout
        # the name by which `train.start` finds the embeddings of other models
        self.embedding = context.embedding
        self.words = config.words.build(context)
        self.word_pooling = Pooling(width, config.scorer, dropout.attention)
        self.sentences = None
        if config.sentences is not None:
            vectors = nn.Identity()
            vectors.embedding_dim = width  # type: ignore[assignment]
            scheme = NoPositionsConfig()
            embedding = Embedding(cast("nn.Embedding", vectors), scheme.build_embedding(width), dropout.residual, False)
            self.sentences = config.sentences.build(SideContext(embedding, width, dropout, scheme))
        self.sentence_pooling = Pooling(width, config.scorer, dropout.attention)
        self._length = config.sentence_length

    def forward(self, tokens: Tensor, mask: Tensor) -> Memory:
        """Encode tokens (B, S) int64 with mask (B, S) bool as the states of the N sentences (B, N, d).

        The summary is the vector of the document (B, d).
        """
        divided = self.divide(tokens, mask)
        words = self.words(divided.tokens, divided.mask)
        vectors = self.word_pooling(words.states, divided.mask)  # (M, d)
        documents = vectors[divided.rows] * divided.present.unsqueeze(2)  # (B, N, d)
        if self.sentences is not None:
            documents = self.sentences(documents, divided.present).states
        return Memory(documents, divided.present, self.sentence_pooling(documents, divided.present))

    def divide(self, tokens: Tensor, mask: Tensor) -> Sentences:
        """Divide documents (B, S) into sentences, which end with EOS or at the maximum length of a sentence."""
        documents, size = tokens.shape
        device = tokens.device
        positions = torch.arange(size, device=device)
        follows = torch.cat([torch.ones_like(mask[:, :1]), tokens[:, :-1] == EOS], 1)
        inside = positions - torch.where(follows, positions, 0).cummax(1).values  # the position in the sentence
        begins = mask & (inside % self._length == 0)
        numbers = begins.cumsum(1) - 1  # (B, S), the number of the sentence in its document
        counts = begins.sum(1)
        # shapes on the meta device, on which operations are counted, cannot depend on values
        most = -(-size // self._length) if tokens.is_meta else max(1, int(counts.max()))
        total = documents * most if tokens.is_meta else max(1, int(counts.sum()))
        width = min(size, self._length)
        if not tokens.is_meta:
            width = int((inside % self._length).masked_fill(~mask, 0).max()) + 1
        starts = counts.cumsum(0) - counts
        present = torch.arange(most, device=device) < counts.unsqueeze(1)
        rows = (starts.unsqueeze(1) + torch.arange(most, device=device)).masked_fill(~present, 0)
        flat = ((starts.unsqueeze(1) + numbers) * width + inside % self._length).masked_fill(~mask, total * width)
        positions = torch.full((total * width + 1,), -1, device=device, dtype=torch.int64)
        positions = positions.scatter(0, flat.flatten(), torch.arange(documents * size, device=device))[:-1]
        sentence_mask = positions >= 0
        divided = torch.where(sentence_mask, tokens.flatten()[positions.clamp_min(0)], PAD)
        shape = (total, width)
        return Sentences(divided.view(shape), sentence_mask.view(shape), rows, present, positions.view(shape))
