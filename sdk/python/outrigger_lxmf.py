"""Lets a host send and receive LXMF messages over Reticulum: runs one node with the packages `rns` and `lxmf`, and speaks JSON
lines on standard input and output with whoever started it. Python 3.9 or newer.

    python3 outrigger_lxmf.py FOLDER

FOLDER has `node.json`, written by the host: `{"displayName": …, "announceEveryS": …, "interfaces": [{"listen": PORT} |
{"connect": PORT} | {"udp": {"listen": PORT, "forward": PORT}}, …]}`. Ports are on loopback; there are no other interfaces. The
identity of the node, what Reticulum remembers and messages that the host has not taken yet are kept in FOLDER.

The host says, one object a line: `{"do": "send", "id": …, "destination": …, "title": …, "content": …, "method": …, "replyTo": …}`,
`{"do": "announce"}`, `{"do": "stored", "hash": …}`. The end of standard input ends the node.

The node says: `{"t": "ready", …}` once, or `{"t": "fatal", "code": …, "message": …}`; `accepted` or `refused` for every send;
`state` for every change of a message; `received` for every message that came, again after a restart until the host says that it
is stored; `announce` for everybody who says that they are there.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

SUPPORTED = {"LXMF": (1,), "RNS": (1,)}
MAX_CONTENT = 1 << 20
MAX_PENDING = 1024
PATH_PATIENCE_S = 8.0
STATE_INTERVAL_S = 0.1


class Out:
    """Standard output, for the protocol only: what anybody else prints goes to standard error."""

    def __init__(self):
        self.file = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self.lock = threading.Lock()

    def say(self, **fields):
        line = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        with self.lock:
            while line:
                line = line[self.file.write(line) :]


def leave(code):
    """Ends at once: the threads of Reticulum would keep an ordinary exit waiting."""
    sys.stderr.flush()
    os._exit(code)


def fatal(out, code, message):
    out.say(t="fatal", code=code, message=message)
    leave(78)


def load(out):
    try:
        import RNS
        import LXMF
    except ImportError as error:
        fatal(out, "packages_missing", f"{error}; `pip install lxmf` installs what is missing")
    versions = {}
    for package in (RNS, LXMF):
        name = package.__name__
        version = getattr(package, "__version__", "unknown")
        versions[name.lower()] = version
        if version.split(".")[0] not in [str(major) for major in SUPPORTED[name]]:
            fatal(out, "version_unsupported", f"{name.lower()} {version} is not supported; 1.x is")
    return RNS, LXMF, versions


def configuration(node):
    """The configuration file of Reticulum: no shared instance, no interface beyond loopback."""
    lines = ["[reticulum]", "enable_transport = No", "share_instance = No", "panic_on_interface_error = No"]
    lines += ["[logging]", "loglevel = 3", "[interfaces]"]
    for number, interface in enumerate(node["interfaces"]):
        lines += [f"[[loopback {number}]]", "enabled = yes"]
        if "listen" in interface:
            lines += ["type = TCPServerInterface", "listen_ip = 127.0.0.1", f"listen_port = {int(interface['listen'])}"]
        elif "connect" in interface:
            lines += ["type = TCPClientInterface", "target_host = 127.0.0.1", f"target_port = {int(interface['connect'])}"]
        else:
            ports = interface["udp"]
            lines += ["type = UDPInterface", "listen_ip = 127.0.0.1", f"listen_port = {int(ports['listen'])}"]
            lines += ["forward_ip = 127.0.0.1", f"forward_port = {int(ports['forward'])}"]
    return "\n".join(lines) + "\n"


def write(path, data):
    """Either the whole file is there afterwards or it is as it was."""
    partial = f"{path}.partial"
    with open(partial, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


class Node:
    def __init__(self, out, folder, RNS, LXMF, versions):
        self.out, self.RNS, self.LXMF = out, RNS, LXMF
        with open(os.path.join(folder, "node.json"), encoding="utf-8") as file:
            settings = json.load(file)
        self.announce_every = float(settings["announceEveryS"])
        self.inbox = os.path.join(folder, "inbox")
        config = os.path.join(folder, "reticulum")
        for each in (self.inbox, config):
            os.makedirs(each, mode=0o700, exist_ok=True)
        write(os.path.join(config, "config"), configuration(settings).encode())
        RNS.Reticulum(configdir=config, logdest=lambda text: sys.stderr.write(f"{text}\n"))
        path = os.path.join(folder, "identity")
        if os.path.exists(path):
            self.identity = RNS.Identity.from_file(path)
            if self.identity is None:
                fatal(out, "identity_damaged", f"{path} is not an identity; it was left as it is")
        else:
            self.identity = RNS.Identity()
            write(path, self.identity.get_private_key())
            os.chmod(path, 0o600)
        self.router = LXMF.LXMRouter(identity=self.identity, storagepath=os.path.join(folder, "router"))
        self.me = self.router.register_delivery_identity(self.identity, display_name=settings["displayName"])
        self.states = {
            LXMF.LXMessage.GENERATING: "generating",
            LXMF.LXMessage.OUTBOUND: "outbound",
            LXMF.LXMessage.SENDING: "sending",
            LXMF.LXMessage.SENT: "sent",
            LXMF.LXMessage.DELIVERED: "delivered",
            LXMF.LXMessage.REJECTED: "rejected",
            LXMF.LXMessage.CANCELLED: "cancelled",
            LXMF.LXMessage.FAILED: "failed",
        }
        self.methods = {
            LXMF.LXMessage.OPPORTUNISTIC: "opportunistic",
            LXMF.LXMessage.DIRECT: "direct",
            LXMF.LXMessage.PROPAGATED: "propagated",
            LXMF.LXMessage.PAPER: "paper",
        }
        # Messages on their way, and what was last said of each. The watcher sleeps while there are none.
        self.pending = {}
        self.something_pending = threading.Condition()
        self.announce_now = threading.Event()
        self.known = set()
        self.router.register_delivery_callback(self.received)
        RNS.Transport.register_announce_handler(Announces(self))
        out.say(t="ready", address=self.me.hash.hex(), identity=self.identity.hash.hex(), **versions)
        self.repeat_unstored()
        for work in (self.watch_states, self.keep_announcing):
            threading.Thread(target=work, daemon=True).start()

    # What the host asks for.

    def send(self, request):
        """Runs in a thread of its own, because a way to the destination may have to be found first."""
        number = request["id"]
        try:
            destination = bytes.fromhex(request["destination"])
            identity = self.find(destination)
            if identity is None:
                self.out.say(t="refused", id=number, reason="no_path")
                return
            message = self.compose(request, identity)
            if message.get_destination().hash != destination:
                self.out.say(t="refused", id=number, reason="invalid_destination")
                return
            if message.desired_method == self.LXMF.LXMessage.PROPAGATED and not self.router.outbound_propagation_node:
                self.out.say(t="refused", id=number, reason="no_path")
                return
            message.pack()
            with self.something_pending:
                if len(self.pending) >= MAX_PENDING:
                    self.out.say(t="refused", id=number, reason="queue_full")
                    return
                # Said before the router has it, so that no change of its state comes before.
                method = self.methods.get(message.method, "unknown")
                at = int(message.timestamp * 1000)
                self.out.say(t="accepted", id=number, hash=message.hash.hex(), method=method, timestampMs=at)
                self.pending[message.hash] = (message, "outbound")
            self.router.handle_outbound(message)
            with self.something_pending:
                self.something_pending.notify()
        except Exception as error:  # the host must hear of everything
            self.out.say(t="trouble", id=number, message=f"{type(error).__name__}: {error}")

    def find(self, destination):
        """The identity behind an address: known, or asked for and waited for."""
        identity = self.RNS.Identity.recall(destination)
        if identity is None:
            self.RNS.Transport.request_path(destination)
            until = time.monotonic() + PATH_PATIENCE_S
            while identity is None and time.monotonic() < until:
                time.sleep(0.05)
                identity = self.RNS.Identity.recall(destination)
        return identity

    def compose(self, request, identity):
        RNS, LXMF = self.RNS, self.LXMF
        wanted = {name: method for method, name in self.methods.items()}
        to = RNS.Destination(identity, RNS.Destination.OUT, RNS.Destination.SINGLE, "lxmf", "delivery")
        fields = {}
        if request.get("replyTo"):
            fields[LXMF.FIELD_REPLY_TO] = bytes.fromhex(request["replyTo"])
        return LXMF.LXMessage(
            to,
            self.me,
            request["content"],
            request.get("title") or "",
            fields=fields,
            desired_method=wanted.get(request.get("method"), LXMF.LXMessage.DIRECT),
        )

    def stored(self, request):
        name = request["hash"]
        if len(name) == 64 and all(digit in "0123456789abcdef" for digit in name):
            try:
                os.unlink(os.path.join(self.inbox, name))
            except FileNotFoundError:
                pass

    def announce(self, _request):
        self.announce_now.set()

    # What the network does.

    def received(self, message):
        LXMF = self.LXMF
        title, title_lossy = text(message.title)
        content, content_lossy = text(message.content)
        fields = message.fields if isinstance(message.fields, dict) else {}
        reply_to = fields.get(LXMF.FIELD_REPLY_TO)
        report = {
            "t": "received",
            "hash": message.hash.hex(),
            "source": message.source_hash.hex(),
            "destination": message.destination_hash.hex(),
            "title": title,
            "content": content,
            "lossy": title_lossy or content_lossy,
            "method": self.methods.get(message.method, "unknown"),
            "timestampMs": max(0, int(message.timestamp * 1000)),
            "attachments": attachments(fields, LXMF),
            "replyTo": reply_to.hex() if isinstance(reply_to, bytes) and len(reply_to) == 32 else None,
            "rssi": message.rssi,
            "snr": message.snr,
            "quality": message.q,
            "verified": bool(message.signature_validated),
        }
        # The sender has its proof already; so it is on disk before anything else happens.
        write(os.path.join(self.inbox, report["hash"]), json.dumps(report).encode())
        self.out.say(**report)

    def repeat_unstored(self):
        for name in sorted(os.listdir(self.inbox)):
            path = os.path.join(self.inbox, name)
            if name.endswith(".partial"):
                os.unlink(path)
                continue
            with open(path, "rb") as file:
                self.out.say(**json.load(file))

    def heard(self, address, identity, app_data):
        name = self.LXMF.display_name_from_app_data(app_data)
        hops = self.RNS.Transport.hops_to(address)
        known_hops = hops if hops < self.RNS.Transport.PATHFINDER_M else None
        self.out.say(t="announce", address=address.hex(), identity=identity.hash.hex(), name=name, hops=known_hops)
        if address not in self.known and len(self.known) < 100_000:
            # Whoever is new to us may not know us either.
            self.known.add(address)
            self.announce_now.set()

    def watch_states(self):
        """LXMF has no callback for most changes, so messages on their way are looked at."""
        LXMF = self.LXMF
        final = {"delivered", "rejected", "cancelled", "failed"}
        while True:
            with self.something_pending:
                while not self.pending:
                    self.something_pending.wait()
                pending = list(self.pending.items())
            for name, (message, said) in pending:
                state = self.states.get(message.state, "unknown")
                if state != said:
                    self.out.say(t="state", hash=name.hex(), state=state)
                has_ended = state in final or (state == "sent" and message.method == LXMF.LXMessage.PROPAGATED)
                with self.something_pending:
                    if has_ended:
                        self.pending.pop(name, None)
                    else:
                        self.pending[name] = (message, state)
            time.sleep(STATE_INTERVAL_S)

    def keep_announcing(self):
        """Says that we are there: now and then, when an interface comes up, and when somebody new is heard."""
        online, last = set(), float("-inf")
        while True:
            asked = self.announce_now.wait(0.5)
            up = {id(each) for each in list(self.RNS.Transport.interfaces) if getattr(each, "online", False)}
            is_new, online = bool(up - online), up
            since = time.monotonic() - last
            if since >= self.announce_every or ((asked or is_new) and since >= 1.0):
                self.announce_now.clear()
                self.router.announce(self.me.hash)
                last = time.monotonic()
            elif is_new:
                online = set()  # too soon after the last one: the next look is the first again
            if asked and since < 1.0:
                time.sleep(1.0 - since)


class Announces:
    """What Reticulum calls when somebody says that they are there."""

    aspect_filter = "lxmf.delivery"

    def __init__(self, node):
        self.node = node

    def received_announce(self, destination_hash, announced_identity, app_data):
        self.node.heard(destination_hash, announced_identity, app_data)


def text(data):
    data = data if isinstance(data, bytes) else b""
    try:
        whole, lossy = data.decode("utf-8"), False
    except UnicodeDecodeError:
        whole, lossy = data.decode("utf-8", "replace"), True
    return whole[:MAX_CONTENT], lossy or len(whole) > MAX_CONTENT


def attachments(fields, LXMF):
    """Names and sizes; the content stays where it is. What has another shape than it should is left out."""
    found = []
    files = fields.get(LXMF.FIELD_FILE_ATTACHMENTS)
    for entry in files[:64] if isinstance(files, list) else []:
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], bytes):
            name = entry[0] if isinstance(entry[0], str) else text(entry[0])[0]
            found.append({"kind": "file", "name": name[:256], "size": len(entry[1])})
    for kind, field in (("image", LXMF.FIELD_IMAGE), ("audio", LXMF.FIELD_AUDIO)):
        entry = fields.get(field)
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], bytes):
            found.append({"kind": kind, "name": None, "size": len(entry[1])})
    telemetry = fields.get(LXMF.FIELD_TELEMETRY)
    if isinstance(telemetry, bytes):
        found.append({"kind": "telemetry", "name": None, "size": len(telemetry)})
    return found


def main():
    out = Out()
    if sys.version_info < (3, 9):
        fatal(out, "version_unsupported", f"Python {sys.version.split()[0]} is too old; 3.9 or newer is needed")
    RNS, LXMF, versions = load(out)
    try:
        node = Node(out, sys.argv[1], RNS, LXMF, versions)
    except Exception as error:
        fatal(out, "start_failed", f"{type(error).__name__}: {error}")
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["do"] == "send":
            threading.Thread(target=node.send, args=(request,), daemon=True).start()
        elif request["do"] in ("stored", "announce"):
            getattr(node, request["do"])(request)
    node.router.exit_handler()
    RNS.Reticulum.exit_handler()
    leave(0)


if __name__ == "__main__":
    main()
