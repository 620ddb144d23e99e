//! Runs, backends and processes made by hand, for tests alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_abp::protocol::Timestamp;
use outrigger_abp::receipt::{Check, HashState, SignatureState};
use outrigger_policy::Digest;
use outrigger_supervise::driver::ChildId;
use outrigger_supervise::metrics::ChildMetrics;
use outrigger_supervise::state::{Incarnation, Phase as ChildPhase};
use outrigger_supervise::tree::{Pid, Usage};
use serde_json::{Value, json};

use outrigger_sep::host::ui::{
    Action, ActionStyle, Input, InputKind, Node, PanelKey, PanelState, PanelView, Row, Slots, Tone,
    UiSnapshot,
};
use outrigger_sep::host::{Detail, Summary};
use outrigger_sep::protocol::{
    DeniedPermission, ExtensionId, Permission, PermissionList, State as Life, TrustLevel,
};

use super::run::story::Story;
use crate::engine::Seq;
use crate::runs::state::Moment;
use crate::runs::{BackendView, Health, Line, RunId, RunState};

/// Seconds after the moment at which everything in here begins.
pub(super) fn at(seconds: f64) -> Moment {
    let begin = Timestamp::parse("2026-11-16T12:00:00Z").unwrap();
    Moment(begin.after(Duration::from_secs_f64(seconds)))
}

/// A run made of records: the second at which each was written, its kind and its data.
pub(super) fn run(id: &str, records: &[(f64, &str, Value)]) -> (RunState, Arc<Story>) {
    let mut story = Story::default();
    let mut state = None;
    for (number, (seconds, kind, data)) in records.iter().enumerate() {
        let text = json!({"v": 1, "at": at(*seconds).to_string(), "kind": kind, "data": data}).to_string();
        let line = Line::read(&text).unwrap();
        story.fold(Seq(number as u64 + 1), &line);
        match &mut state {
            None => state = RunState::begin(RunId::parse(id).unwrap(), &line),
            Some(state) => state.fold(&line),
        }
    }
    (state.unwrap(), Arc::new(story))
}

pub(super) fn accepted(backend: &str, request: Value) -> Value {
    json!({"backend": backend, "request": request, "by": "dashboard", "seed": 1, "now_ms": 0})
}

pub(super) fn event(number: u64, event: Value) -> Value {
    let mut event = event;
    event["ts"] = json!("2026-11-16T12:00:00Z");
    json!({"attempt": 1, "number": number, "event": event})
}

pub(super) fn asked(id: &str, tool: &str, input: &Value, choices: &[&str]) -> Value {
    json!({
        "id": id, "attempt": 1, "key": "2", "tool": tool, "input": input.to_string(),
        "input_sha256": Digest::of(b"x").to_string(), "reason": "the script calls a name that a person answers",
        "choices": choices, "asked_at": at(1.2).to_string(), "deadline": at(86_400.0).to_string(), "default": "deny", "given": null,
    })
}

/// A script that waits for a person.
pub(super) fn waiting_script() -> (RunState, Arc<Story>) {
    let script = "const tests = run_tests();\nprint(`tests: ${tests.failed} failed`);\nconst who = deploy(\"main\", tests);\n`deployed, approved by ${who}`";
    let request = json!({"backend": "mustard", "title": "Deploy main after the tests", "script": script,
        "tools": {"deploy": {"approved": "deploy"}, "run_tests": {"tool": "run_tests"}, "print": {"tool": "print"}, "pick": "person"}});
    run(
        "0198c0de-7000-7a11-8a11-5c21f7000001",
        &[
            (0.0, "accepted", accepted("mustard", request)),
            (0.1, "started", json!({"attempt": 1, "backend": "mustard", "resumed": false})),
            (
                0.12,
                "suspended",
                json!({"attempt": 1, "step": 0, "snapshot": Digest::of(b"1").to_string(), "snapshot_bytes": 3127, "calls": [{"id": 1, "capability": "run_tests", "args": []}]}),
            ),
            (
                0.13,
                "event",
                event(
                    1,
                    json!({"type": "tool_call", "tool_name": "run_tests", "tool_use_id": "c1", "input": []}),
                ),
            ),
            (
                0.92,
                "event",
                event(
                    2,
                    json!({"type": "tool_result", "tool_name": "run_tests", "tool_use_id": "c1", "output": {"passed": 128, "failed": 0}, "is_error": false}),
                ),
            ),
            (0.94, "event", event(3, json!({"type": "assistant_message", "text": "tests: 0 failed"}))),
            (
                0.96,
                "suspended",
                json!({"attempt": 1, "step": 1, "snapshot": Digest::of(b"2").to_string(), "snapshot_bytes": 4382, "calls": [{"id": 2, "capability": "deploy", "args": ["main", {"passed": 128, "failed": 0}]}]}),
            ),
            (
                1.2,
                "asked",
                asked(
                    "a1",
                    "deploy",
                    &json!(["main", {"passed": 128, "failed": 0}]),
                    &["approve", "approve_always", "edit", "answer", "deny"],
                ),
            ),
        ],
    )
}

/// The same after a day, with an answer and an end.
pub(super) fn finished_script() -> (RunState, Arc<Story>) {
    let request = json!({"backend": "mustard", "title": "Nightly import with a person in it", "script": "load(1)", "inputs": {"table": "orders"}, "tools": {"load": "person"}});
    run(
        "0198c0de-7000-7a11-8a11-5c21f7000002",
        &[
            (0.0, "accepted", accepted("mustard", request)),
            (0.1, "started", json!({"attempt": 1, "backend": "mustard", "resumed": false})),
            (
                0.2,
                "suspended",
                json!({"attempt": 1, "step": 0, "snapshot": Digest::of(b"1").to_string(), "snapshot_bytes": 2210, "calls": [{"id": 1, "capability": "load", "args": [1]}]}),
            ),
            (0.3, "asked", asked("a1", "load", &json!([1]), &["answer", "deny"])),
            (
                80_000.0,
                "answered",
                json!({"approval": "a1", "answer": {"choice": "answer", "value": {"rows": 12}}, "by": "dashboard"}),
            ),
            (80_000.1, "started", json!({"attempt": 1, "backend": "mustard", "resumed": true})),
            (
                80_000.2,
                "event",
                event(
                    1,
                    json!({"type": "tool_call", "tool_name": "load", "tool_use_id": "c1", "input": [1]}),
                ),
            ),
            (
                80_000.3,
                "event",
                event(
                    2,
                    json!({"type": "tool_result", "tool_name": "load", "tool_use_id": "c1", "output": {"rows": 12}, "is_error": false}),
                ),
            ),
            (
                80_000.9,
                "finished",
                json!({"phase": "completed", "ending": "final", "spent": {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "tool_calls": 1, "model_calls": 0},
            "value": {"imported": 12, "table": "orders"}, "receipt": {"file": "0198c0de-7000-7a11-8a11-5c21f7000002.json", "sha256": Digest::of(b"r").to_string()}}),
            ),
        ],
    )
}

/// An agent at work.
pub(super) fn running_agent() -> (RunState, Arc<Story>) {
    let request = json!({"backend": "claude", "task": "Fix the failing test in parser.rs and explain what was wrong", "thread": "parser", "workspace": {"root": "/home/ada/parser", "mode": "staged"}});
    run(
        "0198c0de-7000-7a11-8a11-5c21f7000003",
        &[
            (0.0, "accepted", accepted("claude", request)),
            (0.4, "started", json!({"attempt": 1, "backend": "claude", "resumed": false})),
            (0.5, "note", json!({"text": "claude 2.1.0, process 4711"})),
            (0.6, "event", event(1, json!({"type": "run_started", "message": "begun"}))),
            (
                3.1,
                "event",
                event(2, json!({"type": "assistant_message", "text": "I will look at the test first."})),
            ),
            (
                3.2,
                "event",
                event(
                    3,
                    json!({"type": "tool_call", "tool_name": "Read", "tool_use_id": "t1", "input": {"file_path": "src/parser.rs"}}),
                ),
            ),
            (
                3.4,
                "event",
                event(
                    4,
                    json!({"type": "tool_result", "tool_name": "Read", "tool_use_id": "t1", "output": "fn parse() {}", "is_error": false}),
                ),
            ),
            (
                6.0,
                "event",
                event(
                    5,
                    json!({"type": "usage", "input_tokens": 4210, "output_tokens": 318, "estimated_cost_usd": 0.0187}),
                ),
            ),
            (
                6.1,
                "event",
                event(
                    6,
                    json!({"type": "tool_call", "tool_name": "Bash", "tool_use_id": "t2", "input": {"command": "cargo test parser"}}),
                ),
            ),
            (
                11.9,
                "event",
                event(
                    7,
                    json!({"type": "tool_result", "tool_name": "Bash", "tool_use_id": "t2", "output": "1 test failed", "is_error": true}),
                ),
            ),
            (12.2, "steered", json!({"text": "Do not touch the lexer.", "by": "dashboard"})),
            (
                14.0,
                "event",
                event(
                    8,
                    json!({"type": "file_changed", "path": "src/parser.rs", "summary": "one branch fewer"}),
                ),
            ),
            (
                15.1,
                "event",
                event(
                    9,
                    json!({"type": "assistant_delta", "text": "The test expected an empty list for an empty input, but `parse` returned"}),
                ),
            ),
            (
                15.4,
                "event",
                event(
                    10,
                    json!({"type": "assistant_delta", "text": " an error. The fix is a guard:\n\n```rust\nif input.is_empty() {\n    return Ok(Vec::new());\n}\n```\n"}),
                ),
            ),
        ],
    )
}

/// A run that failed after two attempts.
pub(super) fn failed_agent() -> (RunState, Arc<Story>) {
    run(
        "0198c0de-7000-7a11-8a11-5c21f7000004",
        &[
            (
                0.0,
                "accepted",
                accepted(
                    "codex",
                    json!({"backend": "codex", "task": "Port the build to the new toolchain", "retries": 1}),
                ),
            ),
            (0.2, "started", json!({"attempt": 1, "backend": "codex", "resumed": false})),
            (
                4.2,
                "attempted",
                json!({"attempt": 1, "error": "the child exited with code 1 before it said hello", "next_backend": "codex", "not_before": at(5.0).to_string()}),
            ),
            (5.2, "started", json!({"attempt": 2, "backend": "codex", "resumed": false})),
            (
                9.2,
                "finished",
                json!({"phase": "failed", "ending": "exited", "error": "the child exited with code 1 before it said hello; last lines:\ncodex: not logged in", "spent": {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "tool_calls": 0, "model_calls": 0}}),
            ),
        ],
    )
}

/// Names and words of somebody who means no good.
pub(super) fn hostile() -> (RunState, Arc<Story>) {
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";
    run(
        "evil",
        &[
            (
                0.0,
                "accepted",
                accepted(evil, json!({"backend": evil, "title": evil, "task": evil, "thread": evil})),
            ),
            (0.1, "started", json!({"attempt": 1, "backend": evil, "resumed": false})),
            (
                0.2,
                "event",
                event(
                    1,
                    json!({"type": "tool_call", "tool_name": evil, "tool_use_id": evil, "input": {"command": evil}}),
                ),
            ),
            (
                0.3,
                "event",
                event(
                    2,
                    json!({"type": "tool_result", "tool_name": evil, "tool_use_id": evil, "output": evil, "is_error": true}),
                ),
            ),
            (0.4, "event", event(3, json!({"type": "assistant_message", "text": evil}))),
            (0.5, "event", event(4, json!({"type": "error", "message": evil}))),
            (0.6, "note", json!({"text": evil})),
            (0.7, "asked", asked("a1", evil, &json!({"x": evil}), &["approve", "edit", "answer", "deny"])),
            (0.8, "event", event(5, json!({"type": "assistant_delta", "text": evil}))),
        ],
    )
}

pub(super) fn receipt() -> Check {
    Check {
        path: "0198c0de.json".into(),
        events: 24,
        hash: HashState::Ok { sha256: Digest::of(b"r") },
        signature: SignatureState::None,
        previous: Some(Digest::of(b"p")),
        problems: Vec::new(),
        receipt: None,
    }
}

pub(super) fn backends() -> Vec<BackendView> {
    let view = |name: &str, dialect: &str, about: &str, health| BackendView {
        name: name.to_owned(),
        dialect: dialect.to_owned(),
        about: about.to_owned(),
        health,
        capabilities: BTreeMap::new(),
        at_once: 4,
        running: 0,
        queued: 0,
    };
    let mut mustard =
        view("mustard", "mustard", "sandboxed JavaScript that can stop at any call", Health::Ready);
    mustard.running = 2;
    mustard.capabilities =
        ["approvals", "fork", "replay", "suspend"].map(|name| (name.to_owned(), "native".to_owned())).into();
    let mut mock = view("mock", "abp", "says what it is told, for trying things out", Health::Ready);
    mock.capabilities =
        ["streaming", "tool_read", "tool_write"].map(|name| (name.to_owned(), "native".to_owned())).into();
    mock.running = 4;
    mock.queued = 3;
    vec![
        mustard,
        mock,
        view(
            "claude",
            "helmor",
            "Claude Code",
            Health::Missing {
                why: "the program `claude` is not installed; npm install -g @anthropic-ai/claude-code"
                    .to_owned(),
            },
        ),
        view(
            "steerable",
            "steerable",
            "an agent of our own",
            Health::Failing { why: "no model is configured".to_owned() },
        ),
    ]
}

pub(super) fn child(id: u64, name: &str, rss_bytes: u64) -> ChildMetrics {
    ChildMetrics {
        id: ChildId(id),
        name: name.to_owned(),
        phase: ChildPhase::Ready,
        incarnation: Incarnation(2),
        pid: Some(Pid::new(4000 + u32::try_from(id).unwrap())),
        uptime: Some(Duration::from_secs(60 * id + 7)),
        usage: Some(Usage { processes: 1, rss_bytes }),
    }
}

pub(super) fn extension(id: &str, name: &str, state: Life) -> Summary {
    Summary {
        id: Some(ExtensionId::new(id).unwrap()),
        name: Some(name.to_owned()),
        version: Some("1.2.0".to_owned()),
        state,
        phase: None,
        disabled: None,
        failed: None,
        detail: (state != Life::Ready).then(|| "nobody has agreed to what it asks for".to_owned()),
        trust: Some(TrustLevel::UntrustedLocal),
        pid: (state == Life::Ready).then_some(4242),
        uptime_ms: (state == Life::Ready).then_some(754_000),
        next_start_ms: None,
        starts: 1,
        restarts: 0,
        dir: format!("/ext/{id}").into(),
    }
}

pub(super) fn extension_detail(id: &str, name: &str) -> Detail {
    let denied = DeniedPermission { permission: Permission::MessagesSend, reason: "not_granted".to_owned() };
    Detail {
        summary: extension(id, name, Life::Ready),
        findings: Vec::new(),
        claimed_trust: None,
        clamped: None,
        tree_sha256: None,
        declared: vec![Permission::MessagesRead, Permission::MessagesSend, Permission::ToolsRegister],
        permissions: Some(PermissionList {
            granted: vec![Permission::MessagesRead, Permission::ToolsRegister],
            denied: vec![denied],
        }),
        events: None,
        limits: None,
        session: None,
        exits: Default::default(),
    }
}

/// A panel with one of everything.
pub(super) fn panels(id: &str, name: &str) -> Arc<UiSnapshot> {
    let action = |id: &str, label: &str, style, input| Action {
        id: id.to_owned(),
        label: label.to_owned(),
        style,
        confirm: None,
        input,
    };
    let text = Input {
        kind: InputKind::Text,
        label: Some("Reply with".to_owned()),
        max_length: Some(200),
        options: None,
    };
    let choice = Input {
        kind: InputKind::Select,
        label: Some("Tone".to_owned()),
        max_length: None,
        options: Some(vec!["calm".to_owned(), "brisk".to_owned()]),
    };
    let row = |key: &str, value: &str| Row { key: key.to_owned(), value: value.to_owned() };
    let view = PanelView {
        panel_key: PanelKey::parse(&format!("{id}/main")).unwrap(),
        extension_id: ExtensionId::new(id).unwrap(),
        extension_name: name.to_owned(),
        trust_level: TrustLevel::UntrustedLocal,
        title: "Automatic replies".to_owned(),
        description: Some("Answers messages while you are away.".to_owned()),
        icon: None,
        order: 1,
        state: PanelState::Active,
        reason: None,
        actions: vec![
            action("reply", "Set", Some(ActionStyle::Primary), Some(text)),
            action("tone", "Choose", None, Some(choice)),
            action("clear", "Forget all", Some(ActionStyle::Danger), None),
        ],
        content: Some(vec![
            Node::Badge { text: "on".to_owned(), tone: Some(Tone::Success) },
            Node::Kv { items: vec![row("answered", "17"), row("last", "2 minutes ago")] },
            Node::Progress { value: 40, max: 100, label: Some("quota".to_owned()) },
            Node::Separator {},
            Node::List {
                items: vec![Node::Text { text: "<i>Ada</i>: see you".to_owned(), tone: Some(Tone::Warning) }],
            },
        ]),
    };
    Arc::new(UiSnapshot { slots: Slots { primary: vec![view], ..Slots::default() }, revision: 3 })
}
