"""Makes a program a sep extension: the host calls its methods, and it calls the host. One file, no dependencies, Python 3.9 or
newer.

    import outrigger_sep as sep

    class Greeter(sep.Extension):
        def on_event(self, host, event):
            if event.topic == "message.received":
                host.toast("a message came in")

    sep.run(Greeter())

`run` reads the bootstrap line from standard input, reaches the host over the socket it names, shows the token and agrees on a
version of the protocol (1.1 or 1.0). It ends the process: with 0 when the host asks for it or has gone, otherwise with a code
that says why (`EXIT_*`).

Handlers may block and may be slow. Events come one after the other in a thread of their own, every action has its thread, and
`sep.health` is answered by the kit whatever they do. A call to the host waits for its answer and raises a `SepError` when there
is none. When the host gives up a request, the calls that its handler waits for raise `Cancelled`.

What travels is spelled as the protocol spells it: messages, contacts and panels are dictionaries with its names. Standard output
and standard error are logs that the host keeps.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

__all__ = [
    "Action",
    "Cancelled",
    "EXIT_CONFIG",
    "EXIT_IO",
    "EXIT_PROTOCOL",
    "EXIT_SOFTWARE",
    "EXIT_UNAVAILABLE",
    "EXIT_USAGE",
    "Ended",
    "Event",
    "Extension",
    "Host",
    "Lifecycle",
    "NoAnswer",
    "Refused",
    "SepError",
    "Shutdown",
    "TooLong",
    "Welcome",
    "failed",
    "ok",
    "run",
]

__version__ = "0.1.0"

#: Started by hand, or with arguments that make no sense.
EXIT_USAGE = 64
#: The host cannot be reached, or does not want us.
EXIT_UNAVAILABLE = 69
#: The extension broke.
EXIT_SOFTWARE = 70
#: The channel broke.
EXIT_IO = 74
#: No common version of the protocol. The host does not try again.
EXIT_PROTOCOL = 76
#: The extension's configuration is wrong. The host does not try again.
EXIT_CONFIG = 78

_SPOKEN = ((1, 1), (1, 0))
_MAX_BOOTSTRAP = 4096
_MAX_LINE = 4 << 20
_MAX_EVENTS = 256
_MAX_ACTIONS = 16
#: Before the host has said what it takes.
_FIRST_FRAME = 4096
_PATIENCE = 20.0
_ATTACH_PATIENCE = 120.0
_HEALTH_PATIENCE = 1.0
#: How much of the time to leave is kept for leaving.
_MARGIN = 0.2
_ORPHAN_TIME = 1.0
#: The contract gives a process without a host two seconds.
_ORPHAN_LIFE = 1.7
_TEMPORARY = frozenset((-32002, -32020, -32021, -32032, -32033, -32041))


class SepError(Exception):
    """Why a call to the host has no result."""

    def __init__(self, method: str, why: str):
        super().__init__(f"`{method}` {why}")
        self.method = method


class Refused(SepError):
    """The host answered with an error."""

    def __init__(self, method: str, error: Dict[str, Any]):
        data = error.get("data")
        #: The stable number.
        self.code: int = error.get("code", 0)
        #: Details.
        self.data: Dict[str, Any] = data if isinstance(data, dict) else {}
        #: The stable word.
        self.slug: str = self.data.get("sep", "")
        super().__init__(method, f"failed: {error.get('message')} ({self.slug}, code {self.code})")

    @property
    def retry_after(self) -> Optional[float]:
        """How many seconds to wait before the same call can succeed, if the host said so."""
        after = self.data.get("retryAfterMs")
        return after / 1000 if isinstance(after, (int, float)) else None

    @property
    def temporary(self) -> bool:
        """Whether the same call can succeed later."""
        return self.code in _TEMPORARY

    @property
    def denied(self) -> bool:
        """Whether a permission is missing."""
        return self.code == -32010

    @property
    def unknown_method(self) -> bool:
        """Whether the host does not know the method in this session."""
        return self.code == -32601


class NoAnswer(SepError):
    """No answer came in time. What was asked for may still happen."""


class Cancelled(SepError):
    """The request of the host that this call was made for is over: given up by the host, or answered."""


class Ended(SepError):
    """The channel is closed."""


class TooLong(SepError):
    """The request is longer than the host takes. It was not sent."""


class Event(NamedTuple):
    """Something that happened."""

    #: Counts every event of this session, also those that were dropped.
    seq: int
    topic: str
    time_ms: int
    data: Any
    #: What was dropped since the event before, because this extension was too slow: `count`, `fromSeq`, `toSeq`.
    dropped: Optional[Dict[str, int]]


class Action(NamedTuple):
    """Somebody invoked an action of a panel."""

    panel: str
    action: str
    #: What the person entered.
    input: Optional[str]
    invocation: str


class Lifecycle(NamedTuple):
    """What the platform does with the process: `pausing`, `resumed`, `trim`, `background`, or something newer."""

    change: str
    data: Any


class Shutdown(NamedTuple):
    """Why the session ends, and how many seconds there are."""

    reason: str
    within: float


class Welcome:
    """What the host says when a session begins. What it did not say is empty."""

    def __init__(self, params: Dict[str, Any], version: str):
        extension = _object(params, "extension")
        limits = _object(params, "limits")
        #: The version that was agreed on.
        self.version = version
        #: `name` and `version` of the host.
        self.host = _object(params, "host")
        #: The id of this extension.
        self.id: str = extension.get("id", "")
        #: The folder it may write to.
        self.data_dir: str = extension.get("dataDir", "")
        self.session: str = params.get("session", "")
        self.launch_reason: str = params.get("launchReason", "")
        self.trust_level: str = params.get("trustLevel", "")
        self.permissions: List[str] = list(params.get("permissions") or ())
        self.topics: List[str] = list(_object(params, "events").get("subscribed") or ())
        self.max_frame_bytes: int = limits.get("maxFrameBytes", 1024)
        self.max_calls: int = limits.get("maxConcurrentRequests", 1)
        self.profile: str = _object(params, "platform").get("profile", "desktop")
        self.now_ms: int = params.get("nowMs", 0)
        #: Everything, as it was said.
        self.raw = params

    def may(self, permission: str) -> bool:
        """Whether this may be done."""
        return permission in self.permissions


class Extension:
    """What an author writes. Every method has a default that is right for an extension that does not care."""

    #: What it is called, and which version; the host knows those in the manifest.
    name: Optional[str] = None
    version: Optional[str] = None
    #: The lowest protocol it can work with (the `apiVersion` of the manifest), and the highest it wants.
    lowest: str = "1.0.0"
    highest: str = "1.1.0"

    def on_initialize(self, host: "Host", welcome: Welcome) -> None:
        """The session has begun: the host can be asked. No event and no action is handed over before this returns. An exception
        means that the extension cannot work like this: it leaves with `EXIT_CONFIG` and is not started again."""

    def on_event(self, host: "Host", event: Event) -> None:
        """Something happened. The host sends more once this returns; an exception is told to it."""

    def on_action(self, host: "Host", action: Action) -> Any:
        """Somebody invoked an action. Answers nothing, a text to be shown, or what `ok` and `failed` make; an exception is shown to
        the person."""
        return failed(f"there is no action `{action.action}`")

    def on_health(self) -> Any:
        """Answers nothing when all is well, a text when it works but not well, or `"stopping"` before it leaves by itself. If this
        takes longer than a second, the kit says that the extension is degraded."""

    def on_lifecycle(self, host: "Host", change: Lifecycle) -> None:
        """The platform pauses, resumes or squeezes the process."""

    def on_shutdown(self, shutdown: Shutdown) -> None:
        """The session ends. The host answers no more calls; the process leaves when this returns, or when the time is up."""


def ok(toast: Optional[str] = None, level: str = "success", panel: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """An action that worked; may show a notice and change the panel (`title`, `description`, `actions`, `content`)."""
    return _reply("ok", toast, level, panel)


def failed(why: str) -> Dict[str, Any]:
    """An action that did not work, and why."""
    return _reply("error", why, "error", None)


def run(extension: Extension) -> None:
    """Is this extension until the host asks it to leave, or has gone. Does not return: the process ends."""
    code, why = _run(extension)
    if why:
        print(why, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    # Handlers may still be busy, and nobody waits for them any more.
    os._exit(code)


class Host:
    """The host, to be asked from any thread."""

    def __init__(self, session: "_Session", owner: Any = None, patience: float = _PATIENCE):
        self._session = session
        self._owner = owner
        self._patience = patience

    @property
    def version(self) -> str:
        """The version of this session."""
        return self._session.version or "1.0.0"

    @property
    def cancelled(self) -> bool:
        """Whether the request that a handler was given this host for is over."""
        return self._owner is not None and not self._session.is_serving(self._owner)

    def within(self, seconds: float) -> "Host":
        """The same host, asked with this patience."""
        return Host(self._session, self._owner, seconds)

    def detached(self) -> "Host":
        """The same host for work that outlives the handler."""
        return Host(self._session, None, self._patience)

    def get_capabilities(self) -> Dict[str, Any]:
        """What this extension may do, and with what."""
        return self.call("host.get_capabilities")

    def messages_send(
        self,
        destination: str,
        content: str,
        title: Optional[str] = None,
        method: Optional[str] = None,
        reply_to: Optional[str] = None,
        client_message_id: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Sends a message. With a `client_message_id`, asking again does not send again."""
        return self.call(
            "host.messages.send",
            destinationHash=destination,
            content=content,
            title=title,
            method=method,
            replyTo=reply_to,
            clientMessageId=client_message_id,
        )

    def messages_list(
        self,
        peer: Optional[str] = None,
        direction: Optional[str] = None,
        since_ms: Optional[int] = None,
        until_ms: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Dict[str, Any]:
        """One page of messages, newest first: `messages` and `nextCursor`."""
        return self.call(
            "host.messages.list",
            peer=peer,
            direction=direction,
            sinceMs=since_ms,
            untilMs=until_ms,
            limit=limit,
            cursor=cursor,
        )

    def messages(self, **query: Any) -> Iterator[Dict[str, Any]]:
        """All messages that `messages_list` finds, page by page."""
        return _pages(self.messages_list, "messages", query)

    def contacts_list(
        self, query: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None
    ) -> Dict[str, Any]:
        """One page of contacts: `contacts` and `nextCursor`."""
        return self.call("host.contacts.list", query=query, limit=limit, cursor=cursor)

    def contacts(self, **query: Any) -> Iterator[Dict[str, Any]]:
        """All contacts that `contacts_list` finds, page by page."""
        return _pages(self.contacts_list, "contacts", query)

    def register_panel(
        self,
        id: str,
        title: str,
        slot: str = "tools.page.primary",
        description: Optional[str] = None,
        icon: Optional[str] = None,
        order: Optional[int] = None,
        actions: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """Puts a panel into the tools page, or gives a panel of the manifest its actions."""
        return self.call(
            "host.ui.register_tool_panel",
            id=id,
            title=title,
            slot=slot,
            description=description,
            icon=icon,
            order=order,
            actions=actions,
        )

    def update_panel(
        self,
        id: str,
        title: Optional[str] = None,
        description: Optional[str] = None,
        actions: Optional[List[Dict[str, Any]]] = None,
        content: Optional[List[Dict[str, Any]]] = None,
    ) -> None:
        """Changes a panel (since 1.1)."""
        self.call(
            "host.ui.update_tool_panel", id=id, title=title, description=description, actions=actions, content=content
        )

    def unregister_panel(self, id: str) -> None:
        """Takes a panel away (since 1.1)."""
        self.call("host.ui.unregister_tool_panel", id=id)

    def toast(
        self, message: str, level: str = "info", duration_ms: Optional[int] = None, key: Optional[str] = None
    ) -> Dict[str, Any]:
        """Shows a short notice."""
        return self.call("host.notifications.toast", message=message, level=level, durationMs=duration_ms, key=key)

    def subscribe(self, *topics: str) -> Dict[str, Any]:
        """Wants to hear about topics (since 1.1)."""
        return self.call("host.events.subscribe", topics=list(topics))

    def unsubscribe(self, *topics: str) -> Dict[str, Any]:
        """Does not want to hear about topics any more (since 1.1)."""
        return self.call("host.events.unsubscribe", topics=list(topics))

    def log(self, level: str, message: str, **fields: Any) -> None:
        """Writes a line to the extension's log. Before 1.1 there was no such call: then it goes to standard error, which the host
        logs too."""
        if _version(self.version)[:2] < (1, 1):
            print(f"{level}: {message}", file=sys.stderr, flush=True)
            return
        self._session.notify("host.log", {"level": level, "message": message, **({"fields": fields} if fields else {})})

    def call(self, method: str, /, **params: Any) -> Any:
        """Calls any method. Params that are `None` are left out."""
        given = {name: value for name, value in params.items() if value is not None}
        return self._session.call(method, given, self._patience, self._owner)


# ------------------------------------------------------------------------------------------------------------ the conversation


class _Session:
    """Own calls that await answers, requests of the host that await ours, and one pen."""

    def __init__(self, channel: socket.socket):
        self._channel = channel
        self._pen = threading.Lock()
        self._state = threading.Condition()
        self._next = 1
        self._calls: Dict[int, "_Call"] = {}
        self._serving: set = set()
        self._ended: Optional[str] = None
        self._max_frame = _FIRST_FRAME
        self._max_calls = 1
        self.version: Optional[str] = None

    def agree(self, version: str, max_frame: int, max_calls: int) -> None:
        with self._state:
            self.version, self._max_frame, self._max_calls = version, max_frame, max(max_calls, 1)
            self._state.notify_all()

    def call(self, method: str, params: Dict[str, Any], patience: float, owner: Any = None) -> Any:
        until = time.monotonic() + patience
        call = _Call(method, owner)
        with self._state:
            while self._ended is None and len(self._calls) >= self._max_calls:
                if not self._state.wait(until - time.monotonic()):
                    raise NoAnswer(method, f"was not answered within {patience} s")
            if self._ended is not None:
                raise Ended(method, f"cannot be answered: {self._ended}")
            if owner is not None and owner not in self._serving:
                raise Cancelled(method, "was given up, because the request that it was made for is over")
            number = self._next
            line = _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            if len(line) > self._max_frame:
                raise TooLong(method, f"has {len(line)} bytes, the host takes {self._max_frame}")
            self._next += 1
            self._calls[number] = call
        self.write(line)
        if not call.done.wait(max(0.0, until - time.monotonic())):
            with self._state:
                forgotten = self._calls.pop(number, None) is not None
                self._state.notify_all()
            if forgotten:
                self.write(_cancel(number))
                raise NoAnswer(method, f"was not answered within {patience} s")
            # The answer came while we gave up, and whoever took it says so in a moment.
            call.done.wait()
        if call.error is not None:
            raise call.error
        return call.result

    def notify(self, method: str, params: Dict[str, Any]) -> None:
        line = _encode({"jsonrpc": "2.0", "method": method, "params": params})
        if len(line) > self._max_frame:
            raise TooLong(method, f"has {len(line)} bytes, the host takes {self._max_frame}")
        self.write(line)

    def settle(self, message: Dict[str, Any]) -> None:
        """An answer of the host came. One that nobody waits for any more is let pass."""
        number = message.get("id")
        with self._state:
            call = self._calls.pop(number, None) if isinstance(number, int) else None
            self._state.notify_all()
        if call is None:
            return
        error = message.get("error")
        if isinstance(error, dict):
            call.finish(error=Refused(call.method, error))
        else:
            call.finish(result=message.get("result"))

    def begin(self, id: Any) -> bool:
        """A request of the host begins, unless there is one of this id already."""
        with self._state:
            if id in self._serving:
                return False
            self._serving.add(id)
            return True

    def is_serving(self, id: Any) -> bool:
        with self._state:
            return id in self._serving

    def forget(self, id: Any) -> bool:
        """Whether the request was still to be answered."""
        with self._state:
            known = id in self._serving
            self._serving.discard(id)
            return known

    def answer(self, id: Any, result: Any = None, error: Optional[Dict[str, Any]] = None) -> None:
        self.write(self.encode(id, result, error))

    def encode(self, id: Any, result: Any = None, error: Optional[Dict[str, Any]] = None) -> bytes:
        answer = {"result": result} if error is None else {"error": error}
        try:
            line = _encode({"jsonrpc": "2.0", "id": id, **answer})
            if len(line) <= self._max_frame:
                return line
            why = "the answer is longer than a frame may be"
        except (TypeError, ValueError) as trouble:
            why = f"the answer cannot be written: {trouble}"
        return _encode({"jsonrpc": "2.0", "id": id, "error": _error(-32603, "internal_error", why)})

    def give_up(self, id: Any) -> List[bytes]:
        """The host gives up a request. What has to be said about it is answered, because whoever reads must not write."""
        with self._state:
            if id not in self._serving:
                return []
            self._serving.discard(id)
            owned = [number for number, call in self._calls.items() if call.owner == id]
            calls = [self._calls.pop(number) for number in owned]
            self._state.notify_all()
        for call in calls:
            call.finish(error=Cancelled(call.method, "was given up, because the request that it was made for is over"))
        gone = self.encode(id, error=_error(-32023, "cancelled", "it was given up"))
        return [gone, *(_cancel(number) for number in owned)]

    def end(self, why: str) -> None:
        with self._state:
            self._ended = self._ended or why
            calls = list(self._calls.values())
            self._calls.clear()
            self._state.notify_all()
        for call in calls:
            call.finish(error=Ended(call.method, f"cannot be answered: {why}"))

    def write(self, line: bytes) -> None:
        try:
            with self._pen:
                self._channel.sendall(line + b"\n")
        except OSError as trouble:
            self.end(f"the channel cannot be written to: {trouble}")


class _Call:
    """A call of ours that awaits its answer."""

    def __init__(self, method: str, owner: Any):
        self.method = method
        self.owner = owner
        self.done = threading.Event()
        self.result: Any = None
        self.error: Optional[SepError] = None

    def finish(self, result: Any = None, error: Optional[SepError] = None) -> None:
        self.result, self.error = result, error
        self.done.set()


# ------------------------------------------------------------------------------------------------------------ who reads


class _Desk:
    """Reads what the host says, and hands it to whoever has to do with it. It never writes and never runs a handler."""

    def __init__(self, extension: Extension, session: _Session, control: "queue.Queue[Tuple[Any, ...]]"):
        self.extension = extension
        self.session = session
        self.control = control
        self.events = _Lane("sep-events", _MAX_EVENTS)
        self._lifecycle = _Lane("sep-lifecycle", 16)
        self._actions = threading.BoundedSemaphore(_MAX_ACTIONS)
        #: `on_initialize` has returned.
        self.ready = threading.Event()

    def read(self, channel: socket.socket) -> None:
        why = "the host closed the channel"
        held = bytearray()
        skipping = False
        while True:
            try:
                chunk = channel.recv(65536)
            except OSError as trouble:
                why = f"the channel cannot be read: {trouble}"
                break
            if not chunk:
                break
            held += chunk
            while True:
                end = held.find(b"\n")
                if end < 0:
                    break
                line = bytes(held[:end])
                del held[: end + 1]
                if skipping or len(line) > _MAX_LINE:
                    skipping = False
                    self._unreadable()
                elif line.strip():
                    self._line(line)
            if len(held) > _MAX_LINE:
                held.clear()
                skipping = True
        self.session.end(why)
        self.control.put(("closed", why))

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return self._unreadable()
        if not isinstance(message, dict):
            return self._answer(None, _error(-32600, "invalid_request", "it is not a message"))
        method = message.get("method")
        if method is None:
            return self.session.settle(message)
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in message:
            # A newer host may say things that this kit does not know.
            if method == "$/cancel":
                lines = self.session.give_up(_hashable(params.get("id")))
                if lines:
                    self.control.put(("say", lines))
            return None
        id = message["id"]
        if isinstance(id, bool) or not isinstance(id, (int, str)):
            return self._answer(None, _error(-32600, "invalid_request", "the id is not acceptable"))
        if method in ("sep.initialize", "sep.health", "sep.shutdown"):
            self.control.put((method, id, params))
        elif method in ("sep.event", "sep.action") and self.session.version is None:
            self._answer(id, _error(-32002, "not_initialized", "the session has not begun"))
        elif method == "sep.event":
            self._event(id, params)
        elif method == "sep.action":
            self._action(id, params)
        else:
            self._answer(id, _error(-32601, "method_not_found", "there is no such method"))

    def _event(self, id: Any, params: Dict[str, Any]) -> None:
        seq, topic = params.get("seq"), params.get("topic")
        if not isinstance(seq, int) or not isinstance(topic, str):
            return self._answer(id, _error(-32602, "invalid_params", "an event has a number and a topic"))
        if topic.startswith("lifecycle."):
            change = Lifecycle(topic[len("lifecycle.") :], params.get("data"))
            return self._serve(id, self._lifecycle.take, lambda host: self.extension.on_lifecycle(host, change))
        event = Event(seq, topic, params.get("timeMs", 0), params.get("data"), params.get("dropped"))
        return self._serve(id, self.events.take, lambda host: self.extension.on_event(host, event))

    def _action(self, id: Any, params: Dict[str, Any]) -> None:
        panel, action = params.get("panelId"), params.get("actionId")
        if not isinstance(panel, str) or not isinstance(action, str):
            return self._answer(id, _error(-32602, "invalid_params", "an action has a panel and a name"))
        call = Action(panel, action, params.get("input"), params.get("invocation", ""))

        def handler(host: Host) -> Dict[str, Any]:
            self.ready.wait()
            try:
                reply = self.extension.on_action(host, call)
            except Exception as trouble:
                traceback.print_exc()
                reply = failed(str(trouble))
            if reply is None or isinstance(reply, str):
                reply = ok(reply)
            if _version(host.version)[:2] < (1, 1):
                reply = {name: value for name, value in reply.items() if name != "panel"}
            return reply

        return self._serve(id, self._take_action, handler)

    def _take_action(self, work: Callable[[], None]) -> None:
        if not self._actions.acquire(blocking=False):
            raise queue.Full

        def and_leave() -> None:
            try:
                work()
            finally:
                self._actions.release()

        try:
            _begin("sep-action", and_leave)
        except RuntimeError:
            self._actions.release()
            raise

    def _serve(self, id: Any, take: Callable[[Callable[[], None]], None], handler: Callable[[Host], Any]) -> None:
        if not self.session.begin(id):
            return self._answer(None, _error(-32600, "invalid_request", "duplicate id"))

        def work() -> None:
            result, error = {}, None
            try:
                result = handler(Host(self.session, id)) or {}
            except Exception as trouble:
                traceback.print_exc()
                error = _error(-32603, "internal_error", str(trouble))
            if self.session.forget(id):
                self.session.answer(id, result, error)

        try:
            take(work)
        except queue.Full:
            self.session.forget(id)
            self._answer(id, _error(-32021, "too_many_inflight", "too much waits already"))
        except RuntimeError as trouble:
            self.session.forget(id)
            self._answer(id, _error(-32603, "internal_error", f"a thread could not be started: {trouble}"))
        return None

    def _unreadable(self) -> None:
        self._answer(None, _error(-32700, "parse_error", "the line cannot be read"))

    def _answer(self, id: Any, error: Dict[str, Any]) -> None:
        self.control.put(("say", [self.session.encode(id, error=error)]))


class _Lane:
    """One thread that does one thing after the other, in order. It begins when it is first needed."""

    def __init__(self, name: str, most: int):
        self._name = name
        self._queue: "queue.Queue[Callable[[], None]]" = queue.Queue(most)
        self._begun = False
        self._lock = threading.Lock()

    def take(self, work: Callable[[], None]) -> None:
        with self._lock:
            if not self._begun:
                _begin(self._name, self._do_all)
                self._begun = True
            self._queue.put_nowait(work)

    def _do_all(self) -> None:
        while True:
            self._queue.get()()


# ------------------------------------------------------------------------------------------------------------ who decides


class _Conductor:
    """Answers what must never wait, and knows when it is over."""

    def __init__(self, extension: Extension, channel: socket.socket):
        self.control: "queue.Queue[Tuple[Any, ...]]" = queue.Queue(64)
        self._extension = extension
        self._session = _Session(channel)
        self._desk = _Desk(extension, self._session, self.control)
        self._health: Optional[Tuple[queue.Queue, queue.Queue]] = None
        self._health_is_late = False
        self._leaving: Optional[float] = None
        _begin("sep-reader", lambda: self._desk.read(channel))

    def conduct(self, token: str, session: str) -> Tuple[int, str]:
        sdk = {"name": "outrigger-sep", "version": __version__, "language": "python"}
        try:
            self._session.call("host.attach", {"token": token, "session": session, "sdk": sdk}, _ATTACH_PATIENCE)
        except SepError as trouble:
            return EXIT_UNAVAILABLE, f"the host refused the attach: {trouble}"
        while True:
            step = self._next()
            if step is None:
                return 0, ""
            ending = self._step(step)
            if ending is not None:
                return ending

    def _next(self) -> Optional[Tuple[Any, ...]]:
        if self._leaving is None:
            return self.control.get()
        try:
            return self.control.get(timeout=max(0.0, self._leaving - time.monotonic()))
        except queue.Empty:
            return None

    def _step(self, step: Tuple[Any, ...]) -> Optional[Tuple[int, str]]:
        what = step[0]
        if what == "sep.initialize":
            return self._initialize(step[1], step[2])
        if what == "sep.health":
            self._session.answer(step[1], self._health_answer(step[2]))
        elif what == "sep.shutdown":
            self._session.answer(step[1], {})
            within = max(0.0, step[2].get("deadlineMs", 0) / 1000 - _MARGIN)
            self._leave(Shutdown(step[2].get("reason", "stop"), within))
        elif what == "say":
            for line in step[1]:
                self._session.write(line)
        elif what == "not_configured" and self._leaving is None:
            # Whoever is asked to leave in the middle of it has not failed.
            return EXIT_CONFIG, step[1]
        elif what == "goodbye":
            return 0, ""
        elif what == "host_gone":
            self._session.end("the host has gone")
            self._leave(Shutdown("host_exit", _ORPHAN_TIME))
            while True:
                left = self._next()
                if left is None or left[0] == "goodbye":
                    return 0, ""
        elif what == "closed" and self._leaving is None:
            return EXIT_IO, step[1]
        return None

    def _initialize(self, id: Any, params: Dict[str, Any]) -> Optional[Tuple[int, str]]:
        if self._session.version is not None:
            self._session.answer(id, error=_error(-32003, "already_initialized", "the session has begun"))
            return None
        extension = self._extension
        version = _negotiate(params, extension.lowest, extension.highest)
        if version is None:
            offered = params.get("supportedVersions")
            why = f"the host offers {offered}, this extension works with {extension.lowest} to {extension.highest}"
            low, high = _version(extension.lowest)[:2], _version(extension.highest)[:2]
            supported = [f"{major}.{minor}.0" for major, minor in _SPOKEN if low <= (major, minor) <= high]
            error = _error(-32004, "version_unsupported", why)
            error["data"].update(requested=params.get("protocolVersion"), supported=supported)
            self._session.answer(id, error=error)
            return EXIT_PROTOCOL, f"no common version: {why}"
        welcome = Welcome(params, version)
        who = {name: value for name, value in (("name", extension.name), ("version", extension.version)) if value}
        # All before the answer: a host may tell and ask at once, and what it hears or asks for may call back at once.
        answered = threading.Event()
        self._desk.events.take(lambda: self._begin_work(welcome, answered))
        self._session.agree(version, welcome.max_frame_bytes, welcome.max_calls)
        self._session.answer(id, {"protocolVersion": version, **({"extension": who} if who else {})})
        answered.set()
        return None

    def _begin_work(self, welcome: Welcome, answered: threading.Event) -> None:
        """`on_initialize` runs in the thread of the events, before all of them, once the host has been answered."""
        answered.wait()
        try:
            self._extension.on_initialize(Host(self._session), welcome)
        except Exception as trouble:
            traceback.print_exc()
            self.control.put(("not_configured", str(trouble)))
            return
        self._desk.ready.set()

    def _health_answer(self, params: Dict[str, Any]) -> Dict[str, Any]:
        seq = params.get("seq", 0)
        if self._leaving is not None:
            return {"status": "stopping", "seq": seq}
        how = self._ask_health()
        if how is None or how is True:
            return {"status": "ok", "seq": seq}
        if how == "stopping":
            return {"status": "stopping", "seq": seq}
        return {"status": "degraded", "detail": str(how)[:256], "seq": seq}

    def _ask_health(self) -> Any:
        late = "the health handler takes its time"
        if self._health is None:
            self._health = (queue.Queue(1), queue.Queue(1))
            _begin("sep-health", self._watch_health)
        ask, answers = self._health
        if self._health_is_late:
            try:
                answers.get_nowait()
            except queue.Empty:
                return late
        ask.put(None)
        try:
            self._health_is_late = False
            return answers.get(timeout=_HEALTH_PATIENCE)
        except queue.Empty:
            self._health_is_late = True
            return late

    def _watch_health(self) -> None:
        assert self._health is not None
        ask, answers = self._health
        while True:
            ask.get()
            try:
                how = self._extension.on_health()
            except Exception as trouble:
                traceback.print_exc()
                how = str(trouble) or "the health handler failed"
            answers.put(how)

    def _leave(self, shutdown: Shutdown) -> None:
        until = time.monotonic() + shutdown.within
        if self._leaving is not None:
            self._leaving = min(self._leaving, until)
            return

        def goodbye() -> None:
            try:
                self._extension.on_shutdown(shutdown)
            except Exception:
                traceback.print_exc()
            self.control.put(("goodbye",))

        self._leaving = until
        _begin("sep-shutdown", goodbye)


def _run(extension: Extension) -> Tuple[int, str]:
    if "SEP_HOST" not in os.environ:
        hint = "this program is an extension and is started by its host, which speaks to it over a channel of its own"
        return EXIT_USAGE, hint
    try:
        endpoint, token, session = _bootstrap()
    except (OSError, ValueError) as trouble:
        return EXIT_USAGE, str(trouble)
    try:
        conductor = _Conductor(extension, _connect(endpoint))
        _begin("sep-lifeline", lambda: _watch(conductor.control))
    except OSError as trouble:
        return EXIT_UNAVAILABLE, f"the host cannot be reached: {trouble}"
    except RuntimeError as trouble:
        return EXIT_SOFTWARE, f"a thread could not be started: {trouble}"
    return conductor.conduct(token, session)


def _bootstrap() -> Tuple[str, str, str]:
    """Reads the one line. It has the token, so no error shows it."""
    line = b""
    while not line.endswith(b"\n"):
        # One byte at a time: what follows, even if nothing should, is not ours to take.
        byte = os.read(0, 1)
        if not byte:
            raise ValueError("the host said nothing on standard input")
        line += byte
        if len(line) > _MAX_BOOTSTRAP:
            raise ValueError(f"the bootstrap line has no end within {_MAX_BOOTSTRAP} bytes")
    try:
        said = json.loads(line)
        if said["sep"] != 1:
            raise ValueError
        endpoint, token, session = said["endpoint"], said["token"], said["session"]
        if not all(isinstance(text, str) for text in (endpoint, token, session)):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ValueError("the bootstrap line is not what this kit knows") from None
    return endpoint, token, session


def _connect(endpoint: str) -> socket.socket:
    scheme, _, rest = endpoint.partition(":")
    if scheme == "fd" and rest.isdigit() and int(rest) > 2:
        # The family is told and not asked for: a strict box has no system calls to spare.
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=int(rest))
        channel.setblocking(True)
        # Programs that the extension starts have no business with its host.
        channel.set_inheritable(False)
        return channel
    if scheme == "unix" and rest.startswith("/"):
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.connect(rest)
        return channel
    host, _, port = rest.rpartition(":")
    if scheme == "tcp" and host == "127.0.0.1" and port.isdigit():
        channel = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel.connect((host, int(port)))
        return channel
    raise OSError(f"`{endpoint}` is no endpoint")


def _watch(control: "queue.Queue[Tuple[Any, ...]]") -> None:
    """Waits for the end of standard input: the host has gone. Whatever handlers do then, the process does not outlast it long."""
    try:
        while os.read(0, 64):
            pass
    except OSError:
        pass
    try:
        control.put_nowait(("host_gone",))
    except queue.Full:
        pass
    time.sleep(_ORPHAN_LIFE)
    os._exit(0)


def _negotiate(params: Dict[str, Any], lowest: str, highest: str) -> Optional[str]:
    """The highest version that the host offers and the extension can work with, as the host spells it."""
    offered = [*(params.get("supportedVersions") or ()), params.get("protocolVersion")]
    low, high = _version(lowest), _version(highest)
    works = [text for text in offered if _version(text)[:2] in _SPOKEN and low[:2] <= _version(text)[:2] <= high[:2]]
    return max(works, key=_version, default=None)


def _version(text: Any) -> Tuple[int, ...]:
    parts = text.split(".") if isinstance(text, str) else []
    if len(parts) == 3 and all(part.isascii() and part.isdigit() for part in parts):
        return tuple(int(part) for part in parts)
    return (-1, -1, -1)


def _reply(outcome: str, toast: Optional[str], level: str, panel: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    reply: Dict[str, Any] = {"outcome": outcome}
    if toast:
        line = "".join(" " if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in toast)[:280]
        reply["toast"] = {"message": line if line.strip() else "it failed without a word", "level": level}
    if panel is not None:
        reply["panel"] = panel
    return reply


def _pages(ask: Callable[..., Dict[str, Any]], name: str, query: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    while True:
        page = ask(**query)
        yield from page[name]
        cursor = page.get("nextCursor")
        if cursor is None:
            return
        query = {**query, "cursor": cursor}


def _begin(name: str, work: Callable[[], None]) -> None:
    threading.Thread(target=work, name=name, daemon=True).start()


def _encode(message: Dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def _cancel(number: int) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": number}})


def _error(code: int, slug: str, message: str) -> Dict[str, Any]:
    return {"code": code, "message": message, "data": {"sep": slug}}


def _object(params: Dict[str, Any], name: str) -> Dict[str, Any]:
    value = params.get(name)
    return value if isinstance(value, dict) else {}


def _hashable(id: Any) -> Any:
    return id if isinstance(id, (int, str)) else None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
