//! The extension that misbehaves: that each sort of misbehaviour is what it says, as a host sees it.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::kit_host::{Guest, PATIENCE, Way};

const BOTH: &[&str] = &["1.1.0", "1.0.0"];

/// All of them.
pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_wrong_token_and_a_used_one_are_shown,
        broken_frames_are_as_broken_as_they_should_be,
        a_flood_counts_its_answers,
        floods_of_output_have_no_newline,
        bad_manners_are_kept_until_they_change,
        a_process_that_ignores_sigterm_has_to_be_killed,
        a_process_that_ignores_its_lifeline_stays,
        the_first_processes_do_what_later_ones_do_not,
        children_leave_the_session_and_know_no_host,
        crashes_are_crashes_and_memory_is_taken,
        what_makes_no_sense_is_refused_before_anything_is_done,
    ]
}

fn fault(script: &Value) -> (Guest, Value) {
    Guest::start(Way::Unix, &["__extension", "fault", &script.to_string()])
}

fn ready(script: &Value) -> Guest {
    Guest::ready(Way::Unix, &["__extension", "fault", &script.to_string()], BOTH).0
}

fn a_wrong_token_and_a_used_one_are_shown() {
    let (mut guest, attach) = fault(&json!([{"do": "attach", "token": "wrong", "method": "host.log"}]));
    assert_eq!((&attach["method"], &attach["params"]["token"]), (&json!("host.log"), &json!("wrong")));
    guest.say(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32006, "message": "no"}}));
    assert_eq!(guest.ended(PATIENCE).code(), Some(0));
    assert_eq!(guest.stdout()[0]["error"]["code"], -32006);

    let (mut guest, attach) =
        fault(&json!([{"do": "attach"}, {"do": "replay_token"}, {"do": "exit", "code": 3}]));
    guest.grant(&attach, &json!({"session": "s"}));
    // Nobody listens any more, so the second connection fails, and the script goes on.
    assert_eq!(guest.ended(PATIENCE).code(), Some(3));
    let found = guest.stdout();
    assert_eq!((&found[1]["do"], &found[1]["ok"]), (&json!("replay_token"), &json!(false)));
}

fn broken_frames_are_as_broken_as_they_should_be() {
    let script = json!([
        {"do": "connect"},
        {"do": "garbage", "times": 2},
        {"do": "deep", "levels": 100},
        {"do": "oversize", "bytes": 5000, "times": 2},
        {"do": "bytes", "hex": "22ff220a"},
        {"do": "raw", "text": "[]"},
        {"do": "unknown_responses", "times": 2},
        {"do": "notify", "method": "host.messages.send", "params": {}},
        {"do": "endless", "bytes": 300},
        {"do": "close"},
        {"do": "exit", "code": 5},
    ]);
    let (mut guest, first) = fault(&script);
    assert_eq!(first, json!("garbage 0 }{"));
    assert_eq!(guest.hear(), json!("garbage 1 }{"));
    let deep = guest.hear();
    assert!(deep.to_string().contains(&"[".repeat(100)), "{deep}");
    for _ in 0..2 {
        assert_eq!(guest.hear().to_string().len(), 5000);
    }
    // The reader of this test stops at what is no text.
    assert_eq!(guest.ended(PATIENCE).code(), Some(5));
    assert_eq!(guest.stdout(), Vec::<Value>::new());
}

fn a_flood_counts_its_answers() {
    let script = json!([
        {"do": "attach"},
        {"do": "serve", "until": "sep.initialize"},
        {"do": "flood", "method": "host.get_capabilities", "times": 30},
        {"do": "duplicate_id", "method": "host.get_capabilities"},
        {"do": "flood_deaf", "method": "host.get_capabilities", "times": 3},
    ]);
    let mut guest = ready(&script);
    for n in 0..30 {
        let call = guest.called("host.get_capabilities");
        match n % 3 {
            0 => guest.say(
                &json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32020, "message": "no"}}),
            ),
            _ => guest.grant(&call, &json!({})),
        }
    }
    let (one, other) = (guest.called("host.get_capabilities"), guest.called("host.get_capabilities"));
    assert_eq!(one["id"], other["id"]);
    guest.grant(&one, &json!({}));
    guest.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "twice"}}));
    for _ in 0..3 {
        guest.called("host.get_capabilities");
    }
    assert_eq!(guest.ended(PATIENCE).code(), Some(0));
    let found = guest.stdout();
    assert_eq!(found[1]["answers"], json!({"-32020": 10, "result": 20}));
    assert_eq!((&found[2]["ok"], &found[3]["ok"]), (&json!(true), &json!(false)));
}

fn floods_of_output_have_no_newline() {
    let script = json!([
        {"do": "connect"}, {"do": "raw", "text": "{}"},
        {"do": "print_flood", "bytes": 5000, "stderr": true},
    ]);
    let (mut guest, _) = fault(&script);
    assert_eq!(guest.ended(PATIENCE).code(), Some(0));
    let flood = guest.stderr();
    assert_eq!((flood.len(), flood.contains('\n')), (5000, false));
}

fn bad_manners_are_kept_until_they_change() {
    let script = json!([
        {"do": "attach"},
        {"do": "manners", "health": "never", "action": {"result": {"outcome": "maybe"}}},
        {"do": "serve", "until": "sep.health", "times": 2},
        {"do": "manners", "health": {"slow": 1}, "event": "garbage", "shutdown": "then_crash"},
        {"do": "serve"},
    ]);
    let mut guest = ready(&script);
    let ping = json!({"seq": 1, "sentMs": 0});
    guest.ask("sep.health", &ping);
    let id = guest.ask("sep.action", &json!({"panelId": "p", "actionId": "a", "invocation": "1"}));
    assert_eq!(guest.hear(), json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": "maybe"}}));
    guest.ask("sep.health", &ping);
    let id = guest.ask("sep.health", &ping);
    assert_eq!(guest.answer(id)["result"]["status"], "ok");
    guest.ask("sep.event", &json!({"seq": 1, "topic": "a.b", "timeMs": 1, "data": {}}));
    assert_eq!(guest.hear(), json!("}{ garbage"));
    let id = guest.ask("sep.shutdown", &json!({"reason": "stop", "deadlineMs": 3000}));
    assert_eq!(guest.answer(id)["result"], json!({}));
    assert_eq!(guest.ended(PATIENCE).code(), None);
}

fn a_process_that_ignores_sigterm_has_to_be_killed() {
    let script = json!([
        {"do": "attach"},
        {"do": "ignore_sigterm"},
        {"do": "manners", "shutdown": "then_hang"},
        {"do": "serve"},
    ]);
    let mut guest = ready(&script);
    guest.signal(rustix::process::Signal::TERM);
    let id = guest.ask("sep.shutdown", &json!({"reason": "stop", "deadlineMs": 100}));
    assert_eq!(guest.answer(id)["result"], json!({}));
    guest.signal(rustix::process::Signal::TERM);
    assert!(guest.is_alive());
}

fn a_process_that_ignores_its_lifeline_stays() {
    let script = json!([{"do": "ignore_lifeline"}, {"do": "attach"}, {"do": "serve"}]);
    let mut guest = ready(&script);
    guest.vanish();
    let id = guest.ask("sep.health", &json!({"seq": 1, "sentMs": 0}));
    assert_eq!(guest.answer(id)["result"]["status"], "ok");

    let mut guest = ready(&json!([{"do": "attach"}, {"do": "serve"}]));
    guest.vanish();
    assert_eq!(guest.ended(Duration::from_secs(2)).code(), Some(0));
}

fn the_first_processes_do_what_later_ones_do_not() {
    let home = tempfile::tempdir().expect("a folder");
    let script = json!([
        {"do": "connect"}, {"do": "raw", "text": "{}"},
        {"do": "first", "times": 2, "steps": [{"do": "exit", "code": 9}]},
        {"do": "exit", "code": 1},
    ]);
    let args = ["__extension", "fault", &script.to_string()];
    let codes = [(); 3].map(|()| {
        let (mut guest, _) = Guest::start_at_home(Way::Unix, &args, Some(home.path()));
        guest.ended(PATIENCE).code()
    });
    assert_eq!(codes, [Some(9), Some(9), Some(1)]);
}

fn children_leave_the_session_and_know_no_host() {
    let script = json!([
        {"do": "connect"}, {"do": "raw", "text": "{}"},
        {"do": "start", "times": 2, "script": [{"do": "setsid"}, {"do": "look"}]},
        {"do": "bomb", "most": 2},
    ]);
    let (mut guest, _) = fault(&script);
    assert_eq!(guest.ended(PATIENCE).code(), Some(0));
    let found = guest.lines_of_stdout(6);
    let of = |word: &str| found.iter().filter(|line| line["do"] == word).collect::<Vec<_>>();
    let started: Vec<u64> =
        of("start")[0]["found"].as_array().expect("numbers").iter().filter_map(Value::as_u64).collect();
    let mut sessions: Vec<u64> = of("setsid").iter().filter_map(|line| line["found"].as_u64()).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, started);
    let bomb = &of("bomb")[0]["found"];
    assert_eq!((&bomb["started"], &bomb["refused"]), (&json!(2), &Value::Null));
    for pid in bomb["pids"].as_array().expect("numbers").iter().filter_map(Value::as_i64) {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives");
    }
}

fn crashes_are_crashes_and_memory_is_taken() {
    let script = json!([
        {"do": "connect"}, {"do": "raw", "text": "{}"},
        {"do": "repeat", "times": 2, "steps": [{"do": "eat", "bytes": 1_000_000}, {"do": "spin", "ms": 1}]},
        {"do": "abort"},
    ]);
    let (mut guest, _) = fault(&script);
    assert_eq!(guest.ended(PATIENCE).code(), None);
    let words: Vec<Value> = guest.stdout().iter().map(|line| line["do"].clone()).collect();
    assert_eq!(words, ["eat", "spin", "eat", "spin"]);
}

fn what_makes_no_sense_is_refused_before_anything_is_done() {
    let program = std::env::current_exe().expect("this binary");
    let program = program.to_str().expect("a path in UTF-8");
    for script in
        ["{}", r#"[{"do":"dance"}]"#, r#"[{"do":"exit"}]"#, r#"[{"do":"sleep","ms":1,"for":"ever"}]"#]
    {
        let mut command = crate::kit_host::command(program);
        let output = command.args(["__extension", "fault", script]).output().expect("a process");
        assert_eq!(output.status.code(), Some(64), "{script}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be read"), "{script}");
    }
}
