"""Metrics that Prometheus reads at /metrics. One registry an application, so that two in one process do not mix."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters and histograms, named `tilesmith_*`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tilesmith_http_requests_total",
            "Requests answered",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "tilesmith_http_request_seconds",
            "Time from the first byte of a request to the last of its answer",
            ["method", "route"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self.schedules = Counter(
            "tilesmith_schedules_total",
            "Schedule questions by outcome: new, stored, or the code of the error",
            ["outcome"],
            registry=self.registry,
        )
        self.schedule_seconds = Histogram(
            "tilesmith_schedule_seconds",
            "Time to make a schedule that was not in the store",
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self.jobs = Counter(
            "tilesmith_jobs_total", "Jobs that came to an end", ["kind", "state"], registry=self.registry
        )
        self.job_seconds = Histogram(
            "tilesmith_job_seconds",
            "Time that a job ran",
            ["kind"],
            buckets=(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
            registry=self.registry,
        )
        self.wait_seconds = Histogram(
            "tilesmith_job_wait_seconds",
            "Time that a job waited before it was begun",
            buckets=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0),
            registry=self.registry,
        )
        self.queued = Gauge("tilesmith_jobs_queued", "Jobs that wait", registry=self.registry)
        self.running = Gauge("tilesmith_jobs_running", "Jobs in the hands of this service", registry=self.registry)
        self.requeued = Counter(
            "tilesmith_jobs_requeued_total", "Jobs put back into the queue", ["reason"], registry=self.registry
        )
        self.removed = Counter(
            "tilesmith_removed_total",
            "What was deleted, as it was no longer kept or there was no room for it",
            ["kind"],
            registry=self.registry,
        )
        self.pool_threads = Gauge(
            "tilesmith_pool_threads", "Threads of workers that take jobs", ["machine"], registry=self.registry
        )
