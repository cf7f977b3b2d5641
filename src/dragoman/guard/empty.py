"""Nothing where something is to be translated."""

from dragoman.guard.finding import Finding


def empty(source: str, output: str) -> Finding | None:
    """A finding where the output is blank and the source is not.

    Models hold the empty output for likely, and the more so the wider the beam is (Stahlberg and Byrne 2019).
    """
    return Finding("empty", "") if source.strip() and not output.strip() else None
