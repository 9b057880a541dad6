"""The summary of a study on this machine's own web address, with the report of any run made when it is asked for."""

from __future__ import annotations

import re
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ramify.errors import RamifyError
from ramify.studies.page import page, write_report

if TYPE_CHECKING:
    from ramify.studies.study import Study


def server(study: Study, port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1; ``server_port`` is its port, ``serve_forever`` runs it.

    It answers to its own address alone: a page from elsewhere whose name was made to point here is refused.
    """
    one_at_a_time = Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", self.headers.get("Host", "")):
                self._answer(403, "this server answers to 127.0.0.1 and localhost alone\n", "text/plain")
                return
            wanted = re.fullmatch(r"/run/(\d{1,9})", self.path)
            try:
                if self.path == "/":
                    self._answer(200, page(study, lambda number: f"/run/{number}"))
                elif wanted:
                    self._answer(200, self._report(int(wanted[1])))
                else:
                    self._answer(404, "there is / and there is /run/NUMBER\n", "text/plain")
            except RamifyError as error:
                self._answer(404, f"{error}\n", "text/plain")

        def _report(self, number: int) -> str:
            with one_at_a_time, tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / "run.html"
                write_report(study, number, target)
                return target.read_text(encoding="utf-8")

        def _answer(self, code: int, text: str, kind: str = "text/html") -> None:
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the terminal belongs to the user."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
