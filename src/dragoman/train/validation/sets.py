"""`ValidationSets`: a model judged on several sets, whose mean decides what is better."""

from collections.abc import Sequence

from dragoman.base.errors import in_files
from dragoman.evaluate.translation import Score
from dragoman.text.tokenizers import Tokenizers
from dragoman.train.engine import Engine
from dragoman.train.validation.held_out import HeldOut
from dragoman.train.validation.validator import Validation, Validator
from dragoman.translator import Translator


class ValidationSets:
    """A validator for each set. One set alone is judged as ever."""

    def __init__(self, sets: Sequence[HeldOut], tokenizers: Tokenizers, translator: Translator, beam: int) -> None:
        self._validators: list[tuple[str, Validator]] = []
        for each in sets:
            with in_files(each.corpus.files[0]):
                before = tokenizers.source.tag_ids(each.corpus.all_tags)
                validator = Validator(each.sources, each.targets, tokenizers, translator, beam, before)
            self._validators.append((each.name, validator))

    def run(self, engine: Engine) -> Validation:
        """Judge the engine's model on each; several have their means of loss and BLEU, each set counting as much."""
        found = {name: validator.run(engine) for name, validator in self._validators}
        return mean_of(found) if len(found) > 1 else next(iter(found.values()))


def mean_of(sets: dict[str, Validation]) -> Validation:
    """The means over the sets, with the sets beside them."""
    each = list(sets.values())
    signature = f"mean of {len(each)} sets, {each[0].bleu.signature}"
    return Validation(
        sum(one.loss for one in each) / len(each),
        Score(each[0].bleu.name, sum(one.bleu.value for one in each) / len(each), signature),
        sum(one.seconds for one in each),
        sets,
    )
