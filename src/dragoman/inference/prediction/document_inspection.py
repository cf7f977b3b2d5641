"""The inspection of a document by a hierarchical encoder: the weights of its sentences and words."""

from typing import Any

import torch

from dragoman.base.errors import ModelError
from dragoman.figures.inspection import Inspection, check_not_blank
from dragoman.inference.prediction.heads.classification import ClassPrediction, divide_into_sentences
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.tagging import split_words
from dragoman.inference.prediction.input_words import segments_of
from dragoman.models.architectures.encoder_only import EncoderOnly
from dragoman.models.attention_weights import SentenceWeights
from dragoman.models.families.hierarchical import HierarchicalEncoder
from dragoman.models.relevance import words_of_tokens
from dragoman.nn.attention.recording import recording
from dragoman.text.tokenizer import Tokenizer


def inspect_document(
    model: EncoderOnly, tokenizer: Tokenizer, text: str, row: ModelInput, prediction: Any
) -> Inspection:
    """Return the weights of the sentences of a document, and of the words of each sentence.

    row: the input of the document. Words beyond the maximum length are left out. Raises DataError for a blank text, and
    ModelError for a model whose encoder is not hierarchical.
    """
    check_not_blank(text, "text")
    encoder = model.encoder
    if not isinstance(encoder, HierarchicalEncoder) or model.sentence_language is None:
        raise ModelError("the encoder of this model has no weights of sentences")
    tokens = torch.tensor([row.ids], device=next(model.parameters()).device)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    with torch.inference_mode(), recording() as recorded:
        model(tokens, mask)
    words = recorded[encoder.word_pooling.attention][0][:, 0, 0].float().cpu()  # (M, W)
    sentences = recorded[encoder.sentence_pooling.attention][0][0, 0, 0].float().tolist()
    divided = encoder.divide(tokens, mask)
    numbers, weights = [0] * len(row.ids), [0.0] * len(row.ids)  # of each token
    for number, token_positions in enumerate(divided.positions.tolist()):
        for column, position in enumerate(token_positions):
            if position >= 0:
                numbers[position], weights[position] = number, float(words[number, column])
    found: list[tuple[list[str], list[float]]] = [([], []) for _ in sentences]
    texts = [each for each in divide_into_sentences(text, model.sentence_language) if tokenizer.encode_batch([each])[0]]
    for sentence, (start, end) in zip(texts, segments_of(row.ids), strict=False):
        spans = tokenizer.spans(sentence)[: end - start]
        units, owners = words_of_tokens(spans, split_words(sentence))
        for index, (first, last) in enumerate(units):
            positions = [start + n for n, owner in enumerate(owners) if owner == index]
            if positions:
                own_words, own_weights = found[numbers[positions[0]]]
                own_words.append(sentence[first:last])
                own_weights.append(sum(weights[place] for place in positions))
    document = tuple(
        SentenceWeights(weight, tuple(own_words), tuple(own_weights))
        for weight, (own_words, own_weights) in zip(sentences, found, strict=True)
    )
    label = prediction.label if isinstance(prediction, ClassPrediction) else f"{prediction.value:.6g}"
    return Inspection(text, label, (), document=document)
