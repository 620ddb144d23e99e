"""The kit as a child of a scripted host. `python3 sdk/python/test_outrigger_abp.py`

The children are this very file: with ABP_SCENARIO set it serves the scenario of that name.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.abspath(__file__)
sys.path.insert(0, os.path.dirname(HERE))
import outrigger_abp as abp

RUN = "550e8400-e29b-41d4-a716-446655440000"
ORDER = {"id": "11111111-2222-3333-4444-555555555555", "task": "say hello"}
VENDOR = '{ "b":1.0, "a":[1e3,\t"\\u00e4"] ,"big":123456789012345678901234567890}'
TYPES = [
    "run_started",
    "assistant_delta",
    "assistant_message",
    "tool_call",
    "tool_result",
    "file_changed",
    "command_executed",
    "warning",
    "error",
    "run_completed",
]


def hello(run):
    print("this is for people", flush=True)
    subprocess.run(["echo", "so is this"], check=True)
    run.message(f"{run.order['task']}, in {run.order['workspace']['root']}")


def everything(run):
    run.started("go")
    run.delta("a")
    run.message("ab \ud800 ä")
    run.tool_call("Read", {"path": "x", "2": [None]}, tool_use_id="u1")
    run.tool_result("Read", "text", tool_use_id="u1")
    run.file_changed("a.txt", "new")
    run.command_executed("ls", 0, "a.txt")
    run.warning("careful")
    run.error("hm", "execution_tool_failed")
    run.completed("done", ext={"raw_message": abp.Raw(VENDOR), "more": 1})
    run.artifact("patch", "out.patch")
    return {"usage_raw": {"tokens": 3}, "verification": {"harness_ok": False}}


def invalid(run):
    wrong = [
        lambda: run.delta(1),
        lambda: run.emit("thinking", {}),
        lambda: run.error("x", "E"),
        lambda: run.tool_result("a", is_error=1),
        lambda: run.command_executed("a", 0.5),
        lambda: run.message("a", ext=[]),
        lambda: run.usage(input_tokens=-1),
        lambda: run.usage(tokens=1),
        lambda: run.tool_call("a", object()),
        lambda: run.tool_call("a", float("nan")),
        lambda: abp.Raw("{"),
    ]
    refused = 0
    for act in wrong:
        try:
            act()
        except (TypeError, ValueError):
            refused += 1
    return {"outcome": "failed" if refused == len(wrong) else "complete"}


def throws(run):
    raise abp.AbpError("no key", "backend_auth_failed")


def throws_oddly(run):
    raise KeyError


def answers_nonsense(run):
    return {"outcome": "great"}


def exits(run):
    sys.exit(3)


def waits(run):
    run.started()
    run.sleep(60)


async def waits_async(run):
    run.started()
    await asyncio.sleep(60)


def computes(run):
    run.started()
    while not run.cancelled.is_set():
        pass


def finishes_anyway(run):
    run.started()
    run.cancelled.wait()
    run.warning("cleaned up")


def ignores_cancel(run):
    run.started()
    time.sleep(60)


def speaks_late(run):
    threading.Timer(0.001, lambda: run.delta("too late")).start()


def asks(run):
    with_ = [run.ask("tool", tool_name="Bash", input={"command": "ls"}), run.ask("network", host="example.org")]
    run.message(json.dumps([[answer.allowed, answer.reason, answer.by] for answer in with_]))


async def asks_async(run):
    first, second = await asyncio.gather(run.ask_async("tool", tool_name="Bash"), run.ask_async("network", host="a.b"))
    run.message(json.dumps([[answer.allowed, answer.reason, answer.by] for answer in (first, second)]))


def tool(run):
    run.tool("Twice", {"n": 2}, lambda input: input["n"] * 2, tool_use_id="t1")
    try:
        run.tool("Bash", {}, lambda _: run.message("it ran"))
    except abp.AbpError as error:
        run.message(error.code)
    try:
        run.tool("Breaks", {}, lambda _: {}["missing"])
    except KeyError:
        pass


def spends(run):
    run.usage(input_tokens=3, estimated_cost_usd=0.5)
    run.usage(input_tokens=4, turns=1)
    run.usage(output_tokens=10, total=True)
    run.usage(output_tokens=7, total=True)


def floods(run):
    for _ in range(20_000):
        run.delta("x" * 100)


if os.environ.get("ABP_SCENARIO"):
    name = os.environ["ABP_SCENARIO"]
    options = {"ignores_cancel": {"cancel_grace": 0.05}, "everything": {"trace": 2}}.get(name, {})
    identity = {"id": "kit", "capabilities": {"streaming": "native"}, "asks": ["tool"] if name == "asks" else None}
    abp.serve(identity, globals()[name], **options)
    sys.exit()


class Child:
    """A child with the scripted host's end of it."""

    def __init__(self, scenario, file=HERE):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, "ABP_SCENARIO": scenario}
        self.process = subprocess.Popen([sys.executable, "-B", file], env=environment, encoding="utf-8", **pipes)
        self.said = []
        self.listener = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.listener.start()

    def say(self, message):
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def rest(self):
        """Everything from here to the end of the run."""
        heard = [self.hear()]
        while heard[-1] is not None and heard[-1]["t"] not in ("final", "fatal"):
            heard.append(self.hear())
        return heard

    def start(self, order=ORDER, id=RUN, **extra):
        self.say({"t": "run", "id": id, "work_order": order, **extra})

    def run(self, order=ORDER, **extra):
        self.start(order, **extra)
        return self.rest()

    def end(self):
        self.process.stdin.close()
        return self.process.wait()

    def stderr(self):
        self.listener.join()
        return "".join(self.said)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.listener.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def kinds(heard):
    return [(message.get("event") or {}).get("type", message["t"]) for message in heard]


class UnderAScriptedHost(unittest.TestCase):
    def child(self, scenario, *args):
        child = Child(scenario, *args)
        self.addCleanup(child.kill)
        child.hello = child.hear()
        return child

    def test_hello_is_first_the_run_streams_and_the_receipt_is_whole(self):
        child = self.child("hello")
        backend = {"id": "kit", "backend_version": None, "adapter_version": None}
        greeting = {"t": "hello", "contract_version": "abp/v0.1", "backend": backend}
        self.assertEqual(child.hello, {**greeting, "capabilities": {"streaming": "native"}, "mode": "mapped"})
        event, final = child.run()
        self.assertEqual((event["ref_id"], event["event"]["text"]), (RUN, "say hello, in ."))
        receipt = final["receipt"]
        meta = receipt.pop("meta")
        self.assertEqual((meta["run_id"], meta["work_order_id"], meta["contract_version"]), (RUN, ORDER["id"], "abp/v0.1"))
        self.assertLessEqual(meta["started_at"], meta["finished_at"])
        counts = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "request_units"]
        expected = {
            "backend": backend,
            "capabilities": {"streaming": "native"},
            "mode": "mapped",
            "usage_raw": {},
            "usage": {name: None for name in [*counts, "estimated_cost_usd"]},
            "trace": [],
            "artifacts": [],
            "verification": {"git_diff": None, "git_status": None, "harness_ok": True},
            "outcome": "complete",
            "receipt_sha256": None,
        }
        self.assertEqual(receipt, expected)
        self.assertEqual(child.end(), 0)
        self.assertEqual(child.stderr(), "this is for people\nso is this\n")

    def test_the_example_of_the_documentation_is_a_sidecar(self):
        child = self.child("", os.path.join(os.path.dirname(HERE), "examples", "abp_echo.py"))
        self.assertEqual(child.hello["backend"]["id"], "echo")
        heard = child.run()
        types = ["run_started", "assistant_delta", "assistant_delta", "assistant_message", "run_completed", "final"]
        self.assertEqual(kinds(heard), types)
        self.assertEqual(heard[-1]["receipt"]["usage"]["output_tokens"], 2)
        self.assertEqual(child.end(), 0)

    def test_all_ten_types_of_events_and_the_vendors_bytes(self):
        child = self.child("everything")
        child.start()
        lines = [child.process.stdout.readline() for _ in range(11)]
        heard = [json.loads(line) for line in lines]
        self.assertEqual(kinds(heard), [*TYPES, "final"])
        self.assertEqual(heard[2]["event"]["text"], "ab ? ä")
        self.assertTrue(lines[9].endswith(f'"ext":{{"raw_message":{VENDOR},"more":1}}}}}}\n'), lines[9])
        receipt = heard[-1]["receipt"]
        self.assertEqual(receipt["trace"], [heard[0]["event"], heard[1]["event"]])
        self.assertEqual(receipt["artifacts"], [{"kind": "patch", "path": "out.patch"}])
        self.assertEqual((receipt["usage_raw"], receipt["verification"]["harness_ok"]), ({"tokens": 3}, False))

    def test_what_is_not_an_event_is_refused_where_it_is_written(self):
        self.assertEqual(self.child("invalid").run()[-1]["receipt"]["outcome"], "failed")

    def test_a_handler_that_fails_ends_its_run_with_one_fatal(self):
        nonsense = 'an outcome is complete, partial, failed; the handler answered "great"'
        for scenario, error, code, exit in [
            ("throws", "no key", "backend_auth_failed", 0),
            ("throws_oddly", "KeyError", "internal", 0),
            ("answers_nonsense", nonsense, "internal", 0),
            ("exits", "the handler ended the process with 3", "backend_crashed", 3),
        ]:
            with self.subTest(scenario):
                child = self.child(scenario)
                self.assertEqual(child.run(), [{"t": "fatal", "ref_id": RUN, "error": error, "error_code": code}])
                self.assertEqual(child.end(), exit)
                self.assertIsNone(child.hear())

    def test_pings_are_answered_when_idle_and_while_the_handler_computes(self):
        child = self.child("computes")
        child.say('{"t":"ping","seq":18446744073709551615}')
        self.assertEqual(child.hear(), {"t": "pong", "seq": 18446744073709551615})
        child.start()
        self.assertEqual(kinds([child.hear()]), ["run_started"])
        child.say({"t": "ping", "seq": 7})
        self.assertEqual(child.hear(), {"t": "pong", "seq": 7})

    def test_a_cancelled_run_ends_partial(self):
        for scenario, types in [
            ("waits", ["final"]),
            ("waits_async", ["final"]),
            ("computes", ["final"]),
            ("finishes_anyway", ["warning", "final"]),
        ]:
            with self.subTest(scenario):
                child = self.child(scenario)
                child.start()
                self.assertEqual(kinds([child.hear()]), ["run_started"])
                child.say({"t": "cancel", "ref_id": "another", "reason": "no"})
                child.say({"t": "cancel", "ref_id": RUN, "reason": "enough"})
                heard = child.rest()
                self.assertEqual(kinds(heard), types)
                self.assertEqual(heard[-1]["receipt"]["outcome"], "partial")
                self.assertEqual(child.end(), 0)

    def test_a_handler_that_ignores_a_cancel_is_ended_with_its_process(self):
        child = self.child("ignores_cancel")
        child.start()
        child.hear()
        child.say({"t": "cancel", "ref_id": RUN})
        [final] = child.rest()
        self.assertEqual(final["receipt"]["outcome"], "partial")
        self.assertEqual(child.process.wait(), 0)
        self.assertIn("did not stop within 0.05 s", child.stderr())

    def test_several_runs_follow_each_other_and_a_second_one_at_the_same_time_is_refused(self):
        child = self.child("waits")
        child.start()
        child.hear()
        child.start(id="second")
        refused = child.hear()
        self.assertEqual((refused["t"], refused["ref_id"]), ("fatal", "second"))
        child.say({"t": "cancel", "ref_id": RUN})
        self.assertEqual(kinds(child.rest()), ["final"])
        child.start({}, id="third")
        self.assertEqual(child.hear()["ref_id"], "third")

    def test_input_that_is_closed_after_the_run_does_not_end_it(self):
        child = self.child("floods")
        child.start()
        child.process.stdin.close()
        heard = child.rest()
        self.assertEqual((len(heard), heard[-1]["t"]), (20_001, "final"))
        self.assertEqual(child.process.wait(), 0)

    def test_nonsense_is_answered_when_idle_logged_during_a_run_and_never_deadly(self):
        child = self.child("waits")
        child.say("")
        child.say('{"t":')
        fatal = child.hear()
        self.assertEqual((fatal["t"], fatal["ref_id"]), ("fatal", None))
        self.assertTrue(fatal["error"].startswith("invalid json: "))
        child.say("[" * 100_000)
        self.assertEqual(child.hear()["t"], "fatal")
        child.say({"t": "run", "work_order": {}})
        self.assertIn("without an id", child.hear()["error"])
        child.say({"t": "run", "id": "x", "work_order": "tidy up"})
        self.assertEqual(child.hear()["error_code"], "contract_schema_violation")
        child.say({"t": "dance"})
        child.start({"unknown": 1, "config": None}, unknown=2)
        self.assertEqual(kinds([child.hear()]), ["run_started"])
        child.say("garbage")
        child.say("[1]")
        child.say({"t": "cancel", "ref_id": RUN})
        self.assertEqual(kinds(child.rest()), ["final"])
        self.assertEqual(child.end(), 0)
        self.assertIn('type "dance" was ignored', child.stderr())

    def test_questions_go_to_a_host_that_knows_them(self):
        child = self.child("asks")
        self.assertEqual(child.hello["outrigger"], {"version": 1, "asks": ["tool"]})
        child.start(outrigger={"version": 1, "features": ["ask"]})
        first = child.hear()
        question = {"action": "tool", "tool_name": "Bash", "input": {"command": "ls"}}
        self.assertEqual(first, {"t": "ask", "ref_id": RUN, "id": "ask-1", **question})
        child.say({"t": "answer", "ref_id": RUN, "id": "ask-1", "decision": "allow", "reason": "ok"})
        self.assertEqual(child.hear()["host"], "example.org")
        child.say({"t": "answer", "ref_id": RUN, "id": "ask-1", "decision": "deny", "reason": "twice"})
        child.say({"t": "answer", "ref_id": RUN, "id": "ask-2", "decision": "deny", "reason": "not today"})
        answers = json.loads(child.hear()["event"]["text"])
        self.assertEqual(answers, [[True, "ok", "host"], [False, "not today", "host"]])

    def test_questions_of_asyncio_wait_together(self):
        child = self.child("asks_async")
        child.start(outrigger={"version": 1, "features": ["ask"]})
        ids = [child.hear()["id"], child.hear()["id"]]
        for id in reversed(ids):
            child.say({"t": "answer", "ref_id": RUN, "id": id, "decision": "allow", "reason": id})
        answers = json.loads(child.hear()["event"]["text"])
        self.assertEqual(answers, [[True, id, "host"] for id in ids])

    def test_without_a_host_that_answers_the_policy_decides(self):
        order = {"policy": {"require_approval_for": ["Bash"]}}
        child = self.child("asks")
        plain = child.run(order)
        child.start(order, outrigger={"features": ["ask"]})
        self.assertEqual(child.hear()["t"], "ask")
        child.process.stdin.close()
        for said in (plain[0], child.rest()[0]):
            bash, network = json.loads(said["event"]["text"])
            self.assertEqual((bash[0], bash[2], network[0]), (False, "policy", True))
            self.assertIn("needs approval (Bash)", bash[1])

    def test_a_tool_says_what_it_does_and_what_is_denied(self):
        heard = self.child("tool").run({"policy": {"disallowed_tools": ["Ba*"]}})
        types = ["tool_call", "tool_result", "warning", "tool_result", "assistant_message", "tool_call", "tool_result", "final"]
        self.assertEqual(kinds(heard), types)
        self.assertEqual(heard[1]["event"]["output"], 4)
        self.assertTrue(heard[3]["event"]["output"]["denied"])
        self.assertEqual(heard[4]["event"]["text"], "policy_denied")
        self.assertEqual((heard[6]["event"]["is_error"], heard[6]["event"]["output"]), (True, {"error": "'missing'"}))

    def test_what_is_spent_is_summed_and_told_to_hosts_that_count(self):
        child = self.child("spends")
        [final] = child.run()
        spent = {name: value for name, value in final["receipt"]["usage"].items() if value is not None}
        self.assertEqual(spent, {"input_tokens": 7, "output_tokens": 10, "estimated_cost_usd": 0.5})
        heard = child.run(outrigger={"version": 1, "features": ["usage"]})
        self.assertEqual(kinds(heard), ["usage"] * 4 + ["final"])
        self.assertIs(heard[2]["event"]["total"], True)

    def test_an_event_after_the_end_is_dropped(self):
        child = self.child("speaks_late")
        self.assertEqual(kinds(child.run()), ["final"])
        while not any("was dropped" in line for line in child.said):
            child.say({"t": "ping", "seq": 1})
            self.assertEqual(child.hear()["t"], "pong")
        self.assertEqual(child.end(), 0)

    def test_a_host_that_is_gone_ends_the_sidecar_quietly(self):
        child = self.child("floods")
        child.start()
        child.hear()
        child.process.stdout.close()
        self.assertEqual(child.process.wait(), 0)
        self.assertEqual(child.stderr(), "")


class ThePolicy(unittest.TestCase):
    def test_globs_read_a_policy_as_widely_as_its_author_can_have_meant_it(self):
        yes = "Bash Bash|* anything|mcp__*__* mcp__a__b|**/.env .env|**/.env a/b/.env|*.log a/b.log|src/** src/a/b|?at cat"
        yes += "|[a-c]at bat|[!a-c]at rat|{a,b}/x b/x|**/.git/** a/.git/x|\\* *"
        no = "Bash Bashful|**/.env a.env|[a-c]at -at|?at at|src/** lib/a|{a,b}/x c/x|\\* x|**/a/b xa/b"
        self.assertEqual([row for row in yes.split("|") if not abp.glob(*row.split(" "))], [])
        self.assertEqual([row for row in no.split("|") if abp.glob(*row.split(" "))], [])
        self.assertFalse(abp.glob("*a" * 100, "a" * 1000 + "b"))

    def test_it_judges_tools_files_and_hosts_and_no_path_leaves_the_workspace(self):
        with tempfile.TemporaryDirectory() as root:
            os.symlink("/etc", os.path.join(root, "out"))
            lists = dict.fromkeys(abp._LISTS, [])
            lists.update(deny_read=["**/.env"], deny_write=["secret/"], require_approval_for=["Bash"])
            lists.update(allow_network=["*.example.org"], deny_network=["bad.example.org"])
            order = {"policy": lists, "workspace": {"root": root}}

            def ask(action, **question):
                return bool(abp.judge(order, action, **question))

            paths = ["a.txt", "b/c.txt", ".env", "b/.env", "../x", "/etc/passwd", "out/passwd", f"{root}/a.txt"]
            read = [ask("tool", tool_name="ReadFile", input={"file_path": path}) for path in paths]
            self.assertEqual(read, [True, True, False, False, False, False, False, True])
            files = [ask("write", path="secret/k"), ask("write", path="./secret"), ask("read", path="secret/k"), ask("read")]
            self.assertEqual(files, [False, False, True, False])
            hosts = ["a.example.org", "bad.example.org", "example.org", "https://a.example.org/x", "%%"]
            self.assertEqual([ask("network", host=host) for host in hosts], [True, False, False, True, False])
            self.assertFalse(ask("tool", tool_name="Bash"))
            self.assertFalse(ask("tool", tool_name="WebFetch", input={"url": "https://elsewhere.net"}))


if __name__ == "__main__":
    unittest.main()
