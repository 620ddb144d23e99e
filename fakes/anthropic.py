"""A model server on loopback that speaks the Messages API, so that real agents can be tested without a network.

    python3 anthropic.py        prints {"port": N} and serves until its standard input ends

What it answers is said in the last text of the user, as a directive in double braces. Of several directives in one
text each is for one call: the second one is the answer to the results of the tools that the first one used. When no
directive is left, a result of a tool is answered with "the tool said: …" and ends the turn.

    {{say TEXT}}            exactly this text (also the default, with the user's own text)
    {{use NAME JSON}}       call this tool
    {{trickle N}}           N words, ten a second
    {{status CODE}}         this HTTP status with an error body
    {{silence}}             the beginning of an answer and then nothing
    {{cut}}                 half an answer, then a closed connection
    {{hold NAME}}           the beginning of an answer, its rest when somebody asks for /release/NAME

    GET /requests           what was asked so far: [{path, model, texts, results, images, thinking, speed, …}…]
    GET /release/NAME       lets go what is held under that name, now or later
"""
import collections
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


REQUESTS = []
HELD = collections.defaultdict(threading.Event)
DIRECTIVE = re.compile(r"\{\{(say|use|trickle|status|silence|cut|hold)\b\s*")


def blocks_of(message):
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def texts_of(message):
    """The texts of a message without what the agent itself adds to them."""
    return [re.sub(r"<system-reminder>.*?</system-reminder>", "", block.get("text", ""), flags=re.S).strip()
            for block in blocks_of(message) if block.get("type") == "text"]


def results_of(message):
    return [block for block in blocks_of(message) if block.get("type") == "tool_result"]


def plain(content):
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", "") for block in content or [] if isinstance(block, dict))


def directives_of(text):
    """[(word, argument)…] in the order in which they stand in the text."""
    found, at = [], 0
    while match := DIRECTIVE.search(text, at):
        start = match.end()
        if match[1] == "use":
            brace = re.compile(r"\w+\s+(?=\{)").match(text, start)
            at = json.JSONDecoder().raw_decode(text, brace.end())[1] if brace else text.index("}}", start)
        else:
            at = text.find("}}", start)
            at = len(text) if at < 0 else at
        found.append((match[1], text[start:at]))
    return found


def decide(request):
    """(directive, argument) for this request."""
    messages = request.get("messages") or []
    answers, results = 0, []
    for message in reversed(messages):
        if message.get("role") == "assistant":
            answers += 1
            continue
        if message.get("role") != "user":
            continue
        if not answers:
            results = results + results_of(message)
        texts = [text for text in texts_of(message) if text]
        # Prompts that were not answered stand before the last one in the same message.
        directives = next(filter(None, map(directives_of, reversed(texts))), [])
        if answers < len(directives):
            return directives[answers]
        if directives or (texts and not results_of(message)):
            break
    if results:
        return "say", "the tool said: " + " | ".join(plain(result.get("content")) for result in results)[:200]
    last = next((message for message in reversed(messages) if message.get("role") == "user"), {})
    return "say", "\n".join(texts_of(last)).strip()[-200:] or "nothing was asked"


def remember(path, request):
    users = [message for message in request.get("messages") or [] if message.get("role") == "user"]
    last = users[-1] if users else {}
    images = [block.get("source", {}).get("media_type") for message in users for block in blocks_of(message)
              if block.get("type") == "image"]
    texts = [block.get("text", "") for block in blocks_of(last) if block.get("type") == "text"]
    REQUESTS.append({"path": path, "model": request.get("model"), "texts": texts, "messages": len(request.get("messages") or []),
                     "results": [plain(result.get("content")) for result in results_of(last)], "images": images,
                     "system_chars": len(plain(request.get("system"))), "thinking": request.get("thinking"),
                     "output_config": request.get("output_config"), "speed": request.get("speed"), "newest": json.dumps((request.get("messages") or [])[-3:])[-100000:]})


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
        if self.path == "/requests":
            return self.answer(200, REQUESTS)
        if self.path.startswith("/release/"):
            HELD[self.path.removeprefix("/release/")].set()
            return self.answer(200, {})
        self.answer(200, {"data": [], "has_more": False})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if "count_tokens" in self.path:
            return self.answer(200, {"input_tokens": 7})
        if not self.path.startswith("/v1/messages"):
            return self.answer(200, {})
        remember(self.path, request)
        directive, argument = decide(request)
        if directive == "status":
            kind = ERRORS.get(int(argument), "api_error")
            return self.answer(int(argument), {"type": "error", "error": {"type": kind, "message": f"as you asked: {argument}"}})
        if request.get("stream"):
            self.stream(request, directive, argument)
        elif directive == "cut":
            self.close_connection = True
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
        if directive == "hold":
            HELD[argument].wait()
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
