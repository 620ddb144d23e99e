"""Makes a program an abp sidecar: a handler gets a work order and says what it does, as it does it. One file, no
dependencies, Python 3.9 or newer.

    import outrigger_abp as abp

    def handler(run):
        run.delta("you said: ")
        run.delta(run.order["task"])

    abp.serve({"id": "echo", "capabilities": {"streaming": "native"}}, handler)

The handler may be a plain function or `async def`. What travels is spelled as the protocol spells it. Every event leaves at once,
and whoever sends one waits while the host is slow; events may be sent from any thread. Whatever the handler does, the run ends
with one `final` or one `fatal`.

A thread reads standard input, so pings are answered and cancels noticed while the handler works. A plain handler looks at
`run.cancelled` (a `threading.Event`) or calls `run.check()`; an `async` one is cancelled as asyncio cancels.

Nothing but the protocol may be on standard output, so from the moment `serve` is called everything that is printed there, also
by programs that the handler starts, goes to standard error.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import json
import math
import os
import re
import sys
import threading
import traceback
import urllib.parse
from datetime import datetime, timezone
from typing import Any, Callable, Iterable, Mapping, Optional, Union

__all__ = ["AbpError", "Answer", "CONTRACT_VERSION", "Cancelled", "ERROR_CODES", "Raw", "Run", "glob", "judge", "serve"]

CONTRACT_VERSION = "abp/v0.1"

#: The codes that a `fatal` or an `error` event may carry. Hosts of the original refuse a line with any other.
ERROR_CODES = frozenset(
    """protocol_invalid_envelope protocol_handshake_failed protocol_missing_ref_id protocol_unexpected_message
    protocol_version_mismatch mapping_unsupported_capability mapping_dialect_mismatch mapping_lossy_conversion
    mapping_unmappable_tool backend_not_found backend_unavailable backend_timeout backend_rate_limited backend_auth_failed
    backend_model_not_found backend_crashed backend_content_filtered backend_context_length execution_tool_failed
    execution_workspace_error execution_permission_denied contract_version_mismatch contract_schema_violation
    contract_invalid_receipt capability_unsupported capability_emulation_failed policy_denied policy_invalid
    workspace_init_failed workspace_staging_failed ir_lowering_failed ir_invalid receipt_hash_mismatch receipt_chain_broken
    receipt_store_failed dialect_unknown dialect_mapping_failed config_invalid rate_limit_exceeded circuit_breaker_open
    stream_closed validation_failed sidecar_spawn_failed internal""".split()
)

#: The longest line that is read, in bytes.
MAX_LINE = 64 << 20

#: The id of an order that has none; hosts of the original need one in a receipt.
NO_ID = "00000000-0000-0000-0000-000000000000"

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "request_units")
_LISTS = (
    "allowed_tools",
    "disallowed_tools",
    "deny_read",
    "deny_write",
    "allow_network",
    "deny_network",
    "require_approval_for",
)


class AbpError(Exception):
    """An error that says which code the `fatal` gets."""

    def __init__(self, message: str, code: str = "internal"):
        super().__init__(message)
        self.code = code


class Cancelled(Exception):
    """The host wants the run to stop. Let it pass, and the run ends as partial."""


class Raw:
    """JSON text that travels as it is, without being read and written again: `ext={"raw_message": Raw(line)}`."""

    def __init__(self, text: str):
        json.loads(text, parse_constant=_no_constant)
        # Between two tokens a line break means nothing, and in a line it would end it.
        self.text = text.replace("\n", " ").replace("\r", " ")


class Answer:
    """What came of a question. True when it may be done."""

    def __init__(self, allowed: bool, reason: str, by: str):
        self.allowed = allowed
        self.reason = reason
        #: `host` or `policy`.
        self.by = by

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return f"Answer(allowed={self.allowed}, reason={self.reason!r}, by={self.by!r})"


Handler = Callable[["Run"], Any]


def serve(identity: Mapping[str, Any], handler: Handler, trace: int = 0, cancel_grace: float = 5.0) -> None:
    """Serves runs until the host has gone. Call it in the main thread.

    identity: `id`, `backend_version`?, `adapter_version`?, `capabilities`?, `mode`? (`mapped` or `passthrough`), `asks`? (the actions
        that this sidecar never does without asking: `tool`, `read`, `write`, `network`).
    handler: gets a `Run`; may answer `{"outcome"?, "usage_raw"?, "artifacts"?, "verification"?}`.
    trace: how many events the receipt repeats (none: the host has seen them all).
    cancel_grace: how many seconds a handler may go on after a cancel before the run, and the process, is ended without it.
    """
    _Sidecar(_identity(identity), handler, trace, cancel_grace).serve()


class Run:
    """One work order under way: what is to be done, and how to say what is done."""

    def __init__(self, end: "_End", id: str, order: dict, offers: Iterable[str], mode: str):
        self._end = end
        #: The id of the run.
        self.id = id
        #: The work order; what the host left out is empty.
        self.order = order
        #: The extensions that the host knows: `ask`, `usage`.
        self.offers = set(offers)
        #: `passthrough` when the order says so (`config.vendor.abp.mode`), else the identity's.
        self.mode = mode
        #: Set when the host cancels.
        self.cancelled = threading.Event()
        #: The host's words about it.
        self.cancel_reason: Optional[str] = None

    def check(self) -> None:
        """Raises `Cancelled` if the host has cancelled."""
        if self.cancelled.is_set():
            raise Cancelled(self.cancel_reason)

    def sleep(self, seconds: float) -> None:
        """Sleeps, unless the host cancels, which raises `Cancelled`."""
        self.cancelled.wait(seconds)
        self.check()

    def started(self, message: str = "started", **extra: Any) -> None:
        self.emit("run_started", {"message": message}, **extra)

    def completed(self, message: str = "completed", **extra: Any) -> None:
        self.emit("run_completed", {"message": message}, **extra)

    def warning(self, message: str, **extra: Any) -> None:
        self.emit("warning", {"message": message}, **extra)

    def error(self, message: str, error_code: Optional[str] = None, **extra: Any) -> None:
        """Something went wrong that does not end the run."""
        members = {"message": message}
        if error_code is not None:
            members["error_code"] = error_code
        self.emit("error", members, **extra)

    def delta(self, text: str, **extra: Any) -> None:
        self.emit("assistant_delta", {"text": text}, **extra)

    def message(self, text: str, **extra: Any) -> None:
        self.emit("assistant_message", {"text": text}, **extra)

    def tool_call(
        self,
        tool_name: str,
        input: Any = None,
        tool_use_id: Optional[str] = None,
        parent_tool_use_id: Optional[str] = None,
        **extra: Any,
    ) -> None:
        members = {"tool_name": tool_name, "tool_use_id": tool_use_id, "parent_tool_use_id": parent_tool_use_id}
        self.emit("tool_call", {**members, "input": {} if input is None else input}, **extra)

    def tool_result(
        self, tool_name: str, output: Any = None, tool_use_id: Optional[str] = None, is_error: bool = False, **extra: Any
    ) -> None:
        members = {"tool_name": tool_name, "tool_use_id": tool_use_id, "output": output, "is_error": is_error}
        self.emit("tool_result", members, **extra)

    def file_changed(self, path: str, summary: str = "", **extra: Any) -> None:
        self.emit("file_changed", {"path": path, "summary": summary}, **extra)

    def command_executed(
        self, command: str, exit_code: Optional[int] = None, output_preview: Optional[str] = None, **extra: Any
    ) -> None:
        members = {"command": command, "exit_code": exit_code, "output_preview": output_preview}
        self.emit("command_executed", members, **extra)

    def emit(
        self, type: str, members: Mapping[str, Any], ext: Optional[Mapping[str, Any]] = None, ts: Optional[str] = None
    ) -> None:
        """Sends an event at once; waits while the host is slow. `input`, `output` and `ext["raw_message"]` may be `Raw`."""
        _check_event(type, members)
        fields = {"ts": ts or _now(), "type": type, **members}
        if ext is not None:
            if not isinstance(ext, Mapping):
                raise TypeError("ext must be a dict")
            fields["ext"] = _Text(_object(ext))
        self._end.event(_object(fields))

    def usage(self, **report: Any) -> None:
        """Counts what was spent: input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, request_units,
        estimated_cost_usd, turns; with `total=True` the numbers are sums so far. It goes into the receipt, and to the host at once
        if that knows the extension."""
        self._end.usage.add(report)
        if "usage" in self.offers:
            self._end.event(_object({"ts": _now(), "type": "usage", **report}))

    def artifact(self, kind: str, path: str) -> None:
        """Adds a file to the receipt; its path is relative to the root of the workspace."""
        _require_text(kind, "kind")
        _require_text(path, "path")
        self._end.artifacts.append({"kind": kind, "path": path})

    def ask(self, action: str, **question: Any) -> Answer:
        """Asks before doing: action is `tool`, `read`, `write` or `network`; also tool_name, input, path, host, tool_use_id. The host answers if it
        can; else the policy of the work order does, and what needs a person's approval is denied. Blocks: `ask_async` does not."""
        return self._asked(action, question).result()

    async def ask_async(self, action: str, **question: Any) -> Answer:
        """As `ask`, for asyncio."""
        return await asyncio.wrap_future(self._asked(action, question))

    def tool(self, tool_name: str, input: Any, work: Callable[[Any], Any], tool_use_id: Optional[str] = None) -> Any:
        """Does `work` as a tool call: asks first, then says what is called and what came out. A denial is said too, and raised as
        an `AbpError` with the code `policy_denied`."""
        asked = json.loads(input.text) if isinstance(input, Raw) else input
        answer = self.ask("tool", tool_name=tool_name, input=asked, tool_use_id=tool_use_id)
        if not answer:
            self.warning(f"{tool_name} was denied: {answer.reason}")
            self.tool_result(tool_name, {"denied": True, "reason": answer.reason}, tool_use_id, is_error=True)
            raise AbpError(f"{tool_name} was denied: {answer.reason}", "policy_denied")
        self.tool_call(tool_name, input, tool_use_id)
        try:
            output = work(input)
        except Exception as error:
            self.tool_result(tool_name, {"error": _text_of(error)}, tool_use_id, is_error=True)
            raise
        self.tool_result(tool_name, output, tool_use_id)
        return output

    def _asked(self, action: str, question: dict) -> "concurrent.futures.Future[Answer]":
        if action not in ("tool", "read", "write", "network"):
            raise ValueError("an action is tool, read, write or network")
        return self._end.ask({"action": action, **question})


class _Sidecar:
    """The process: what the host says, and the one run that is under way."""

    def __init__(self, identity: dict, handler: Handler, trace: int, cancel_grace: float):
        self._identity = identity
        self._handler = handler
        self._trace = trace
        self._grace = cancel_grace
        self._out = _Output()
        self._lock = threading.Lock()
        self._bell = threading.Condition(self._lock)
        self._end: Optional[_End] = None
        self._reading = True

    def serve(self) -> None:
        backend = {name: self._identity[name] for name in ("id", "backend_version", "adapter_version")}
        hello = {"t": "hello", "contract_version": CONTRACT_VERSION, "backend": backend}
        hello.update(capabilities=self._identity["capabilities"], mode=self._identity["mode"])
        if self._identity["asks"]:
            hello["outrigger"] = {"version": 1, "asks": self._identity["asks"]}
        self._out.line(_json(hello))
        threading.Thread(target=self._read, name="abp-input", daemon=True).start()
        while True:
            with self._bell:
                self._bell.wait_for(lambda: self._end is not None or not self._reading)
                end = self._end
            if end is None:
                return
            self._work(end)
            with self._bell:
                # The next run may have come between the end of this one and here.
                if self._end is end:
                    self._end = None

    def _work(self, end: "_End") -> None:
        try:
            result = self._handler(end.run)
            if inspect.isawaitable(result):
                result = asyncio.run(self._drive(end, result))
        except (Cancelled, asyncio.CancelledError):
            end.final({})
        except SystemExit as exit:
            end.fatal(AbpError(f"the handler ended the process with {exit.code}", "backend_crashed"))
            raise
        except BaseException as error:
            traceback.print_exc()
            end.fatal(error)
            if not isinstance(error, Exception):
                raise
        else:
            end.final({} if result is None else result)

    async def _drive(self, end: "_End", work: Any) -> Any:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)
        end.when_cancelled(lambda: _quietly(lambda: loop.call_soon_threadsafe(task.cancel)))
        return await task

    def _read(self) -> None:
        try:
            for line in _lines(0):
                self._receive(line)
        except Exception:
            traceback.print_exc()
        with self._bell:
            self._reading = False
            end = self._end
            self._bell.notify()
        if end:
            end.host_is_silent()

    def _receive(self, line: str) -> None:
        try:
            message = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            return self._refuse(f"invalid json: {error}")
        kind = message.get("t") if isinstance(message, dict) else None
        end = self._end
        if kind == "run":
            self._start(message)
        elif kind == "ping":
            seq = message.get("seq")
            if isinstance(seq, int) and not isinstance(seq, bool):
                self._out.line(_json({"t": "pong", "seq": seq}))
            else:
                _log("a ping without a seq was ignored")
        elif kind == "cancel":
            if end and message.get("ref_id") == end.run.id:
                end.cancel(str(message.get("reason") or "cancelled"), self._grace)
            else:
                _log(f"a cancel for {_show(message.get('ref_id'))}, which is not under way")
        elif kind == "answer":
            if not end or not end.answer(message):
                _log(f"an answer to {_show(message.get('id'))}, which was not asked")
        else:
            _log(f"a message of type {_show(kind)} was ignored")

    def _refuse(self, error: str) -> None:
        """Says that a line could not be understood. During a run only in the log: a fatal without an id would end that run."""
        if self._end and self._end.is_open():
            return _log(error)
        self._fatal(None, error, "protocol_invalid_envelope")

    def _start(self, message: dict) -> None:
        id, order = message.get("id"), message.get("work_order")
        if not isinstance(id, str):
            return self._refuse("a run without an id")
        if not isinstance(order, dict):
            return self._fatal(id, "the run has no work_order", "contract_schema_violation")
        offer = message.get("outrigger")
        offers = offer.get("features") if isinstance(offer, dict) else None
        end = _End(self._out, self._identity, id, _whole(order), offers if isinstance(offers, list) else [], self._trace)
        with self._bell:
            busy = self._end if self._end and self._end.is_open() else None
            if not busy:
                self._end = end
                self._bell.notify()
        if busy:
            self._fatal(id, f"run {busy.run.id} is under way, and there is one at a time", "protocol_unexpected_message")

    def _fatal(self, id: Optional[str], error: str, code: str) -> None:
        self._out.line(_json({"t": "fatal", "ref_id": id, "error": error, "error_code": code}))


class _End:
    """The half of a run that its handler does not see: how it is cancelled, answered and ended, once."""

    def __init__(self, out: "_Output", identity: dict, id: str, order: dict, offers: Iterable[str], trace: int):
        vendor = order["config"]["vendor"]
        nested = vendor.get("abp")
        asked = [nested.get("mode") if isinstance(nested, dict) else None, vendor.get("abp.mode"), identity["mode"]]
        mode = next(mode for mode in asked if mode in ("mapped", "passthrough"))
        self.run = Run(self, id, order, offers, mode)
        self.usage = _Usage()
        self.artifacts: list = []
        self._out = out
        self._identity = identity
        self._keep = trace
        self._trace: list = []
        self._started = datetime.now(timezone.utc)
        # What is sent is sent inside the gate, so that nothing can follow the end. It may be held while the host is slow, so
        # whatever the host says (cancel, answers) is under a lock of its own.
        self._gate = threading.RLock()
        self._open = True
        self._lock = threading.Lock()
        self._asked: dict = {}
        self._asks = 0
        self._on_cancel: Optional[Callable[[], None]] = None

    def is_open(self) -> bool:
        """Whether neither `final` nor `fatal` has been sent."""
        return self._open

    def event(self, text: str) -> None:
        with self._gate:
            if self._open:
                if len(self._trace) < self._keep:
                    self._trace.append(text)
                return self._out.line(f'{{"t":"event","ref_id":{_json(self.run.id)},"event":{text}}}')
        _log(f"an event after the end of run {self.run.id} was dropped: {text[:200]}")

    def ask(self, question: dict) -> "concurrent.futures.Future[Answer]":
        future: "concurrent.futures.Future[Answer]" = concurrent.futures.Future()
        with self._lock:
            if self.run.cancelled.is_set():
                future.set_result(Answer(False, str(self.run.cancel_reason), "policy"))
                return future
            if "ask" not in self.run.offers:
                future.set_result(judge(self.run.order, **question))
                return future
            self._asks += 1
            id = f"ask-{self._asks}"
            self._asked[id] = (future, question)
        with self._gate:
            if self._open:
                self._out.line(_json({"t": "ask", "ref_id": self.run.id, "id": id, **question}))
        return future

    def answer(self, message: dict) -> bool:
        with self._lock:
            if message.get("ref_id") != self.run.id or message.get("id") not in self._asked:
                return False
            future, _ = self._asked.pop(message["id"])
        decision = message.get("decision")
        future.set_result(Answer(decision == "allow", str(message.get("reason") or decision), "host"))
        return True

    def host_is_silent(self) -> None:
        """The host has closed our input: nobody will answer any more, so the policy does."""
        with self._lock:
            self.run.offers.discard("ask")
            waiting, self._asked = list(self._asked.values()), {}
        for future, question in waiting:
            future.set_result(judge(self.run.order, **question))

    def when_cancelled(self, act: Callable[[], None]) -> None:
        with self._lock:
            self._on_cancel = act
            already = self.run.cancelled.is_set()
        if already:
            act()

    def cancel(self, reason: str, grace: float) -> None:
        with self._lock:
            if self.run.cancelled.is_set():
                return
            self.run.cancel_reason = reason
            self.run.cancelled.set()
            waiting, self._asked = list(self._asked.values()), {}
            act = self._on_cancel
        for future, _ in waiting:
            future.set_result(Answer(False, reason, "policy"))
        if act:
            act()
        timer = threading.Timer(grace, self._overdue, [grace])
        timer.daemon = True
        timer.start()

    def final(self, result: Any) -> None:
        try:
            receipt = self._receipt(result)
        except (TypeError, ValueError) as error:
            return self.fatal(error)
        self._close(f'{{"t":"final","ref_id":{_json(self.run.id)},"receipt":{receipt}}}')

    def fatal(self, error: BaseException) -> None:
        code = getattr(error, "code", None)
        known = code if isinstance(code, str) and code in ERROR_CODES else "internal"
        self._close(_json({"t": "fatal", "ref_id": self.run.id, "error": _text_of(error), "error_code": known}))

    def _close(self, text: str) -> None:
        with self._gate:
            if self._open:
                self._open = False
                self._out.line(text)

    def _overdue(self, grace: float) -> None:
        with self._gate:
            if not self._open:
                return
            _log(f"the handler did not stop within {grace} s of the cancel; the sidecar ends")
            self.final({})
        # A thread cannot be stopped; its process can.
        os._exit(0)

    def _receipt(self, result: Any) -> str:
        if not isinstance(result, Mapping):
            raise TypeError("a handler answers with nothing or with a dict")
        outcome = result.get("outcome") or ("partial" if self.run.cancelled.is_set() else "complete")
        if outcome not in ("complete", "partial", "failed"):
            raise ValueError(f"an outcome is complete, partial, failed; the handler answered {_show(outcome)}")
        finished = max(datetime.now(timezone.utc), self._started)
        meta = {
            "run_id": self.run.id,
            "work_order_id": self.run.order["id"],
            "contract_version": CONTRACT_VERSION,
            "started_at": _stamp(self._started),
            "finished_at": _stamp(finished),
            "duration_ms": int((finished - self._started).total_seconds() * 1000),
        }
        verification = {"git_diff": None, "git_status": None, "harness_ok": True, **(result.get("verification") or {})}
        return _object(
            {
                "meta": meta,
                "backend": {name: self._identity[name] for name in ("id", "backend_version", "adapter_version")},
                "capabilities": self._identity["capabilities"],
                "mode": self.run.mode,
                "usage_raw": result.get("usage_raw", {}),
                "usage": self.usage.sums(),
                # The events of the trace are text already; they go in as they went out.
                "trace": _Text(f"[{','.join(self._trace)}]"),
                "artifacts": [*self.artifacts, *(result.get("artifacts") or [])],
                "verification": verification,
                "outcome": outcome,
                "receipt_sha256": None,
            }
        )


class _Usage:
    """What was spent so far. What nobody counted stays unknown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict = {name: None for name in (*_COUNTS, "estimated_cost_usd")}

    def add(self, report: dict) -> None:
        for name in (*_COUNTS, "turns"):
            count = report.get(name)
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
                raise TypeError(f"{name} must be a whole number from 0")
        cost = report.get("estimated_cost_usd")
        if cost is not None and not (isinstance(cost, (int, float)) and math.isfinite(cost) and cost >= 0):
            raise TypeError("estimated_cost_usd must be a number from 0")
        unknown = set(report) - {*self._sums, "turns", "total"}
        if unknown:
            raise TypeError(f"usage does not count {', '.join(sorted(unknown))}")
        with self._lock:
            for name in self._sums:
                if report.get(name) is not None:
                    before = self._sums[name] or 0
                    self._sums[name] = max(before, report[name]) if report.get("total") else before + report[name]

    def sums(self) -> dict:
        with self._lock:
            return dict(self._sums)


class _Output:
    """Standard output, kept for the protocol alone: whatever else is written there goes to standard error."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._lock = threading.Lock()

    def line(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "replace") + b"\n")
        with self._lock:
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BrokenPipeError:
                    # The host has gone, and with it the reason to be here.
                    os._exit(0)


class _Text(Raw):
    """JSON that was written here."""

    def __init__(self, text: str):
        self.text = text


def _lines(descriptor: int) -> Iterable[str]:
    """The lines of a stream that are not blank. One that is too long is the last.

    It reads without Python's buffers: their lock, held by a thread that waits for input, would abort an interpreter that ends."""
    held: list = []
    size = 0
    while True:
        chunk = os.read(descriptor, 1 << 16)
        *whole, rest = (chunk or b"\n").split(b"\n")
        for piece in whole:
            text = b"".join([*held, piece]).decode("utf-8", "replace").strip()
            held, size = [], 0
            if text:
                yield text
        if not chunk:
            return
        held.append(rest)
        size += len(rest)
        if size > MAX_LINE:
            return _log(f"a line of more than {MAX_LINE} bytes")


_TEXTS = {
    "run_started": ("message",),
    "run_completed": ("message",),
    "warning": ("message",),
    "error": ("message",),
    "assistant_delta": ("text",),
    "assistant_message": ("text",),
    "tool_call": ("tool_name",),
    "tool_result": ("tool_name",),
    "file_changed": ("path", "summary"),
    "command_executed": ("command",),
}


def _check_event(type: str, members: Mapping[str, Any]) -> None:
    if type not in _TEXTS:
        raise ValueError(f"{_show(type)} is not a type of event; there are {', '.join(_TEXTS)}")
    for name in _TEXTS[type]:
        _require_text(members.get(name), f"{type}.{name}")
    for name in ("tool_use_id", "parent_tool_use_id", "output_preview"):
        if members.get(name) is not None:
            _require_text(members[name], f"{type}.{name}")
    if type == "tool_result" and not isinstance(members.get("is_error"), bool):
        raise TypeError("tool_result.is_error must be a bool")
    code = members.get("exit_code")
    if code is not None and not (isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31):
        raise TypeError("command_executed.exit_code must be a whole number")
    if members.get("error_code") is not None and members["error_code"] not in ERROR_CODES:
        raise ValueError(f"{_show(members['error_code'])} is not a code of the contract")


def _require_text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {_show(value)}")


def _object(members: Mapping[str, Any]) -> str:
    """JSON of an object whose members may be written already."""
    return "{" + ",".join(f"{_json(name)}:{_json(value)}" for name, value in members.items()) + "}"


def _json(value: Any) -> str:
    """JSON that every reader takes: no NaN, and half a surrogate pair becomes a question mark when it is encoded."""
    if isinstance(value, Raw):
        return value.text
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _identity(given: Mapping[str, Any]) -> dict:
    identity = {"backend_version": None, "adapter_version": None, "capabilities": {}, "mode": "mapped", "asks": None, **given}
    if not isinstance(identity.get("id"), str) or not identity["id"]:
        raise TypeError("identity needs an id")
    if identity["mode"] not in ("mapped", "passthrough"):
        raise ValueError("the mode is mapped or passthrough")
    for name, level in identity["capabilities"].items():
        restricted = isinstance(level, dict) and isinstance(level.get("restricted"), dict) and "reason" in level["restricted"]
        if not restricted and level not in ("native", "emulated", "unsupported"):
            raise ValueError(f"{name} is native, emulated, unsupported or {{'restricted': {{'reason': …}}}}")
    return identity


def _whole(order: dict) -> dict:
    """A work order with nothing missing: hosts in the wild send partial ones."""

    def record(value: Any) -> dict:
        return value if isinstance(value, dict) else {}

    def filled(value: Any, **defaults: Any) -> dict:
        value = record(value)
        return {**value, **{name: default if value.get(name) is None else value[name] for name, default in defaults.items()}}

    def lists(value: Any, *names: str) -> dict:
        value = record(value)
        return {**value, **{name: value[name] if isinstance(value.get(name), list) else [] for name in names}}

    whole = filled(order, id=NO_ID, task="", lane="patch_first")
    whole["workspace"] = filled(lists(order.get("workspace"), "include", "exclude"), root=".", mode="staged")
    whole["context"] = lists(order.get("context"), "files", "snippets")
    whole["policy"] = lists(order.get("policy"), *_LISTS)
    whole["requirements"] = lists(order.get("requirements"), "required")
    config = record(order.get("config"))
    optional = {name: config.get(name) for name in ("model", "max_budget_usd", "max_turns")}
    whole["config"] = {**config, **optional, "vendor": record(config.get("vendor")), "env": record(config.get("env"))}
    return whole


def judge(
    order: Mapping[str, Any],
    action: str,
    tool_name: str = "",
    input: Any = None,
    path: Optional[str] = None,
    host: Optional[str] = None,
    tool_use_id: Optional[str] = None,
) -> Answer:
    """What the policy of a work order says when there is nobody to ask. `tool` looks at the tool and at what its input names; the
    others at their path or host. A denial says which list decided."""
    policy, root = order["policy"], order["workspace"]["root"]
    if action == "tool":
        reason = _judge_tool(policy, root, tool_name, input if isinstance(input, dict) else {})
    elif action == "network":
        reason = _judge_host(policy, host)
    else:
        reason = _judge_file(policy, "deny_read" if action == "read" else "deny_write", root, path)
    return Answer(reason is None, reason or "nothing in the policy forbids it", "policy")


def _judge_tool(policy: Mapping[str, list], root: str, name: str, input: dict) -> Optional[str]:
    denied = _found(policy["disallowed_tools"], name)
    if denied:
        return f"{name} is in disallowed_tools ({denied})"
    if policy["allowed_tools"] and not _found(policy["allowed_tools"], name):
        return f"{name} is not in allowed_tools"
    approval = _found(policy["require_approval_for"], name)
    if approval:
        return f"{name} needs approval ({approval}), and the host has no way to give it"

    def named(*words: str) -> bool:
        return any(word in name.lower() for word in words)

    lists = [*(["deny_read"] if named("read", "grep", "glob") else []), *(["deny_write"] if named("write", "edit", "patch") else [])]
    for key, value in input.items():
        if isinstance(value, str) and re.search("path|file", key, re.IGNORECASE):
            for list_name in lists or [None]:
                reason = _judge_file(policy, list_name, root, value)
                if reason:
                    return reason
    url = next((input[key] for key in ("url", "uri", "endpoint") if isinstance(input.get(key), str)), None)
    return _judge_host(policy, url) if named("web", "fetch", "http") and url is not None else None


def _judge_file(policy: Mapping[str, list], list_name: Optional[str], root: str, path: Optional[str]) -> Optional[str]:
    if not isinstance(path, str):
        return "no path is named"
    base = os.path.realpath(root)
    inside = os.path.relpath(os.path.realpath(os.path.join(base, path)), base)
    if inside == os.pardir or inside.startswith(os.pardir + os.sep):
        return f"{path} is outside of the workspace"
    if list_name is None:
        return None
    file = inside.replace(os.sep, "/")
    denied = next((pattern for pattern in policy[list_name] if _covers_file(pattern, file)), None)
    return f"{path} is in {list_name} ({denied})" if denied else None


def _covers_file(written: str, file: str) -> bool:
    """Whether a pattern for files covers one: `./x` and `/x` are `x` in the root, `x/` and `x/**` are the folder and all below it."""
    pattern = re.sub(r"/$", "/**", re.sub(r"^(\.?/)+", "", written))
    return glob(pattern, file) or (pattern.endswith("/**") and glob(pattern[:-3], file))


def _judge_host(policy: Mapping[str, list], where: Optional[str]) -> Optional[str]:
    if not isinstance(where, str):
        return "no host is named"
    try:
        host = urllib.parse.urlsplit(where if "://" in where else f"http://{where}").hostname
    except ValueError:
        host = None
    if not host or not re.fullmatch(r"[^\s%/]+", host):
        return f"{where} names no host"
    host = host.rstrip(".")
    denied = _found(policy["deny_network"], host)
    if denied:
        return f"{host} is in deny_network ({denied})"
    if policy["allow_network"] and not _found(policy["allow_network"], host):
        return f"{host} is not in allow_network"
    return None


def _found(patterns: Iterable[str], text: str) -> Optional[str]:
    return next((pattern for pattern in patterns if glob(pattern, text)), None)


_TOKENS = re.compile(r"\*\*/|\*+|\[!?[^\]]+\]|\\.|.", re.DOTALL)


def glob(pattern: str, text: str) -> bool:
    """Whether a pattern covers a text: `*` is anything (also across `/`, so that a denial means the most that its author can have
    meant), `?` one character, `**/` any folders or none, `[a-z]` and `[!a-z]` one of, `{a,b}` either. Every character is looked at
    once for every token: there is no pattern that is slow."""
    brace = re.search(r"\{([^{}]*)\}", pattern)
    if brace:
        head, tail = pattern[: brace.start()], pattern[brace.end() :]
        return any(glob(head + choice + tail, text) for choice in brace.group(1).split(","))
    tokens = _TOKENS.findall(pattern)

    # A state is the token that comes next; `~at` is inside the folders of the token `at`, where only a `/` leads on.
    def enter(states: set, at: int) -> None:
        while at not in states:
            states.add(at)
            if at >= len(tokens) or not tokens[at].startswith("*"):
                return
            at += 1

    states: set = set()
    enter(states, 0)
    for char in text:
        following: set = set()
        for state in states:
            at = ~state if state < 0 else state
            if at >= len(tokens):
                continue
            token = tokens[at]
            if token == "**/":
                following.add(~at)
                if char == "/":
                    enter(following, at + 1)
            elif token.startswith("*"):
                enter(following, at)
            elif _is_one(token, char):
                enter(following, at + 1)
        states = following
    return len(tokens) in states


def _is_one(token: str, char: str) -> bool:
    if token == "?":
        return True
    if len(token) > 1 and token[0] == "\\":
        return token[1:] == char
    if len(token) < 3 or token[0] != "[":
        return token == char
    negated = token[1] == "!"
    inside = token[2 if negated else 1 : -1]
    ranges = re.findall(r"(.)-(.)|(.)", inside, re.DOTALL)
    hit = any(char == single if single else first <= char <= last for first, last, single in ranges)
    return hit != negated


def _now() -> str:
    return _stamp(datetime.now(timezone.utc))


def _stamp(when: datetime) -> str:
    return when.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _show(value: Any) -> str:
    return json.dumps(value, default=str)[:120]


def _log(text: str) -> None:
    print(f"abp: {text}", file=sys.stderr, flush=True)


def _quietly(act: Callable[[], Any]) -> None:
    try:
        act()
    except RuntimeError:
        pass  # the loop has ended, and the handler with it


if sys.version_info < (3, 9):
    raise ImportError("outrigger_abp needs Python 3.9 or newer")
