"""/metrics: what a Prometheus server collects, about the work and about this server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from litestar import Request, Response, get
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fleet.api.answers import NEEDS_READ, desk_of
from fleet.model.states import TaskState
from fleet.store.reads import Reads

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

    from fleet.api.desk import Desk

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counting:
    """Counts the answers of an application, by route and not by path: paths hold ids."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._answers = Counter(
            "fleet_api_answers",
            "Answers by method, route and status.",
            ("method", "route", "status"),
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                route = str(scope.get("path_template", "")) or "none"
                self._answers.labels(str(scope.get("method", "")), route, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)


class _Work:
    """What is asked of the store when somebody collects."""

    def __init__(self, reads: Reads, desk: Desk) -> None:
        self._reads = reads
        self._desk = desk

    def collect(self) -> Iterator[Metric]:
        reads, hub = self._reads, self._desk.hub
        counts = reads.counts()
        tasks = GaugeMetricFamily("fleet_tasks", "Tasks by state.", labels=["state"])
        for state in TaskState:
            tasks.add_metric([state.value], counts.get(state.value, 0))
        yield tasks
        failed = GaugeMetricFamily("fleet_failed_tasks", "Failed tasks by who failed.", labels=["source"])
        for source in ("transport", "task", "verifier"):
            failed.add_metric([source], counts.get(f"{source}_failed", 0))
        yield failed
        gauges = (
            ("fleet_runs_active", "Runs that go on.", len(reads.active_runs())),
            ("fleet_sessions_live", "Sessions that are live.", len(reads.sessions(live=True))),
            ("fleet_supervisors", "Supervisors whose lease holds.", len(reads.supervisors())),
            ("fleet_escalated_tasks", "Tasks that were raised to a person.", counts.get("escalated", 0)),
            ("fleet_api_streams", "Clients that follow the events.", hub.streams),
        )
        for name, about, value in gauges:
            yield GaugeMetricFamily(name, about, value=value)
        yield CounterMetricFamily("fleet_api_streams_dropped", "Clients that were too slow.", value=hub.dropped)
        yield from self._spent()

    def _spent(self) -> Iterator[Metric]:
        """What sessions spent that ended while this server was up."""
        ended = CounterMetricFamily("fleet_sessions_ended", "Sessions that ended.", labels=["coder"])
        unpriced = CounterMetricFamily("fleet_sessions_unpriced", "Those of unknown cost.", labels=["coder"])
        cost = CounterMetricFamily("fleet_cost_usd", "What those cost that told it.", labels=["coder"])
        tokens = CounterMetricFamily("fleet_tokens", "Tokens, by where they went.", labels=["coder", "kind"])
        for line in self._desk.metered.cost(self._reads, self._desk.began, "coder", ()).lines:
            ended.add_metric([line.name], line.sessions)
            unpriced.add_metric([line.name], line.unpriced)
            cost.add_metric([line.name], (line.cost_microusd or 0) / 1e6)
            kinds = {"input": line.input_tokens, "cached": line.cached_tokens, "output": line.output_tokens}
            for kind, number in kinds.items():
                tokens.add_metric([line.name, kind], number)
        yield from (ended, unpriced, cost, tokens)


@get("/metrics", tags=["metrics"], guards=NEEDS_READ, media_type="text/plain")
async def metrics(request: Request[Any, Any, Any]) -> Response[str]:
    """For Prometheus, in its text format."""
    desk, registry = desk_of(request), request.app.state.registry

    def look(reads: Reads) -> bytes:
        mine = CollectorRegistry()
        mine.register(_Work(reads, desk))
        return generate_latest(mine) + generate_latest(registry)

    text = (await desk.ask(look)).decode()
    return Response(text, media_type=CONTENT_TYPE)


ROUTES = [metrics]
