//! Nothing outlives its owner: however the host ends, its trees end with it, `setsid` grandchildren included.

use std::time::Duration;

use crate::process::{Running, Tag, outrigger};

const ROUNDS: usize = 100;

/// A shell with a grandchild in a session of its own, and a great-grandchild behind that.
const TREE: &str = "setsid sh -c 'setsid sleep 1000 & sleep 1000' & echo up; exec sleep 1000";
/// Processes in that tree: `sleep` (was the shell), the inner shell, its two sleeps.
const TREE_SIZE: usize = 4;

fn start(tag: &Tag, extra: &[&str]) -> Running {
    let mut args = vec!["exec", "--env", tag.as_arg()];
    args.extend_from_slice(extra);
    args.extend_from_slice(&["--", "sh", "-c", TREE]);
    let running = Running::start(&mut outrigger(args));
    running.wait_for_output("up\n");
    tag.wait_for(TREE_SIZE);
    running
}

fn a_hundred_times(what: &str, extra: &[&str], end: impl Fn(&mut Running)) {
    for round in 0..ROUNDS {
        let tag = Tag::new();
        let mut running = start(&tag, extra);
        end(&mut running);
        tag.must_be_gone(Duration::from_secs(1), &format!("{what}, round {round}"));
        running.finish();
    }
}

#[test]
fn kill_minus_nine_of_the_host_leaves_nothing() {
    a_hundred_times("SIGKILL", &[], |running| running.signal("KILL"));
}

#[test]
fn sigterm_to_the_host_leaves_nothing() {
    a_hundred_times("SIGTERM", &[], |running| running.signal("TERM"));
}

#[test]
fn sigint_to_the_host_leaves_nothing() {
    a_hundred_times("SIGINT", &[], |running| running.signal("INT"));
}

#[test]
fn closing_the_stdin_of_the_host_leaves_nothing() {
    a_hundred_times("closed stdin", &[], |running| drop(running.child.stdin.take()));
}

#[test]
fn a_restarting_child_does_not_survive_the_host_either() {
    let tag = Tag::new();
    let running = start(&tag, &["--restart", "always"]);
    running.signal("KILL");
    tag.must_be_gone(Duration::from_secs(1), "SIGKILL while restarting");
    running.finish();
}

#[test]
fn a_second_sigint_does_not_wait_for_a_child_that_ignores_sigterm() {
    let tag = Tag::new();
    let script = "trap '' TERM; echo up; while :; do sleep 1; done";
    let args = ["exec", "--json", "--term-within", "10m", "--env", tag.as_arg(), "--", "sh", "-c", script];
    let running = Running::start(&mut outrigger(args));
    running.wait_for_output(r#""line":"up""#);
    running.signal("INT");
    running.wait_for_output(r#""to":"stopping_term""#);
    running.signal("INT");
    let finished = running.finish();
    tag.must_be_gone(Duration::ZERO, "after outrigger has ended");
    assert_eq!(finished.code(), 128 + 9, "{}", finished.stderr);
}
