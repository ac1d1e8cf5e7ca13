"""Who may ask: tokens, other sites, foreign names for this machine, and the headers that browsers obey."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from weft.errors import WeftError
from weft.serve.config import ServeConfig

TOKEN = "correct-horse-battery-staple"
Client = Callable[..., TestClient]


def test_an_address_that_others_can_reach_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "example.org"):
        with pytest.raises(WeftError, match="--token"):
            ServeConfig(host=host)
        assert not ServeConfig(host=host, token=TOKEN).local
    assert all(ServeConfig(host=host).local for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"))


@pytest.mark.parametrize("token", ["short", "with a blank in it", "ümlaut-ümlaut-ümlaut", "line\nbreak-line-break"])
def test_tokens_that_are_short_or_fit_no_header_are_refused(token: str) -> None:
    with pytest.raises(WeftError, match="token"):
        ServeConfig(token=token)


def test_a_token_comes_from_the_environment_too_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TOKEN", TOKEN)
    assert ServeConfig(host="0.0.0.0").secret == TOKEN
    assert TOKEN not in repr(ServeConfig(token=TOKEN))


def test_without_the_token_only_the_health_is_told(client: Client, picture: bytes) -> None:
    asked = client(token=TOKEN)
    for path in ("/", "/api/v1/models", "/metrics", "/openapi.json", "/docs", "/v2", "/nothing"):
        answer = asked.get(path)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer", path
    assert asked.post("/models/digits", content=picture).status_code == 401
    assert asked.get("/livez").status_code == asked.get("/readyz").status_code == 200
    for wrong in ("Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer é", "Bearer"):
        answer = asked.get("/api/v1/models", headers={"authorization": wrong.encode("latin-1")})
        assert answer.status_code == 401, wrong
    assert asked.get(f"/api/v1/models?token={TOKEN}").status_code == 401  # never in a URL
    right = {"authorization": f"Bearer {TOKEN}"}
    assert asked.get("/api/v1/models", headers=right).status_code == 200
    assert asked.post("/models/digits", content=picture, headers=right).status_code == 200


def test_a_browser_is_led_to_the_form_and_comes_back_with_a_cookie(client: Client) -> None:
    asked = client(token=TOKEN)
    led = asked.get("/docs", headers={"accept": "text/html"})
    assert led.status_code == 303 and led.headers["location"] == "/login"
    assert 'type="password"' in asked.get("/login").text
    wrong = asked.post("/login", data={"token": "<b>wrong</b>"})
    assert wrong.status_code == 401 and "<b>" not in wrong.text and not asked.cookies
    entered = asked.post("/login", data={"token": TOKEN})
    assert entered.status_code == 303 and entered.headers["location"] == "/"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
    assert asked.get("/docs").status_code == 200
    assert asked.post("/login", content=b"x" * 5000).status_code == 413


@pytest.mark.parametrize("other", ['settings={"a":1}', "list[0]=x", "two words=1", "=", ""])
def test_cookies_of_other_programs_of_the_host_keep_nobody_out(client: Client, other: str) -> None:
    asked = client(token=TOKEN)
    own = asked.post("/login", data={"token": TOKEN}).headers["set-cookie"].partition(";")[0]
    asked.cookies.clear()
    assert asked.get("/docs", headers={"cookie": f"{other}; {own}"}).status_code == 200
    assert asked.get("/docs", headers={"cookie": other}).status_code == 401


def test_other_sites_may_send_nothing(client: Client, picture: bytes) -> None:
    asked = client()
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost:1234"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert asked.post("/models/digits", content=picture, headers=headers).status_code == 403, headers
    for headers in (
        {"origin": "http://localhost", "sec-fetch-site": "same-origin"},
        {"origin": "null", "sec-fetch-site": "same-origin"},  # of a page that sends no referrers
        {"origin": "http://localhost"},
        {"sec-fetch-site": "none"},
    ):
        assert asked.post("/models/digits", content=picture, headers=headers).status_code == 200, headers


def test_a_foreign_name_that_leads_to_this_machine_is_not_answered(client: Client) -> None:
    asked = client()
    for host in (
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "",
        "[::1].evil",
        "localhost.evil.example",
    ):
        assert asked.get("/api/v1/models", headers={"host": host}).status_code == 403, host
    for host in ("localhost", "localhost:8000", "127.0.0.1:80", "[::1]:80"):
        assert asked.get("/api/v1/models", headers={"host": host}).status_code == 200, host


def test_browsers_are_told_to_load_nothing_from_elsewhere(client: Client) -> None:
    asked = client()
    for path in ("/docs", "/api/v1/models", "/nothing", "/livez"):
        headers = asked.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'"), path
        assert "http" not in headers["content-security-policy"] and "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in headers


def test_paths_do_not_lead_out_of_the_folders(client: Client, runs: Path) -> None:
    (runs.parent / "secret").mkdir(exist_ok=True)
    asked = client()
    for path in ("../secret", "..%2fsecret", "%2e%2e/secret", "digits/../../secret", "/etc", "digits%00", "a" * 3000):
        for prefix in ("/models/", "/api/v1/models/", "/v2/models/"):
            assert asked.get(prefix + path).status_code in (404, 405), path
            assert asked.post(f"{prefix}{path}/predict", json={"inputs": 1}).status_code in (404, 405), path
