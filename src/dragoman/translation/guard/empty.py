"""Nothing where something is to be translated."""

from dragoman.translation.guard.finding import Finding


def empty(source: str, output: str) -> Finding | None:
    """A finding where the output is blank and the source is not, or has no letter and no digit and the source has one.

    Models hold the empty output for likely, and the more so the wider the beam is (Stahlberg and Byrne 2019).
    """
    if not source.strip() or any(map(str.isalnum, output)):
        return None
    return Finding("empty", output) if not output.strip() or any(map(str.isalnum, source)) else None
