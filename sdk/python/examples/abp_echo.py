#!/usr/bin/env python3
"""The smallest useful sidecar: says the task back, word by word, and counts what it said."""
import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import outrigger_abp as abp


def handler(run):
    run.started(f"{len(run.order['task'])} characters to say")
    words = run.order["task"].split()
    for word in words:
        run.check()
        run.delta(f"{word} ")
    run.usage(output_tokens=len(words), turns=1)
    run.message(" ".join(words))
    run.completed("everything was said")


abp.serve({"id": "echo", "backend_version": "1.0.0", "capabilities": {"streaming": "native"}}, handler)
