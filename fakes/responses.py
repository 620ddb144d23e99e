"""A model server on loopback that speaks the Responses API, so that real agents can be tested without a network.

    python3 responses.py        prints {"port": N} and serves until its standard input ends

What it answers is said in the last text of the user, as one directive in double braces; a result of a tool that came
after it is answered with "the tool said: …" and ends the turn.

    {{say TEXT}}            exactly this text (also the default, with the user's own text)
    {{run COMMAND}}         run this in a shell, with whichever tool the agent offers for it
    {{patch FILE TEXT}}     make this file with this text
    {{use NAME JSON}}       call this tool; NAMESPACE.NAME for one of an MCP server
    {{ask}}                 ask the user which colour
    {{think TEXT}}          a thought, then this text
    {{about}}               what the request was like, as JSON
    {{trickle N}}           N words, ten a second
    {{status CODE}}         this HTTP status with an error body
    {{fail}}                an answer that fails
    {{silence}}             the beginning of an answer and then nothing
    {{cut}}                 half an answer, then a closed connection
"""
import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NUMBERS = itertools.count(1)
DIRECTIVE = r"\{\{(say|run|patch|use|ask|think|about|trickle|status|fail|silence|cut)\s*(.*?)\}\}(?!\})"
COLOURS = {"questions": [{"id": "colour", "header": "Colour", "question": "Which colour?", "options": [
    {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}]}]}


def pieces(item):
    content = item.get("content")
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content or []


def what_the_user_said(request):
    """The last text of the user, the pictures beside it, the results of tools after it, and how many texts there are."""
    text, pictures, results, texts = "", 0, [], 0
    for item in request.get("input") or []:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") == "user":
            said = "\n".join(piece.get("text", "") for piece in pieces(item) if piece.get("type") == "input_text")
            # What the agent tells about its surroundings is between tags and is not the user's.
            if said.lstrip().startswith("<") and "{{" not in said:
                continue
            text, results, texts = said, [], texts + 1
            pictures = sum(piece.get("type") == "input_image" for piece in pieces(item))
        elif kind.endswith("_call_output"):
            results.append(plain(item.get("output")))
    return text, pictures, results, texts


def plain(output):
    if isinstance(output, str):
        return output
    return " ".join(piece.get("text", "") for piece in output or [] if isinstance(piece, dict))


def names(tools):
    return [tool.get("name") or tool.get("type") for tool in tools or []]


def decide(request):
    """(directive, argument) for this request."""
    text, pictures, results, texts = what_the_user_said(request)
    if results:
        return "say", "the tool said: " + " | ".join(results)[-300:]
    found = re.search(DIRECTIVE, text, re.S)
    directive, argument = found.groups() if found else ("say", text[-200:] or "nothing was asked")
    if directive == "about":
        effort = (request.get("reasoning") or {}).get("effort")
        about = {"model": request.get("model"), "effort": effort, "tier": request.get("service_tier"),
                 "pictures": pictures, "texts": texts, "tools": names(request.get("tools"))}
        return "say", json.dumps(about)
    return directive, argument


def item_of(request, directive, argument):
    """What the model puts out for a directive."""
    offered = names(request.get("tools"))
    number = next(NUMBERS)
    if directive == "patch":
        file, _, text = argument.partition(" ")
        patch = f"*** Begin Patch\n*** Add File: {file}\n+{text}\n*** End Patch"
        return {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "name": "apply_patch",
                "input": patch, "status": "completed"}
    if directive in ("run", "use", "ask"):
        namespace = None
        if directive == "run":
            name = next(name for name in ("exec_command", "shell_command", "shell") if name in offered or name == "shell")
            given = {"exec_command": {"cmd": argument}, "shell_command": {"command": argument},
                     "shell": {"command": ["bash", "-lc", argument]}}[name]
        elif directive == "ask":
            name, given = "request_user_input", COLOURS
        else:
            name, _, given = argument.partition(" ")
            namespace, _, name = name.rpartition(".")
            given = json.loads(given or "{}")
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name,
                "arguments": json.dumps(given), "status": "completed"}
        return {**call, "namespace": namespace} if namespace else call
    text = " ".join(f"word{i}" for i in range(int(argument))) if directive == "trickle" else argument
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}


class Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer(200, {"object": "list", "data": [], "models": []})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if not self.path.rstrip("/").endswith("/responses"):
            return self.answer(404, {"error": {"message": f"there is no {self.path} here"}})
        directive, argument = decide(request)
        if directive == "status":
            error = {"type": "invalid_request_error", "code": None, "message": f"as you asked: {argument}"}
            return self.answer(int(argument), {"error": error})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self.stream(request, directive, argument)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def event(self, kind, **members):
        data = f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def stream(self, request, directive, argument):
        answer = {"id": f"resp_{next(NUMBERS)}", "object": "response", "model": request.get("model")}
        self.event("response.created", response=answer)
        if directive == "silence":
            time.sleep(600)
        if directive == "fail":
            error = {"code": "server_error", "message": "as you asked: a failure"}
            self.event("response.failed", response={**answer, "error": error})
            return self.wfile.write(b"0\r\n\r\n")
        output = []
        if directive == "think":
            output.append(self.thought())
        item = item_of(request, directive, argument)
        if item["type"] == "message":
            self.words(item, len(output), directive)
        if directive == "cut":
            self.close_connection = True
            return self.connection.close()
        self.event("response.output_item.done", output_index=len(output), item=item)
        usage = {"input_tokens": 40, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 9,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 49}
        self.event("response.completed", response={**answer, "output": [*output, item], "usage": usage})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def words(self, item, index, directive):
        self.event("response.output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []})
        for word in re.findall(r"\S+\s*|\s+", item["content"][0]["text"]):
            self.event("response.output_text.delta", item_id=item["id"], output_index=index, content_index=0, delta=word)
            if directive == "trickle":
                time.sleep(0.1)

    def thought(self):
        item = {"type": "reasoning", "id": f"rs_{next(NUMBERS)}", "summary": []}
        self.event("response.output_item.added", output_index=0, item=item)
        place = {"item_id": item["id"], "output_index": 0, "summary_index": 0}
        self.event("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""})
        self.event("response.reasoning_summary_text.delta", **place, delta="hm")
        item = {**item, "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": None}
        self.event("response.output_item.done", output_index=0, item=item)
        return item


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Conversation)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    sys.stdin.read()
