# SPDX-License-Identifier: MIT
#
# kernel_client.py - a front end for the tests of the kernel, on plain sockets of
# ZeroMQ: it can also send what no front end would.

import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import time
import uuid

import zmq

import launch

DELIMITER = b"<IDS|MSG>"
PATIENCE = 60000    # milliseconds; a machine may be slow
KEY = "a key of the test"


def free_ports(n):
    """Ports that nobody uses now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Kernel:
    CHANNELS = {"shell": zmq.DEALER, "control": zmq.DEALER,
                "stdin": zmq.DEALER, "iopub": zmq.SUB, "hb": zmq.REQ}

    def __init__(self, home, key=KEY, words=(), transport="tcp", queue=1000,
                 **variables):
        self.key, self.session, self.queue = key, uuid.uuid4().hex, queue
        if transport == "tcp":
            where, ports = "127.0.0.1", free_ports(len(self.CHANNELS))
        else:
            where, ports = os.path.join(home, "ipc"), range(1, 6)
        self.connection = {"transport": transport, "ip": where, "key": key,
                           "signature_scheme": "hmac-sha256"}
        for name, port in zip(self.CHANNELS, ports):
            self.connection[name + "_port"] = port
        self.path = os.path.join(home, "connection.json")
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(self.connection, f)
        self.process = subprocess.Popen(
            [launch.NACRE, *words, "--kernel", self.path],
            env=launch.surroundings(home, **variables), cwd=home,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        self.context = zmq.Context()
        for name, kind in self.CHANNELS.items():
            setattr(self, name, self.connect(name, kind))
        self.iopub.subscribe(b"")
        self.wait_until_heard()

    def connect(self, name, kind):
        s = self.context.socket(kind)
        s.linger = 0
        s.rcvhwm = self.queue   # messages that wait here to be received
        s.setsockopt(zmq.IDENTITY, self.session.encode())
        between = "-" if self.connection["transport"] == "ipc" else ":"
        s.connect("%s://%s%s%s" % (
            self.connection["transport"], self.connection["ip"], between,
            self.connection[name + "_port"]))
        return s

    def wait_until_heard(self):
        """What is published before iopub is connected is lost: asks until
        something arrives there, and reads the rest of it."""
        asked = 0
        while not asked or not self.iopub.poll(100):
            self.send("shell", "kernel_info_request", {})
            asked += 1
            self.receive("shell")
        end = self.send("shell", "kernel_info_request", {})
        self.receive("shell")
        while self.receive("iopub")["parent_header"].get("msg_id") != end or \
                self.last["content"]["execution_state"] != "idle":
            pass

    # ---- messages

    def frames(self, kind, content, header=None, key=None):
        header = header or {
            "msg_id": uuid.uuid4().hex, "msg_type": kind, "version": "5.3",
            "session": self.session, "username": "test",
            "date": "2026-01-01T00:00:00Z"}
        parts = [json.dumps(p).encode() for p in (header, {}, {}, content)]
        return header["msg_id"], [DELIMITER, self.sign(parts, key), *parts]

    def sign(self, parts, key=None):
        key = self.key if key is None else key
        if not key:
            return b""
        return hmac.new(key.encode(), b"".join(parts),
                        hashlib.sha256).hexdigest().encode()

    def send(self, channel, kind, content, **more):
        name, frames = self.frames(kind, content, **more)
        getattr(self, channel).send_multipart(frames)
        return name

    def receive(self, channel, wait=PATIENCE):
        s = getattr(self, channel)
        assert s.poll(wait), f"nothing on {channel}, {self.said()}"
        frames = s.recv_multipart()
        at = frames.index(DELIMITER)
        parts = frames[at + 2:]
        assert frames[at + 1] == self.sign(parts), "a wrong signature"
        header, parent, _, content = map(json.loads, parts)
        self.last = {"header": header, "parent_header": parent,
                     "type": header["msg_type"], "content": content}
        return self.last

    def wait_for(self, kind):
        """The content of the next message of this kind that is published."""
        while self.receive("iopub")["type"] != kind:
            pass
        return self.last["content"]

    def said(self):
        """What the kernel wrote to its log, if it has ended."""
        if self.process.poll() is None:
            return "the kernel runs"
        return "the kernel has ended: " + self.process.stderr.read().decode()

    # ---- requests

    def published(self, name):
        """What is published for a request until it is done, without the
        states."""
        found = []
        while True:
            m = self.receive("iopub")
            if m["parent_header"].get("msg_id") != name:
                continue
            if m["type"] != "status":
                found.append(m)
            elif m["content"]["execution_state"] == "idle":
                return found

    def ask(self, kind, content, channel="shell"):
        """A request: the content of its reply, and what is published."""
        name = self.send(channel, kind, content)
        m = self.receive(channel)
        assert m["parent_header"]["msg_id"] == name, m
        assert m["type"] == kind.replace("_request", "_reply"), m
        return m["content"], self.published(name)

    def start(self, code, **more):
        return self.send("shell", "execute_request", {
            "code": code, "silent": False, "store_history": True,
            "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": True, **more})

    def finish(self, name):
        m = self.receive("shell")
        assert m["parent_header"]["msg_id"] == name, m
        return m["content"], self.published(name)

    def run(self, code, **more):
        return self.finish(self.start(code, **more))

    def text(self, code):
        """What a cell prints and shows."""
        reply, found = self.run(code)
        assert reply["status"] == "ok", reply
        return "".join(shown(m) for m in found)

    def alive(self):
        return self.text("1 + 1") == "2"

    # ---- the process

    def session_pid(self):
        return int(self.text('io.open "/proc/self/stat":read "n"'))

    def is_sanitized(self):
        """Does AddressSanitizer keep what is freed?"""
        with open(f"/proc/{self.pid}/maps", encoding="ascii") as f:
            return "asan" in f.read()

    def memory(self):
        """The bytes that the session has in memory."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        if self.process.poll() is None:
            self.send("control", "shutdown_request", {"restart": False})
            try:
                assert self.process.wait(20) == 0, self.said()
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.stdout.close()
        self.process.stderr.close()
        self.context.destroy(0)
        return self.process.wait()


def shown(message):
    """The text of a message of iopub."""
    content = message["content"]
    if message["type"] == "stream":
        return content["text"]
    return content.get("data", {}).get("text/plain", "")


def gone(pid, seconds=20):
    """Does a process end?"""
    for _ in range(seconds * 100):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.01)
    return False
