//! How a sidecar ends, what it records, and what it costs.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write as _};
use std::net::Shutdown;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outrigger_helmor::sidecar::{Exit, Signal};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::sidecar_kit::{Host, assert_one_end, kinds};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        a_shutdown_ends_every_stream_and_then_says_pong,
        the_end_of_input_ends_everything_within_two_seconds,
        a_signal_ends_everything_and_is_the_exit_code,
        a_host_that_does_not_read_any_more_is_noticed,
        a_host_that_reads_slowly_loses_nothing_and_memory_stays_bounded,
        a_driver_that_never_waits_for_the_host_fails_alone,
        whatever_happens_every_request_ends_exactly_once,
        what_was_recorded_is_played_back_as_it_was,
        a_recording_that_was_cut_ends_the_stream_all_the_same,
        a_sidecar_is_ready_soon_and_small_while_it_waits,
        nothing_of_an_agent_survives_its_sidecar,
    ]
}

fn a_shutdown_ends_every_stream_and_then_says_pong() {
    let mut host = Host::start();
    for (id, prompt) in [("a", "hang"), ("b", "ask p"), ("c", "slowly 100")] {
        host.send(id, id, prompt);
    }
    host.until("c", "hanging");
    host.request("q", "shutdown", json!({}));
    host.request("late", "ping", json!({}));
    let mut events = Vec::new();
    while let Some(event) = host.try_next() {
        events.push(event);
    }
    assert_eq!(host.join(), Exit::InGoodOrder);
    let late = json!({"id":"late","type":"error","message":"the sidecar is shutting down","code":"closing"});
    assert!(events.contains(&late), "{events:?}");
    assert_eq!(events.last(), Some(&json!({"id":"q","type":"pong"})));
    let ends = assert_one_end(&events);
    for id in ["a", "b", "c"] {
        assert_eq!(ends[id], "aborted");
        assert!(events.contains(&json!({"id":id,"type":"aborted","reason":"shutdown"})));
    }
    let remarks = host.seen.remarks();
    assert!(remarks.contains(&"slowly stopped".to_owned()), "pong comes after the clearing up: {remarks:?}");
    assert!(remarks.contains(&"a closed".to_owned()), "{remarks:?}");
}

fn the_end_of_input_ends_everything_within_two_seconds() {
    let mut host = Host::start();
    for (id, prompt) in [("a", "hang"), ("b", "never"), ("c", "spin"), ("d", "slowly 60000")] {
        host.send(id, id, prompt);
    }
    host.until("d", "hanging");
    let started = Instant::now();
    let (exit, rest) = host.finish();
    assert_eq!(exit, Exit::InGoodOrder);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let ends = assert_one_end(&rest);
    assert_eq!(ends.len(), 4);
    assert!(rest.contains(&json!({"id":"b","type":"aborted","reason":"stdin_closed"})));
}

fn a_signal_ends_everything_and_is_the_exit_code() {
    let mut host = Host::start();
    host.send("a", "a", "hang");
    host.until("a", "hanging");
    host.kill(Signal::Terminate);
    assert_eq!(host.next(), json!({"id":"a","type":"aborted","reason":"terminated"}));
    assert_eq!(host.join(), Exit::Killed(Signal::Terminate));

    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut sidecar = Sidecar::start(&["--puppets", "--log-level", "error"]);
        sidecar.say("a", "sendMessage", json!({"sessionId":"s","prompt":"hang","provider":"claude"}));
        assert_eq!(sidecar.next()["type"], "hanging");
        kill(signal, sidecar.child.id());
        assert_eq!(sidecar.next(), json!({"id":"a","type":"aborted","reason":"terminated"}));
        assert_eq!(sidecar.exit(), Some(code));
    }
}

fn a_host_that_does_not_read_any_more_is_noticed() {
    // Only heartbeats are written: a socket that is full when its reader goes does not say so.
    let mut host = Host::with(|options| options.heartbeat = Duration::from_millis(20));
    host.send("a", "s", "hang");
    host.until("a", "hanging");
    host.input.shutdown(Shutdown::Read).unwrap();
    assert_eq!(host.join(), Exit::InGoodOrder);
}

fn a_host_that_reads_slowly_loses_nothing_and_memory_stays_bounded() {
    let mut host = Host::with(|options| options.heartbeat = Duration::from_millis(20));
    let events = 300_000;
    host.send("a", "s", &format!("say {events}"));
    let said = quiet(|| host.seen.said.load(Ordering::SeqCst));
    // An event has at least 35 bytes. A mebibyte may wait here, and some more in the socket and on the way to it.
    assert!(said > 1000 && said * 35 < 4 << 20, "{said} events wait");
    let (mut next, mut beats, mut in_a_row) = (0, 0, 0);
    loop {
        let event = host.next();
        if event["type"] == "heartbeat" {
            (beats, in_a_row) = (beats + 1, in_a_row + 1);
            // Those from before anything waited; while the host did not read there was none.
            assert!(in_a_row < 5 || next == 0, "heartbeats were kept for later");
            continue;
        }
        in_a_row = 0;
        if event["type"] == "end" {
            break;
        }
        assert_eq!(event["at"], next);
        next += 1;
    }
    assert_eq!(next, events, "{beats} heartbeats");
}

fn a_driver_that_never_waits_for_the_host_fails_alone() {
    let mut host = Host::start();
    host.send("other", "other", "hang");
    host.until("other", "hanging");
    host.send("a", "s", "rude 200");
    quiet(|| host.seen.remarks().len());
    assert_eq!(host.seen.remarks(), ["rude"], "it never waited");
    let mut count = 0;
    let last = loop {
        let mut line = String::new();
        host.output.read_line(&mut line).unwrap();
        if !line.starts_with(r#"{"text":"xxx"#) {
            break serde_json::from_str::<Value>(&line).unwrap();
        }
        count += 1;
    };
    assert!((150..200).contains(&count), "{count} of 200");
    assert_eq!((&last["id"], &last["internal"]), (&json!("a"), &json!(true)));
    host.stop("stop", "other");
    let events = host.until("stop", "stopped");
    assert_eq!(kinds(&events), [("other", "aborted"), ("stop", "stopped")]);
}

/// Something that a host may do.
#[derive(Clone, Debug)]
enum Act {
    Send(usize, &'static str),
    Stop(usize),
    Steer(usize),
    Allow(&'static str),
    Bad,
    Ping,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let prompts = [
        "say 3",
        "panic",
        "panic early",
        "tell",
        "talk",
        "hang",
        "ask p",
        "ask q",
        "input i",
        "steer 1",
        "fail",
        "badly",
        "abort",
        "host",
        "slowly 5",
        "withdraw p",
        "lost",
        "deaf",
    ];
    let act = prop_oneof![
        4 => (0..3_usize, prop::sample::select(prompts.to_vec())).prop_map(|(at, prompt)| Act::Send(at, prompt)),
        3 => (0..3_usize).prop_map(Act::Stop),
        1 => (0..3_usize).prop_map(Act::Steer),
        1 => prop::sample::select(vec!["p", "q"]).prop_map(Act::Allow),
        1 => Just(Act::Bad),
        1 => Just(Act::Ping),
    ];
    prop::collection::vec(act, 1..40)
}

fn whatever_happens_every_request_ends_exactly_once() {
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let run = runner.run(&acts(), |acts| {
        let mut host = Host::with(|options| options.heartbeat = Duration::from_millis(1));
        let (mut asked, mut silent) = (Vec::new(), Vec::new());
        for (at, act) in acts.iter().enumerate() {
            let id = format!("r{at}");
            let session = |at: &usize| format!("s{at}");
            match act {
                Act::Send(at, prompt) => host.send(&id, &session(at), prompt),
                Act::Stop(at) => host.stop(&id, &session(at)),
                Act::Steer(at) => {
                    let params = json!({"sessionId":session(at),"provider":"claude","prompt":"x"});
                    host.request(&id, "steerSession", params);
                }
                Act::Allow(question) => {
                    let params = json!({"permissionId":question,"behavior":"allow"});
                    host.request(&id, "permissionResponse", params);
                    silent.push(id);
                    continue;
                }
                Act::Bad => {
                    host.write("{");
                    continue;
                }
                Act::Ping => host.request(&id, "ping", json!({})),
            }
            asked.push(id);
        }
        host.request("q", "shutdown", json!({}));
        asked.push("q".to_owned());
        let events: Vec<Value> = std::iter::from_fn(|| host.try_next()).collect();
        assert_eq!(host.join(), Exit::InGoodOrder);
        let ends = assert_one_end(&events);
        for id in &asked {
            assert!(ends.contains_key(id), "{id} of {acts:?} never ended");
        }
        assert!(ends.keys().all(|id| asked.contains(id) || silent.contains(id)));
        Ok(())
    });
    run.unwrap();
}

fn what_was_recorded_is_played_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let talk = |host: &mut Host, prefix: &str| -> Vec<Vec<Value>> {
        let id = |name: &str| format!("{prefix}{name}");
        host.send(&id("a"), "s", "say 3");
        let first = host.until(&id("a"), "end");
        host.send(&id("b"), "s", "pass {\"type\":\"x\",\"n\":1.50,\"id\":\"theirs\"}");
        let second = host.until(&id("b"), "end");
        host.request(&id("m"), "listModels", json!({"provider":"claude"}));
        let third = host.until(&id("m"), "modelsListed");
        host.send(&id("c"), "s", "fail");
        let fourth = host.until(&id("c"), "error");
        let mut all = vec![first, second, third, fourth];
        for event in all.iter_mut().flatten() {
            let named = event["id"].as_str().unwrap().strip_prefix(prefix).unwrap().to_owned();
            event["id"] = json!(named);
        }
        all
    };
    let mut host = Host::with(|options| options.record = Some(tape.clone()));
    let recorded = talk(&mut host, "one-");
    host.finish();
    let text = std::fs::read_to_string(&tape).unwrap();
    assert!(text.lines().next().unwrap().contains("ready"), "{text}");

    let mut host = Host::with(|options| options.replay = Some(tape));
    assert_eq!(talk(&mut host, "two-"), recorded);
    host.send("more", "s", "say 1");
    let more = host.next();
    assert_eq!((&more["id"], &more["code"]), (&json!("more"), &json!("unsupported")));
    host.request("p", "ping", json!({}));
    host.until("p", "pong");
    assert_eq!(host.seen.turns.load(Ordering::SeqCst), 0, "nobody was asked");
}

fn a_recording_that_was_cut_ends_the_stream_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let params = json!({"sessionId":"s","prompt":"x","provider":"claude"});
    let request = json!({"id":"r","method":"sendMessage","params":params}).to_string();
    let event = json!({"type":"assistant","id":"r"}).to_string();
    let lines = [
        json!({"dir":"in","t_us":1,"line":request}),
        json!({"dir":"out","t_us":2,"with":"claude:s","line":"not ours"}),
        json!({"dir":"out","t_us":3,"line":event}),
    ];
    std::fs::write(&tape, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let mut host = Host::with(|options| options.replay = Some(tape));
    host.send("x", "s", "x");
    let events = host.until("x", "error");
    assert_eq!(kinds(&events), [("x", "assistant"), ("x", "error")]);
}

fn a_sidecar_is_ready_soon_and_small_while_it_waits() {
    let started = Instant::now();
    let mut sidecar = Sidecar::start(&["--log-level", "error"]);
    let ready = started.elapsed();
    // The bench measures; this only sees to it that nobody loads the world. Tests run beside others.
    assert!(ready < Duration::from_secs(2), "{ready:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", sidecar.child.id())).unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Of the binary of all these tests, which is larger than the program.
    assert!(kib("VmRSS:") < 24 << 10, "{} KiB", kib("VmRSS:"));
    assert!(kib("Threads:") <= 2, "{} threads while nobody asks", kib("Threads:"));
    sidecar.hang_up();
    assert_eq!(sidecar.exit(), Some(0));
}

fn nothing_of_an_agent_survives_its_sidecar() {
    for (at, end) in ["stop", "eof", "kill"].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script.json");
        // A number that no other process of this machine sleeps.
        let nap = format!("{}.{at}", 100_000 + std::process::id());
        let command = ["sh", "-c", &format!("setsid sleep {nap} & wait")];
        let steps = json!({ "turns": [{ "steps": [{ "run": command }] }] });
        std::fs::write(&script, steps.to_string()).unwrap();
        let mut sidecar = Sidecar::start(&["--script", script.to_str().unwrap(), "--log-level", "error"]);
        sidecar.say("a", "sendMessage", json!({"sessionId":"s","prompt":"go","provider":"scripted"}));
        wait_for(|| sleeps(&nap).then_some(()));
        let started = Instant::now();
        match end {
            "stop" => sidecar.say("x", "stopSession", json!({"sessionId":"s","provider":"scripted"})),
            "eof" => sidecar.hang_up(),
            _ => sidecar.kill(),
        }
        wait_for(|| (!sleeps(&nap)).then_some(()));
        if end == "eof" {
            assert_eq!(sidecar.exit(), Some(0));
            assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        }
    }
}

/// Whether a process sleeps that long. By what it was started with, because agents number their processes by themselves.
pub(crate) fn sleeps(nap: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    arguments.into_iter().any(|line| line == format!("sleep\0{nap}\0").into_bytes())
}

/// Waits until a number has not changed for a while.
fn quiet(number: impl Fn() -> usize) -> usize {
    let (mut last, mut since) = (number(), Instant::now());
    while last == 0 || since.elapsed() < Duration::from_millis(400) {
        std::thread::yield_now();
        let now = number();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

pub(crate) fn wait_for<T>(what: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::yield_now();
    }
}

/// A sidecar as a process of its own. It is killed when the test is over.
pub(crate) struct Sidecar {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Sidecar {
    /// Started with these flags, and ready.
    pub(crate) fn start<S: AsRef<OsStr>>(args: &[S]) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the sidecar under test, started as any host would")]
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("__sidecar").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut sidecar = Self { child, stdin, stdout };
        assert_eq!(sidecar.next(), json!({ "type": "ready", "version": 1 }));
        sidecar
    }

    pub(crate) fn say(&mut self, id: &str, method: &str, params: Value) {
        let line = json!({ "id": id, "method": method, "params": params });
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        self.try_next().expect("the sidecar said no more")
    }

    fn try_next(&mut self) -> Option<Value> {
        let mut text = String::new();
        self.stdout.read_line(&mut text).unwrap();
        (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap())
    }

    /// Reads until an event of that id and type, and returns all that came but heartbeats.
    pub(crate) fn until(&mut self, id: &str, kind: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let event = self.next();
            let found = event["id"] == id && event["type"] == kind;
            let ended = event["id"] == id && event["type"] == "error";
            assert!(found || !ended, "{event}");
            if event["type"] != "heartbeat" {
                seen.push(event);
            }
            if found {
                return seen;
            }
        }
    }

    /// Everything until it ends.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.try_next()).collect()
    }

    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub(crate) fn exit(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(signal: &str, pid: u32) {
    #[expect(clippy::disallowed_methods, reason = "a signal from outside, as a user sends it")]
    let mut command = Command::new("kill");
    assert!(command.args([format!("-{signal}"), pid.to_string()]).status().unwrap().success());
}
