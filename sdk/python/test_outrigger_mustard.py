"""The kit against a real sidecar: MUSTARD_SIDECAR names it. `python3 -m unittest discover sdk/python`"""

import asyncio
import json
import math
import os
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import outrigger_mustard as mustard
from outrigger_mustard import UNDEFINED, Blocking, Call, Completed, GuestError, Mustard, MustardError


class WithoutAsyncio(unittest.TestCase):
    def setUp(self):
        self.mustard = Blocking()
        self.addCleanup(self.mustard.close)

    def failure(self, *args, **options):
        with self.assertRaises(MustardError) as caught:
            self.mustard.run(*args, **options)
        return caught.exception

    def test_one_line_is_enough(self):
        self.assertEqual(mustard.run("6 * 7"), 42)

    def test_a_script_runs_against_plain_and_async_functions(self):
        async def load_user(id):
            return {"id": id, "orders": ["a", "b"]}

        value = self.mustard.run(
            "const u = load_user(id); u.orders.length + twice(u.id);",
            inputs={"id": 7},
            capabilities={"load_user": load_user, "twice": lambda n: n * 2},
        )
        self.assertEqual(value, 16)

    def test_every_kind_of_value_crosses_both_ways(self):
        value = [UNDEFINED, None, True, "ä\U0001F600", 1.5, 2, math.inf, -math.inf, [], {}, {"a": {"b": [1]}, "__proto__": 1}]
        back = self.mustard.run("echo(value)", inputs={"value": value}, capabilities={"echo": lambda v: v})
        self.assertEqual(back, value)
        self.assertIs(back[0], UNDEFINED)
        self.assertTrue(math.isnan(self.mustard.run("NaN")))
        self.assertEqual(math.copysign(1, self.mustard.run("-0")), -1)

    def test_what_cannot_cross_says_so(self):
        loop = []
        loop.append(loop)
        for value, words in [(loop, "contains itself"), ({1: 2}, "keys"), (2**60, "not exact"), (object(), "cannot cross")]:
            with self.assertRaisesRegex(TypeError, words):
                self.mustard.run("0", inputs={"value": value})

    def test_calls_that_wait_together_run_in_parallel(self):
        meeting = threading.Barrier(3)
        script = "const all = await Promise.all([1, 2, 3].map(n => meet(n))); all.join();"

        def meet(n):
            meeting.wait(10)
            return n * n

        self.assertEqual(self.mustard.run(script, capabilities={"meet": meet}), "1,4,9")

    def test_what_a_function_raises_is_an_error_of_the_script(self):
        def fail():
            raise GuestError("too far", name="RangeError", code="E_FAR", details={"by": 3})

        script = "let seen; try { fail() } catch (e) { seen = [e.name, e.message, e.code, e.details.by] } seen;"
        self.assertEqual(self.mustard.run(script, capabilities={"fail": fail}), ["RangeError", "too far", "E_FAR", 3])

    def test_an_error_of_a_function_that_nobody_catches_keeps_its_code_and_its_details(self):
        def fail():
            raise GuestError("too far", name="RangeError", code="E_FAR", details={"by": 3, "seen": [None, "x"]})

        error = self.failure("fail()", capabilities={"fail": fail})
        self.assertEqual((error.guest_name, error.error_code), ("RangeError", "E_FAR"))
        self.assertEqual(error.details, {"by": 3, "seen": [None, "x"]})

    def test_an_uncaught_error_says_where(self):
        error = self.failure("function inner() {\n  return null.x;\n}\ninner();")
        self.assertEqual((error.kind, error.guest_name, error.line), ("Runtime", "TypeError", 2))
        self.assertEqual(error.source_line.strip(), "return null.x;")
        self.assertEqual(error.frames[0]["function"], "inner")
        self.assertEqual(self.failure("let = ;").code, "parse")

    def test_limits_hold_and_the_next_run_is_not_disturbed(self):
        self.assertEqual(self.failure("while (true) {}", limits={"instruction_budget": 10_000}).code, "limit_instructions")
        late = self.failure("while (true) {}", limits={"instruction_budget": 10**12}, deadline_ms=30)
        self.assertEqual(late.code, "limit_deadline")
        self.assertEqual(self.mustard.run("1 + 1"), 2)

    def test_a_run_that_takes_too_long_is_killed_and_the_next_one_gets_a_new_sidecar(self):
        error = self.failure("while (true) {}", limits={"instruction_budget": 10**15}, timeout=0.1)
        self.assertEqual(error.code, "timeout")
        self.assertEqual(self.mustard.run("1 + 1"), 2)

    def test_the_sidecar_dies_in_the_middle_and_nothing_is_called_twice(self):
        calls = []

        def step(n):
            calls.append(n)
            if n == 3:
                os.kill(self.mustard._mustard._child._process.pid, signal.SIGKILL)
            return n * 10

        script = "let sum = 0; for (let i = 1; i <= 5; i += 1) { sum += step(i); } sum;"
        self.assertEqual(self.mustard.run(script, capabilities={"step": step}), 150)
        self.assertEqual(calls, [1, 2, 3, 4, 5])

    def test_a_step_is_kept_as_json_and_goes_on_in_another_process_with_the_same_key(self):
        key = b"a key of ours"
        with Blocking(key=key) as first:
            step = first.start('const who = approve("deploy"); `approved by ${who}`;', capabilities=["approve"])
            self.assertEqual(step.calls, [Call(1, "approve", ["deploy"])])
            kept = json.dumps(step.save())
        with Blocking(key=key) as second:
            seen = second.inspect(kept)
            self.assertEqual(seen["capabilities"], ["approve"])
            self.assertEqual(second.resume(kept, "Ada"), Completed("approved by Ada"))
            self.assertEqual(second.finish(kept, capabilities={"approve": lambda what: "Bob"}), "approved by Bob")
            with self.assertRaises(MustardError) as cancelled:
                second.resume(kept, cancel=True)
            self.assertEqual(cancelled.exception.code, "cancelled")
        with self.assertRaises(MustardError) as stranger:
            self.mustard.resume(kept, 1)
        self.assertEqual(stranger.exception.code, "unauthenticated")

    def test_answers_come_in_any_order(self):
        step = self.mustard.start("const all = await Promise.all([a(), b()]); all.join();", capabilities=["a", "b"])
        a, b = step.calls
        half = self.mustard.resume(step, answers={b.call_id: "B"})
        self.assertEqual([call.capability for call in half.calls], ["a"])
        self.assertEqual(self.mustard.resume(half, answers={a.call_id: "A"}), Completed("A,B"))

    def test_the_same_seed_and_clock_give_the_same_run(self):
        world = {"seed": 42, "now_ms": 1_700_000_000_000}
        once = self.mustard.run("[Math.random(), Date.now()]", **world)
        self.assertEqual(self.mustard.run("[Math.random(), Date.now()]", **world), once)

    def test_large_values_cross_by_agreement(self):
        text = "x" * (3 << 20)
        limits = {"heap_limit_bytes": 64 << 20}
        self.assertEqual(self.mustard.run("text.length", inputs={"text": text}, limits=limits), len(text))
        with Blocking(max_frame_bytes=1000) as small, self.assertRaises(MustardError) as refused:
            small.run("text.length", inputs={"text": text})
        self.assertEqual(refused.exception.code, "too_large")

    def test_version_2_alone_is_enough(self):
        script = "const all = await Promise.all([1, 2, 3].map(n => twice(n))); all.join();"
        with Blocking(plain=True) as plain:
            self.assertEqual(plain.run(script, capabilities={"twice": lambda n: n * 2}), "2,4,6")

    def test_a_sidecar_that_is_not_one_is_named_with_its_last_words(self):
        for command, words in [
            (["/nowhere/mustard-sidecar"], "/nowhere/mustard-sidecar"),
            ([sys.executable, "-c", "import sys; sys.exit('out of cheese')"], "exit code 1; it said: out of cheese"),
            ([sys.executable, "-c", "print('HTTP/1.1 200 OK', flush=True); input(); input()"], "sent a response of"),
        ]:
            with Blocking(command=command) as broken, self.assertRaisesRegex(MustardError, words):
                broken.run("1")

    def test_closing_leaves_no_process(self):
        with Blocking() as short:
            short.run("1")
            pid = short._mustard._child._process.pid
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)


class WithAsyncio(unittest.IsolatedAsyncioTestCase):
    async def test_a_race_is_won_by_the_first_answer(self):
        finish = asyncio.Event()
        reported = []

        async def never():
            await finish.wait()

        async def report(value):
            reported.append(value)
            finish.set()

        async with Mustard() as client:
            script = "const first = await Promise.race([never(), quick()]); await report(first); 0;"
            await client.run(script, capabilities={"never": never, "quick": lambda: "quick", "report": report})
        self.assertEqual(reported, ["quick"])

    async def test_two_runs_share_a_client(self):
        async with Mustard() as client:
            runs = [client.run("n * ask()", inputs={"n": n}, capabilities={"ask": lambda: 10}) for n in range(5)]
            self.assertEqual(await asyncio.gather(*runs), [0, 10, 20, 30, 40])

    async def test_a_cancelled_task_kills_the_sidecar_and_the_client_lives_on(self):
        async with Mustard() as client:
            task = asyncio.ensure_future(client.run("while (true) {}", limits={"instruction_budget": 10**15}))
            await client.about()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(await client.run("1 + 1"), 2)


if __name__ == "__main__":
    unittest.main()
