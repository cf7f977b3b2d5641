"""Every task's run by the `kind` of its task; a new one is a folder beside this file and a line here."""

from dragoman.tasks.translation.config import TranslationRun

Recipe = TranslationRun
"""What `dragoman train` reads."""
