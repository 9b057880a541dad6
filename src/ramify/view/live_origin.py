"""Who may talk to the live viewer: its own page, and programs on this machine; and what that page
has beyond viser's.

A browser lets any page open a WebSocket to this machine, and tells in the header ``Origin`` which
page it was; a foreign name that was made to point here shows in ``Host``. viser checks neither.
"""

from __future__ import annotations

import inspect
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Final

from ramify.core.errors import RamifyError

_HERE: Final = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?")
_LOCK: Final = threading.Lock()


def refusal(headers: Mapping[str, str]) -> str:
    """Why a request with these headers is refused; empty where it is not."""
    host, origin = headers.get("Host", ""), headers.get("Origin")
    if not _HERE.fullmatch(host):
        return "this server answers only to 127.0.0.1 and localhost\n"
    if origin is not None and origin != f"http://{host}":
        return "this server talks only to its own page\n"
    return ""


@contextmanager
def own_page_only() -> Iterator[None]:
    """A viser server that starts meanwhile refuses requests from elsewhere with status 403, and
    serves its page with ours added (live_page.html).
    """
    from websockets.asyncio import server

    plain = server.serve

    def serve(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        async def checked(connection: Any, request: Any) -> Any:
            why = refusal(request.headers)
            if why:
                return connection.respond(403, why)
            if "Accept-Encoding" in request.headers:
                del request.headers["Accept-Encoding"]  # plain text, which can be added to
            found = process_request(connection, request) if process_request else None
            return _with_ours(await found if inspect.isawaitable(found) else found)

        return plain(*arguments, process_request=checked, **options)

    with _LOCK:
        server.serve = serve  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            server.serve = plain  # type: ignore[misc]


def _with_ours(response: Any) -> Any:
    """A response whose page, if it is viser's, has our part in place of its title."""
    title = b"<title>Viser</title>"
    if response is not None and title in response.body:
        part = files("ramify.view").joinpath("live_page.html").read_bytes()
        response.body = response.body.replace(title, part, 1)
        del response.headers["Content-Length"]
        response.headers["Content-Length"] = str(len(response.body))
    return response


def must_refuse_strangers(host: str, port: int) -> None:
    """Ask a server for a WebSocket as a foreign page would; RamifyError where it is granted."""
    lines = ["GET / HTTP/1.1", f"Host: {host}:{port}", "Origin: http://example.invalid"]
    lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "\r\n"]
    with socket.create_connection((host, port), timeout=5.0) as line:
        line.sendall("\r\n".join(lines).encode())
        answer = line.recv(64)
    if not answer.startswith(b"HTTP/1.1 403"):
        raise RamifyError(
            "this version of viser lets any web page talk to the viewer; install another one: "
            "pip install -U 'ramify[view]'"
        )
