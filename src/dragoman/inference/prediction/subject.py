"""`label_subject`: the prediction of a label with its computation, at which `inspection` looks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dragoman.inference.prediction.heads.classification import divide_into_sentences
from dragoman.inference.prediction.heads.filling import FillPrediction
from dragoman.inference.prediction.heads.tagging import split_words
from dragoman.inference.prediction.input_words import segments_of, texts_of, token_names, words_of
from dragoman.inference.prediction.label_output import FilledMask, PredictedExample, explained_output
from dragoman.inference.prediction.outputs import compute_outputs, input_tensors
from dragoman.inference.subject import InputWords, Subject, SubjectSettings, WordOutput, check_token_count
from dragoman.models.kinds.encoder_only import EncoderOnly
from dragoman.models.relevance import words_of_tokens
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer


def label_subject(
    model: EncoderOnly,
    tokenizer: Tokenizer,
    labels: Sequence[str],
    predicted: PredictedExample,
    settings: SubjectSettings,
) -> Subject:
    """Return the log-probability of a predicted label, or the predicted number.

    labels: names of the classes. Raises the errors of `explained_output`, and DataError for too many tokens.
    """
    output = explained_output(tokenizer, labels, predicted, settings)
    row = output.row
    check_token_count(len(row.ids))
    device = next(model.parameters()).device
    tokens, mask = (each.to(device) for each in input_tensors([row]))
    if (language := model.sentence_language) is not None:
        words = tuple(_sentence_words(tokenizer, predicted.example.texts[0], language, row.ids))
    else:
        words = tuple(words_of(tokenizer, predicted.example, row, isinstance(output, FilledMask)))

    def without(groups: Sequence[Sequence[int]]) -> list[float]:
        outputs = compute_outputs(model, [output.shortened(positions) for positions in groups], device)
        return [output.without(*each) for each in zip(groups, outputs, strict=True)]

    prediction = predicted.prediction
    masks = prediction.fills if isinstance(prediction, FillPrediction) else ()
    return Subject(
        model,
        (tokens, mask),
        output.measure if output.competing is None else f"log-probability of {output.name}",
        (output.label,),
        lambda outputs: output.log_probability(outputs).reshape(1),
        " / ".join(texts_of(predicted.example)),
        output.label,
        tokens=token_names(tokenizer, row),
        words=WordOutput(output.description, output.select, words, without, _row_lengths(model, row.ids)),
        fills=tuple(tuple((each.text, each.probability) for each in mask) for mask in masks),
    )


def _row_lengths(model: EncoderOnly, ids: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of the rows that the model encodes for an input: one row, or one per text of a pair."""
    if not model.encodes_separately:
        return (len(ids),)
    first = list(pairwise(ids)).index((EOS, BOS)) + 1
    return first, len(ids) - first


def _sentence_words(tokenizer: Tokenizer, text: str, language: str, ids: Sequence[int]) -> Iterator[InputWords]:
    """Yield the words of each sentence of a document. Those beyond the maximum length are left out.

    language: the language whose rules divide texts into sentences. ids: the input of the document.
    """
    sentences = [each for each in divide_into_sentences(text, language) if tokenizer.encode_batch([each])[0]]
    for sentence, (start, end) in zip(sentences, segments_of(ids), strict=False):
        units, owners = words_of_tokens(tokenizer.spans(sentence)[: end - start], split_words(sentence))
        positions = [
            tuple(start + n for n, owner in enumerate(owners) if owner == index) for index in range(len(units))
        ]
        known = [(sentence[first:last], each) for (first, last), each in zip(units, positions, strict=True) if each]
        yield InputWords("", tuple(word for word, _ in known), tuple(each for _, each in known))
