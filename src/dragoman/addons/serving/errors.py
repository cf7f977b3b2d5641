"""Errors that a server reports to its clients, each with its HTTP status."""

import logging
import secrets


class RequestError(Exception):
    """An error that is reported to the client. message: describes the problem and its solution."""

    status = 400
    reason = "invalid"
    """The label of the error in metrics."""

    def __init__(self, message: str, field: str | None = None, *, retry_after: float | None = None) -> None:
        """field: the name of the invalid field, if known.

        retry_after: seconds after which the client may retry; None if retrying does not help.
        """
        super().__init__(message)
        self.message, self.field, self.retry_after = message, field, retry_after


class MissingKey(RequestError):
    """The request lacks the required key."""

    status, reason = 401, "key"


class Forbidden(RequestError):
    """The key is not valid, or the server does not offer the requested feature."""

    status, reason = 403, "forbidden"


class NotFound(RequestError):
    """The requested resource does not exist."""

    status, reason = 404, "not found"


class TooSlow(RequestError):
    """The request body did not arrive in time."""

    status, reason = 408, "slow body"


class TooLarge(RequestError):
    """A body or a text exceeds a limit."""

    status, reason = 413, "too large"


class TooManyRequests(RequestError):
    """The client's quota of requests or tokens per minute is exceeded."""

    status, reason = 429, "quota"


class ClientDisconnected(RequestError):
    """The client has disconnected. As in nginx, this status appears only in logs and metrics."""

    status, reason = 499, "cancelled"


class InternalError(RequestError):
    """A bug in the server. The client gets an id, under which the server's log has the traceback."""

    status, reason = 500, "internal"

    def __init__(self, bug: Exception) -> None:
        """Log the traceback of a bug."""
        self.id = secrets.token_hex(6)
        super().__init__(f"internal error {self.id}: see the server's log")
        logging.getLogger(__name__).error("internal error %s", self.id, exc_info=bug)


class Overloaded(RequestError):
    """The server cannot answer the request now, for example because it is shutting down."""

    status, reason = 503, "unavailable"


class QueueFull(Overloaded):
    """The queue of a model is full."""

    reason = "queue full"


class TimedOut(Overloaded):
    """A translation took too long."""

    reason = "timed out"


def reasons(kind: type[RequestError] = RequestError) -> set[str]:
    """Return the labels of all errors of a kind in metrics."""
    return {kind.reason}.union(*(reasons(each) for each in kind.__subclasses__()))
