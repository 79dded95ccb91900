"""A server on loopback that answers as Hugging Face's hub and ModelScope do."""

import contextlib
import hashlib
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from nezha_tf import hub

FIRST, SECOND = "a" * 40, "b" * 40
NOT_THERE, GATED, NO_REVISION = "RepoNotFound", "GatedRepo", "RevisionNotFound"


class HubServer:
    """The server.

    Attributes:
      files: dict of name to bytes of the files of the only model, owner/tiny.
      head: the commit of its branch main; it has no other commit.
      refused: dict of a part of a path to (status, code) that is answered there.
      cut: None, or the place in a file at which answers end.
      asked: list of "METHOD path" of all requests.
      begins: list of the bytes from which files were asked for, where not from the first.
    """

    def __init__(self, files):
        self.files, self.head = files, FIRST
        self.refused, self.cut, self.asked, self.begins = {}, None, [], []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def fetched(self):
        """Returns the names of the files whose contents were asked for, sorted."""
        found = re.findall(r"GET \S+(?:/resolve/\w+/|&FilePath=)(\S+)", "\n".join(self.asked))
        return sorted(set(found))


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments):
            pass

        def do_HEAD(self):
            self._answer(False)

        def do_GET(self):
            self._answer(True)

        def _answer(self, with_body):
            server.asked.append(f"{self.command} {self.path}")
            if self.path.startswith("/api/v1/"):
                self._answer_as_modelscope()
                return
            refusal = next((r for part, r in server.refused.items() if part in self.path), None)
            listed = re.match(r"/api/models/owner/tiny(/(revision|tree)/([^?]+))?(\?|$)", self.path)
            file = re.match(r"/owner/tiny/resolve/([^/]+)/([^?]+)", self.path)
            revision = (listed[3] if listed else file and file[1]) or "main"
            if refusal:
                self._send(refusal[0], b"", {"X-Error-Code": refusal[1]})
            elif not (listed or file):
                self._send(404, b"", {"X-Error-Code": NOT_THERE})
            elif revision not in ("main", server.head):
                self._send(404, b"", {"X-Error-Code": NO_REVISION})
            elif listed and listed[2] == "tree":  # asked for by huggingface_hub 2
                rows = [
                    {"type": "file", "path": name, "size": len(data), "oid": server.head}
                    for name, data in server.files.items()
                ]
                self._send(200, json.dumps(rows).encode(), {})
            elif listed:
                siblings = [{"rfilename": name} for name in server.files]
                found = {"id": "owner/tiny", "sha": server.head, "siblings": siblings}
                self._send(200, json.dumps(found).encode(), {})
            else:
                self._send_file(server.files[file[2]], with_body)

        def _answer_as_modelscope(self):
            file = re.match(r"/api/v1/models/owner/tiny/repo\?.*&FilePath=([^&]+)", self.path)
            if server.refused:
                self._send(403, b"{}", {})
            elif "/models/owner/tiny/repo/files?" in self.path:
                # The files' own commits: the newest is that of the state.
                rows = [
                    {"Path": name, "Type": "blob", "Revision": SECOND, "CommittedDate": 1}
                    for name in server.files
                ]
                rows[0] |= {"Revision": server.head, "CommittedDate": 2}
                rows.append({"Path": "onnx", "Type": "tree", "Revision": "c", "CommittedDate": 3})
                found = {"Code": 200, "Success": True, "Data": {"Files": rows}}
                self._send(200, json.dumps(found).encode(), {"Content-Type": "application/json"})
            elif file:
                self._send(200, server.files[file[1]], {})
            else:
                self._send(404, b"{}", {})

        def _send_file(self, data, with_body):
            tag = hashlib.sha256(data).hexdigest()
            headers = {"X-Repo-Commit": server.head, "ETag": f'"{tag}"', "Accept-Ranges": "bytes"}
            asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
            if not asked or not with_body:
                self._send(200, data, headers, with_body)
                return
            begin = int(asked[1])
            server.begins.append(begin)
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
            self._send(206, data[begin:], headers, begin=begin)

        def _send(self, status, data, headers, with_body=True, begin=0):
            self.send_response(status)
            headers = {"Content-Length": str(len(data)), **headers}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body and self.command == "GET":
                end = len(data) if server.cut is None else max(0, server.cut - begin)
                self.wfile.write(data[:end])
                self.close_connection = end < len(data)

    return Handler


@contextlib.contextmanager
def serving(files):
    """Yields a `HubServer`."""
    server = HubServer(files)
    try:
        yield server
    finally:
        server.close()


def begin_anew(monkeypatch, url, cache, **environment):
    """Lets the next request be as that of a new process: the library reads its environment anew.

    Args:
      monkeypatch: pytest's; undoes all of it.
      url: the hub.
      cache: folder of the library's cache.
      environment: further variables, such as HF_HUB_OFFLINE.
    """
    values = {"HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0", **environment}
    for name in ("HF_TOKEN", "HF_HUB_CACHE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for name in [name for name in sys.modules if name.split(".")[0] == "huggingface_hub"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(hub, "_known", {})
