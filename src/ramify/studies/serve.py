"""The summary of a study on this machine's own web address, with the report of any run made when it
is asked for.
"""

from __future__ import annotations

import re
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from ramify.core.errors import RamifyError, SimulationError
from ramify.studies.ledger import Ledger
from ramify.studies.page import page, write_report
from ramify.studies.study import Study


def server(study: Study, port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1; ``server_port`` is its port, ``serve_forever`` runs it.

    It answers to its own address alone: a page from elsewhere whose name was made to point here is
    refused.
    """
    one_at_a_time = Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not re.fullmatch(
                r"(127\.0\.0\.1|localhost)(:\d{1,5})?", self.headers.get("Host", "")
            ):
                self._answer(
                    403, "this server answers to 127.0.0.1 and localhost alone\n", "text/plain"
                )
                return
            wanted = re.fullmatch(r"/run/(\d{1,9})(?:/([0-9a-f]+))?", self.path)
            try:
                if self.path == "/":
                    self._answer(200, page(study, lambda number, mark: f"/run/{number}/{mark}"))
                elif wanted:
                    self._answer(200, self._report(int(wanted[1]), wanted[2] or ""))
                else:
                    self._answer(404, "there is / and there is /run/NUMBER\n", "text/plain")
            except RamifyError as error:
                self._answer(404, f"{error}\n", "text/plain")
            except OSError:
                raise  # whoever asked has gone
            except Exception as error:
                self._answer(
                    500,
                    f"this page could not be made: {type(error).__name__}: {error}\n",
                    "text/plain",
                )

        def _report(self, number: int, mark: str) -> str:
            with one_at_a_time, tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / "run.html"
                now = study.open(study.ledger)  # what the ledger holds at this moment
                with Ledger(study.ledger) as ledger:
                    if not ledger.row(number).key.hex().startswith(mark):
                        raise SimulationError(
                            f"the study has changed, run {number} is another one now; load the "
                            "summary again"
                        )
                write_report(now, number, target)
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
