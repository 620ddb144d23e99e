//! Children that lie, hang, flood and die: each ends in the right state, with a report that says why.

use crate::process::{PATIENCE, Running, Tag, finish, outrigger, quiet, wait_until};

/// The host must never hold more than this, whatever a child does.
const HOST_MEMORY: u64 = 64 << 20;

/// Runs `outrigger exec --json <options> -- sh -c <script>` to its end.
fn sh(options: &[&str], script: &str) -> crate::process::Finished {
    let mut args = vec!["exec", "--json"];
    args.extend_from_slice(options);
    args.extend_from_slice(&["--", "sh", "-c", script]);
    let finished = finish(&mut outrigger(args));
    assert!(finished.peak_rss < HOST_MEMORY, "the host held {} bytes", finished.peak_rss);
    finished
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_its_budget() {
    let tag = Tag::new();
    let script = "trap '' TERM; echo up; while :; do sleep 1; done";
    let args = ["exec", "--json", "--term-within", "200ms", "--env", tag.as_arg(), "--", "sh", "-c", script];
    let running = Running::start(&mut outrigger(args));
    running.wait_for_output(r#""line":"up""#);
    running.signal("TERM");
    let finished = running.finish();
    tag.must_be_gone(std::time::Duration::ZERO, "after outrigger has ended");
    let exit = finished.event("exit");
    assert_eq!(exit["cause"], "requested");
    assert_eq!(exit["signal_name"], "SIGKILL");
    assert_eq!(finished.code(), 128 + 9);
}

#[test]
fn a_child_that_floods_stderr_with_a_gigabyte_costs_the_host_nothing() {
    let finished = sh(&[], "head -c 1000000000 /dev/zero >&2; exit 3");
    assert_eq!(finished.code(), 3);
    let finished =
        sh(&[], "yes 'a line of an ordinary length, again and again' | head -c 1000000000 >&2; exit 4");
    assert_eq!(finished.code(), 4);
}

#[test]
fn a_child_that_never_becomes_ready_is_stopped_and_the_report_says_so() {
    let script = "echo loading the model >&2; sleep 1000";
    let finished = sh(&["--ready", "line:listening", "--ready-within", "300ms"], script);
    let exit = finished.event("exit");
    assert_eq!(exit["cause"], "startup_timeout");
    assert_eq!(exit["stderr"][0]["text"], "loading the model");
    assert_eq!(finished.code(), 124);
}

#[test]
fn a_child_that_stops_reading_its_input_is_stopped_when_the_stall_limit_passes() {
    let mut command = outrigger([
        "exec",
        "--json",
        "--stdin",
        "forward",
        "--stall",
        "300ms",
        "--",
        "sh",
        "-c",
        "exec sleep 1000",
    ]);
    let mut running = Running::start(&mut command);
    let mut stdin = running.child.stdin.take().expect("stdin is piped");
    let writer = std::thread::spawn(move || {
        // More than every pipe and buffer on the way can hold; ends with an error when outrigger has gone.
        let _ = std::io::Write::write_all(&mut stdin, &vec![b'x'; 64 << 20]);
    });
    let finished = running.finish();
    writer.join().expect("the writer ends with the pipe");
    assert!(finished.peak_rss < HOST_MEMORY, "the host held {} bytes", finished.peak_rss);
    assert_eq!(finished.event("exit")["cause"], "write_stall");
    assert_eq!(finished.code(), 124);
}

#[test]
fn a_child_that_forks_and_exits_does_not_leave_its_fork_behind() {
    let tag = Tag::new();
    let finished = sh(&["--env", tag.as_arg()], "setsid sleep 1000 & sleep 1000 & exit 0");
    tag.must_be_gone(std::time::Duration::ZERO, "after outrigger has ended");
    let exit = finished.event("exit");
    assert_eq!(exit["cause"], "voluntary");
    assert_eq!(exit["leftovers"], 2);
    assert_eq!(finished.code(), 0);
}

#[test]
fn a_child_stopped_by_sigstop_is_noticed_by_its_silence_and_ended() {
    let script = "echo up; kill -STOP $$; sleep 1000";
    let finished = sh(&["--heartbeat", "silence:300ms"], script);
    assert_eq!(finished.event("exit")["cause"], "unhealthy");
    assert_eq!(finished.code(), 124);
}

#[test]
fn a_program_that_does_not_exist_is_named_with_the_places_that_were_searched() {
    let finished = finish(&mut outrigger(["exec", "--", "no-such-program-here"]));
    assert_eq!(finished.code(), 127);
    assert!(finished.stderr.contains("no-such-program-here"), "{}", finished.stderr);
    assert!(finished.stderr.contains("/usr/bin"), "{}", finished.stderr);
}

#[test]
fn a_file_that_is_not_a_program_is_named_with_the_fix() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "hello").expect("the file is written");
    let finished = finish(&mut outrigger(["exec", "--", file.to_str().expect("the path is text")]));
    assert_eq!(finished.code(), 126);
    assert!(finished.stderr.contains("chmod +x"), "{}", finished.stderr);
}

#[test]
fn a_child_that_dies_in_a_loop_is_given_up_on_at_the_limit() {
    let options = ["--restart", "on-failure", "--backoff", "1ms", "--crash-limit", "4/10m"];
    let finished = sh(&options, "echo the config is broken >&2; exit 7");
    let exits: Vec<_> = finished.events().into_iter().filter(|event| event["event"] == "exit").collect();
    assert_eq!(exits.len(), 4, "{}", finished.stdout);
    let done = finished.event("done");
    assert_eq!(done["reason"], "crash_loop");
    assert_eq!(finished.code(), 7);
    assert!(exits[3]["stderr"][0]["text"] == "the config is broken", "{}", exits[3]);
}

#[test]
fn a_heartbeat_by_ping_keeps_an_answering_child_and_ends_a_silent_one() {
    let answers = "while read word number; do echo pong $number; [ $number = 5 ] && exit 0; done";
    let finished = sh(&["--heartbeat", "ping:20ms"], answers);
    assert_eq!(finished.event("exit")["cause"], "voluntary");
    let finished = sh(&["--heartbeat", "ping:20ms:3"], "exec sleep 1000");
    assert_eq!(finished.event("exit")["cause"], "unhealthy");
}

#[test]
fn a_reader_that_goes_away_stops_the_child() {
    let tag = Tag::new();
    let mut command =
        outrigger(["exec", "--env", tag.as_arg(), "--", "sh", "-c", "while :; do echo y; done"]);
    let mut child = command.spawn().expect("outrigger starts");
    tag.wait_for(1);
    drop(child.stdout.take());
    wait_until(PATIENCE, || child.try_wait().expect("it can be waited for").is_some()).expect("it ends");
    tag.must_be_gone(std::time::Duration::ZERO, "after outrigger has ended");
}

#[test]
fn a_slow_reader_makes_the_child_wait_and_loses_nothing() {
    let mut command = outrigger(["exec", "--", "seq", "2000000"]);
    let finished = finish(&mut command);
    assert!(finished.peak_rss < HOST_MEMORY);
    assert_eq!(finished.code(), 0);
    assert!(finished.stdout.ends_with("\n2000000\n"));
}

/// Starts `exec` on a child that floods, with nobody reading what comes out, ends it, and waits for the end.
fn ended_without_a_reader(options: &[&str], end: impl Fn(u32)) {
    let _quiet = quiet();
    let tag = Tag::new();
    let mut args = vec!["exec", "--env", tag.as_arg(), "--term-within", "100ms"];
    args.extend_from_slice(options);
    args.extend_from_slice(&["--", "yes"]);
    let mut child = outrigger(args).spawn().expect("outrigger starts");
    tag.wait_for(1);
    end(child.id());
    let ended = wait_until(PATIENCE, || child.try_wait().expect("it can be waited for").is_some());
    if ended.is_err() {
        child.kill().expect("it can be killed");
    }
    ended.unwrap_or_else(|()| panic!("{options:?}: a reader that never reads held up the stop"));
    tag.must_be_gone(std::time::Duration::ZERO, "after outrigger has ended");
}

#[test]
fn a_reader_that_never_reads_does_not_hold_up_a_stop() {
    let term = |pid: u32| {
        let sent = std::process::Command::new("kill").args(["-s", "TERM", &pid.to_string()]).status();
        assert!(sent.expect("kill runs").success());
    };
    ended_without_a_reader(&["--timeout", "300ms"], |_| {});
    ended_without_a_reader(&["--timeout", "300ms", "--json"], |_| {});
    ended_without_a_reader(&[], term);
    ended_without_a_reader(&["--json"], term);
}
