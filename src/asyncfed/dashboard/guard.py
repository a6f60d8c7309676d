"""The check before every request: its host, its origin and its token; and the headers of every answer."""

from __future__ import annotations

import json
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asyncfed.dashboard.access import SAME_ORIGIN, Access, Viewer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}

NO_TOKEN = (
    "This dashboard is shown only with its token. The terminal that runs `asyncfed dashboard` prints the whole "
    "address, http://…/?token=…; open that. A site asks the operator for its own link."
)


class JsonResponse(Response):
    """Plain JSON in which every number is finite; nobody keeps a copy."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content)


def to_json(content: Any) -> bytes:
    """JSON in few bytes; a number that is not finite is an error, for no browser could read it."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def json_error(status: int, text: str) -> Response:
    """An error that a page can show."""
    return JsonResponse({"error": text}, status)


class Guard:
    """Lets a request through to `app` if it may pass; `scope["viewer"]` then says who asks.

    Args:
        app: the application behind it.
        access: who may see what.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # there are none
        else:
            is_api = scope["path"].startswith("/api")
            answer = self._refuse(scope, is_api)
            await (answer or self._app)(scope, receive, _with_headers(send, is_api))

    def _refuse(self, scope: Scope, is_api: bool) -> Response | None:
        """The answer to a request that may not pass, or that brings a token to be kept; None to let it through."""
        headers = Headers(scope=scope)
        if not self._access.allows_host(headers.get("host")):
            return json_error(403, "The Host header names another server. Open the address that the terminal shows.")
        if is_api and self._access.is_foreign(headers):
            return json_error(403, "The request comes from a page of another origin.")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        shown = query.pop("token", None)
        if shown is not None and not is_api:
            if self._access.viewer(shown) is None:
                return _no_token(is_api)
            return _keep_token(scope, shown, query, headers)
        viewer = self._access.viewer(_bearer(headers) or _cookie(headers, cookie_name(scope)))
        if viewer is None:
            return _no_token(is_api)
        scope["viewer"] = viewer
        return None


def viewer_of(request: Request) -> Viewer:
    """Who sent this request."""
    viewer: Viewer = request.scope["viewer"]
    return viewer


def cookie_name(scope: Scope) -> str:
    """Cookies are shared by all ports of a machine: each dashboard has one of its own."""
    server = scope.get("server") or ("", 0)
    return f"asyncfed-{server[1] or 0}"


def _no_token(is_api: bool) -> Response:
    if is_api:
        return json_error(401, NO_TOKEN)
    return HTMLResponse(f"<!doctype html><title>AsyncFed</title><h1>Token needed</h1><p>{NO_TOKEN}</p>", 401)


def _keep_token(scope: Scope, token: str, query: dict[str, str], headers: Headers) -> Response:
    """Keep the token as a cookie and go on to the same address without it."""
    address = "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(query)}" if query else "")
    if headers.get("sec-fetch-site") in (None, *SAME_ORIGIN):
        answer: Response = RedirectResponse(address, 303)
    else:
        # Whoever comes from a link in a mail would be redirected without the cookie, which is for this site alone.
        safe = address.replace("&", "&amp;").replace('"', "%22").replace("<", "%3C")
        refresh = f'<meta http-equiv="refresh" content="0; url={safe}">'
        answer = HTMLResponse(f"<!doctype html>{refresh}<title>AsyncFed</title>")
    answer.set_cookie(cookie_name(scope), token, httponly=True, samesite="strict", path="/")
    return answer


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token else None


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _with_headers(send: Send, is_api: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if is_api:
                headers["cache-control"] = "no-store"
            else:
                headers.setdefault("cache-control", "no-cache")
        await send(message)

    return send_with_headers
