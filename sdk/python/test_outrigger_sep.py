"""The kit as a child of a scripted host, over all three kinds of channels. `python3 sdk/python/test_outrigger_sep.py`

The children are this very file, with SEP_SCENARIO set, or the example extension.
"""

import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.abspath(__file__)
sys.path.insert(0, os.path.dirname(HERE))
import outrigger_sep as sep

EXAMPLE = os.path.join(os.path.dirname(HERE), "examples", "sep_autoreply")
TOKEN = "4f" * 32
BOTH = ["1.1.0", "1.0.0"]
PATIENCE = 20
PERMISSIONS = [
    "contacts.read",
    "events.subscribe",
    "messages.read",
    "messages.send",
    "notifications.create",
    "tools.register",
]


class Plain(sep.Extension):
    name = "plain"

    def __init__(self):
        self.seen = []

    def on_event(self, host, event):
        self.seen.append(event.seq)
        if event.topic == "please.fail":
            raise ValueError("as you wish")
        if event.topic == "please.list":
            found = [message["hash"] for message in host.messages(limit=2)]
            host.log("info", f"found {found}", number=len(found))

    def on_action(self, host, action):
        if action.action == "seen":
            return f"seen {self.seen}"
        if action.action == "denied":
            try:
                host.contacts_list()
            except sep.Refused as refused:
                return sep.ok(f"{refused.code} {refused.slug} {refused.denied} {refused.temporary} {refused.retry_after}")
        if action.action == "long":
            try:
                host.messages_send("aa" * 16, "x" * 100_000)
            except sep.TooLong as trouble:
                return sep.failed(str(trouble))
        if action.action == "panel":
            return sep.ok(panel={"title": "new"})
        if action.action == "impatient":
            try:
                host.within(0.05).get_capabilities()
            except sep.NoAnswer:
                return "nobody answered"
        if action.action == "crowd":
            threads = [threading.Thread(target=host.get_capabilities) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return "all answered"
        return super().on_action(host, action)

    def on_lifecycle(self, host, change):
        host.log("info", f"{change.change} {change.data}")

    def on_shutdown(self, shutdown):
        print(f"goodbye, {shutdown.reason}", flush=True)


class Stubborn(sep.Extension):
    """Its handlers never return."""

    def on_initialize(self, host, welcome):
        if welcome.host["name"] == "unbearable":
            raise ValueError("this host is unbearable")

    def on_event(self, host, event):
        for_ever()

    def on_action(self, host, action):
        try:
            host.messages_list()
        except sep.Cancelled:
            host.detached().log("info", f"given up {host.cancelled}")

    def on_shutdown(self, shutdown):
        for_ever()


class Busy(sep.Extension):
    """Its handlers need the processor for themselves."""

    def on_event(self, host, event):
        while True:
            pass


class Slow(sep.Extension):
    def __init__(self):
        self.free = threading.Event()

    def on_health(self):
        self.free.wait()
        return "tired"

    def on_action(self, host, action):
        self.free.set()


class Modern(sep.Extension):
    lowest = "1.1.0"


SCENARIOS = {"plain": Plain, "stubborn": Stubborn, "busy": Busy, "slow": Slow, "modern": Modern}


def for_ever():
    threading.Event().wait()


class Host:
    """A host as small as it can be: a real process, a real channel, and lines that the test writes and reads."""

    def __init__(self, scenario="plain", way="unix", command=None, environment=()):
        self.folder = tempfile.TemporaryDirectory()
        self.next = 0
        self.lines = queue.Queue(256)
        environment = {"SEP_HOST": "1", "PATH": os.environ["PATH"], "SEP_SCENARIO": scenario, **dict(environment)}
        command = command or [sys.executable, "-B", HERE]
        pass_fds, listener, theirs = (), None, None
        if way == "fd":
            self.channel, theirs = socket.socketpair()
            endpoint, pass_fds = f"fd:{theirs.fileno()}", (theirs.fileno(),)
        elif way == "tcp":
            listener = socket.create_server(("127.0.0.1", 0))
            endpoint = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
        else:
            path = os.path.join(self.folder.name, "s")
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(1)
            endpoint = f"unix:{path}"
        self.child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
        )
        line = {"sep": 1, "endpoint": endpoint, "token": TOKEN, "session": "s", "newer": True}
        self.child.stdin.write(json.dumps(line).encode() + b"\n")
        self.child.stdin.flush()
        if theirs is not None:
            theirs.close()
        if listener is not None:
            listener.settimeout(PATIENCE)
            self.channel, _ = listener.accept()
            self.channel.settimeout(None)
            listener.close()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            stream.close()
        self.channel.close()
        self.folder.cleanup()

    def _read(self):
        try:
            with self.channel.makefile("rb") as lines:
                for line in lines:
                    self.lines.put(json.loads(line))
        except (OSError, ValueError):
            pass
        self.lines.put(None)

    def begin(self, offer=BOTH, name="by hand", frame=65536, calls=8, data_dir=""):
        """Takes the attach and says hello; what was answered is returned."""
        attach = self.hear()
        assert attach["method"] == "host.attach" and attach["params"]["token"] == TOKEN, attach
        assert attach["params"]["sdk"]["language"] == "python"
        self.grant(attach, {"session": "s"})
        return self.ask(
            "sep.initialize",
            protocolVersion=offer[0],
            supportedVersions=offer,
            host={"name": name, "version": "0"},
            extension={"id": "org.example.guest", "version": "1.0.0", "dataDir": data_dir},
            session="s",
            launchReason="first",
            trustLevel="first_party",
            permissions=PERMISSIONS,
            events={"subscribed": [], "denied": [], "ignored": []},
            limits={"maxFrameBytes": frame, "maxRequestsPerSecond": 100, "maxConcurrentRequests": calls},
            platform={"profile": "desktop", "state": "foreground"},
            nowMs=0,
        )

    def say(self, line):
        self.raw(json.dumps(line).encode() + b"\n")

    def raw(self, data):
        self.channel.sendall(data)

    def hear(self):
        line = self.lines.get(timeout=PATIENCE)
        assert line is not None, "the channel is closed"
        return line

    def send(self, method, **params):
        self.next += 1
        self.say({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        return self.next

    def answer(self, id):
        """The answer to a request; what is asked for meanwhile is granted."""
        while True:
            line = self.hear()
            if "method" not in line and line["id"] == id:
                return line
            self.oblige(line)

    def ask(self, method, **params):
        return self.answer(self.send(method, **params))

    def called(self, method):
        while True:
            line = self.hear()
            if line.get("method") == method:
                return line
            self.oblige(line)

    def grant(self, call, result):
        self.say({"jsonrpc": "2.0", "id": call["id"], "result": result})

    def refuse(self, call, code, **data):
        self.say({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": "no", "data": data}})

    def oblige(self, line):
        usual = {
            "host.messages.list": {"messages": [], "nextCursor": None},
            "host.contacts.list": {"contacts": [], "nextCursor": None},
            "host.messages.send": {"messageHash": "cc" * 32, "state": "outbound", "deduplicated": False},
            "host.notifications.toast": {"shown": True},
        }
        if "id" in line and "method" in line:
            self.grant(line, usual.get(line["method"], {}))

    def action(self, action, **more):
        return self.ask("sep.action", panelId="p", actionId=action, invocation="1", **more)

    def toast(self, action, **more):
        return self.action(action, **more)["result"]["toast"]["message"]

    def event(self, topic, data=None, seq=1):
        return self.ask("sep.event", seq=seq, topic=topic, timeMs=1, data=data)

    def health(self, seq=1):
        return self.ask("sep.health", seq=seq, sentMs=0)["result"]

    def ended(self, within=PATIENCE):
        return self.child.wait(within)

    def stderr(self):
        return self.child.stderr.read().decode()


def message(hash="01", **more):
    return {
        "message": {
            "hash": hash * 32,
            "sourceHash": "aa" * 16,
            "destinationHash": "bb" * 16,
            "peerHash": "aa" * 16,
            "incoming": True,
            "title": "",
            "content": "are you there?",
            "replyTo": None,
            **more,
        }
    }


class Channels(unittest.TestCase):
    def test_an_extension_attaches_over_every_kind_of_channel_and_leaves_when_asked(self):
        for way in ("unix", "fd", "tcp"):
            with self.subTest(way), Host(way=way) as host:
                answer = host.begin()
                self.assertEqual(answer["result"], {"protocolVersion": "1.1.0", "extension": {"name": "plain"}})
                self.assertEqual(host.health(7), {"status": "ok", "seq": 7})
                self.assertEqual(host.ask("sep.shutdown", reason="stop", deadlineMs=3000)["result"], {})
                self.assertEqual(host.ended(), 0)
                self.assertEqual(host.child.stdout.read(), b"goodbye, stop\n")

    def test_the_version_is_the_highest_that_both_know(self):
        for offer, agreed in ((BOTH, "1.1.0"), (["1.0.0"], "1.0.0"), (["1.9.0", "1.1.3", "1.0.0"], "1.1.3")):
            with self.subTest(offer), Host() as host:
                self.assertEqual(host.begin(offer)["result"]["protocolVersion"], agreed)

    def test_without_a_common_version_the_process_leaves_with_76(self):
        for scenario, offer, supported in (
            ("plain", ["2.0.0"], ["1.1.0", "1.0.0"]),
            ("modern", ["1.0.0"], ["1.1.0"]),
        ):
            with self.subTest(scenario), Host(scenario) as host:
                error = host.begin(offer)["error"]
                self.assertEqual(error["code"], -32004)
                data = {"sep": "version_unsupported", "requested": offer[0], "supported": supported}
                self.assertEqual(error["data"], data)
                self.assertEqual(host.ended(), sep.EXIT_PROTOCOL)

    def test_a_program_started_by_hand_says_what_it_is(self):
        environment = {"PATH": os.environ["PATH"], "SEP_SCENARIO": "plain"}
        done = subprocess.run([sys.executable, "-B", HERE], env=environment, capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, sep.EXIT_USAGE)
        self.assertIn(b"is started by its host", done.stderr)

    def test_wrong_bootstrap_lines_are_explained_without_the_token(self):
        environment = {"PATH": os.environ["PATH"], "SEP_SCENARIO": "plain", "SEP_HOST": "1"}
        for line, code in (
            (b"", 64),
            (b"\n", 64),
            (b'{"sep":2,"token":"SECRET","endpoint":"fd:3","session":""}\n', 64),
            (b'{"sep":1,"token":"SECRET","endpoint":7,"session":""}\n', 64),
            (b'{"sep":1,"token":"SECRET","endpoint":"unix:/nowhere/s","session":""}\n', 69),
            (b'{"sep":1,"token":"SECRET","endpoint":"tcp:10.0.0.1:1","session":""}\n', 69),
            (b'{"sep":1,"token":"SECRET","endpoint":"fd:2","session":""}\n', 69),
            (b'{"sep":1,"token":"SECRET","endpoint":"fd:9","session":""}\n', 69),
            (b"x" * 5000, 64),
        ):
            with self.subTest(line[:60]):
                done = subprocess.run([sys.executable, "-B", HERE], env=environment, capture_output=True, input=line)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertNotIn(b"SECRET", done.stderr)

    def test_a_refused_attach_and_a_closed_channel_have_their_own_codes(self):
        with Host() as host:
            host.refuse(host.hear(), -32006, sep="auth_failed")
            self.assertEqual(host.ended(), sep.EXIT_UNAVAILABLE)
            stderr = host.stderr()
            self.assertIn("auth_failed", stderr)
            self.assertNotIn("4f4f", stderr)
        with Host("stubborn") as host:
            host.begin()
            host.channel.shutdown(socket.SHUT_RDWR)
            self.assertEqual(host.ended(), sep.EXIT_IO)

    def test_an_extension_that_cannot_work_like_this_leaves_with_78(self):
        with Host("stubborn") as host:
            host.begin(name="unbearable")
            self.assertEqual(host.ended(), sep.EXIT_CONFIG)
            self.assertIn("this host is unbearable", host.stderr())


class Handlers(unittest.TestCase):
    def test_health_is_answered_while_handlers_block(self):
        for scenario in ("stubborn", "busy"):
            with self.subTest(scenario), Host(scenario) as host:
                host.begin()
                host.send("sep.event", seq=1, topic="a.b", timeMs=1, data={})
                for seq in range(20):
                    self.assertEqual(host.health(seq), {"status": "ok", "seq": seq})

    def test_a_health_handler_that_takes_its_time_is_degraded_and_recovers(self):
        with Host("slow") as host:
            host.begin()
            for _ in range(2):
                self.assertEqual(host.health()["detail"], "the health handler takes its time")
            self.assertEqual(host.action("free")["result"], {"outcome": "ok"})
            until = time.monotonic() + PATIENCE
            while host.health() != {"status": "degraded", "detail": "tired", "seq": 1}:
                self.assertLess(time.monotonic(), until)

    def test_a_process_whose_host_has_gone_ends_within_two_seconds(self):
        for scenario in ("stubborn", "busy"):
            with self.subTest(scenario), Host(scenario) as host:
                host.begin()
                host.send("sep.event", seq=1, topic="a.b", timeMs=1, data={})
                host.health()
                begin = time.monotonic()
                host.child.stdin.close()
                self.assertEqual(host.ended(), 0)
                self.assertLess(time.monotonic() - begin, 2)

    def test_a_shutdown_ends_the_process_in_time_whatever_its_handler_does(self):
        with Host("stubborn") as host:
            host.begin()
            host.ask("sep.shutdown", reason="stop", deadlineMs=1000)
            begin = time.monotonic()
            self.assertEqual(host.health(9), {"status": "stopping", "seq": 9})
            self.assertEqual(host.ended(), 0)
            self.assertLess(time.monotonic() - begin, 1)

    def test_a_cancelled_action_is_answered_and_its_own_calls_are_given_up(self):
        with Host("stubborn") as host:
            host.begin()
            id = host.send("sep.action", panelId="p", actionId="ask", invocation="1")
            call = host.called("host.messages.list")
            host.say({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": id}})
            said = {line.get("method", "answer"): line for line in (host.hear(), host.hear(), host.hear())}
            self.assertEqual(said["answer"]["id"], id)
            self.assertEqual(said["answer"]["error"]["code"], -32023)
            self.assertEqual(said["$/cancel"]["params"], {"id": call["id"]})
            self.assertEqual(said["host.log"]["params"]["message"], "given up True")
            # A late answer is let pass, and a cancel for nothing is ignored.
            host.grant(call, {"messages": [], "nextCursor": None})
            host.say({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": [1]}})
            self.assertEqual(host.health(), {"status": "ok", "seq": 1})

    def test_events_come_in_order_and_a_failure_is_told(self):
        with Host() as host:
            host.begin()
            ids = [host.send("sep.event", seq=seq, topic="a.b", timeMs=1, data=None) for seq in range(1, 51)]
            self.assertEqual([host.hear()["id"] for _ in ids], ids)
            error = host.event("please.fail", seq=51)["error"]
            self.assertEqual((error["code"], error["message"]), (-32603, "as you wish"))
            self.assertEqual(host.toast("seen"), f"seen {list(range(1, 52))}"[:280])

    def test_lifecycle_has_its_own_thread(self):
        with Host() as host:
            host.begin()
            id = host.send("sep.event", seq=1, topic="lifecycle.trim", timeMs=1, data={"level": 2})
            self.assertEqual(host.called("host.log")["params"]["message"], "trim {'level': 2}")
            self.assertEqual(host.answer(id)["result"], {})

    def test_too_many_actions_at_once_are_refused(self):
        with Host("stubborn") as host:
            host.begin(calls=64)
            for _ in range(17):
                host.send("sep.action", panelId="p", actionId="ask", invocation="1")
            lines = [host.hear() for _ in range(17)]
            refused = [line for line in lines if "method" not in line]
            self.assertEqual([line["error"]["code"] for line in refused], [-32021])

    def test_what_a_host_may_not_say_is_answered_and_does_no_harm(self):
        with Host() as host:
            host.begin()
            self.assertEqual(host.ask("sep.teleport")["error"]["code"], -32601)
            self.assertEqual(host.ask("sep.initialize")["error"]["code"], -32003)
            self.assertEqual(host.ask("sep.action", panelId=7)["error"]["code"], -32602)
            self.assertEqual(host.ask("sep.event", topic="a.b")["error"]["code"], -32602)
            for line, code in (
                (b"[1]\n", -32600),
                (b"{nonsense\n", -32700),
                (b"\xff\n", -32700),
                (b'{"a":NaN}\n', -32700),
                (b"[" * 100_000 + b"\n", -32700),
                (b"x" * (4 << 20) + b"x\n", -32700),
                (b'{"jsonrpc":"2.0","id":true,"method":"sep.health"}\n', -32600),
            ):
                host.raw(line)
                self.assertEqual(host.hear()["error"]["code"], code, line[:40])
            host.raw(b"\n\r\n")
            host.say({"jsonrpc": "2.0", "id": 99, "result": {}})
            host.say({"jsonrpc": "2.0", "method": "sep.newer", "params": {}})
            self.assertEqual(host.health(), {"status": "ok", "seq": 1})


class Calls(unittest.TestCase):
    def test_pages_are_asked_for_one_after_the_other(self):
        with Host() as host:
            host.begin()
            id = host.send("sep.event", seq=1, topic="please.list", timeMs=1, data=None)
            for cursor, found, then in ((None, ["a", "b"], "n1"), ("n1", [], "n2"), ("n2", ["c"], None)):
                call = host.called("host.messages.list")
                expected = {"limit": 2} if cursor is None else {"limit": 2, "cursor": cursor}
                self.assertEqual(call["params"], expected)
                host.grant(call, {"messages": [{"hash": hash} for hash in found], "nextCursor": then})
            log = host.called("host.log")["params"]
            self.assertEqual(log, {"level": "info", "message": "found ['a', 'b', 'c']", "fields": {"number": 3}})
            self.assertEqual(host.answer(id)["result"], {})

    def test_an_error_of_the_host_has_its_code_its_word_and_its_time(self):
        with Host() as host:
            host.begin()
            id = host.send("sep.action", panelId="p", actionId="denied", invocation="1")
            host.refuse(host.called("host.contacts.list"), -32020, sep="rate_limited", retryAfterMs=40)
            toast = host.answer(id)["result"]["toast"]["message"]
            self.assertEqual(toast, "-32020 rate_limited False True 0.04")

    def test_a_request_that_is_too_long_is_not_sent(self):
        with Host() as host:
            host.begin(frame=1024)
            self.assertIn("the host takes 1024", host.toast("long"))

    def test_a_call_without_an_answer_is_given_up(self):
        with Host() as host:
            host.begin()
            id = host.send("sep.action", panelId="p", actionId="impatient", invocation="1")
            call = host.called("host.get_capabilities")
            self.assertEqual(host.called("$/cancel")["params"], {"id": call["id"]})
            self.assertEqual(host.answer(id)["result"]["toast"]["message"], "nobody answered")

    def test_no_more_calls_are_under_way_than_the_host_takes(self):
        with Host() as host:
            host.begin(calls=2)
            id = host.send("sep.action", panelId="p", actionId="crowd", invocation="1")
            waiting = [host.called("host.get_capabilities"), host.called("host.get_capabilities")]
            self.assertEqual(host.health(), {"status": "ok", "seq": 1})
            for _ in range(4):
                host.grant(waiting.pop(0), {})
                waiting.append(host.hear())
                self.assertEqual(waiting[-1]["method"], "host.get_capabilities")
            for call in waiting:
                host.grant(call, {})
            self.assertEqual(host.answer(id)["result"]["toast"]["message"], "all answered")

    def test_at_1_0_nothing_newer_is_said(self):
        with Host() as host:
            host.begin(["1.0.0"])
            self.assertEqual(host.action("panel")["result"], {"outcome": "ok"})
            host.event("lifecycle.pausing")
            host.ask("sep.shutdown", reason="stop", deadlineMs=3000)
            self.assertEqual(host.ended(), 0)
            self.assertIn("info: pausing None", host.stderr())
        with Host() as host:
            host.begin(["1.1.0"])
            self.assertEqual(host.action("panel")["result"], {"outcome": "ok", "panel": {"title": "new"}})


class Example(unittest.TestCase):
    def example(self, **environment):
        return Host(command=[sys.executable, "-B", os.path.join(EXAMPLE, "main.py")], environment=environment)

    def test_the_manifest_asks_for_all_six_permissions(self):
        with open(os.path.join(EXAMPLE, "sep_manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(sorted(manifest["permissions"]), PERMISSIONS)
        # Python must not write into the folder: what is in it is what was approved.
        self.assertIn("-B", manifest["entrypoint"]["args"])

    def test_a_message_is_answered_by_name_counted_and_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.example() as host:
                host.begin(data_dir=folder)
                contacts = host.called("host.contacts.list")
                ada = {"id": 1, "name": "Ada", "identityHash": "ab" * 16, "lxmfAddress": "aa" * 16}
                host.grant(contacts, {"contacts": [ada], "nextCursor": None})
                host.called("host.log")
                id = host.send("sep.event", seq=1, topic="message.received", timeMs=1, data=message())
                sent = host.called("host.messages.send")
                self.assertEqual(sent["params"]["content"], "Hello Ada, I am away. I will read this later.")
                self.assertEqual(sent["params"]["clientMessageId"], "re-" + "01" * 24)
                # A host that is busy is asked again.
                host.refuse(sent, -32020, sep="rate_limited", retryAfterMs=1)
                again = host.called("host.messages.send")
                self.assertEqual(again["params"], sent["params"])
                host.grant(again, {"messageHash": "cc" * 32, "state": "outbound", "deduplicated": False})
                update = host.called("host.ui.update_tool_panel")
                self.assertIn({"key": "Answered", "value": "1"}, update["params"]["content"][1]["items"])
                host.grant(update, {})
                self.assertEqual(host.answer(id)["result"], {})
                for more in ({"title": "Auto-reply"}, {"replyTo": "cc" * 32}, {}):
                    host.event("message.received", message("02", **more))
                self.assertEqual(host.toast("pause"), "paused; 4 received, 1 answered")
                host.ask("sep.shutdown", reason="stop", deadlineMs=3000)
                self.assertEqual(host.ended(), 0)
            with self.example() as host:
                host.begin(data_dir=folder)
                host.called("host.log")
                self.assertEqual(host.toast("pause"), "answering; 4 received, 1 answered")

    def test_a_stranger_is_noticed_once_and_1_0_is_enough(self):
        with self.example(AUTOREPLY_QUIET_MS="0") as host:
            host.begin(["1.0.0"])
            asked = []
            for seq in (1, 2):
                id = host.send("sep.event", seq=seq, topic="message.received", timeMs=1, data=message(f"0{seq}"))
                while True:
                    line = host.hear()
                    if "method" not in line:
                        self.assertEqual(line, {"jsonrpc": "2.0", "id": id, "result": {}})
                        break
                    asked.append(line["method"])
                    host.oblige(line)
            self.assertEqual(
                asked,
                [
                    "host.ui.register_tool_panel",
                    "host.contacts.list",
                    "host.messages.list",
                    "host.notifications.toast",
                    "host.messages.send",
                    "host.messages.send",
                ],
            )


if __name__ == "__main__":
    if "SEP_SCENARIO" in os.environ:
        sep.run(SCENARIOS[os.environ["SEP_SCENARIO"]]())
    unittest.main()
