"""How much each word of a text contributes to a predicted label: by gradient × input, by erasure, and by pooling."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.inference.subject import InputWords, Subject, WordOutput
from dragoman.models.attention_weights import SentenceWeights
from dragoman.models.families.hierarchical import HierarchicalEncoder
from dragoman.models.relevance import Relevance, RelevantText, gradient_times_input
from dragoman.nn.attention.recording import recording


def word_relevance(subject: Subject, output: WordOutput) -> tuple[Relevance, Relevance]:
    """Return the relevance of the words of a text by gradient × input, and by erasure (see `Relevance`).

    output: the number that the words explain, that of the subject.
    """
    value, rows = gradient_times_input(subject.model, subject.arguments, output.select)
    products = np.concatenate([row[:length] for row, length in zip(rows, output.lengths, strict=True)])
    return _gradient(output, value, products), _erasure(output, value)


def _gradient(output: WordOutput, value: float, products: NDArray[np.float64]) -> Relevance:
    """Return the relevance of each word by gradient × input, given that of each token."""
    found = [
        RelevantText(text.name, text.words, tuple(float(products[list(each)].sum()) for each in text.positions))
        for text in output.words
    ]
    covered = sum(sum(text.values) for text in found)
    return Relevance("gradient × input", output.description, value, tuple(found), float(products.sum()) - covered)


def _erasure(output: WordOutput, value: float) -> Relevance:
    """Return the relevance of each word by erasure. It is NaN for a word whose own state determines the output."""
    erased = [positions for text in output.words for positions in text.positions]
    differences = iter([value - each for each in output.without(erased)])
    found = [RelevantText(text.name, text.words, tuple(next(differences) for _ in text.words)) for text in output.words]
    return Relevance("erasure", output.description, value, tuple(found), 0.0)


def sentence_weights(
    subject: Subject, encoder: HierarchicalEncoder, sentences: Sequence[InputWords]
) -> tuple[SentenceWeights, ...]:
    """Return the weights with which a hierarchical encoder pools the sentences, and the words of each sentence."""
    tokens, mask = subject.arguments
    with torch.inference_mode(), recording() as recorded:
        subject.model(tokens, mask)
    words = recorded[encoder.word_pooling.attention][0][:, 0, 0].float().cpu()  # (M, W)
    pooled = recorded[encoder.sentence_pooling.attention][0][0, 0, 0].float().tolist()
    numbers, weights = [0] * tokens.size(1), [0.0] * tokens.size(1)  # of each token
    for number, positions in enumerate(encoder.divide(tokens, mask).positions.tolist()):
        for column, position in enumerate(positions):
            if position >= 0:
                numbers[position], weights[position] = number, float(words[number, column])
    found: list[tuple[list[str], list[float]]] = [([], []) for _ in pooled]
    for sentence in sentences:
        for word, own_positions in zip(sentence.words, sentence.positions, strict=True):
            own_words, own_weights = found[numbers[own_positions[0]]]
            own_words.append(word)
            own_weights.append(sum(weights[position] for position in own_positions))
    return tuple(
        SentenceWeights(weight, tuple(own_words), tuple(own_weights))
        for weight, (own_words, own_weights) in zip(pooled, found, strict=True)
    )
