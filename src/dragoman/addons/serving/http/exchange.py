"""`Exchange`: a request and its answer, which is counted, logged, and sent with security headers."""

from datetime import UTC, datetime
from time import perf_counter

from starlette.types import Message, Scope, Send

from dragoman.addons.serving.http.access_log import AccessLog
from dragoman.addons.serving.http.metrics import Metrics

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)


class Exchange:
    """A request and its answer. The answer to HEAD is that to GET, without a body."""

    def __init__(self, scope: Scope, send: Send) -> None:
        """send: passes the messages of the answer to the ASGI server."""
        self._scope, self._send, self._start = scope, send, perf_counter()
        self._status = 0

    @property
    def has_started(self) -> bool:
        """Whether the headers of the answer have been sent."""
        return self._status != 0

    async def send(self, message: Message) -> None:
        """Send a message of the answer, with security headers unless the answer has its own."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = list(message["headers"])
            names = {name for name, _ in headers}
            message = {**message, "headers": headers + [each for each in SECURITY_HEADERS if each[0] not in names]}
        elif self._scope["method"] == "HEAD":
            message = {**message, "body": b""}
        await self._send(message)

    def record(self, metrics: Metrics, log: AccessLog | None) -> None:
        """Count and log the exchange after its end.

        A log entry consists of time, method, route, status, seconds, the client, and the id and the name of its key, or
        the reason for its rejection, or the id of an internal error. It never contains texts or keys.
        """
        seconds, state = perf_counter() - self._start, self._scope.get("state", {})
        route = getattr(self._scope.get("route"), "path", "none")
        metrics.record_request(route, self._status, seconds)
        if (reason := state.get("failure")) is not None:
            metrics.record_failure(reason)
        caller = state.get("caller")
        if caller is not None and caller.key_name is not None:
            metrics.record_key(caller.key_name, caller.tokens)
        if log is not None:
            key = {} if caller is None or caller.key is None else {"key": caller.key, "key_name": caller.key_name}
            reasons = {name: state[name] for name in ("refused", "error_id") if state.get(name) is not None}
            log.write(
                {
                    "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                    "method": self._scope["method"],
                    "route": route,
                    "status": self._status,
                    "seconds": round(seconds, 4),
                    **log.client(self._scope),
                    **key,
                    **reasons,
                }
            )
