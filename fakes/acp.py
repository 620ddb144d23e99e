"""An agent that speaks the Agent Client Protocol on its standard streams and does what the prompt says, without a model.

    python3 acp.py [--sessions FOLDER] [--without load,image,modes,models] [--with resume,config,delete,directories]
                   [--auth LOGIN] [--version N] [--mute] [--broken]

Sessions are files in FOLDER, so that another process can load them. With --auth a session is only made after
`authenticate` with that method, or never if it is "nobody". --mute never answers, --broken ends at once.

A prompt is a sequence of directives in double braces, done one after the other; without any it is said again.

    {{say TEXT}} {{think TEXT}}     words and thoughts
    {{tool JSON}}                   a tool that begins and ends; JSON are further members of the call
    {{permit JSON}}                 asks whether a tool may be used, and says what was answered
    {{crowd N}}                     asks N such questions at once, and says what was answered to each
    {{ask METHOD JSON}}             asks the client anything, and says what was answered
    {{tell METHOD JSON}}            tells the client anything
    {{update JSON}}                 an update with these members
    {{run COMMAND}}                 a tool in a session of its own, which ends when the turn is cancelled
    {{leak COMMAND}}                a tool in a session of its own, which nobody ends
    {{hang}}                        waits to be cancelled
    {{deaf TEXT}}                   says this and waits for ever, whatever is said
    {{flood N}}                     N words
    {{garbage}}                     lines that are no messages
    {{blocks}} {{state}} {{history}}    says what the prompt is made of, how the session is set, what was said before
    {{stop REASON}}                 ends the turn with this reason
    {{error CODE TEXT}}             ends the turn with this error
    {{die TEXT}}                    says this on standard error and exits with 7
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

parser = argparse.ArgumentParser()
parser.add_argument("--sessions", default=None)
parser.add_argument("--without", default="")
parser.add_argument("--with", dest="having", default="")
parser.add_argument("--auth", default=None)
parser.add_argument("--version", type=int, default=1)
parser.add_argument("--mute", action="store_true")
parser.add_argument("--broken", action="store_true")
OPTIONS = parser.parse_args()
WITHOUT = set(OPTIONS.without.split(","))
HAVING = set(OPTIONS.having.split(","))

MODES = [{"id": name, "name": name.title()} for name in ("agent", "plan", "ask")]
MODELS = [{"modelId": name, "name": name.title()} for name in ("small", "large")]
PERMISSIONS = [{"optionId": "allow-once", "name": "Allow", "kind": "allow_once"},
               {"optionId": "allow-always", "name": "Always allow", "kind": "allow_always"},
               {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"}]
WITH_JSON = {"tool", "permit", "ask", "tell", "update"}
DECODER = json.JSONDecoder()
DIRECTIVE = re.compile(r"\{\{(\w+) ?")

PROGRAM = os.urandom(8).hex()
write_lock = threading.Lock()
numbers = itertools.count(0)
waiting = {}
sessions = {}
logged_in = OPTIONS.auth is None


class Cancelled(Exception):
    pass


class Ends(Exception):
    """The turn ends with this answer."""


def write(message):
    with write_lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def update(session, **members):
    write({"method": "session/update", "params": {"sessionId": session["id"], "update": members}})


def say(session, text, kind="agent_message_chunk"):
    update(session, sessionUpdate=kind, content={"type": "text", "text": text})


def ask(session, method, params):
    number = next(numbers)
    answered = waiting[number] = {"event": threading.Event(), "answer": None}
    write({"id": number, "method": method, "params": params})
    answered["event"].wait()
    return answered["answer"]


def directives(text):
    at = 0
    while (found := DIRECTIVE.search(text, at)):
        word, at, method, value = found[1], found.end(), None, None
        if word in ("ask", "tell"):
            method = text[at:].partition(" ")[0]
            at += len(method) + 1
        if word in WITH_JSON:
            value, at = DECODER.raw_decode(text, at)
        end = text.index("}}", at)
        yield word, method, value, text[at:end].strip()
        at = end + 2


def do(session, word, method, value, argument):
    if word == "say":
        say(session, argument)
    elif word == "think":
        say(session, argument, "agent_thought_chunk")
    elif word == "tool":
        number = f"tool-{next(numbers)}"
        update(session, **{"sessionUpdate": "tool_call", "toolCallId": number, "title": "a tool", "kind": "execute",
                           "status": "pending", **value})
        update(session, sessionUpdate="tool_call_update", toolCallId=number, status="completed", rawOutput={"exit": 0})
    elif word == "permit":
        call = {"toolCallId": f"tool-{next(numbers)}", "title": "a tool", "kind": "execute", **value}
        say(session, json.dumps(ask(session, "session/request_permission",
                                    {"sessionId": session["id"], "toolCall": call, "options": PERMISSIONS})))
    elif word == "crowd":
        params = {"sessionId": session["id"], "toolCall": {"toolCallId": "crowd", "title": "a tool"}, "options": PERMISSIONS}
        asking = [threading.Thread(target=lambda: say(session, json.dumps(ask(session, "session/request_permission", params))),
                                   daemon=True) for _ in range(int(argument))]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
    elif word == "ask":
        say(session, json.dumps(ask(session, method, {"sessionId": session["id"], **value})))
    elif word == "tell":
        write({"method": method, "params": value})
    elif word == "update":
        update(session, **value)
    elif word in ("run", "leak"):
        number = f"tool-{next(numbers)}"
        child = subprocess.Popen(["sh", "-c", argument], start_new_session=True, cwd=session["cwd"])
        update(session, sessionUpdate="tool_call", toolCallId=number, title=argument, kind="execute", status="in_progress",
               rawInput={"command": argument})
        ended = threading.Event()
        threading.Thread(target=lambda: (child.wait(), ended.set()), daemon=True).start()
        while not ended.wait(0.01):
            if session["cancelled"].is_set():
                if word == "run":
                    os.killpg(child.pid, 9)
                    child.wait()
                raise Cancelled
        update(session, sessionUpdate="tool_call_update", toolCallId=number, status="completed",
               rawOutput={"exit": child.returncode})
    elif word == "hang":
        session["cancelled"].wait()
    elif word == "deaf":
        say(session, argument)
        threading.Event().wait()
    elif word == "flood":
        for count in range(int(argument)):
            say(session, f"word {count} ")
    elif word == "garbage":
        with write_lock:
            sys.stdout.buffer.write(b"this is no JSON\n\n[]\n{}\n7\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n")
            sys.stdout.buffer.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"}\n{\"method\":7}\n")
            sys.stdout.flush()
    elif word == "blocks":
        say(session, json.dumps([{**block, "data": len(block["data"])} if "data" in block else block
                                 for block in session["blocks"]]))
    elif word == "state":
        say(session, json.dumps({name: session[name] for name in ("id", "cwd", "mode", "model", "effort", "folders")}
                                | {"program": PROGRAM, "key": os.environ.get("CURSOR_API_KEY"),
                                   "proxy": os.environ.get("HTTPS_PROXY")}))
    elif word == "history":
        say(session, json.dumps(session["history"][:-1]))
    elif word == "stop":
        raise Ends({"result": {"stopReason": argument}})
    elif word == "error":
        code, _, message = argument.partition(" ")
        raise Ends({"error": {"code": int(code), "message": message, "data": {"details": "the details"}}})
    elif word == "die":
        print(argument, file=sys.stderr, flush=True)
        os._exit(7)
    else:
        say(session, f"no such directive: {word}")


def prompt(number, session, blocks):
    text = "\n".join(block.get("text", "") for block in blocks)
    session["blocks"] = blocks
    session["history"].append(text)
    save(session)
    try:
        if "{{" not in text:
            say(session, text)
        for directive in directives(text):
            if session["cancelled"].is_set():
                raise Cancelled
            do(session, *directive)
        answer = {"result": {"stopReason": "cancelled" if session["cancelled"].is_set() else "end_turn"}}
    except Cancelled:
        answer = {"result": {"stopReason": "cancelled"}}
    except Ends as ends:
        answer = ends.args[0]
    write({"id": number, **answer})


def file_of(name):
    return pathlib.Path(OPTIONS.sessions) / name if OPTIONS.sessions and "/" not in name else None


def save(session):
    if (path := file_of(session["id"])):
        path.write_text(json.dumps(session["history"]))


def make(name, params, history):
    session = {"id": name, "cwd": params["cwd"], "mode": "agent", "model": "small", "effort": "low", "history": history,
               "folders": params.get("additionalDirectories"), "cancelled": threading.Event(), "blocks": []}
    sessions[name] = session
    save(session)
    return session


def choices(session):
    answer = {}
    if "config" in HAVING:
        answer["configOptions"] = [
            {"id": "the-model", "name": "Model", "category": "model", "type": "select", "currentValue": session["model"],
             "options": [{"value": model["modelId"], "name": model["name"]} for model in MODELS]},
            {"id": "the-effort", "name": "Effort", "category": "thought_level", "type": "select",
             "currentValue": session["effort"], "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]}]
    elif "models" not in WITHOUT:
        answer["models"] = {"currentModelId": session["model"], "availableModels": MODELS}
    if "modes" not in WITHOUT:
        answer["modes"] = {"currentModeId": session["mode"], "availableModes": MODES}
    return answer


def initialize(params):
    capabilities = {"loadSession": "load" not in WITHOUT, "promptCapabilities": {"image": "image" not in WITHOUT}}
    capabilities["sessionCapabilities"] = {name: {} for name, having in
                                           (("resume", "resume"), ("delete", "delete"), ("additionalDirectories", "directories")) if having in HAVING}
    methods = [{"id": OPTIONS.auth, "name": "The login", "description": "with a browser"}] if OPTIONS.auth else []
    return {"protocolVersion": OPTIONS.version, "agentCapabilities": capabilities, "authMethods": methods,
            "agentInfo": {"name": "fake", "version": "1"}, "_meta": {"client": params}}


def answer(method, params):
    global logged_in
    if method == "initialize":
        return {"result": initialize(params)}
    if method == "authenticate":
        logged_in = params["methodId"] == OPTIONS.auth and OPTIONS.auth != "nobody"
        return {"result": {}} if logged_in else {"error": {"code": -32603, "message": "nobody came"}}
    if method in ("session/new", "session/load", "session/resume") and not logged_in:
        return {"error": {"code": -32000, "message": "Authentication required"}}
    if method == "session/new":
        session = make(f"session-{os.urandom(4).hex()}", params, [])
        update(session, sessionUpdate="available_commands_update",
               availableCommands=[{"name": "review", "description": "Looks at everything", "input": {"hint": "what"}}])
        return {"result": {"sessionId": session["id"], **choices(session)}}
    if method in ("session/load", "session/resume"):
        path = file_of(params["sessionId"])
        if path is None or not path.exists():
            return {"error": {"code": -32002, "message": "Resource not found", "data": {"details": "no such session"}}}
        session = make(params["sessionId"], params, json.loads(path.read_text()))
        if method == "session/load":
            for text in session["history"]:
                say(session, text, "user_message_chunk")
                say(session, f"replayed: {text}")
        return {"result": choices(session)}
    session = sessions.get(params.get("sessionId"))
    if method == "session/delete" and (path := file_of(params["sessionId"])):
        path.unlink()
        return {"result": {}}
    if session is None:
        return {"error": {"code": -32602, "message": f"no session for {method}"}}
    if method == "session/set_mode":
        session["mode"] = params["modeId"]
        update(session, sessionUpdate="current_mode_update", currentModeId=session["mode"])
        return {"result": {}}
    if method == "session/set_model":
        session["model"] = params["modelId"]
        return {"result": {}}
    if method == "session/set_config_option":
        session["model" if params["configId"] == "the-model" else "effort"] = params["value"]
        return {"result": choices(session)}
    return {"error": {"code": -32601, "message": f"unknown: {method}"}}


def take(message):
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        if (answered := waiting.pop(number, None)):
            answered["answer"] = message.get("result", {"error": message.get("error")})
            answered["event"].set()
    elif method == "session/prompt" and params.get("sessionId") in sessions:
        session = sessions[params["sessionId"]]
        session["cancelled"] = threading.Event()
        threading.Thread(target=prompt, args=(number, session, params["prompt"]), daemon=True).start()
    elif method == "session/cancel":
        if (session := sessions.get(params["sessionId"])):
            session["cancelled"].set()
    elif number is not None:
        write({"id": number, **answer(method, params)})


def main():
    if OPTIONS.broken:
        print("this agent is broken", file=sys.stderr)
        sys.exit(3)
    for line in sys.stdin:
        if not OPTIONS.mute:
            take(json.loads(line))


main()
