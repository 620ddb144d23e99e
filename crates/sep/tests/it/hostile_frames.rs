//! Frames at every limit and one past it, floods and deaf ears, against live sessions of a whole host.

use std::path::Path;

use libtest_mimic::Trial;
use outrigger_sep::config::TracePolicy;
use outrigger_sep::host::record::Way;
use outrigger_sep::mesh::{MessageQuery, Messaging as _};
use outrigger_sep::protocol::{ExitKind, State};
use outrigger_sep::reference::Draft;
use serde_json::{Value, json};

use crate::fleet_kit::{Host, Site, first_party, put, steps, trial};
use crate::hostile_kit::{Away, assert_nobody_in, counted, log_in, said, start_held, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("frames_that_break_the_rules_are_answered_and_the_session_goes_on", borne_with),
        trial("one_offence_too_many_ends_the_session_with_its_name", one_too_many),
        trial("calls_beyond_the_rate_and_beyond_the_places_are_refused_exactly", crowds),
        trial("floods_of_output_and_of_unheard_answers_do_not_grow_the_host", floods),
    ]
}

/// The longest frame of the extensions here.
const MAX: u32 = 8192;

/// Attaches, does these steps, and says when it is through.
fn trying(id: &str, tried: Value, limits: (u32, u32, u32)) -> Draft {
    let mut script = vec![json!({"do":"attach"}), json!({"do":"serve","until":"sep.initialize"})];
    script.extend(tried.as_array().expect("steps").iter().cloned());
    script.extend([
        json!({"do":"call","method":"host.get_capabilities"}),
        json!({"do":"print","text":"through"}),
        json!({"do":"serve"}),
    ]);
    first_party(Draft { limits, ..Draft::fault(id, &steps(Value::Array(script))) })
}

/// Does these steps in its first session and behaves in the next.
fn offending(id: &str, offence: Value) -> Draft {
    let mut first = vec![json!({"do":"attach"}), json!({"do":"serve","until":"sep.initialize"})];
    first.extend(offence.as_array().expect("steps").iter().cloned());
    first.push(json!({"do":"serve"}));
    let script = json!([{"do":"first","times":1,"steps":first}, {"do":"attach"}, {"do":"serve"}]);
    first_party(Draft { limits: (MAX, 1000, 8), ..Draft::fault(id, &steps(script)) })
}

/// The errors that an extension was answered with, sorted: code, slug, reason and id.
async fn errors(host: &Host, id: &str) -> Vec<String> {
    let frames = host.fleet.trace(id).await.expect("a trace");
    let sent = frames.iter().filter(|frame| frame.way == Way::ToExtension);
    let sent = sent.filter_map(|frame| serde_json::from_str::<Value>(&frame.text).ok());
    let error = |frame: Value| {
        let error = frame.get("error")?;
        let (data, word) = (&error["data"], |value: &Value| value.as_str().unwrap_or("-").to_owned());
        // Of what nests too deep, the id may or may not have been read.
        let id = if data["reason"] == "depth" { "any".to_owned() } else { frame["id"].to_string() };
        Some(format!("{} {} {} {id}", error["code"], word(&data["sep"]), word(&data["reason"])))
    };
    let mut errors: Vec<String> = sent.filter_map(error).collect();
    // What is answered at once may overtake what is answered by a handler.
    errors.sort();
    errors
}

async fn borne_with() {
    let mut site = Site::new();
    site.policy.trace = TracePolicy::Redacted;
    let bad_utf8 = "7b226a736f6e727063223a22322e30222c226964223a312c226d6574686f64223a22ff227d0a";
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"host.get_capabilities"}"#;
    let cases: Vec<(&str, Value, Vec<&str>)> = vec![
        (
            "org.example.sizes",
            json!([{"do":"oversize","bytes":MAX}, {"do":"oversize","bytes":MAX + 1}, {"do":"oversize","bytes":4 * MAX}]),
            vec![
                "-32602 invalid_params - 901",
                "-32001 payload_too_large - null",
                "-32001 payload_too_large - null",
            ],
        ),
        (
            "org.example.depths",
            json!([{"do":"deep","levels":62}, {"do":"deep","levels":63}, {"do":"deep","levels":3000}]),
            vec![
                "-32602 invalid_params - 902",
                "-32700 parse_error depth any",
                "-32700 parse_error depth any",
            ],
        ),
        (
            "org.example.texts",
            json!([
                {"do":"bytes","hex":bad_utf8},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"host.get_capabilities"}"#},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":"\ud800","method":"host.get_capabilities"}"#},
                {"do":"garbage","times":17},
            ]),
            [
                vec!["-32700 parse_error invalid_utf8 null", "-32700 parse_error duplicate_key null"],
                vec!["-32700 parse_error invalid_json null"; 18],
            ]
            .concat(),
        ),
        (
            "org.example.envelopes",
            json!([
                {"do":"raw","text":format!("[{call}]")},
                {"do":"raw","text":"[]"},
                {"do":"raw","text":r#"{"jsonrpc":"1.0","id":7,"method":"host.get_capabilities"}"#},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":null,"method":"host.get_capabilities"}"#},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":1.5,"method":"host.get_capabilities"}"#},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":7,"method":"host.get_capabilities","result":{}}"#},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":7,"method":"host.get_capabilities","params":[]}"#},
                {"do":"raw","text":r#"{"jsonrpc":"2.0","id":8,"method":"host.no_such_thing"}"#},
                {"do":"unknown_responses","times":10},
            ]),
            vec![
                "-32600 invalid_request batch_unsupported null",
                "-32600 invalid_request batch_unsupported null",
                "-32600 invalid_request bad_envelope 7",
                "-32600 invalid_request bad_id null",
                "-32600 invalid_request bad_id null",
                "-32600 invalid_request bad_envelope 7",
                "-32602 invalid_params - 7",
                "-32601 method_not_found unknown 8",
            ],
        ),
        (
            "org.example.notes",
            json!([
                {"do":"notify","method":"host.messages.send","params":{"destinationHash":"ab".repeat(16),"content":"hm"}},
                {"do":"notify","method":"host.contacts.list"},
            ]),
            vec![],
        ),
    ];
    for (id, tried, _) in &cases {
        put(&trying(id, tried.clone(), (MAX, 1000, 8)), &site.builtin(), "fault");
    }
    let host = site.start().await;
    for (id, _, mut expected) in cases {
        expected.sort_unstable();
        host.log_says(id, "through").await;
        host.until_so(&format!("{id} was told {expected:#?}"), async || {
            errors(&host, id).await.len() >= expected.len()
        })
        .await;
        assert_eq!(errors(&host, id).await, expected, "{id}");
        let call = said(&host, id).into_iter().rfind(|line| line["do"] == "call").expect("an answer");
        assert_eq!(call["ok"], true, "{id}: {call}");
        let summary = host.fleet.show(id).await.expect("there").summary;
        assert_eq!((summary.state, summary.starts), (State::Ready, 1), "{id}");
    }
    let noted = |line: &Value| line["ext"] == "org.example.notes" && line["reason"] == "notification_form";
    let noted: Vec<Value> = host.audit().into_iter().filter(noted).collect();
    assert_eq!(noted.len(), 2, "{noted:#?}");
    assert!(noted.iter().all(|line| line["decision"] == "deny"), "{noted:#?}");
    let all =
        MessageQuery { peer: None, direction: None, since_ms: None, until_ms: None, after: None, limit: 10 };
    assert_eq!(host.mesh.messages(all).await.expect("a list"), [], "nothing was sent");
    host.end().await;
}

async fn one_too_many() {
    let site = Site::new();
    let cases = [
        (
            "org.example.oversize",
            json!([{"do":"oversize","bytes":MAX + 1,"times":3}]),
            ExitKind::FrameOverrun,
        ),
        ("org.example.enormous", json!([{"do":"oversize","bytes":4 * MAX + 1}]), ExitKind::FrameOverrun),
        ("org.example.endless", json!([{"do":"endless","bytes":4 * MAX + 1}]), ExitKind::FrameOverrun),
        ("org.example.garbage", json!([{"do":"garbage","times":21}]), ExitKind::ProtocolViolation),
        ("org.example.answers", json!([{"do":"unknown_responses","times":11}]), ExitKind::ProtocolViolation),
    ];
    for (id, offence, _) in &cases {
        put(&offending(id, offence.clone()), &site.builtin(), "fault");
    }
    let host = site.start().await;
    for (id, _, kind) in &cases {
        host.until_detail(id, |detail| detail.summary.starts == 2 && detail.summary.state == State::Ready)
            .await;
        let exits = host.fleet.show(id).await.expect("there").exits;
        assert_eq!((exits.len(), exits[0].kind, exits[0].counted), (1, *kind, true), "{id}: {exits:?}");
    }
    let place = host.place.path().to_owned();
    let _site = host.end().await;
    assert_nobody_in(&place);
}

async fn crowds() {
    let site = Site::new();
    let (rated, crowded, doubled) = ("org.example.rated", "org.example.crowded", "org.example.doubled");
    let flood = |method: &str, times: u32| json!([{"do":"flood","method":method,"times":times}]);
    let twice = json!([{"do":"duplicate_id","method":"host.messages.list"}]);
    put(&trying(rated, flood("host.get_capabilities", 300), (MAX, 5, 8)), &site.builtin(), "fault");
    put(&trying(crowded, flood("host.messages.list", 20), (MAX, 1000, 8)), &site.builtin(), "fault");
    put(&trying(doubled, twice, (MAX, 1000, 8)), &site.builtin(), "fault");
    let (host, held) = start_held(site).await;
    let failed = |id: &str, code: i32| {
        counted(&host, "sep_rpc_failed_total", &[&format!("ext=\"{id}\""), &format!("code=\"{code}\"")])
    };
    // Nobody is answered before the network is let go, so eight places are taken, and nobody gets one by luck.
    host.until_so("twelve found no place", async || failed(crowded, -32021) == 12).await;
    host.until_so("one id was taken", async || failed(doubled, -32600) == 1).await;
    held.release();
    for id in [rated, crowded, doubled] {
        host.log_says(id, "through").await;
    }
    let answers = |id: &str| {
        let flood = said(&host, id).into_iter().find(|line| line["do"] == "flood").expect("a flood");
        assert_eq!(flood["unanswered"], 0, "{flood}");
        flood["answers"].clone()
    };
    assert_eq!(answers(crowded), json!({"-32021": 12, "result": 8}));
    let double: Vec<Value> =
        said(&host, doubled).into_iter().filter(|line| line["do"] == "duplicate_id").collect();
    assert_eq!(double.len(), 2, "{double:#?}");
    assert_eq!(double[0]["error"]["data"]["reason"], "duplicate_id", "{double:#?}");
    assert_eq!(double[1]["ok"], true, "{double:#?}");

    let rates = answers(rated);
    let (served, limited) =
        (rates["result"].as_u64().expect("some"), rates["-32020"].as_u64().expect("some"));
    assert_eq!(served + limited, 300, "{rates}");
    assert!((5..300).contains(&served), "{rates}");
    // What the extension was told is what the host has counted; the call after the flood may have been one too many as well.
    let after = said(&host, rated).into_iter().rfind(|line| line["do"] == "call").expect("an answer");
    let after = u64::from(after["ok"] == false);
    assert_eq!(failed(rated, -32020), limited + after);
    assert_eq!(counted(&host, "sep_rate_limited_total", &[&format!("ext=\"{rated}\"")]), limited + after);
    host.end().await;
}

/// Lines that one of them prints.
const LINES: u64 = 20_000;

async fn floods() {
    let site = Site::new();
    let patient = |draft: Draft| first_party(Draft { heartbeat_ms: 60_000, ..draft });
    let (deaf, wide, long) = ("org.example.deaf", "org.example.wide", "org.example.long");
    // Half a gigabyte of answers that nobody reads, if they were all made.
    let flood = json!([{"do":"flood_deaf","method":"host.get_capabilities","times":500_000},{"do":"hang"}]);
    put(
        &patient(Draft { limits: (64 * 1024, 10_000, 256), ..offending(deaf, flood) }),
        &site.builtin(),
        "fault",
    );
    let through = json!([{"do":"print_flood","bytes":256 << 20},{"do":"print","text":"\nthrough"}]);
    put(&patient(trying(wide, through, (MAX, 10, 8))), &site.builtin(), "fault");
    let lines = json!([{"do":"repeat","times":LINES,"steps":[{"do":"print","text":"one of many"}]},{"do":"exit","code":0}]);
    put(&patient(trying(long, lines, (MAX, 10, 8))), &site.builtin(), "fault");

    let place = site.place.path().to_owned();
    let (idle, peak, dropped) = tokio::task::spawn_blocking({
        let place = place.clone();
        move || {
            let away = Away::start(&place);
            until("all is printed", || log_in(&place, wide).contains("get_capabilities"));
            until("every line is accounted for", || {
                let (kept, dropped) = lines_of(&place, long);
                kept + dropped == LINES + 1
            });
            // What the host says about it is not lost among what it says itself.
            until("the host has seen it off", || log_in(&place, long).contains("ended (voluntary)"));
            until("nobody waits for the deaf any more", || {
                log_in(&place, deaf).contains("ended (write_stall)")
            });
            let idle = away.idle_kib;
            let (peak, dropped) = away.end();
            (idle, peak, dropped)
        }
    })
    .await
    .expect("no panic");
    let grown = peak - idle;
    assert!(grown < 48 * 1024, "the host grew from {idle} KiB to {peak} KiB");

    for id in [deaf, wide, long] {
        let mut size = 0;
        for file in std::fs::read_dir(place.join("state/logs").join(id)).expect("a folder").flatten() {
            let text = std::fs::read_to_string(file.path()).expect("a log");
            size += text.len();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let longest = lines.map(|line| line["msg"].as_str().expect("a text").len()).max();
            assert!(longest <= Some(8 * 1024), "{id}: {longest:?}");
        }
        assert!(size <= 3 << 20, "{id} has {size} bytes of logs");
    }
    let (kept, said_dropped) = lines_of(&place, long);
    // Its lines and what it found out when it attached.
    assert_eq!((kept + dropped, said_dropped), (LINES + 1, dropped));
    assert_nobody_in(&place);
}

/// How many lines of an extension are in its log, and how many the log says are not.
fn lines_of(place: &Path, id: &str) -> (u64, u64) {
    let log = log_in(place, id);
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.fold((0, 0), |(kept, dropped), line| {
        let counts = line["dropped"].as_u64();
        let own = counts.is_none() && line["stream"] == "stdout";
        (kept + u64::from(own), dropped + counts.unwrap_or(0))
    })
}
