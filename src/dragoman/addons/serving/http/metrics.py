"""`Metrics`: the Prometheus metrics of a server."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from dragoman.addons.serving.models.served_models import ServedModel
from dragoman.addons.serving.models.served_predictors import ServedPredictor
from dragoman.addons.serving.queueing.batcher import BatchStatistics
from dragoman.addons.serving.service.prediction_queue import PredictionBatch

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)

_MAX_KEYS = 200
"""Maximum number of names of keys in the metrics, because Prometheus stores a time series for each."""


class Metrics:
    """The metrics of one server. They include the names of keys, but no texts, keys or addresses."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        by_model = ("model",)
        self._requests = Counter("dragoman_requests", "Answered requests.", ("route", "status"), registry=self.registry)
        self._failures = Counter(
            "dragoman_failed_requests",
            "Requests without a result, by reason, such as quota, queue full, timed out or cancelled.",
            ("reason",),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "dragoman_request_seconds",
            "Seconds from the headers of a request to the end of its response.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        by_key = ("key",)
        self._key_requests = Counter(
            "dragoman_key_requests", "Answered requests, by the name of their key.", by_key, registry=self.registry
        )
        self._key_tokens = Counter(
            "dragoman_key_source_tokens",
            "Source tokens charged to the quota of a key, by its name.",
            by_key,
            registry=self.registry,
        )
        self._keys: set[str] = set()
        """The names of keys that have a label of their own."""
        self._names: dict[int, str] = {}
        """The names of the watched models by identity."""
        self._info = Info(
            "dragoman_model",
            "Languages or task, and precision of a model. reason: why the precision was chosen.",
            by_model,
            registry=self.registry,
        )
        self._sentences = Counter("dragoman_sentences", "Translated sentences.", by_model, registry=self.registry)
        self._predicted = Counter(
            "dragoman_predicted_texts", "Texts whose labels were predicted.", by_model, registry=self.registry
        )
        self._tokens = Counter("dragoman_source_tokens", "Processed source tokens.", by_model, registry=self.registry)
        self._computing = Counter(
            "dragoman_computing_seconds", "Seconds to process a batch.", by_model, registry=self.registry
        )
        self._fill = Histogram(
            "dragoman_batch_fill",
            "Source tokens translated together, as a fraction of the largest batch.",
            by_model,
            buckets=_FRACTIONS,
            registry=self.registry,
        )
        self._queued = Gauge(
            "dragoman_queue_tokens",
            "Source tokens that are queued or in progress.",
            by_model,
            registry=self.registry,
        )
        self._hits = Gauge(
            "dragoman_cache_hits",
            "Sentences whose translation was found in the cache.",
            by_model,
            registry=self.registry,
        )

    def record_request(self, route: str, status: int, seconds: float) -> None:
        """Record a completed request. route: the path of the route, without the values of its parameters."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def record_failure(self, reason: str) -> None:
        """Record a request without a result. reason: as in `RequestError.reason`."""
        self._failures.labels(reason).inc()

    def record_key(self, name: str, tokens: int) -> None:
        """Record a completed request with a valid key. Beyond the first 200 names, all keys count as `other`."""
        if len(self._keys) < _MAX_KEYS:
            self._keys.add(name)
        label = name if name in self._keys else "other"
        self._key_requests.labels(label).inc()
        self._key_tokens.labels(label).inc(tokens)

    def record_batch(self, model: str, batch: BatchStatistics, max_tokens: int) -> None:
        """Record a translated batch. max_tokens: the maximum number of source tokens per batch."""
        self._sentences.labels(model).inc(batch.lines)
        self._tokens.labels(model).inc(batch.tokens)
        self._computing.labels(model).inc(batch.seconds)
        self._fill.labels(model).observe(min(1.0, batch.concurrent_tokens / max_tokens))

    def watch(self, name: str, model: ServedModel) -> None:
        """Describe a model, and report the state of its queue and cache whenever the metrics are read."""
        batcher = model.batcher
        self._queued.labels(name).set_function(lambda: batcher.queue.tokens + batcher.control_queue.tokens)
        self._hits.labels(name).set_function(lambda: batcher.cache.hits)
        self._names[id(model)] = name
        self.describe(model)

    def record_predictions(self, model: str, batch: PredictionBatch) -> None:
        """Record texts whose labels were predicted."""
        self._predicted.labels(model).inc(batch.texts)
        self._tokens.labels(model).inc(batch.tokens)
        self._computing.labels(model).inc(batch.seconds)

    def watch_predictor(self, name: str, model: ServedPredictor) -> None:
        """Describe a prediction model."""
        self._names[id(model)] = name
        self.describe(model)

    def describe(self, model: ServedModel | ServedPredictor) -> None:
        """Report the properties of a watched model, also after it was reloaded."""
        self._info.labels(self._names[id(model)]).info(model.description)

    def text(self) -> bytes:
        """Return the metrics in Prometheus's text format."""
        return generate_latest(self.registry)
