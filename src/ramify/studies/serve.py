"""The summary of a study as a local web page, with the report of any run on request."""

from __future__ import annotations

import re
import secrets
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from ramify.core.errors import RamifyError, SimulationError
from ramify.studies.ledger import Ledger
from ramify.studies.page import page, write_run_of_study


def server(path: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server for a ledger on 127.0.0.1; ``server_port`` is its port, ``serve_forever`` runs it.

    It answers only requests for 127.0.0.1 or localhost: a foreign name that resolves to this
    machine (DNS rebinding) is refused. A request that starts work needs the token that the links of
    the summary carry: another web site can send a request, but cannot read that page.
    """
    one_at_a_time, token = Lock(), secrets.token_urlsafe(16)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers.get("Host", "")
            if not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", host):
                self._say(403, "this server answers only to 127.0.0.1 and localhost")
                return
            asked, _, proof = self.path.partition("?token=")
            wanted = re.fullmatch(r"/run/(\d{1,9})(?:/([0-9a-f]+))?", asked)
            if wanted and not secrets.compare_digest(proof.encode(), token.encode()):
                self._say(403, "a run is reported through its link on the summary page, /")
                return
            try:
                if self.path == "/":
                    link = f"/run/{{}}/{{}}?token={token}".format
                    self._answer(200, page(path, link))
                elif wanted:
                    self._answer(200, self._report(int(wanted[1]), wanted[2] or ""))
                else:
                    self._say(404, "the pages are / and /run/NUMBER")
            except RamifyError as error:
                self._say(404, str(error))
            except OSError:
                raise  # the client has gone
            except Exception as error:
                self._say(500, f"cannot write this page: {type(error).__name__}: {error}")

        def _report(self, number: int, mark: str) -> str:
            with one_at_a_time, tempfile.TemporaryDirectory() as folder:
                target = Path(folder) / "run.html"
                with Ledger(path) as ledger:
                    if not ledger.row(number).key.hex().startswith(mark):
                        raise SimulationError(
                            f"the study has changed and run {number} is another run now; reload "
                            "the summary"
                        )
                write_run_of_study(path, number, target)
                return target.read_text(encoding="utf-8")

        def _say(self, code: int, text: str) -> None:
            self._answer(code, f"{text}\n", "text/plain")

        def _answer(self, code: int, text: str, kind: str = "text/html") -> None:
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")  # it would hold the token
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the terminal is the user's."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
