"""`attention_of`: the attention weights behind the output of a subject, for a model of any kind."""

from dragoman.inference.prediction.predictor import Predictor, Text
from dragoman.inference.translation.translator import Translator
from dragoman.inspection.subject import Loaded, Subject, SubjectSettings, visible_predictor
from dragoman.models.attention_weights import END, START, AttentionMap, record_weights


def attention_of(loaded: Loaded, text: Text, subject: Subject, settings: SubjectSettings) -> list[AttentionMap]:
    """Return the weights of all attention layers while the output of a subject is computed.

    text, settings: those from which `subject_of` built the subject.
    """
    if isinstance(loaded, Predictor):
        return list(visible_predictor(loaded).inspect(text, word=settings.word, mask=settings.mask).maps)
    source = (*loaded.tokenizers.source.pieces(subject.source_ids), END) if isinstance(loaded, Translator) else ()
    maps = []
    for name, weights in record_weights(subject.model, *subject.arguments).items():
        is_encoder = name.startswith("encoder.")
        keys = source if is_encoder or name.endswith("cross_attention") else (START, *subject.terms[:-1])
        maps.append(AttentionMap(name, weights, source if is_encoder else subject.terms, keys))
    return maps
