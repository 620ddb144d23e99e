"""A model server on loopback that speaks the Messages API, so that real agents can be tested without a network.

    python3 anthropic.py        prints {"port": N} and serves until its standard input ends

What it answers is said in the last text of the user, as one directive in double braces; a result of a tool is
answered with "the tool said: …" and ends the turn.

    {{say TEXT}}            exactly this text (also the default, with the user's own text)
    {{use NAME JSON}}       call this tool
    {{trickle N}}           N words, ten a second
    {{status CODE}}         this HTTP status with an error body
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
USAGE = {"input_tokens": 25, "output_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
ERRORS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
          429: "rate_limit_error", 529: "overloaded_error"}


def what_the_user_said(request):
    """The texts and the tool results of the last message of the user."""
    for message in reversed(request.get("messages") or []):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [re.sub(r"<system-reminder>.*?</system-reminder>", "", block.get("text", ""), flags=re.S)
                 for block in blocks if block.get("type") == "text"]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        return "\n".join(texts).strip(), results
    return "", []


def plain(content):
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", "") for block in content or [] if isinstance(block, dict))


def decide(request):
    """(directive, argument) for this request."""
    text, results = what_the_user_said(request)
    if results:
        return "say", "the tool said: " + " | ".join(plain(result.get("content")) for result in results)[:200]
    found = re.search(r"\{\{(say|use|trickle|status|silence|cut)\s*(.*)\}\}", text, re.S)
    return found.groups() if found else ("say", text[-200:] or "nothing was asked")


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

    def do_HEAD(self):
        self.answer(200, {})

    def do_GET(self):
        self.answer(200, {"data": [], "has_more": False})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if "count_tokens" in self.path:
            return self.answer(200, {"input_tokens": 7})
        if not self.path.startswith("/v1/messages"):
            return self.answer(200, {})
        directive, argument = decide(request)
        if directive == "status":
            kind = ERRORS.get(int(argument), "api_error")
            return self.answer(int(argument), {"type": "error", "error": {"type": kind, "message": f"as you asked: {argument}"}})
        if request.get("stream"):
            self.stream(request, directive, argument)
        else:
            self.answer(200, {**self.opening(request), "content": [self.block(directive, argument)], "stop_reason": "end_turn"})

    def opening(self, request):
        return {"id": f"msg_{next(NUMBERS)}", "type": "message", "role": "assistant", "model": request.get("model"),
                "content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE}

    def block(self, directive, argument):
        if directive == "use":
            name, _, given = argument.partition(" ")
            return {"type": "tool_use", "id": f"toolu_{next(NUMBERS)}", "name": name, "input": json.loads(given or "{}")}
        if directive == "trickle":
            return {"type": "text", "text": " ".join(f"word{number}" for number in range(int(argument)))}
        return {"type": "text", "text": argument or "…"}

    def stream(self, request, directive, argument):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self.events(request, directive, argument)
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send(self, kind, **members):
        data = f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def events(self, request, directive, argument):
        self.send("message_start", message=self.opening(request))
        if directive == "silence":
            time.sleep(3600)
        block = self.block(directive, argument)
        empty = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        self.send("content_block_start", index=0, content_block=empty)
        if block["type"] == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            self.send("content_block_delta", index=0, delta=delta)
        else:
            for word in re.findall(r"\S+\s*", block["text"]) or [block["text"]]:
                self.send("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
                if directive == "trickle":
                    time.sleep(0.1)
        if directive == "cut":
            raise ConnectionResetError
        self.send("content_block_stop", index=0)
        reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
        self.send("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=USAGE)
        self.send("message_stop")


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Conversation)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
