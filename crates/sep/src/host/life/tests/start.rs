//! From stopped to ready, and everything that prevents it.

use super::*;

#[test]
fn a_start_has_three_phases_and_ends_ready() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    assert_eq!(bench.life.view().phase, Some(StartPhase::Spawning));
    bench.does("spawned");
    assert_eq!(bench.life.view().phase, Some(StartPhase::Attaching));
    bench.does("attached");
    assert_eq!(bench.life.view().phase, Some(StartPhase::Initializing));
    assert_eq!(bench.does("initialized"), "starting → ready: initialized");
    let view = bench.life.view();
    assert_eq!((view.phase, view.starts, view.restarts), (None, 1, 0));
    assert_eq!(bench.does("start manual"), "", "it runs already");
}

#[test]
fn what_cannot_have_happened_changes_nothing() {
    let lies =
        ["spawned", "unspawned other", "attached", "initialized", "incompatible x", "initialize_failed"];
    let more = ["pong 1", "health_stopping", "health_unsupported", "overdue", "answered", "paused", "probed"];
    let faults = ["broken channel_lost", "broken memory", "exit 1", "told resumed"];
    let mut bench = Bench::admitted(desktop());
    for lie in lies.iter().chain(&more).chain(&faults) {
        assert_eq!(bench.does(lie), "", "{lie} while stopped");
    }
    bench.does("start first");
    for lie in lies[2..4].iter().chain(&more) {
        assert_eq!(bench.does(lie), "", "{lie} while there is no process yet");
    }
    bench.becomes_ready();
    for lie in lies.iter().chain(&["paused", "probed", "told resumed", "pong 1", "pong 0"]) {
        assert_eq!(bench.does(lie), "", "{lie} while ready");
    }
}

#[test]
fn a_process_that_is_not_ready_in_time_is_killed() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    // Waiting for a free place to start in is not the extension's fault.
    assert_eq!(bench.after(100.0), "");
    bench.does("spawned");
    assert_eq!(bench.after(14.999), "");
    assert_eq!(bench.after(0.001), "@115 starting → stopping: startup_timeout, kill");
    assert_eq!(
        bench.does("signal 9"),
        "persist, ended startup_timeout by 9 counted, stopping → backoff: startup_timeout"
    );
}

#[test]
fn an_answer_that_waited_in_our_own_queue_still_counts() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    bench.does("spawned");
    bench.does("attached");
    bench.sleep(15.0);
    assert_eq!(bench.does("initialized"), "starting → ready: initialized");
}

#[test]
fn an_exit_before_ready_is_a_crash_whatever_its_code() {
    for code in [0, 1, 78] {
        let mut bench = Bench::admitted(desktop());
        bench.does("start first");
        bench.does("spawned");
        let expected =
            format!("persist, ended exit_before_ready {code} counted, starting → backoff: exit_before_ready");
        assert_eq!(bench.does(&format!("exit {code}")), expected);
    }
}

#[test]
fn a_refused_initialize_is_a_crash() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    bench.does("spawned");
    bench.does("attached");
    assert_eq!(bench.does("initialize_failed"), "starting → stopping: exit_before_ready, kill");
    assert_eq!(
        bench.does("signal 9"),
        "persist, ended exit_before_ready by 9 counted, stopping → backoff: exit_before_ready"
    );
}

#[test]
fn without_a_common_version_it_is_told_and_has_failed_for_good() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    bench.does("spawned");
    bench.does("attached");
    assert_eq!(
        bench.does("incompatible version_inconsistent"),
        "starting → stopping: incompatible, stop version_unsupported 3+2"
    );
    assert_eq!(bench.does("exit 0"), "ended incompatible 0, stopping → failed: incompatible");
    let view = bench.life.view();
    assert_eq!(view.failed, Some(crate::protocol::FailedReason::Incompatible));
    assert_eq!(view.detail.as_deref(), Some("version_inconsistent"));
    assert_eq!(bench.does("start manual"), "");
    assert_eq!(bench.does("enable"), "");
    assert_eq!(bench.does("reset"), "persist, failed → stopped: reset");
    assert_eq!(bench.does("start manual"), "stopped → starting: manual, spawn manual");
}

#[test]
fn exit_code_76_before_ready_says_that_there_is_no_common_version() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    bench.does("spawned");
    assert_eq!(bench.does("exit 76"), "ended incompatible 76, starting → failed: incompatible");
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("exit 76"), "persist, ended crash 76 counted, ready → backoff: crash");
}

#[test]
fn what_prevents_a_spawn_decides_what_follows() {
    let table = [
        ("missing", "ended spawn_failed, starting → blocked: spawn_failed", "blocked"),
        ("resource", "ended host_resource, starting → backoff: host_resource", "backoff"),
        ("sandbox", "ended sandbox, starting → failed: sandbox", "failed"),
        ("tampered", "persist, ended spawn_failed, starting → disabled: spawn_failed", "disabled"),
        ("other", "ended spawn_failed, starting → backoff: spawn_failed", "backoff"),
    ];
    for (trouble, effects, state) in table {
        let mut bench = Bench::admitted(desktop());
        bench.does("start first");
        assert_eq!(bench.does(&format!("unspawned {trouble}")), effects);
        assert_eq!(bench.state().as_str(), state);
        assert_eq!(bench.life.crashes().count(), 0, "{trouble} is the host's trouble");
    }
}

#[test]
fn a_host_that_is_short_of_something_tries_for_ever_and_never_more_than_once_a_minute() {
    let mut bench = Bench::admitted(desktop());
    bench.does("start first");
    let mut last = Duration::ZERO;
    for _ in 0..50 {
        bench.does("unspawned resource");
        let due = bench.life.view().next_start.expect("it is tried again");
        last = due.since(bench.now);
        bench.now = due;
        assert_eq!(bench.does("tick"), "backoff → starting: restart, spawn restart");
    }
    assert!((Duration::from_secs(48)..=Duration::from_secs(72)).contains(&last), "{last:?}");
}

#[test]
fn nothing_is_spawned_that_may_not_run() {
    for refusal in ["invalid", "blocked", "unavailable", "needs_consent"] {
        let mut bench = Bench::new(desktop());
        assert_eq!(bench.does(&format!("refused {refusal}")), format!("stopped → {refusal}: not_admitted"));
        assert_eq!(bench.life.view().detail, Some(format!("because {refusal}")));
        for start in ["first", "manual", "lazy_event", "lazy_action", "restart"] {
            assert_eq!(bench.does(&format!("start {start}")), "");
        }
        assert_eq!(bench.does("admitted"), format!("{refusal} → stopped: admitted"));
        assert_eq!(bench.does("start manual"), "stopped → starting: manual, spawn manual");
    }
    assert_eq!(Bench::new(desktop()).does("start manual"), "", "nobody has admitted it");
}

#[test]
fn a_manifest_that_changes_under_a_running_extension_acts_at_the_next_start() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("refused invalid"), "");
    assert_eq!(bench.state(), State::Ready);
    assert_eq!(bench.crash(), "persist, ended crash 1 counted, ready → invalid: crash");

    let mut bench = Bench::ready(desktop());
    bench.life.set_terms(LifeTerms { startup: Duration::from_secs(1), ..desktop() });
    bench.crash();
    let due = bench.life.view().next_start.expect("a restart");
    bench.now = due;
    bench.does("tick");
    bench.does("spawned");
    assert!(bench.after(1.0).ends_with("starting → stopping: startup_timeout, kill"));
}

#[test]
fn a_vanished_folder_stops_it_gracefully_and_for_good() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("removed"), "ready → stopping: removed, stop stop 3+2");
    assert_eq!(bench.does("exit 0"), "ended requested 0, stopping → removed: requested");
    assert_eq!(bench.does("start manual"), "");
    assert_eq!(bench.does("admitted"), "removed → stopped: admitted");
}

#[test]
fn a_lazy_extension_is_started_by_need_and_an_eager_one_with_the_host() {
    let mut lazy = Bench::admitted(LifeTerms { activation: Activation::Lazy, ..desktop() });
    assert_eq!(lazy.does("start first"), "");
    assert_eq!(lazy.does("start lazy_action"), "stopped → starting: lazy_action, spawn lazy_action");
    let mut eager = Bench::admitted(desktop());
    assert_eq!(eager.does("start lazy_event"), "");
    assert_eq!(eager.does("start first"), "stopped → starting: first, spawn first");
    let mut lazy = Bench::ready(desktop());
    lazy.life.set_terms(LifeTerms { activation: Activation::Lazy, ..desktop() });
    assert_eq!(lazy.does("exit 0"), "ended voluntary 0, ready → stopped: voluntary");
    assert_eq!(lazy.does("start lazy_event"), "stopped → starting: lazy_event, spawn lazy_event");
}

#[test]
fn leaving_with_code_zero_is_no_crash_and_no_reason_to_start_again() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("exit 0"), "ended voluntary 0, ready → stopped: voluntary");
    assert_eq!(bench.life.view().detail.as_deref(), Some("voluntary"));
    assert_eq!(bench.after(1e6), "");
}

#[test]
fn exit_code_78_says_that_starting_again_cannot_help() {
    let mut bench = Bench::ready(desktop());
    assert_eq!(bench.does("exit 78"), "ended crash 78, ready → failed: crash");
    assert_eq!(bench.life.view().failed, Some(crate::protocol::FailedReason::Config));
    assert_eq!(bench.does("start manual"), "");
}

#[test]
fn a_desktop_hears_no_signals() {
    let mut bench = Bench::ready(desktop());
    for signal in ["bg", "freeze", "trim=critical", "reclaim", "thaw", "fg"] {
        assert_eq!(bench.does(signal), "");
    }
    assert_eq!(bench.after(1.0), "");
    assert_eq!(bench.state(), State::Ready);
}
