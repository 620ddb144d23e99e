"""An MCP server whose tool asks the user, or only says something."""
import json
import sys


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(text):
    return {"content": [{"type": "text", "text": text}]}


TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object", "properties": {}}} for name in ("ask", "tell")]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
waiting = None
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "db", "version": "1"}})
    elif method == "tools/list":
        say(id=number, result={"tools": TOOLS})
    elif method == "tools/call" and message["params"]["name"] == "ask":
        waiting = number
        say(id=1000, method="elicitation/create", params={"message": "What is your name?", "requestedSchema": SCHEMA})
    elif method == "tools/call":
        say(id=number, result=result("told"))
    elif method is None and number == 1000:
        say(id=waiting, result=result("asked: " + json.dumps(message.get("result"))))
    elif number is not None:
        say(id=number, result={})
