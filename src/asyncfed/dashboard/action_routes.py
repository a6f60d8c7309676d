"""What a page can start: jobs and links for sites. Only with the dashboard's token, and never from another site."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from asyncfed.dashboard.access import Access
from asyncfed.dashboard.client_page import NoSuchClientError
from asyncfed.dashboard.guard import JsonResponse, json_error, viewer_of
from asyncfed.dashboard.jobs import Job, JobRefusedError, Jobs
from asyncfed.dashboard.query import BadQueryError
from asyncfed.dashboard.run_watch import RunWatch

LONGEST_BODY = 10_000

RESULT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:"
)
"""Of a page that a job wrote: its scripts run in an origin of their own, and nothing can be loaded or sent."""

ONLY_OPERATOR = "The link of a site only shows; the operator of the dashboard can do this."


class ActionRoutes:
    """The routes of jobs and of sites' links.

    Args:
        watch: the runs.
        access: who signs the links.
        jobs: what is running.
    """

    def __init__(self, watch: RunWatch, access: Access, jobs: Jobs) -> None:
        self._watch, self._access, self._jobs = watch, access, jobs

    def routes(self) -> list[Route]:
        """For the application."""
        return [
            Route("/api/runs/{run}/what-if", self.what_if, methods=["POST"]),
            Route("/api/runs/{run}/report", self.report, methods=["POST"]),
            Route("/api/runs/{run}/certificate", self.certificate, methods=["POST"]),
            Route("/api/runs/{run}/export", self.export, methods=["POST"]),
            Route("/api/runs/{run}/site-link", self.site_link, methods=["POST"]),
            Route("/api/jobs/{job}", self.job),
            Route("/api/jobs/{job}/file/{name}", self.file),
        ]

    async def what_if(self, request: Request) -> Response:
        """`POST /api/runs/{id}/what-if {strategy}`."""
        refused = _refuse(request)
        if refused is not None:
            return refused
        path = self._watch.folder.find(request.path_params["run"])
        strategy = _text(await _body(request), "strategy")
        return _begun(lambda: self._jobs.what_if(path, strategy))

    async def report(self, request: Request) -> Response:
        """`POST /api/runs/{id}/report`."""
        refused = _refuse(request)
        if refused is not None:
            return refused
        path = self._watch.folder.find(request.path_params["run"])
        return _begun(lambda: self._jobs.report(path))

    async def certificate(self, request: Request) -> Response:
        """`POST /api/runs/{id}/certificate`."""
        refused = _refuse(request)
        if refused is not None:
            return refused
        path = self._watch.folder.find(request.path_params["run"])
        return _begun(lambda: self._jobs.certificate(path))

    async def export(self, request: Request) -> Response:
        """`POST /api/runs/{id}/export {format}`."""
        refused = _refuse(request)
        if refused is not None:
            return refused
        path = self._watch.folder.find(request.path_params["run"])
        kind = _text(await _body(request), "format")
        return _begun(lambda: self._jobs.export(path, kind))

    async def site_link(self, request: Request) -> Response:
        """`POST /api/runs/{id}/site-link {client}`: the address with which one site sees itself alone."""
        refused = _refuse(request)
        if refused is not None:
            return refused
        run, client = request.path_params["run"], (await _body(request)).get("client")
        card = self._watch.card(run)
        if not isinstance(client, int) or isinstance(client, bool) or not 0 <= client < (card["num_clients"] or 0):
            raise NoSuchClientError(f"The run has no client {str(client)[:40]}.")
        token = self._access.site_token(run, client)
        return JsonResponse({"url": f"http://{request.headers['host']}/?token={token}"})

    async def job(self, request: Request) -> Response:
        """`GET /api/jobs/{job}`."""
        if viewer_of(request).is_site:
            return json_error(403, ONLY_OPERATOR)
        found = self._jobs.find(request.path_params["job"])
        return json_error(404, "There is no such job any more.") if found is None else JsonResponse(found.describe())

    async def file(self, request: Request) -> Response:
        """`GET /api/jobs/{job}/file/{name}`."""
        if viewer_of(request).is_site:
            return json_error(403, ONLY_OPERATOR)
        path = self._jobs.file(request.path_params["job"], request.path_params["name"])
        if path is None:
            return json_error(404, "There is no such file.")
        is_page = path.suffix == ".html"
        return FileResponse(
            path,
            media_type="text/html; charset=utf-8" if is_page else "application/octet-stream",
            filename=None if is_page else path.name,
            headers={"content-security-policy": RESULT_POLICY},
        )


def _refuse(request: Request) -> Response | None:
    if viewer_of(request).is_site:
        return json_error(403, ONLY_OPERATOR)
    if request.headers.get("x-asyncfed") != "1":  # which no form of another site can send
        return json_error(403, "The header X-AsyncFed: 1 is missing.")
    return None


async def _body(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_BODY:
            raise BadQueryError(f"The request has more than {LONGEST_BODY} bytes.")
    try:
        given = json.loads(body or b"{}")
    except ValueError as error:
        raise BadQueryError("The request is not JSON.") from error
    if not isinstance(given, dict):
        raise BadQueryError("The request is no JSON object.")
    return given


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise BadQueryError(f'The request needs a text "{name}".')
    return value


def _begun(begin: Any) -> Response:
    try:
        job: Job = begin()
    except JobRefusedError as error:
        return json_error(409, str(error))
    return JsonResponse({"job": job.name}, 202)
