"""What stands before every request: the token, the server's name, other sites, headers that browsers obey.

A token comes as `Authorization: Bearer …`, or from the page in a cookie that holds a digest of it. Comparisons take the
same time whatever they compare. Neither logs nor URLs ever hold a token.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.serve.body import Bodies
from weft.serve.config import ServeConfig
from weft.serve.refusal import Refusal, error

HEAD, FIELDS = 16 << 10, 100  # bytes of the address and the headers, and how many headers
READING = ("GET", "HEAD", "OPTIONS")
OPEN = ("/livez", "/readyz", "/login", "/style.css", "/page.css")  # need no token
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
LOGIN = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>weft</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="/style.css"><link rel="stylesheet" href="/page.css"></head><body><main class="login">
<h1>weft</h1><form method="post" action="/login"><p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button class="action">Enter</button></p>{said}</form></main></body></html>"""
WRONG = '<p role="alert" class="failure">This is not the token of this server.</p>'


class Protection:
    """Middleware around the whole application."""

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self.app, self.secret = app, config.secret
        self.host = config.host if config.local and config.secret is None else None
        self.login = None if config.secret is None else Login(config.secret)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    added.setdefault(name, value)
            await send(message)

        refused = self.refused(scope, headers)
        if refused is None and self.login is not None and scope["path"] == "/login":
            refused = await self.login.page(Request(scope, receive))
        await (self.app if refused is None else refused)(scope, receive, guarded)

    def refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Why a request goes no further, if it does not."""
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in headers.raw)
        if size > HEAD or len(headers.raw) > FIELDS:
            return error(431, f"the headers and the address may have {HEAD:,} bytes, in {FIELDS} fields; send fewer")
        if self.host is not None and not is_local(headers.get("host", ""), self.host):
            return error(403, "this server answers to localhost and 127.0.0.1 only; open it by one of these names")
        if scope["method"] not in READING and is_foreign(headers):
            return error(403, "another site sent this request; use the page of this server")
        if self.login is None or scope["path"] in OPEN or self.login.admits(headers):
            return None
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            return RedirectResponse("/login", 303)
        return error(401, "give the token of this server: Authorization: Bearer …", {"www-authenticate": "Bearer"})


class Login:
    """Checks tokens, and gives browsers a cookie for one."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode()
        self.proof = hmac.new(self.secret, b"weft page", sha256).hexdigest()
        self.cookie = f"weft_{self.proof[:8]}"  # servers at other ports of a machine share its cookies
        self.bodies = Bodies(4096, 10.0)

    def admits(self, headers: Headers) -> bool:
        """Whether a request brings the token, or the cookie."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(errors="replace"), self.secret):
            return True
        return hmac.compare_digest(cookie_of(headers, self.cookie).encode(errors="replace"), self.proof.encode())

    async def page(self, request: Request) -> Response:
        """The form, and what becomes of it."""
        if request.method != "POST":
            return HTMLResponse(LOGIN.format(said=""))
        try:
            async with self.bodies.read(request) as body:
                given = parse_qs(body.decode(errors="replace")).get("token", [""])[0]
        except Refusal as refusal:
            return refusal.response()
        if not hmac.compare_digest(given.strip().encode(errors="replace"), self.secret):
            return HTMLResponse(
                LOGIN.format(said='<p role="alert" class="failure">This is not the token of this server.</p>'), 401
            )
        response = RedirectResponse("/", 303)
        response.set_cookie(self.cookie, self.proof, httponly=True, samesite="strict", path="/")
        return response


def cookie_of(headers: Headers, name: str) -> str:
    """The value of a cookie; empty where there is none. Those of other programs of the host may be odd."""
    return cookie_parser(headers.get("cookie", "")).get(name, "")


def is_foreign(headers: Headers) -> bool:
    """Whether a browser says that another site sent a request; programs other than browsers say nothing."""
    site = headers.get("sec-fetch-site")
    if site is not None:  # no script can set it, and where referrers are withheld it is all that browsers say
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    try:
        return origin is not None and urlsplit(origin).netloc != headers.get("host", "")
    except ValueError:  # no address at all, such as http://[
        return True


def is_local(host: str, own: str) -> bool:
    """Whether the name that the client knows the server by is this machine's: a foreign name may lead here as well."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::\d+)?", host)
    name = (found[1] or found[2]) if found else ""
    if name in ("localhost", own):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
