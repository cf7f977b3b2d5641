"""`train`: from a recipe to a model folder."""

from dragoman.base.log import quietly
from dragoman.base.settings.load import Overrides
from dragoman.tasks.union import Recipe, load_recipe
from dragoman.training.run.loop import TrainingResult, run


def train(
    recipe: Recipe = None,
    overrides: Overrides = (),
    *,
    resume: bool = False,
    profile: bool = False,
    quiet: bool = False,
) -> TrainingResult:
    """Train a model as a recipe says, whatever its task, as `dragoman train` does.

    recipe: a YAML file, nested settings as such a file has them, or a run (`TranslationRun`, `LanguageModelRun`); with
    `resume` also the folder of a run that was stopped. overrides: values by their dotted keys, such as
    `{"train.max_minutes": 5}`, each of which replaces what the recipe has there. resume: go on with the run in `out`
    where it stopped, if there is one. profile: say where the time of the first updates goes.

    Ctrl-C ends a run after the current update with Interrupted, and everything is saved. Raises ConfigError for
    settings that are wrong and for a folder that holds another run, DataError, ResourceError and DivergenceError.
    """
    with quietly(quiet):
        return run(load_recipe(recipe, overrides), resume=resume, profile=profile)
