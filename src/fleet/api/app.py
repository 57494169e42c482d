"""The application: all routes, how errors are told, and the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar import Litestar, MediaType
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from prometheus_client import CollectorRegistry

from fleet import __version__
from fleet.api import dashboard, looking, metrics, reading, steering, streaming
from fleet.api.answers import on_bug, on_fleet_error, on_http, on_refused, on_too_deep
from fleet.api.desk import Desk
from fleet.api.document import Document
from fleet.api.gate import Gate
from fleet.api.problems import Refused
from fleet.config.serving import Api
from fleet.errors import FleetError

if TYPE_CHECKING:
    from litestar.types import ASGIApp

ABOUT = (
    "One control plane for fleets of coding agents. Every object is the one that the command of the same question "
    "prints with --json. Errors are problem details (RFC 9457)."
)


def make_app(desk: Desk, api: Api) -> ASGIApp:
    """The application behind its gate."""
    registry = CollectorRegistry()
    inner = make_routes(desk, api, registry)
    return Gate(metrics.Counting(inner, registry), api, desk.tokens, desk.failed, page=dashboard.open_paths())


def make_routes(desk: Desk | None, api: Api, registry: CollectorRegistry | None = None) -> Litestar:
    """The routes alone; without a desk they can be described and not be used."""
    return Litestar(
        [
            *(*looking.ROUTES, *reading.ROUTES, *steering.ROUTES, *streaming.ROUTES, *metrics.ROUTES),
            *dashboard.routes(),
        ],
        state=State({"desk": desk, "registry": registry}),
        openapi_config=OpenAPIConfig(
            title="Fleet",
            version=__version__,
            description=ABOUT,
            path="/v1/fleet/openapi.json",
            render_plugins=[Document(path="/", media_type=MediaType.JSON)],
            components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
            security=[{"token": []}],
            use_handler_docstrings=True,
        ),
        exception_handlers={
            Refused: on_refused,
            FleetError: on_fleet_error,
            HTTPException: on_http,
            RecursionError: on_too_deep,
            Exception: on_bug,
        },
        request_max_body_size=api.max_body_kib << 10,
        logging_config=None,
        debug=False,
    )
