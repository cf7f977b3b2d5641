"""Errors that a server reports to its clients, each with its HTTP status."""


class RequestError(Exception):
    """An error that is reported to the client. message: describes the problem and its solution."""

    status = 400

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """retry_after: seconds after which the client may retry; None if retrying does not help."""
        super().__init__(message)
        self.message, self.retry_after = message, retry_after


class MissingKey(RequestError):
    """The request lacks the required key."""

    status = 401


class Forbidden(RequestError):
    """The key is not valid, or the server does not offer the requested feature."""

    status = 403


class NotFound(RequestError):
    """The requested resource does not exist."""

    status = 404


class TooSlow(RequestError):
    """The request body did not arrive in time."""

    status = 408


class TooLarge(RequestError):
    """A body or a text exceeds a limit."""

    status = 413


class TooManyRequests(RequestError):
    """The client's quota of requests or tokens per minute is exceeded."""

    status = 429


class ClientDisconnected(RequestError):
    """The client has disconnected. As in nginx, this status appears only in logs and metrics."""

    status = 499


class InternalError(RequestError):
    """A bug in the server prevented the translation of a text."""

    status = 500


class Overloaded(RequestError):
    """The queue is full, the server is shutting down, or a translation took too long."""

    status = 503
