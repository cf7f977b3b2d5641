"""The initial embeddings of a new encoder–decoder: word vectors from the files of `model.embeddings`."""

from dragoman.models.architectures.seq2seq import ModelConfig, Seq2Seq
from dragoman.text.tokenizers import Tokenizers


def check_word_vectors(model: ModelConfig) -> None:
    """Check the first lines of the files before the corpora are prepared.

    Raises DataError for an invalid file, ConfigError for vectors of another width than a model whose width is set.
    """
    has_width = model.preset != "auto" or "width" in model.model_fields_set
    model.embeddings.check(model.width if has_width else None)


def fill_word_vectors(config: ModelConfig, model: Seq2Seq, tokenizers: Tokenizers) -> dict[str, float]:
    """Copy the word vectors into a model, and return the share of entries with a vector for each side with a file.

    Raises the errors of `check_word_vectors`, and DataError if no entry of a vocabulary has a vector.
    """
    config.embeddings.check(config.width)
    return config.embeddings.fill(model.encoder.embedding.tokens, model.decoder.embedding.tokens, tokenizers)
