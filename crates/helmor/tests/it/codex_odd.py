"""A `codex app-server` that does on request what the real one does only sometimes, or never."""
import json
import signal
import subprocess
import sys

prompts = []
# What was called after a turn had begun, and for which thread.
called = []


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tell(method, **params):
    say(method=method, params={"threadId": "T", **params})


def hear():
    return json.loads(sys.stdin.readline() or sys.exit(0))


def answer(text, turn):
    tell("item/completed", turnId=turn, item={"type": "agentMessage", "id": "m", "text": text})


def complete(turn, status="completed", error=None):
    tell("turn/completed", turn={"id": turn, "status": status, "error": error, "items": []})


def ask(number, method, **params):
    say(id=number, method=method, params={"threadId": "T", **params})
    while True:
        message = hear()
        if message.get("id") == number and "method" not in message:
            return message


def turn_of(text, turn):
    if text == "unknown":
        reply = ask(0, "item/tool/call", tool="dig")
        answer(json.dumps(reply), turn)
    elif text == "elicit":
        meta = {"codex_approval_kind": "mcp_tool_call"}
        schema = {"type": "object", "properties": {}}
        reply = ask(0, "mcpServer/elicitation/request", serverName="db", mode="form", message="May it?",
                    requestedSchema=schema, _meta=meta)
        answer(json.dumps(reply["result"]), turn)
    elif text == "legacy":
        reply = ask("a-1", "execCommandApproval", conversationId="T", callId="c", command=["ls", "-l"], cwd="/", reason=None)
        answer(json.dumps(reply), turn)
    elif text == "others":
        sys.stdout.write("this is no JSON\n[1,2]\n{\"id\":77,\"result\":{}}\n{\"method\":7}\n\n")
        say(method="item/completed", params={"threadId": "X", "turnId": "U", "item": {"type": "agentMessage", "id": "x"}})
        say(method="turn/completed", params={"threadId": "X", "turn": {"id": turn, "status": "completed"}})
        say(method="account/updated", params={"authMode": None})
        say(method="warning")
        answer("mine", turn)
    elif text == "withdraw":
        say(id=5, method="item/commandExecution/requestApproval", params={"threadId": "T", "command": "rm"})
        tell("serverRequest/resolved", requestId=5)
        answer("never mind", turn)
    elif text == "storm":
        for _ in range(20):
            error = {"message": "Reconnecting... 1/5", "codexErrorInfo": None}
            tell("error", turnId=turn, willRetry=True, error=error)
        answer("back again", turn)
    elif text == "break":
        tell("item/completed", turnId=turn, item={"type": "commandExecution", "id": "c"})
        error = {"message": "unexpected status 401 Unauthorized", "codexErrorInfo": "unauthorized"}
        tell("error", turnId=turn, willRetry=False, error=error)
        return complete(turn, "failed", error)
    elif text == "flood":
        for number in range(10_000):
            tell("item/agentMessage/delta", turnId=turn, itemId="m", delta=str(number))
        answer("all of it", turn)
    elif text == "recall":
        answer(json.dumps(called), turn)
    elif text in ("wait", "lose", "stubborn", "family"):
        if text == "lose":
            tell("item/started", turnId=turn, item={"type": "userMessage", "id": "u", "content": [{"type": "text", "text": text}]})
        if text == "family":
            say(method="turn/started", params={"threadId": "X", "turn": {"id": "V", "status": "inProgress"}})
            say(method="turn/started", params={"threadId": "Y", "turn": {"id": "W", "status": "inProgress"}})
            say(method="turn/completed", params={"threadId": "Y", "turn": {"id": "W", "status": "completed"}})
        if text == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            # Deaf as well, with a child in a session of its own.
            subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 1000; done"], start_new_session=True)
        tell("item/agentMessage/delta", turnId=turn, itemId="m", delta="…")
        return wait(text, turn)
    elif text == "late":
        # What is left of the turn that was stopped comes in the middle of this one.
        tell("item/completed", turnId="U1", item={"type": "commandExecution", "id": "old"})
        answer("new", turn)
    elif text == "die":
        sys.stderr.write("the last words\n")
        sys.exit(7)
    else:
        answer(text, turn)
    complete(turn)


def wait(text, turn):
    while True:
        message = hear()
        if text == "stubborn":
            continue
        called.append([message["method"], message["params"]["threadId"]])
        if message["method"] == "turn/steer":
            said = message["params"]["input"][0]["text"]
            if said == "refuse":
                say(id=message["id"], error={"code": -32600, "message": "no active turn to steer"})
                continue
            if text == "wait":
                # In reaction, and yet before the answer.
                tell("item/started", turnId=turn, item={"type": "userMessage", "id": "u", "content": [{"type": "text", "text": said}]})
            say(id=message["id"], result={"turnId": turn})
            if said == "ask":
                return turn_of("legacy", turn)
            answer("heard" if text == "wait" else "deaf", turn)
            return complete(turn)
        if message["method"] == "turn/interrupt":
            say(id=message["id"], result={})
            return complete(turn, "interrupted")
        say(id=message["id"], result={})


while True:
    request = hear()
    method, number = request.get("method"), request.get("id")
    if method == "thread/start":
        say(id=number, result={"thread": {"id": "T"}, "model": "m"})
    elif method == "turn/start":
        prompt = request["params"]["input"][0]["text"]
        prompts.append(prompt)
        if prompt == "refuse":
            say(id=number, error={"code": -32600, "message": "the effort is wrong"})
            continue
        current = f"U{len(prompts)}"
        say(id=number, result={"turn": {"id": current}})
        tell("turn/started", turn={"id": current, "status": "inProgress"})
        turn_of(prompt, current)
    elif number is not None and method:
        called.append([method, request["params"].get("threadId")])
        say(id=number, result={})
