"""Answers messages, counts them in a panel, and uses all six permissions. Put `outrigger_sep.py` beside this file."""

import json
import os
import sys
import threading
import time

# Where the kit is when this runs from the repository; a copy beside this file comes first.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

import outrigger_sep as sep  # noqa: E402

TITLE = "Auto-reply"
MEMORY = 1000
MAX_TEXT = 2048
QUIET_MS = int(os.environ.get("AUTOREPLY_QUIET_MS", "60000"))


class AutoReply(sep.Extension):
    name = "Auto-reply (Python)"
    version = "0.1.0"

    def __init__(self):
        self.lock = threading.Lock()
        self.kept = {
            "text": "Hello {name}, I am away. I will read this later.",
            "paused": False,
            "counts": {"received": 0, "replied": 0, "skipped": 0, "failed": 0},
        }
        self.file = None
        self.names = {}
        # When somebody was answered, our own replies, and strangers who wrote: dictionaries remember the order.
        self.answered, self.replies, self.strangers = {}, {}, {}

    def on_initialize(self, host, welcome):
        if welcome.data_dir:
            self.file = os.path.join(welcome.data_dir, "autoreply.json")
            self.recall(host)
        self.may = welcome.may
        if welcome.may("tools.register"):
            host.register_panel(
                "stats",
                "Auto-reply",
                description="Answers messages while you are away, and counts them.",
                icon="chat",
                actions=[
                    {"id": "pause", "label": "Pause or go on", "style": "primary"},
                    {
                        "id": "set-reply",
                        "label": "Set reply text",
                        "input": {"kind": "text", "label": "Reply", "maxLength": MAX_TEXT // 4},
                    },
                    {
                        "id": "reset",
                        "label": "Reset",
                        "style": "danger",
                        "confirm": "Set all counters to zero?",
                    },
                ],
            )
        self.learn_names(host)
        if welcome.may("messages.read"):
            earlier = sum(1 for _ in host.messages(direction="incoming", limit=200))
            host.log("info", f"ready; {earlier} messages came in before")
        self.show(host)

    def on_event(self, host, event):
        if event.topic == "message.received":
            self.received(host, event.data["message"])
        elif event.topic == "contact.changed":
            self.learn_names(host)

    def on_action(self, host, action):
        with self.lock:
            if action.action == "reset":
                self.kept["counts"] = dict.fromkeys(self.kept["counts"], 0)
                said = "the counters are at zero"
            elif action.action == "set-reply":
                text = (action.input or "").strip()
                if not 1 <= len(text.encode()) <= MAX_TEXT:
                    return sep.failed(f"a reply has 1 to {MAX_TEXT} bytes")
                self.kept["text"] = text
                said = "the reply is set"
            elif action.action == "pause":
                self.kept["paused"] = not self.kept["paused"]
                counts = self.kept["counts"]
                state = "paused" if self.kept["paused"] else "answering"
                said = f"{state}; {counts['received']} received, {counts['replied']} answered"
            else:
                return sep.failed(f"there is no action `{action.action}`")
        self.keep()
        return sep.ok(said, panel={"content": self.content()})

    def on_lifecycle(self, host, change):
        if change.change in ("pausing", "trim"):
            self.keep()

    def on_shutdown(self, shutdown):
        self.keep()

    def received(self, host, message):
        sender = message["sourceHash"]
        with self.lock:
            self.kept["counts"]["received"] += 1
            why = self.skip(message)
            stranger = message["incoming"] and sender not in self.names and sender not in self.strangers
            if stranger:
                remember(self.strangers, sender, True)
            if why:
                self.kept["counts"]["skipped"] += 1
            else:
                remember(self.answered, sender, now_ms())
            text = self.kept["text"].replace("{name}", self.names.get(sender, "there"))
        if stranger and self.may("notifications.create"):
            try:
                host.toast(f"first message from {sender}", key=f"stranger-{sender}")
            except sep.SepError:
                pass  # A notice that cannot be shown is no reason not to answer.
        try:
            if why:
                host.log("debug", f"not answered: {why}")
            else:
                self.reply(host, message, sender, text)
        finally:
            self.show(host)

    def reply(self, host, message, sender, text):
        try:
            # The same message is answered once, also by a process that was started again in the middle of it.
            key = "re-" + message["hash"][:48]
            sent = patiently(
                lambda: host.messages_send(
                    sender, text, title=TITLE, reply_to=message["hash"], client_message_id=key
                )
            )
        except sep.SepError:
            with self.lock:
                self.kept["counts"]["failed"] += 1
                self.answered.pop(sender, None)
            raise
        with self.lock:
            self.kept["counts"]["replied"] += 1
            remember(self.replies, sent["messageHash"], True)

    def skip(self, message):
        """Why a message is not answered. Two machines that answer each other would never stop."""
        if not message["incoming"]:
            return "it is our own"
        if self.kept["paused"]:
            return "paused"
        if message["title"].startswith(TITLE):
            return "a machine wrote it"
        if message["replyTo"] in self.replies:
            return "it answers one of our replies"
        if now_ms() < self.answered.get(message["sourceHash"], -QUIET_MS) + QUIET_MS:
            return "its sender was answered a moment ago"
        return None

    def learn_names(self, host):
        if not self.may("contacts.read"):
            return
        names = {}
        for contact in host.contacts(limit=500):
            for address in (contact["identityHash"], contact["lxmfAddress"]):
                if address and len(names) < MEMORY:
                    names[address] = contact["name"]
        with self.lock:
            self.names = names

    def show(self, host):
        if host.version.startswith("1.0.") or not self.may("tools.register"):
            return
        try:
            host.update_panel("stats", content=self.content())
        except sep.Refused as refused:
            # The permission may have been taken back meanwhile, and the panel with it.
            if not refused.denied:
                raise

    def content(self):
        with self.lock:
            counts, paused, text = dict(self.kept["counts"]), self.kept["paused"], self.kept["text"]
            known = len(self.names)
        rows = [
            ("Received", counts["received"]),
            ("Answered", counts["replied"]),
            ("Left alone", counts["skipped"]),
            ("Failed", counts["failed"]),
            ("Contacts known", known),
        ]
        badge = ("paused", "warning") if paused else ("answering", "success")
        return [
            {"type": "badge", "text": badge[0], "tone": badge[1]},
            {"type": "kv", "items": [{"key": key, "value": str(value)} for key, value in rows]},
            {"type": "separator"},
            {"type": "text", "text": text[:1024]},
        ]

    def recall(self, host):
        try:
            with open(self.file, encoding="utf-8") as file:
                kept = json.load(file)
            counts = {name: int(kept["counts"][name]) for name in self.kept["counts"]}
            self.kept = {"text": str(kept["text"]), "paused": bool(kept["paused"]), "counts": counts}
        except FileNotFoundError:
            pass
        except (OSError, KeyError, TypeError, ValueError) as trouble:
            host.log("warn", f"what was kept cannot be read: {trouble}")

    def keep(self):
        if self.file is None:
            return
        with self.lock:
            kept = json.dumps(self.kept)
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(kept)
        os.replace(self.file + ".new", self.file)


def patiently(ask):
    """Asks again when the host says that it can succeed later, for as long as a reply is worth something."""
    left = 5.0
    while True:
        try:
            return ask()
        except sep.Refused as refused:
            if not refused.temporary or left <= 0:
                raise
            pause = max(0.001, min(refused.retry_after or 0.5, left))
            time.sleep(pause)
            left -= pause


def remember(memory, key, value):
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > MEMORY:
        del memory[next(iter(memory))]


def now_ms():
    return int(time.time() * 1000)


if __name__ == "__main__":
    sep.run(AutoReply())
