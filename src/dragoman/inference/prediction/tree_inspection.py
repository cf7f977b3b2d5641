"""The inspection of a parser: the predicted tree, and the attention weights of the encoder and of the decoder."""

from collections.abc import Sequence

import torch

from dragoman.data.labelled.examples import ParsedSentence
from dragoman.figures.inspection import Inspection, check_token_count
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.parsing import TreePrediction, generated_symbols
from dragoman.inference.prediction.input_words import token_names
from dragoman.models.architectures.encoder_only import EncoderOnly
from dragoman.models.attention_weights import END, START, AttentionMap, record_calls, without_weights
from dragoman.models.heads.tree_decoder import TreeDecoderHead, TreeDecoderOutput, teacher_inputs
from dragoman.text.symbols import BOS, PAD
from dragoman.text.tokenizer import Tokenizer

_HEAD = "head."


def inspect_tree(
    model: EncoderOnly, tokenizer: Tokenizer, example: ParsedSentence, row: ModelInput, prediction: TreePrediction
) -> Inspection:
    """Return the tree of a sentence with the attention weights of its prediction.

    A decoder of trees has weights over the tokens of the sentence and over the preceding symbols, as if it generated
    the predicted tree; each row belongs to the symbol that it predicts. Raises DataError for a sentence or a tree with
    more tokens than a picture can show.
    """
    check_token_count(len(row.ids))
    device = next(model.parameters()).device
    tokens = torch.tensor([row.ids], device=device)
    decoder = model.head if isinstance(model.head, TreeDecoderHead) else None
    symbols, places = ([], []) if decoder is None else generated_symbols(decoder.symbols, prediction.tree, row)
    check_token_count(len(symbols))

    def run() -> None:
        output = model(tokens, torch.ones_like(tokens, dtype=torch.bool))
        if isinstance(output, TreeDecoderOutput):
            targets = torch.tensor([symbols], device=device)
            output.logits(teacher_inputs(targets, BOS, PAD), torch.tensor([places], device=device))

    weights = {name.removeprefix(_HEAD): rows[0] for name, rows in record_calls(model, run).items()}
    names = token_names(tokenizer, row)
    generated = () if decoder is None else tuple(decoder.symbols.decode(symbols[:-1]))
    absent = without_weights(model, ("encoder.self_attention",))
    if decoder is not None:
        absent += without_weights(decoder, ("decoder.self_attention", "decoder.cross_attention"))
    maps = tuple(AttentionMap(name, each, *_labels(name, names, generated)) for name, each in weights.items())
    return Inspection(" ".join(example.words), str(prediction.tree.rooted()), maps, tuple(absent), tree=prediction.tree)


def _labels(name: str, tokens: tuple[str, ...], symbols: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of the rows and of the columns of a map, given its name."""
    if name.startswith("encoder."):
        return tokens, tokens
    return (*symbols, END), tokens if name.endswith("cross_attention") else (START, *symbols)
