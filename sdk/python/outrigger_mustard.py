"""Runs sandboxed scripts in a mustard sidecar against a table of functions. One file, no dependencies, Python 3.9 or newer.

    import outrigger_mustard as mustard

    total = mustard.run(
        "const u = load_user(id); u.orders.length;",
        inputs={"id": 7},
        capabilities={"load_user": lambda id: {"id": id, "orders": [1, 2]}},
    )

The script runs in a child process that holds no privileges. Every call of a capability stops the script into a snapshot; the
function runs here. So a run can also be stopped at a call, kept, and taken up later, by another process on another
machine: see `Mustard.start` and `Mustard.resume`.

`Mustard` is for asyncio; `run` and `Blocking` are for everybody else. Functions may be plain or `async def`; calls that wait at
the same time are answered concurrently, plain functions each in a thread.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import hashlib
import hmac
import inspect
import json
import math
import os
import re
import secrets
import struct
import sys
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Iterable, Mapping, Optional, Union

__all__ = ["Blocking", "Call", "Completed", "Mustard", "MustardError", "Program", "Suspended", "UNDEFINED", "run"]

#: What is asked of the sidecar beyond version 2 of the protocol.
FEATURES = ["batch", "deadline", "world", "error_detail", "return", "inspect", "release"]

#: The limit of a request that every sidecar has, in bytes.
VERSION_2_FRAME = 1_048_576

#: How much of the child's standard error is kept for messages.
STDERR_KEPT = 4096

#: How deep a value may be nested.
DEEPEST = 128

#: Programs and snapshots of which it is remembered that a child has them.
REMEMBERED = 1024


class _Undefined:
    """The script's `undefined`. It is false, and there is one of it. `None` is the script's `null`."""

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "UNDEFINED"


UNDEFINED = _Undefined()


class MustardError(Exception):
    """Everything that can go wrong. `code` is for programs, the text for people.

    `kind` is `Parse`, `Validation`, `Runtime`, `Limit`, `Serialization`, `Protocol`, or `Sidecar` for the process itself. `code` is a
    stable word such as `runtime`, `limit_heap`, `unknown_snapshot`, `died`, `timeout`.
    """

    def __init__(self, message: str, kind: str = "Sidecar", code: str = "internal", **fields: Any):
        super().__init__(message)
        self.kind = kind
        self.code = code
        self.guest_name: Optional[str] = fields.get("name")
        self.line: Optional[int] = fields.get("line")
        self.column: Optional[int] = fields.get("column")
        self.source_line: Optional[str] = fields.get("source_line")
        self.frames: list = fields.get("frames") or []
        self.error_code: Optional[str] = fields.get("error_code")
        self.details: Any = fields.get("details")


class GuestError(Exception):
    """Raise it in a capability to say exactly what the script catches."""

    def __init__(self, message: str, name: str = "Error", code: Optional[str] = None, details: Any = UNDEFINED):
        super().__init__(message)
        self.name = name
        self.code = code
        self.details = details


@dataclass(frozen=True)
class Program:
    """A compiled script."""

    id: str
    bytes: bytes = field(repr=False)


@dataclass(frozen=True)
class Call:
    """A call that waits for its answer."""

    call_id: int
    capability: str
    args: list


@dataclass(frozen=True)
class Completed:
    """The script is done."""

    value: Any


@dataclass(frozen=True)
class Suspended:
    """The script waits for answers. Keep `save()` to go on later, somewhere else, with the same key."""

    calls: list
    capabilities: list
    limits: dict
    snapshot: bytes = field(repr=False)
    snapshot_id: str = ""
    token: str = ""

    def save(self) -> dict:
        """Everything another process needs to go on, as plain JSON."""
        calls = [
            {"call_id": call.call_id, "capability": call.capability, "args": [_tagged(arg) for arg in call.args]}
            for call in self.calls
        ]
        return {
            "format": "mustard-step/1",
            "capabilities": self.capabilities,
            "limits": self.limits,
            "calls": calls,
            "token": self.token,
            "snapshot_base64": base64.b64encode(self.snapshot).decode(),
        }


Step = Union[Completed, Suspended]
Kept = Union[Suspended, dict, str]


class Mustard:
    """A client of one sidecar, for asyncio. The child is started when it is needed and again after it died.

    command: the sidecar; by default `$MUSTARD_SIDECAR`, else `outrigger sidecar mustard`.
    key: signs snapshots; give your own to resume what another process kept.
    plain: speak version 2 only, as the original sidecar does.
    max_frame_bytes: the largest request, if the sidecar agrees.
    max_response_bytes: the largest response that is accepted.
    """

    def __init__(
        self,
        command: Optional[list] = None,
        key: Optional[bytes] = None,
        plain: bool = False,
        max_frame_bytes: int = 64 << 20,
        max_response_bytes: int = 256 << 20,
    ):
        self._command = command or _default_command()
        self._key = secrets.token_bytes(32) if key is None else key
        self._plain = plain
        self._max_frame_bytes = max_frame_bytes
        self._max_response_bytes = max_response_bytes
        self._child: Optional[_Child] = None
        self._programs: collections.OrderedDict = collections.OrderedDict()
        self._turn = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> "Mustard":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def compile(self, source: str, lenient_return: bool = False) -> Program:
        """Compiles a script. What comes back can be run many times, also by another process."""
        key = (source, lenient_return)
        if key in self._programs:
            return self._programs[key]
        header: dict = {"method": "compile", "source": source}
        if lenient_return:
            header["lenient_return"] = True
        result, blob = await self._request(header)
        program = Program(result["program_id"], blob)
        _remember(self._programs, key, program, most=256)
        return program

    async def run(
        self,
        script: Union[str, Program],
        inputs: Optional[Mapping[str, Any]] = None,
        capabilities: Optional[Mapping[str, Any]] = None,
        limits: Optional[Mapping[str, int]] = None,
        timeout: Optional[float] = None,
        retries: int = 2,
        **options: Any,
    ) -> Any:
        """Runs a script to its end and answers its value.

        If the sidecar dies, the run goes on from its last snapshot in a new one, and no function is called twice. `timeout`
        (seconds) is for the whole run: then the sidecar is killed. Also: deadline_ms, seed, now_ms, lenient_return.
        """
        table = _handlers(capabilities or {})

        async def whole() -> Any:
            step = await self._retrying(
                retries, lambda: self.start(script, inputs, list(table), limits, **options)
            )
            return await self._drive(step, table, retries, options)

        return await self._within(timeout, whole())

    async def start(
        self,
        script: Union[str, Program],
        inputs: Optional[Mapping[str, Any]] = None,
        capabilities: Iterable[str] = (),
        limits: Optional[Mapping[str, int]] = None,
        deadline_ms: Optional[int] = None,
        seed: Optional[int] = None,
        now_ms: Optional[float] = None,
        lenient_return: bool = False,
    ) -> Step:
        """Starts a script and stops at its first call."""
        program = await self.compile(script, lenient_return) if isinstance(script, str) else script
        names = list(capabilities)
        options: dict = {
            "inputs": {name: _tagged(value) for name, value in (inputs or {}).items()},
            "capabilities": names,
            "limits": dict(limits or {}),
        }
        _set(options, seed=seed, now_ms=now_ms)
        header: dict = {"method": "start", "program_id": program.id, "options": options}
        _set(header, deadline_ms=deadline_ms)
        result, blob = await self._request(header, lambda child: None if program.id in child.programs else program.bytes)
        return self._step(result, blob, names, options["limits"])

    async def resume(
        self,
        step: Kept,
        answer: Any = UNDEFINED,
        answers: Optional[Mapping[int, Any]] = None,
        cancel: bool = False,
        deadline_ms: Optional[int] = None,
        now_ms: Optional[float] = None,
    ) -> Step:
        """Goes on with a suspended step, or with what its `save()` gave.

        `answer` is for its first call; `answers` (call id to value, or to an exception) for any of them. Nothing here is
        single-use: keep count of what you resumed.
        """
        kept = self._opened(step)
        if cancel:
            payload: dict = {"type": "cancelled"}
        elif answers is not None:
            payload = _answers({call_id: _payload(value) for call_id, value in answers.items()})
        else:
            payload = _payload(answer)
        return await self._resume(kept, payload, deadline_ms=deadline_ms, now_ms=now_ms)

    async def finish(
        self,
        step: Kept,
        capabilities: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        retries: int = 2,
        **options: Any,
    ) -> Any:
        """Goes on with a suspended step to its end, answering every call with a function of the table."""
        table = _handlers(capabilities or {})
        return await self._within(timeout, self._drive(self._opened(step), table, retries, options))

    async def inspect(self, step: Kept) -> dict:
        """What a kept step waits for, how big it is, and what it may do. Runs nothing."""
        kept = self._opened(step)
        header = {"method": "inspect", "snapshot_id": kept.snapshot_id, "policy": self._policy(kept)}
        result, _ = await self._request(header, lambda _: kept.snapshot)
        result.pop("kind", None)
        result["calls"] = [_read_call(call) for call in result["calls"]]
        return result

    async def about(self) -> Optional[dict]:
        """What the sidecar is and can do; nothing of a plain one."""
        return (await self._ready()).about

    async def close(self, grace: float = 2.0) -> None:
        """Lets the sidecar finish what it was asked and end. Kills it if that takes longer than `grace` seconds."""
        self._closed = True
        child, self._child = self._child, None
        if child:
            await child.close(grace)

    async def _resume(self, kept: Suspended, payload: dict, **fields: Any) -> Step:
        header: dict = {
            "method": "resume",
            "snapshot_id": kept.snapshot_id,
            "policy": self._policy(kept),
            "payload": payload,
        }
        _set(header, **fields)
        result, blob = await self._request(
            header, lambda child: None if kept.snapshot_id in child.snapshots else kept.snapshot
        )
        return self._step(result, blob, kept.capabilities, kept.limits)

    async def _drive(self, step: Step, table: Mapping[str, Callable], retries: int, options: Mapping[str, Any]) -> Any:
        """Answers every call until the script is done. Whatever is done by the time one is done goes along."""
        fields = {name: options.get(name) for name in ("deadline_ms", "now_ms")}
        running: dict = {}
        try:
            while isinstance(step, Suspended):
                for call in step.calls:
                    if call.call_id not in running:
                        running[call.call_id] = asyncio.ensure_future(_answer_of(table, call))
                await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(0)
                done = {call_id: task.result() for call_id, task in running.items() if task.done()}
                for call_id in done:
                    del running[call_id]
                payload = next(iter(done.values())) if self._plain else _answers(done)
                kept = step
                step = await self._retrying(retries, lambda: self._resume(kept, payload, **fields))
        finally:
            for task in running.values():
                task.cancel()
        return step.value

    async def _within(self, timeout: Optional[float], work: Awaitable) -> Any:
        try:
            return await asyncio.wait_for(work, timeout)
        except asyncio.TimeoutError:
            self._kill()
            raise MustardError(f"the run took longer than {timeout} s", code="timeout") from None
        except asyncio.CancelledError:
            self._kill()
            raise

    def _kill(self) -> None:
        child, self._child = self._child, None
        if child:
            child.kill()

    async def _retrying(self, retries: int, work: Callable[[], Awaitable]) -> Any:
        """Does a step again in a new sidecar if the old one died. What the script computed by then is lost, nothing else."""
        while True:
            try:
                return await work()
            except MustardError as error:
                if error.code != "died" or retries <= 0:
                    raise
                retries -= 1

    def _step(self, result: dict, blob: bytes, capabilities: list, limits: dict) -> Step:
        step = result["step"]
        if step["type"] == "completed":
            return Completed(_read(step["value"]))
        alone = [{"call_id": 0, "capability": step["capability"], "args": step["args"]}]
        calls = [_read_call(call) for call in step.get("calls", alone)]
        snapshot_id = hashlib.sha256(blob).hexdigest()
        if self._child:
            _remember(self._child.snapshots, snapshot_id)
        return Suspended(calls, capabilities, limits, blob, snapshot_id, self._token(snapshot_id))

    def _opened(self, step: Kept) -> Suspended:
        """A step as it came, or as it was kept."""
        if isinstance(step, Suspended):
            return step
        kept = json.loads(step) if isinstance(step, str) else step
        if not isinstance(kept, dict) or kept.get("format") != "mustard-step/1":
            raise TypeError("a suspended step is needed, or what its save() gave (format mustard-step/1)")
        snapshot = base64.b64decode(kept["snapshot_base64"])
        snapshot_id = hashlib.sha256(snapshot).hexdigest()
        if not hmac.compare_digest(self._token(snapshot_id), str(kept["token"])):
            message = "the kept step was changed, or was signed with another key"
            raise MustardError(message, kind="Serialization", code="unauthenticated")
        calls = [_read_call(call) for call in kept["calls"]]
        return Suspended(calls, kept["capabilities"], kept["limits"], snapshot, snapshot_id, kept["token"])

    def _policy(self, kept: Suspended) -> dict:
        return {
            "capabilities": kept.capabilities,
            "limits": kept.limits,
            "snapshot_id": kept.snapshot_id,
            "snapshot_key_base64": base64.b64encode(self._key).decode(),
            "snapshot_key_digest": hashlib.sha256(self._key).hexdigest(),
            "snapshot_token": kept.token,
        }

    def _token(self, snapshot_id: str) -> str:
        return hmac.new(self._key, snapshot_id.encode(), hashlib.sha256).hexdigest()

    async def _ready(self) -> "_Child":
        if self._closed:
            raise MustardError("this client is closed", code="closed")
        if self._child is None:
            child = await _Child.spawn(self._command, self._max_response_bytes)
            self._child = child
            try:
                if not self._plain:
                    await child.greet(self._max_frame_bytes)
            except BaseException:
                self._child = None
                child.kill()
                raise
        return self._child

    async def _request(
        self, header: dict, blob: Callable[["_Child"], Optional[bytes]] = lambda _: None
    ) -> "tuple[dict, bytes]":
        """One request and its answer. `blob` says what to send along, once the child is known."""
        async with self._turn:
            child = await self._ready()
            try:
                response, payload = await child.request(header, blob(child))
                if not response["ok"] and re.match(r"unknown (program|snapshot)_id ", response["error"]):
                    child.programs.clear()
                    child.snapshots.clear()
                    response, payload = await child.request(header, blob(child))
            except MustardError as error:
                if error.code == "died" and self._child is child:
                    self._child = None
                raise
            except asyncio.CancelledError:
                # The answer would be taken for that of the next request.
                child.kill()
                if self._child is child:
                    self._child = None
                raise
            if not response["ok"]:
                raise _failure(response)
            if "program_id" in header:
                _remember(child.programs, header["program_id"])
            return response["result"], payload


class Blocking:
    """The same for programs without asyncio: `with Blocking() as mustard: mustard.run(...)`."""

    def __init__(self, **options: Any):
        self._loop = asyncio.new_event_loop()
        self._mustard = self._do(self._make(options))

    @staticmethod
    async def _make(options: Mapping[str, Any]) -> Mustard:
        return Mustard(**options)

    def _do(self, work: Awaitable) -> Any:
        try:
            return self._loop.run_until_complete(work)
        except KeyboardInterrupt:
            self._mustard._kill()
            raise

    def compile(self, *args: Any, **options: Any) -> Program:
        return self._do(self._mustard.compile(*args, **options))

    def run(self, *args: Any, **options: Any) -> Any:
        return self._do(self._mustard.run(*args, **options))

    def start(self, *args: Any, **options: Any) -> Step:
        return self._do(self._mustard.start(*args, **options))

    def resume(self, *args: Any, **options: Any) -> Step:
        return self._do(self._mustard.resume(*args, **options))

    def finish(self, *args: Any, **options: Any) -> Any:
        return self._do(self._mustard.finish(*args, **options))

    def inspect(self, step: Kept) -> dict:
        return self._do(self._mustard.inspect(step))

    def about(self) -> Optional[dict]:
        return self._do(self._mustard.about())

    def close(self) -> None:
        if not self._loop.is_closed():
            self._do(self._mustard.close())
            self._do(self._loop.shutdown_default_executor())
            self._loop.close()

    def __enter__(self) -> "Blocking":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def run(script: Union[str, Program], sidecar: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
    """Runs one script in a sidecar of its own."""
    with Blocking(**(sidecar or {})) as mustard:
        return mustard.run(script, **options)


class _Child:
    """One sidecar process. One request at a time."""

    def __init__(self, process: asyncio.subprocess.Process, max_response_bytes: int):
        self._process = process
        self._max_response_bytes = max_response_bytes
        self._limit = VERSION_2_FRAME
        self._next_id = 1
        self._stderr = b""
        self._reader = asyncio.ensure_future(self._read_stderr())
        self.programs: collections.OrderedDict = collections.OrderedDict()
        self.snapshots: collections.OrderedDict = collections.OrderedDict()
        self.about: Optional[dict] = None

    @staticmethod
    async def spawn(command: list, max_response_bytes: int) -> "_Child":
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            hint = "set MUSTARD_SIDECAR or pass command="
            raise MustardError(f"the sidecar `{command[0]}` could not be started: {error}; {hint}", code="start") from None
        return _Child(process, max_response_bytes)

    async def greet(self, max_frame_bytes: int) -> None:
        header = {"method": "hello", "features": FEATURES, "max_frame_bytes": max_frame_bytes}
        response, _ = await self.request(header)
        if not response["ok"]:
            raise _failure(response)
        self.about = response["result"]
        self._limit = self.about["limits"]["max_frame_bytes"]

    async def request(self, fields: dict, blob: Optional[bytes] = None) -> "tuple[dict, bytes]":
        id = self._next_id
        self._next_id += 1
        header = json.dumps({"protocol_version": 2, "id": id, **fields}, allow_nan=False).encode()
        body = blob or b""
        size = len(header) + len(body)
        if size > self._limit:
            message = f"the request has {size} bytes; the sidecar takes {self._limit}"
            raise MustardError(message, kind="Protocol", code="too_large")
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(struct.pack("<II", len(header), len(body)) + header + body)
            await self._process.stdin.drain()
            lengths = await self._process.stdout.readexactly(8)
            header_length, blob_length = struct.unpack("<II", lengths)
            total = header_length + blob_length
            if total > self._max_response_bytes:
                raise self._garbage(f"a response of {total} bytes; at most {self._max_response_bytes} are accepted")
            frame = await self._process.stdout.readexactly(total)
        except (asyncio.IncompleteReadError, ConnectionError, BrokenPipeError):
            raise await self._death() from None
        try:
            response = json.loads(frame[:header_length])
        except ValueError:
            raise self._garbage("a header that is not JSON") from None
        if response.get("id") != id:
            raise self._garbage(f"an answer nobody asked for (id {response.get('id')})")
        return response, frame[header_length:]

    def kill(self) -> None:
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass

    async def close(self, grace: float) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), grace)
        except asyncio.TimeoutError:
            self.kill()
            await self._process.wait()
        await self._reader

    def _garbage(self, what: str) -> MustardError:
        self.kill()
        return MustardError(f"the sidecar sent {what}", code="died")

    async def _death(self) -> MustardError:
        code = await self._process.wait()
        await self._reader
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        said = self._stderr.decode(errors="replace").strip()
        return MustardError(f"the sidecar {how}" + (f"; it said: {said}" if said else ""), code="died")

    async def _read_stderr(self) -> None:
        assert self._process.stderr
        while chunk := await self._process.stderr.read(STDERR_KEPT):
            self._stderr = (self._stderr + chunk)[-STDERR_KEPT:]


def _tagged(value: Any, depth: int = 0, path: tuple = ()) -> Any:
    """A value as the wire's tagged JSON."""
    if depth > DEEPEST:
        raise TypeError(f"a value is nested deeper than {DEEPEST} levels")
    if value is UNDEFINED:
        return "Undefined"
    if value is None:
        return "Null"
    if isinstance(value, bool):
        return {"Bool": value}
    if isinstance(value, str):
        value.encode()  # half a surrogate pair cannot cross
        return {"String": value}
    if isinstance(value, (int, float)):
        return {"Number": _tagged_number(value)}
    if id(value) in path:
        raise TypeError("a value that contains itself cannot cross to the script")
    inner = path + (id(value),)
    if isinstance(value, (list, tuple)):
        return {"Array": [_tagged(element, depth + 1, inner) for element in value]}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("the keys of an object must be strings")
        return {"Object": {key: _tagged(member, depth + 1, inner) for key, member in value.items()}}
    raise TypeError(f"a {type(value).__name__} cannot cross to the script; send dicts, lists, strings, numbers, booleans or None")


def _tagged_number(value: Union[int, float]) -> Any:
    if isinstance(value, int):
        if abs(value) > 2**53:
            raise TypeError(f"{value} is not exact as a number of the script; send it as a string")
        return {"Finite": value}
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "NegInfinity"
    if value == 0 and math.copysign(1, value) < 0:
        return "NegZero"
    return {"Finite": value}


_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "NegInfinity": -math.inf, "NegZero": -0.0}


def _read(tagged: Any) -> Any:
    """A value from the wire's tagged JSON. Whole numbers become `int`."""
    if tagged in ("Undefined", "Hole"):
        return UNDEFINED
    if tagged == "Null":
        return None
    if isinstance(tagged, dict) and len(tagged) == 1:
        [(tag, inner)] = tagged.items()
        if tag == "Undefined":
            return UNDEFINED
        if tag == "Null":
            return None
        if tag in ("Bool", "String"):
            return inner
        if tag == "Number":
            return _read_number(inner)
        if tag == "Array":
            return [_read(element) for element in inner]
        if tag == "Object":
            return {key: _read(member) for key, member in inner.items()}
    raise MustardError(f"the sidecar sent a value that is none: {json.dumps(tagged)[:80]}", kind="Protocol", code="shape")


def _read_number(inner: Any) -> Union[int, float]:
    if isinstance(inner, str):
        return _NUMBERS[inner]
    [(name, value)] = inner.items()
    if name != "Finite":
        return _NUMBERS[name]
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if whole else value


def _read_call(call: Mapping[str, Any]) -> Call:
    return Call(call["call_id"], call["capability"], [_read(arg) for arg in call["args"]])


def _payload(answer: Any) -> dict:
    """A value, or an exception, as the payload that the script gets. Never a traceback."""
    if not isinstance(answer, BaseException):
        return {"type": "value", "value": _tagged(answer)}
    error: dict = {"name": getattr(answer, "name", None) or type(answer).__name__, "message": str(answer)}
    if not isinstance(error["name"], str):
        error["name"] = type(answer).__name__
    code = getattr(answer, "code", None)
    if code is not None:
        error["code"] = str(code)
    details = getattr(answer, "details", UNDEFINED)
    if details is not UNDEFINED:
        error["details"] = _tagged(details)
    return {"type": "error", "error": error}


def _answers(payloads: Mapping[int, dict]) -> dict:
    rows = [{"call_id": call_id, "payload": payload} for call_id, payload in payloads.items()]
    return {"type": "answers", "answers": rows}


async def _answer_of(table: Mapping[str, Callable], call: Call) -> dict:
    """What a function of the table answers, as a payload. The script gets its exception."""
    handler = table.get(call.capability)
    try:
        if handler is None:
            raise LookupError(f"no function for the capability `{call.capability}`")
        if inspect.iscoroutinefunction(handler):
            answer = await handler(*call.args)
        else:
            answer = await asyncio.get_running_loop().run_in_executor(None, lambda: handler(*call.args))
            if inspect.isawaitable(answer):
                answer = await answer
        return _payload(answer)
    except Exception as error:
        try:
            return _payload(error)
        except (TypeError, ValueError) as unwritable:
            return _payload(TypeError(f"{call.capability} failed with details that cannot cross: {unwritable}"))


def _handlers(capabilities: Mapping[str, Any], prefix: str = "") -> dict:
    """The table of functions. Nested tables make dotted names: `{"console": {"log": print}}` grants `console.log`."""
    table: dict = {}
    for name, handler in capabilities.items():
        if callable(handler):
            table[prefix + name] = handler
        elif isinstance(handler, Mapping):
            table.update(_handlers(handler, f"{prefix}{name}."))
        else:
            raise TypeError(f"the capability `{prefix}{name}` is not a function")
    return table


def _failure(response: Mapping[str, Any]) -> MustardError:
    message = response["error"]
    found = re.match(r"(Parse|Validation|Runtime|Limit|Serialization): ", message)
    kind = found.group(1) if found else "Protocol"
    detail = dict(response.get("error_detail") or {})
    detail.pop("message", None)
    fields = {"kind": kind, "code": kind.lower(), **detail}
    if fields.get("details") is not None:
        fields["details"] = _read(fields["details"])
    return MustardError(message, **fields)


def _set(target: dict, **fields: Any) -> None:
    target.update({name: value for name, value in fields.items() if value is not None})


def _remember(known: collections.OrderedDict, key: Any, value: Any = None, most: int = REMEMBERED) -> None:
    if len(known) >= most:
        known.popitem(last=False)
    known[key] = value


def _default_command() -> list:
    path = os.environ.get("MUSTARD_SIDECAR")
    return [path] if path else ["outrigger", "sidecar", "mustard"]


if sys.version_info < (3, 9):
    raise ImportError("outrigger_mustard needs Python 3.9 or newer")
