//! What is read and what is written: every message, partial ones, strange ones, wrong ones.

use libtest_mimic::Trial;
use outrigger_abp::protocol::{
    AgentEvent, Capability, Envelope, EnvelopeError, ErrorCode, EventKind, MAX_CAPABILITIES, MAX_LIST, Mode,
    OrderId, SupportLevel, WorkOrder, WorkspaceMode, read,
};
use serde_json::{Value, json};

pub(super) fn trials() -> Vec<Trial> {
    trials![
        every_message_is_written_as_the_contract_has_it_and_read_back,
        members_may_come_in_any_order_and_the_last_of_two_counts,
        an_error_names_the_member_and_says_what_was_found,
        what_is_unknown_is_kept_or_ignored_and_never_fatal,
        null_is_the_same_as_absent,
        a_partial_work_order_is_filled_up,
        a_work_order_is_sent_with_every_member,
        an_event_borrows_from_its_line,
        an_event_of_each_type_lacks_nothing_it_needs,
        the_receipt_of_a_final_may_be_empty_or_wrong_and_the_run_is_not_lost,
        a_vendors_request_is_found_nested_or_dotted_with_its_bytes,
        lists_and_manifests_have_a_limit,
    ]
}

fn error(line: &str) -> String {
    read(line).unwrap_err().to_string()
}

fn every_message_is_written_as_the_contract_has_it_and_read_back() {
    for line in [
        r#"{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"b","backend_version":null,"adapter_version":"2"},"capabilities":{"streaming":"native","tool_read":{"restricted":{"reason":"r"}},"warp":"psychic"},"mode":"passthrough"}"#,
        r#"{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"b","backend_version":null,"adapter_version":null},"capabilities":{},"mode":"mapped","outrigger":{"version":1,"asks":["tool","teleport"]}}"#,
        r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"run_started","message":"m"}}"#,
        r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"tool_call","tool_name":"t","tool_use_id":"1","parent_tool_use_id":null,"input":{"b":1.10,"a":[]},"ext":{"raw_message":{"z": 1}}}}"#,
        r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"tool_result","tool_name":"t","tool_use_id":null,"output":null,"is_error":true}}"#,
        r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"command_executed","command":"c","exit_code":-1,"output_preview":null}}"#,
        r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"error","message":"a\nb","error_code":"backend_timeout"}}"#,
        r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"usage","input_tokens":5,"turns":1,"estimated_cost_usd":0.5,"total":true}}"#,
        r#"{"t":"event","ref_id":"r","event":{"type":"thinking","ts":"2026-01-01T00:00:00+01:00","x":{}}}"#,
        r#"{"t":"fatal","ref_id":null,"error":"no key"}"#,
        r#"{"t":"fatal","ref_id":"r","error":"no key","error_code":"weather_bad"}"#,
        r#"{"t":"cancel","ref_id":"r","reason":null}"#,
        r#"{"t":"ping","seq":18446744073709551615}"#,
        r#"{"t":"pong","seq":0}"#,
        r#"{"t":"ask","ref_id":"r","id":"1","action":"tool","tool_name":"Bash","input":{"c": 1}}"#,
        r#"{"t":"answer","ref_id":"r","id":"1","decision":"deny","reason":"no"}"#,
        r#"{"t":"new_thing"}"#,
    ] {
        let envelope = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(envelope.to_line(), line);
        assert_eq!(envelope.clone().into_owned(), envelope);
    }
}

fn members_may_come_in_any_order_and_the_last_of_two_counts() {
    let line = r#" {"event":5,"x":{"t":"ping"},"event":{"text":"no","text":"yes","type":"warning","type":"assistant_delta","ts":"2026-01-01T00:00:00Z"},"ref_id":"a","t":"ping","ref_id":"b","t":"event"} "#;
    let Envelope::Event { ref_id, event } = read(line).unwrap() else { panic!("it is an event") };
    assert_eq!((&*ref_id, event.kind), ("b", EventKind::AssistantDelta { text: "yes".into() }));
    assert_eq!(read(r#"{"seq":1,"seq":2,"t":"pi\u006eg"}"#), Ok(Envelope::Ping { seq: 2 }));
}

fn an_error_names_the_member_and_says_what_was_found() {
    let event = |members: &str| error(&format!(r#"{{"t":"event","ref_id":"r","event":{{{members}}}}}"#));
    let ts = r#""ts":"2026-01-01T00:00:00Z""#;
    let table = [
        (
            event(&format!(r#"{ts},"type":"tool_result","tool_name":"t","output":1"#)),
            "`event.tool_result.is_error` is missing",
        ),
        (
            event(&format!(r#"{ts},"type":"tool_result","tool_name":"t","output":1,"is_error":"no""#)),
            "`event.tool_result.is_error` is \"no\"; it must be true or false",
        ),
        (event(&format!(r#"{ts},"type":"tool_call","tool_name":"t""#)), "`event.tool_call.input` is missing"),
        (
            event(&format!(r#"{ts},"type":"assistant_delta","text":null"#)),
            "`event.assistant_delta.text` is null; it must be a string",
        ),
        (
            event(&format!(r#"{ts},"type":"command_executed","command":"c","exit_code":1.0"#)),
            "`event.command_executed.exit_code` is 1.0; it must be a whole number of 32 bits",
        ),
        (
            event(&format!(r#"{ts},"type":"warning","message":"m","ext":[]"#)),
            "`event.ext` is an array; it must be an object",
        ),
        (event(ts), "`event.type` is missing"),
        (
            event(r#""ts":1700000000,"type":"warning","message":"m""#),
            "`event.ts` is 1700000000; it must be a time with an offset, such as \"2026-01-31T12:00:00Z\"",
        ),
        (error(r#"{"t":"event","ref_id":"r","event":[]}"#), "`event` is an array; it must be an object"),
        (error(r#"{"t":"event","event":{}}"#), "`ref_id` is missing"),
        (error(r#"{"t":"final","ref_id":"r"}"#), "`receipt` is missing"),
        (error(r#"{"t":"fatal"}"#), "`error` is missing"),
        (error(r#"{"t":"ping","seq":-1}"#), "`seq` is -1; it must be a whole number that is not negative"),
        (error(r#"{"t":"ping"}"#), "`seq` is missing"),
        (error(r#"{"t":5}"#), "`t` is 5; it must be a string"),
        (error("{}"), "`t` is missing"),
        (error("[1]"), "`the message` is an array; it must be an object"),
        (error("hello"), "it is not JSON: unexpected character at byte 0"),
        (error(r#"{"t":"ping","seq":1} x"#), "it is not JSON: something follows the value at byte 21"),
        (
            error(r#"{"t":"hello","contract_version":"abp/v0.1","backend":{},"capabilities":{}}"#),
            "`backend.id` is missing",
        ),
        (
            error(r#"{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"b"}}"#),
            "`capabilities` is missing",
        ),
        (
            error(r#"{"t":"run","id":"r","work_order":{"context":{"snippets":[{},5]}}}"#),
            "`work_order.context.snippets[1]` is 5; it must be an object",
        ),
        (
            error(
                r#"{"t":"run","id":"r","work_order":{"requirements":{"required":[{"min_support":"any"}]}}}"#,
            ),
            "`work_order.requirements.required[0].capability` is missing",
        ),
        (
            error(r#"{"t":"run","id":"r","work_order":{"config":{"env":{"A":1}}}}"#),
            "`work_order.config.env.A` is 1; it must be a string",
        ),
    ];
    for (found, expected) in table {
        assert_eq!(found, expected);
    }
    let deep = format!(r#"{{"t":"event","x":{}{}}}"#, "[".repeat(127), "]".repeat(127));
    assert_eq!(read(&deep), Err(EnvelopeError::TooDeep));
}

fn what_is_unknown_is_kept_or_ignored_and_never_fatal() {
    let line = r#"{"t":"hello","new":1,"contract_version":"abp/v0.9","backend":{"id":"b","colour":"red"},"capabilities":{"warp":"native","audio":"Native"},"mode":"dreamt","outrigger":"somebody else's"}"#;
    let Envelope::Hello(hello) = read(line).unwrap() else { panic!("it is a hello") };
    assert_eq!(hello.mode, Mode::Other("dreamt".into()));
    assert_eq!(hello.capabilities.level(&Capability::Other("warp".into())), Some(&SupportLevel::Native));
    let level = hello.capabilities.level(&Capability::Audio);
    assert!(matches!(level, Some(SupportLevel::Other(raw)) if raw.as_str() == "\"Native\""));
    assert_eq!(hello.outrigger, None);

    let line = r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"plan","message":5,"steps":[1.0]}}"#;
    let Envelope::Event { event, .. } = read(line).unwrap() else { panic!("it is an event") };
    let EventKind::Other { kind, members } = &event.kind else { panic!("it is unknown") };
    assert_eq!(&**kind, "plan");
    assert_eq!(members.to_value()["steps"], json!([1.0]));

    let line = r#"{"t":"fatal","error":"e","error_code":"weather_bad"}"#;
    let Envelope::Fatal { error_code, .. } = read(line).unwrap() else { panic!("it is fatal") };
    assert_eq!(error_code, Some(ErrorCode::Other("weather_bad".into())));
}

fn null_is_the_same_as_absent() {
    let line = r#"{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"b","backend_version":null},"capabilities":{},"mode":null,"outrigger":null}"#;
    let Envelope::Hello(hello) = read(line).unwrap() else { panic!("it is a hello") };
    assert_eq!((hello.mode, hello.outrigger), (Mode::Mapped, None));
    let text = r#"{"ts":"2026-01-01T00:00:00Z","type":"error","message":"m","error_code":null,"ext":null}"#;
    let event = AgentEvent::read(text).unwrap();
    assert_eq!(event.ext, None);
    assert_eq!(event.kind, EventKind::Error { message: "m".into(), error_code: None });
    let nulls = r#"{"id":null,"task":"t","lane":null,"workspace":null,"context":null,"policy":null,"requirements":null,"config":{"model":null,"vendor":null,"env":null,"max_turns":null}}"#;
    assert_eq!(WorkOrder::read(nulls), Ok(WorkOrder::new(OrderId::new(""), "t")));
}

fn a_partial_work_order_is_filled_up() {
    let order = WorkOrder::read(r#"{"id":"o","task":"t","policy":{"deny_read":["*.env"]},"workspace":{"root":"/w","mode":"pass_through"}}"#).unwrap();
    assert_eq!(order.policy.deny_read, ["*.env"]);
    assert_eq!(order.workspace.mode, WorkspaceMode::PassThrough);
    assert!(order.policy.allowed_tools.is_empty() && order.requirements.required.is_empty());
    assert_eq!(WorkOrder::read("{}"), Ok(WorkOrder::new(OrderId::new(""), "")));
}

fn a_work_order_is_sent_with_every_member() {
    let mut out = Vec::new();
    WorkOrder::new(OrderId::new("o"), "t").write(&mut out);
    let value: Value = serde_json::from_slice(&out).unwrap();
    let none: [&str; 0] = [];
    assert_eq!(
        value,
        json!({
            "id": "o", "task": "t", "lane": "patch_first",
            "workspace": {"root": ".", "mode": "staged", "include": none, "exclude": none},
            "context": {"files": none, "snippets": none},
            "policy": {"allowed_tools": none, "disallowed_tools": none, "deny_read": none, "deny_write": none,
                "allow_network": none, "deny_network": none, "require_approval_for": none},
            "requirements": {"required": none},
            "config": {"model": null, "vendor": {}, "env": {}, "max_budget_usd": null, "max_turns": null},
        })
    );
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with(r#"{"id":"o","task":"t","lane":"patch_first","workspace":{"root""#), "{text}");
}

fn an_event_borrows_from_its_line() {
    let line = r#"{"t":"event","ref_id":"r","event":{"ts":"2026-01-01T00:00:00Z","type":"assistant_delta","text":"plain é"}}"#;
    let Envelope::Event { ref_id, event } = read(line).unwrap() else { panic!("it is an event") };
    let inside = |text: &str| line.as_bytes().as_ptr_range().contains(&text.as_ptr());
    let EventKind::AssistantDelta { text } = &event.kind else { panic!("it is a delta") };
    assert!(inside(&ref_id) && inside(text) && inside(event.raw.as_deref().unwrap()));
    assert_eq!(event.raw.as_deref().unwrap(), &line[34..line.len() - 1]);
}

fn an_event_of_each_type_lacks_nothing_it_needs() {
    let whole = json!({"message":"m","text":"t","tool_name":"n","input":1,"output":2,"is_error":false,"path":"p",
        "summary":"s","command":"c","ts":"2026-01-01T00:00:00Z"});
    for (kind, needs) in [
        ("run_started", vec!["message"]),
        ("run_completed", vec!["message"]),
        ("warning", vec!["message"]),
        ("error", vec!["message"]),
        ("assistant_delta", vec!["text"]),
        ("assistant_message", vec!["text"]),
        ("tool_call", vec!["tool_name", "input"]),
        ("tool_result", vec!["tool_name", "output", "is_error"]),
        ("file_changed", vec!["path", "summary"]),
        ("command_executed", vec!["command"]),
    ] {
        let mut event = whole.clone();
        event["type"] = kind.into();
        let text = event.to_string();
        assert_eq!(AgentEvent::read(&text).unwrap().kind.name(), kind);
        for need in needs {
            let mut event = event.clone();
            event.as_object_mut().unwrap().remove(need);
            let error = AgentEvent::read(&event.to_string()).unwrap_err();
            assert_eq!(error, EnvelopeError::Missing { path: format!("{kind}.{need}") });
        }
    }
}

fn the_receipt_of_a_final_may_be_empty_or_wrong_and_the_run_is_not_lost() {
    let Envelope::Final { receipt, .. } = read(r#"{"t":"final","ref_id":"r","receipt":{}}"#).unwrap() else {
        panic!("it is final")
    };
    assert_eq!((receipt.outcome.clone(), receipt.problems.len()), (None, 0));
    let line = r#"{"t":"final","ref_id":"r","receipt":{"meta":{"run_id":5,"started_at":"yesterday"},"usage":{"input_tokens":1.0},"trace":{},"outcome":"complete"}}"#;
    let Envelope::Final { receipt, .. } = read(line).unwrap() else { panic!("it is final") };
    let problems: Vec<String> = receipt.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "`receipt.meta.run_id` is 5; it must be a string",
            "`receipt.meta.started_at` is \"yesterday\"; it must be a time with an offset, such as \"2026-01-31T12:00:00Z\"",
            "`receipt.usage.input_tokens` is 1.0; it must be a whole number that is not negative",
            "`receipt.trace` is an object; it must be an array",
        ]
    );
    assert_eq!(receipt.outcome.as_ref().map(|outcome| outcome.as_str()), Some("complete"));
}

fn a_vendors_request_is_found_nested_or_dotted_with_its_bytes() {
    let order = WorkOrder::read(
        r#"{"config":{"vendor":{"abp":{"request":{"b": 1.0, "a": 1e3}},"abp.mode":"passthrough","abp.request":0}}}"#,
    )
    .unwrap();
    let vendor = |key: &str| order.config.vendor("abp", key).map(|raw| raw.as_str().to_owned());
    assert_eq!(vendor("request").as_deref(), Some(r#"{"b": 1.0, "a": 1e3}"#));
    assert_eq!(vendor("mode").as_deref(), Some("\"passthrough\""));
    assert_eq!(vendor("dialect"), None);
}

fn lists_and_manifests_have_a_limit() {
    let order = |count: usize| {
        WorkOrder::read(&format!(r#"{{"context":{{"files":[{}]}}}}"#, vec!["\"f\""; count].join(",")))
    };
    assert_eq!(order(MAX_LIST).unwrap().context.files.len(), MAX_LIST);
    assert_eq!(
        order(MAX_LIST + 1),
        Err(EnvelopeError::TooMany { path: "context.files".into(), limit: MAX_LIST })
    );
    let hello = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("\"c{at}\":\"native\"")).collect();
        let line = format!(
            r#"{{"t":"hello","contract_version":"abp/v0.1","backend":{{"id":"b"}},"capabilities":{{{}}}}}"#,
            names.join(",")
        );
        read(&line).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(hello(MAX_CAPABILITIES), Ok(()));
    assert_eq!(hello(MAX_CAPABILITIES + 1), Err("`capabilities` has more than 1024 entries".into()));
}
