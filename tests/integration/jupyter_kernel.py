"""A notebook's kernel in the server of a hub's user, driven through the hub's proxy as a browser does: cells by websocket."""

import asyncio
import json
import re
import urllib.parse
import urllib.request
import uuid

import jupyterhub
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect


def spec(python, env):
    """kernel.json of a Python that has ipykernel."""
    return json.dumps({"argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "analysis",
                       "language": "python", "env": env})


class Kernel:
    def __init__(self, hub, name):
        self.hub = hub
        hub.enter()
        self.base = f"http://127.0.0.1:{hub.port}/user/{jupyterhub.USER}"
        self.xsrf = hub.cookie("_xsrf", f"/user/{jupyterhub.USER}/")
        asked = urllib.request.Request(f"{self.base}/api/kernels", json.dumps({"name": name}).encode(),
                                       {"X-XSRFToken": self.xsrf, "Content-Type": "application/json"})
        with hub.web.open(asked, timeout=60) as answer:
            self.id = json.load(answer)["id"]

    def run(self, code, seconds=180):
        """What a cell prints; fails with its traceback."""
        return asyncio.run(asyncio.wait_for(self._run(code), seconds))

    async def _run(self, code):
        asked = HTTPRequest(f"{self.base.replace('http', 'ws', 1)}/api/kernels/{self.id}/channels?_xsrf={urllib.parse.quote(self.xsrf)}")
        self.hub.cookies.add_cookie_header(handler := urllib.request.Request(f"{self.base}/api"))
        asked.headers["Cookie"] = handler.get_header("Cookie")
        socket = await websocket_connect(asked, max_message_size=1 << 28)
        try:
            return await self._cell(socket, code)
        finally:
            socket.close()

    @staticmethod
    async def _cell(socket, code):
        number, text = uuid.uuid4().hex, ""
        header = {"msg_id": number, "msg_type": "execute_request", "username": "", "session": uuid.uuid4().hex, "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
        await socket.write_message(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
        while True:
            message = json.loads(await socket.read_message())
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                text += content["text"]
            elif kind == "error":
                raise AssertionError(text + re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"])))
            elif kind == "status" and content["execution_state"] == "idle":
                return text
