"""Who may see what: the token of a dashboard, links for one site alone, and requests of other origins."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from asyncfed.core.errors import ConfigError

SHORTEST_TOKEN = 12
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAME_ORIGIN = ("same-origin", "none")
"""What Sec-Fetch-Site may say: `none` is an address that somebody typed."""


@dataclass(frozen=True)
class Viewer:
    """Who asks: somebody with the dashboard's token, or with the link of one client of one run."""

    run: str | None = None
    client: int | None = None

    @property
    def is_site(self) -> bool:
        """Whether only one client may be shown."""
        return self.run is not None


@dataclass(frozen=True)
class Access:
    """Decides about every request.

    Args:
        host: the address that the server listens on; the Host header must name it, or this machine itself.
        token: what must be shown; at least 12 characters.
    """

    host: str = "127.0.0.1"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def __post_init__(self) -> None:
        if len(self.token) < SHORTEST_TOKEN or not self.token.isascii() or not self.token.isprintable():
            raise ConfigError(
                f"The token has {len(self.token)} characters; it needs at least {SHORTEST_TOKEN}, printable and ASCII. "
                "Leave it out, and one is made."
            )
        if any(character in self.token for character in ' ;,"\\'):
            raise ConfigError("The token may not contain spaces, quotes, commas, semicolons or backslashes.")

    def viewer(self, shown: str | None) -> Viewer | None:
        """Who has this token; None if nobody has."""
        if shown is None:
            return None
        if hmac.compare_digest(shown.encode(), self.token.encode()):
            return Viewer()
        return self._site_of(shown)

    def site_token(self, run: str, client: int) -> str:
        """A token with which one client of one run can be seen, and nothing else. It is valid as long as the token."""
        scope = base64.urlsafe_b64encode(f"{client}:{run}".encode()).decode().rstrip("=")
        return f"site.{scope}.{self._sign(scope)}"

    def _site_of(self, shown: str) -> Viewer | None:
        kind, _, rest = shown.partition(".")
        scope, _, signature = rest.partition(".")
        if kind != "site" or not hmac.compare_digest(signature.encode(), self._sign(scope).encode()):
            return None
        try:
            client, _, run = base64.urlsafe_b64decode(scope + "=" * (-len(scope) % 4)).decode().partition(":")
            return Viewer(run, int(client))
        except (ValueError, binascii.Error):
            return None

    def _sign(self, scope: str) -> str:
        key = hmac.digest(self.token.encode(), b"asyncfed dashboard, link of one site", hashlib.sha256)
        return hmac.new(key, scope.encode(), hashlib.sha256).hexdigest()

    def allows_host(self, header: str | None) -> bool:
        """Whether the Host header names this server: a page of somebody else whose name leads here does not."""
        name = urlsplit(f"//{header}").hostname if header else None
        if name is None:
            return False
        if name in LOOPBACK_NAMES or name == self.host.lower():
            return True
        return self.host in ("0.0.0.0", "::") and _is_address(name)

    def is_foreign(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of another origin sent this request."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in SAME_ORIGIN:
            return True
        return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
