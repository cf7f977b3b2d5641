"""`measure_confidence`: relates the probability of a model's translations to their chrF, on the validation set."""

from pathlib import Path

from dragoman.base.files import atomic_write
from dragoman.base.log import quietly
from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.confidence import FEWEST_SENTENCES, Confidence, per_token
from dragoman.checkpoint.folder import CARD, META, read_meta
from dragoman.checkpoint.meta import dump_meta
from dragoman.checkpoint.systems import NEURAL
from dragoman.inference.translation.doubts import spelled_out
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.chrf import ChrF
from dragoman.tasks.translation.precision_measurement import ValidationPairs

_MOST_SENTENCES = 500


def measure_confidence(folder: Path, pairs: ValidationPairs, threads: int | None = None) -> Confidence | None:
    """Measure the system that a folder translates with, on the first 500 pairs, and write the result into the folder.

    Returns None, and writes nothing, if there are too few pairs or if the probability says nothing about the quality.
    threads: as in `Translator.load`. Raises the errors of `Translator.load`.
    """
    sources, targets = list(pairs.sources[:_MOST_SENTENCES]), list(pairs.targets[:_MOST_SENTENCES])
    if len(sources) < FEWEST_SENTENCES:
        return None
    with quietly(True):
        translator = Translator.load(folder, "cpu", threads=threads)
        search = translator.search_config()
        requests = [Request(search, tags) for tags in pairs.tags[:_MOST_SENTENCES]]
        found = [each[0] for each in translator.translate_nbest(sources, requests)]
    rows = [row for row, source in enumerate(sources) if source.strip() and targets[row].strip()]
    meta = read_meta(folder)
    confidence = Confidence.fitted(
        meta.systems[0].name if meta.systems else NEURAL,
        [per_token(found[row].log_probability, len(found[row].ids)) for row in rows],
        ChrF().sentence_scores([found[row].text for row in rows], [targets[row] for row in rows]),
    )
    if confidence is not None:
        limit = spelled_out(translator.tokenizers.source, pairs.sources)
        confidence = confidence.model_copy(update={"spelled_out": limit})
        atomic_write(folder / META, dump_meta(meta.model_copy(update={"confidence": confidence})))
        card = folder / CARD
        section = with_section(
            card.read_text(encoding="utf-8"), "How sure is it?", _card_section(confidence, pairs.name)
        )
        atomic_write(card, section)
    return confidence


def _card_section(confidence: Confidence, data: str) -> list[str]:
    low, high = confidence.lowest, 0.7 * confidence.lowest
    return [
        f"The more probable the model finds its translation, the better it usually is: on {confidence.sentences:,} "
        f"sentences of {data}, the correlation of the log-probability per token with chrF is "
        f"{confidence.correlation:.2f}. A translation with {low:.2f} per token has an expected chrF of "
        f"{confidence.expected(low):.0f}, one with {high:.2f} has {confidence.expected(high):.0f}; the mean is "
        f"{confidence.mean:.0f}. The server marks sentences that the model is unsure of."
    ]
