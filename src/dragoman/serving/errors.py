"""What a server refuses, and what it could not do: each with the status that its client is told."""


class Refusal(Exception):
    """A request that is not served. message: what is wrong and what to do; it goes to the client."""

    status = 400

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """retry_after: seconds after which another try makes sense; None where it makes none."""
        super().__init__(message)
        self.message, self.retry_after = message, retry_after


class NoKey(Refusal):
    """A key is needed, and none was given."""

    status = 401


class Forbidden(Refusal):
    """The key that was given is none."""

    status = 403


class TooLarge(Refusal):
    """A body or a text beyond a limit."""

    status = 413


class TooMany(Refusal):
    """A client asked too often, or for too much."""

    status = 429


class Overloaded(Refusal):
    """The queue is full, the server is about to end, or a translation took too long."""

    status = 503
