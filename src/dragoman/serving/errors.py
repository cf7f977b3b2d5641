"""Errors that a server reports to its clients, each with its HTTP status."""


class Refusal(Exception):
    """A request that is not served. message: what is wrong and what to do, for the client."""

    status = 400

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """retry_after: seconds after which another attempt makes sense; None if it never does."""
        super().__init__(message)
        self.message, self.retry_after = message, retry_after


class MissingKey(Refusal):
    """The server requires a key, and the request has none."""

    status = 401


class Forbidden(Refusal):
    """The key is not valid, or the server does not offer what is requested."""

    status = 403


class NotFound(Refusal):
    """There is nothing at this address."""

    status = 404


class TooSlow(Refusal):
    """The body of the request did not arrive in time."""

    status = 408


class TooLarge(Refusal):
    """A body or a text exceeds a limit."""

    status = 413


class TooManyRequests(Refusal):
    """The client's quota of requests or tokens per minute is exceeded."""

    status = 429


class ClientDisconnected(Refusal):
    """The client has disconnected. The status is only used in logs and metrics, as nginx does."""

    status = 499


class Overloaded(Refusal):
    """The queue is full, the server is shutting down, or a translation took too long."""

    status = 503
