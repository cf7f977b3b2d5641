"""`compare_data` compares the validation sets of a recipe with its training corpora, without training."""

from dragoman.base.log import quietly
from dragoman.base.settings.load import Overrides
from dragoman.data.held_out.check import Finding
from dragoman.tasks.registry import open_job
from dragoman.tasks.train import Recipe, load_recipe
from dragoman.text.languages.detector import release_model


def compare_data(recipe: Recipe = None, overrides: Overrides = (), *, quiet: bool = False) -> tuple[Finding, ...]:
    """Return the problems of the validation sets of a recipe, as `dragoman data compare` prints them.

    A training run of any task makes the same checks before its first update (docs/how-to/corpora/check.md). To check
    a test set, name it in `data.valid`. recipe, overrides: as in `train`. Raises ConfigError for invalid settings, and
    DataError for files that cannot be read.

    >>> from dragoman import compare_data
    >>> corpus = {"source": "valid.en", "target": "valid.de"}
    >>> findings = compare_data({"data": {"train": corpus, "valid": corpus}, "out": "runs/new"}, quiet=True)
    >>> print(findings[0].message)
    data.train has only 60 pairs. ...
    """
    with quietly(quiet):
        job = open_job(load_recipe(recipe, overrides))
        try:
            return tuple(job.check_held_out())
        finally:
            job.close()
            release_model()
