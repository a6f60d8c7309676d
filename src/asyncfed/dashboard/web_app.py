"""The web application: pages, questions about runs, and the stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from asyncfed.core.errors import AsyncFedError
from asyncfed.dashboard.access import Access
from asyncfed.dashboard.action_routes import ActionRoutes
from asyncfed.dashboard.alert_rules import DEFAULTS, Rule
from asyncfed.dashboard.alerts import Alerts
from asyncfed.dashboard.answers import ANSWERS, Compute
from asyncfed.dashboard.client_page import NoSuchClientError
from asyncfed.dashboard.compare import COMPARED_AXES, MOST_COMPARED, make_comparison
from asyncfed.dashboard.event_stream import MOST_STREAMS, ChangeStream
from asyncfed.dashboard.guard import Guard, JsonResponse, json_error, viewer_of
from asyncfed.dashboard.jobs import Jobs
from asyncfed.dashboard.kept_answers import KeptAnswers
from asyncfed.dashboard.query import BadQueryError, Query
from asyncfed.dashboard.run_folder import NoSuchRunError, RunFolder
from asyncfed.dashboard.run_watch import RunWatch
from asyncfed.dashboard.site_scope import card_for_site
from asyncfed.store.error_messages import explain_damage

ASSETS = Path(__file__).parent / "assets"


class Dashboard:
    """What the requests of one dashboard share.

    Args:
        folder: the folder of runs, or one run's file.
        access: who may see what.
        rules: when an alert is raised.
        tell: called with every alert; it must not block.
    """

    def __init__(
        self,
        folder: Path,
        access: Access,
        rules: tuple[Rule, ...] = DEFAULTS,
        tell: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.access = access
        self.watch = RunWatch(RunFolder(folder))
        self.alerts = Alerts(self.watch, rules, tell)
        self.stream = ChangeStream(self.watch, self.alerts)
        self.kept = KeptAnswers()
        self.jobs = Jobs()

    def app(self) -> Starlette:
        """The application for a web server."""
        routes = [
            Route("/", self.page),
            Route("/api/runs", self.runs),
            *(Route(f"/api/runs/{{run}}{rest}", partial(self.answer, compute)) for rest, compute in ANSWERS.items()),
            *ActionRoutes(self.watch, self.access, self.jobs).routes(),
            Route("/api/compare", self.compare),
            Route("/api/alerts", self.alert_list),
            Route("/api/stream", self.events),
            Mount("/assets", StaticFiles(directory=ASSETS)),
        ]
        errors: dict[Any, Any] = {
            NoSuchRunError: _no_run,
            NoSuchClientError: _bad_request(404),
            BadQueryError: _bad_request(400),
            AsyncFedError: _bad_request(422),
        }
        guard = Middleware(Guard, access=self.access)
        return Starlette(routes=routes, middleware=[guard], exception_handlers=errors, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(self.stream.look_for_ever())
        try:
            yield
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await self.jobs.close()

    async def page(self, request: Request) -> Response:
        """The only page; what it shows is in its script."""
        return FileResponse(ASSETS / "index.html", media_type="text/html; charset=utf-8")

    async def runs(self, request: Request) -> Response:
        """`GET /api/runs`."""
        viewer = viewer_of(request)
        if viewer.run is not None:
            card = await run_in_threadpool(self.watch.card, viewer.run)
            site = {"run": viewer.run, "client": viewer.client}
            return JsonResponse({"folder": None, "site": site, "runs": [card_for_site(card)]})
        cards = await run_in_threadpool(self.watch.cards)
        return JsonResponse({"folder": str(self.watch.folder.path), "site": None, "runs": cards})

    async def answer(self, compute: Compute, request: Request) -> Response:
        """A question about one run. What was answered is kept until the run changes: many pages ask the same."""
        viewer, name = viewer_of(request), request.path_params["run"]
        if viewer.run not in (None, name):
            return json_error(403, "This link is for another run.")
        client = request.path_params.get("client", -1)
        if viewer.client is not None and client not in (-1, viewer.client):
            return json_error(403, "This link is for another client.")
        view = self.watch.followed(name)
        if view is None:
            view = await run_in_threadpool(self.watch.view, name)
        query = Query(request.query_params, client)
        question = (viewer, request.url.path, request.url.query)
        body = await self.kept.get(question, view, lambda: compute(view, viewer, query))
        return Response(body, media_type="application/json")

    async def compare(self, request: Request) -> Response:
        """`GET /api/compare`."""
        query = Query(request.query_params)
        names = [name for name in query.text("runs", longest=20_000).split(",") if name]
        viewer = viewer_of(request)
        if viewer.run is not None:
            return json_error(403, "The link of a site shows one run.")
        if len(names) > MOST_COMPARED:
            raise BadQueryError(f"runs names {len(names)} runs; at most {MOST_COMPARED} are compared.")
        axis, metric = query.choice("axis", COMPARED_AXES), query.text("metric") or "objective"

        def compute() -> dict[str, Any]:
            views = [self.watch.view(name) for name in names]
            with explain_damage(self.watch.folder.path, "row"):
                return make_comparison(views, axis, metric)

        return JsonResponse(await run_in_threadpool(compute))

    async def alert_list(self, request: Request) -> Response:
        """`GET /api/alerts`. They are about all clients, so a site sees none."""
        if viewer_of(request).is_site:
            return JsonResponse({"rules": [], "fired": []})
        rules = [{"rule": rule.kind, "limit": rule.limit, "text": rule.text} for rule in self.alerts.rules]
        return JsonResponse({"rules": rules, "fired": list(reversed(self.alerts.fired))})

    async def events(self, request: Request) -> Response:
        """`GET /api/stream`."""
        viewer = viewer_of(request)
        names = [name for name in request.query_params.get("runs", "").split(",") if name][:MOST_COMPARED]
        if viewer.run is not None and any(name != viewer.run for name in names):
            return json_error(403, "This link is for another run.")
        if self.stream.readers >= MOST_STREAMS:
            return json_error(503, f"{MOST_STREAMS} pages are open already; close some.")
        return StreamingResponse(self.stream.events(names, viewer), media_type="text/event-stream")


def _no_run(request: Request, error: Exception) -> Response:
    return json_error(404, f"There is no run {str(error)[:200]!r} in this folder, or it lies outside of it.")


def _bad_request(status: int) -> Any:
    def answer(request: Request, error: Exception) -> Response:
        is_path_hidden = viewer_of(request).is_site
        return json_error(status, "This cannot be shown." if is_path_hidden else str(error)[:2000])

    return answer
