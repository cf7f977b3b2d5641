"""`ValidationSets`: a model judged on several sets, whose mean decides what is better."""

from collections.abc import Sequence

from dragoman.base.errors import in_files
from dragoman.models.build import Seq2Seq
from dragoman.tasks.translation.validation.held_out import HeldOut
from dragoman.tasks.translation.validation.validator import Validator, measures
from dragoman.training.ranks.place import Place
from dragoman.training.validation import Validation
from dragoman.translation.translator import Translator


class ValidationSets:
    """A validator for each set. One set alone is judged as ever."""

    def __init__(self, sets: Sequence[HeldOut], model: Seq2Seq, translator: Translator, beam: int) -> None:
        self._validators: list[tuple[str, Validator]] = []
        for each in sets:
            with in_files(each.corpus.files[0]):
                tags = each.corpus.all_tags
                validator = Validator(each.sources, each.targets, model, translator, beam, tags)
            self._validators.append((each.name, validator))

    def run(self, place: Place) -> Validation:
        """Judge the model on each; several have their means of loss and BLEU, each set counting as much."""
        found = {name: validator.run(place) for name, validator in self._validators}
        return mean_of(found) if len(found) > 1 else next(iter(found.values()))


def mean_of(sets: dict[str, Validation]) -> Validation:
    """The means over the sets, with the sets beside them."""
    each = list(sets.values())
    signature = f"mean of {len(each)} sets, {each[0]['bleu'].signature}"
    loss, bleu = (sum(one[key].value for one in each) / len(each) for key in ("loss", "bleu"))
    return Validation(measures(loss, bleu, signature), sum(one.seconds for one in each), sets)
