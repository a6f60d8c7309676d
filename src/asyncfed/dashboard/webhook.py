"""A webhook: alerts posted as JSON to somebody's address by a thread of its own, with limits on everything."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from asyncfed.core.errors import ConfigError

log = logging.getLogger("asyncfed.dashboard")

TIMEOUT_SECONDS = 5.0
PAUSES_SECONDS = (1.0, 5.0)
"""Before the second and the third attempt; there is no fourth."""

MOST_WAITING = 100


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would lead to an address that nobody chose."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Webhook:
    """Posts alerts one after another; `send` never blocks.

    Args:
        url: where to, http or https.
        pauses: seconds before each attempt after the first.
    """

    def __init__(self, url: str, pauses: tuple[float, ...] = PAUSES_SECONDS) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"The webhook is {url!r}; it must be an address that begins with http:// or https://.")
        self._url = url
        self._pauses = pauses
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue(MOST_WAITING)
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler())
        threading.Thread(target=self._post_for_ever, name="webhook", daemon=True).start()

    def send(self, alert: dict[str, Any]) -> None:
        """Post this alert soon."""
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            log.warning("webhook: %d alerts wait already; this one is not posted", MOST_WAITING)

    def _post_for_ever(self) -> None:
        while True:
            alert = self._waiting.get()
            for pause in (0.0, *self._pauses):
                time.sleep(pause)
                problem = self._post(alert)
                if problem is None:
                    break
            else:
                log.warning("webhook: an alert could not be posted (%s)", problem)

    def _post(self, alert: dict[str, Any]) -> str | None:
        """Post once; what went wrong, or None."""
        request = urllib.request.Request(
            self._url, json.dumps(alert).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                answer.read(1000)
        except (OSError, ValueError) as error:  # HTTP errors and redirects are among them
            return str(error)[:200]
        return None
