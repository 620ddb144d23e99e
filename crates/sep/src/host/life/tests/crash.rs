//! Crashes: the waits between them, and when they are too many.

use super::*;

/// Crashes `times` times, each time `ready` seconds after it was ready, and comes back in between.
fn crashes(bench: &mut Bench, times: u32, ready: f64) {
    for _ in 0..times {
        bench.sleep(ready);
        assert!(bench.crash().ends_with("ready → backoff: crash"));
        bench.comes_back();
    }
}

#[test]
fn the_crash_that_makes_five_within_the_window_is_the_last() {
    let mut bench = Bench::ready(desktop());
    crashes(&mut bench, 4, 1.0);
    assert_eq!(bench.crash(), "persist, ended crash 1 counted, ready → disabled: crash_loop");
    let view = bench.life.view();
    assert_eq!(
        (view.disabled, view.detail.as_deref()),
        (Some(DisabledReason::CrashLoop), Some("crash_loop"))
    );
    assert_eq!((view.starts, view.restarts), (5, 4));
    assert_eq!(bench.after(1e7), "");
    for event in ["start manual", "enable", "disable operator", "start manual"] {
        assert_eq!(bench.does(event), "", "{event}: a crash loop takes a reset");
    }
    assert_eq!(bench.does("reset"), "persist, disabled → stopped: reset");
    assert_eq!(bench.life.crashes().count(), 0);
    assert_eq!(bench.does("start manual"), "stopped → starting: manual, spawn manual");
    bench.becomes_ready();
    crashes(&mut bench, 4, 1.0);
}

#[test]
fn one_that_is_trusted_less_has_fewer_crashes() {
    let threshold = NonZeroU32::new(3).expect("not zero");
    let mut bench = Bench::ready(LifeTerms { threshold, ..desktop() });
    crashes(&mut bench, 2, 1.0);
    assert_eq!(bench.crash(), "persist, ended crash 1 counted, ready → disabled: crash_loop");
}

#[test]
fn the_waits_double_from_half_a_second_and_are_spread_by_a_fifth() {
    let mut bench =
        Bench::ready(LifeTerms { threshold: NonZeroU32::new(19).expect("not zero"), ..desktop() });
    for attempt in 0..12 {
        bench.crash();
        let wait = bench.life.view().next_start.expect("a restart").since(bench.now).as_secs_f64();
        let base = (0.5 * f64::from(1 << attempt)).min(60.0);
        assert!((base * 0.8..=base * 1.2).contains(&wait), "attempt {attempt}: {wait}");
        bench.comes_back();
    }
}

#[test]
fn five_quiet_minutes_make_the_next_wait_the_first_again() {
    let mut bench = Bench::ready(desktop());
    crashes(&mut bench, 3, 0.0);
    bench.sleep(299.0);
    bench.crash();
    let wait =
        |bench: &Bench| bench.life.view().next_start.expect("a restart").since(bench.now).as_secs_f64();
    assert!(wait(&bench) > 3.0);
    bench.does("reset");
    bench.comes_back();
    crashes(&mut bench, 3, 0.0);
    bench.sleep(300.0);
    bench.crash();
    assert!(wait(&bench) <= 0.6);
}

#[test]
fn the_window_slides() {
    let mut bench = Bench::ready(desktop());
    // With the waits between them, each one comes when the fourth before it has just left the window.
    for _ in 0..15 {
        crashes(&mut bench, 1, 150.0);
    }
    // A little faster is too fast.
    let mut bench = Bench::ready(desktop());
    crashes(&mut bench, 4, 100.0);
    bench.sleep(100.0);
    assert!(bench.crash().ends_with("crash_loop"));
}

#[test]
fn starts_that_fail_as_slowly_as_they_may_are_still_a_loop() {
    let mut bench = Bench::admitted(LifeTerms { startup: Duration::from_secs(120), ..desktop() });
    bench.does("start first");
    for crash in 1..=5 {
        bench.does("spawned");
        assert!(bench.after(120.0).ends_with("startup_timeout, kill"));
        // The slowest reaping that a stop may take.
        bench.sleep(6.0);
        bench.does("signal 9");
        if crash < 5 {
            bench.now = bench.life.view().next_start.expect("a restart");
            bench.does("tick");
        }
    }
    assert_eq!(bench.life.view().disabled, Some(DisabledReason::CrashLoop));
}

#[test]
fn twenty_crashes_in_a_day_are_too_many_however_slowly_they_come() {
    let mut bench = Bench::ready(desktop());
    crashes(&mut bench, 19, 3600.0);
    bench.sleep(3600.0);
    assert!(bench.crash().ends_with("ready → disabled: crash_loop"));
    assert_eq!(bench.life.view().detail.as_deref(), Some("slow_crash"));
    assert_eq!(bench.life.crashes().count(), 20);
    let mut bench = Bench::ready(desktop());
    crashes(&mut bench, 40, 4600.0);
}

#[test]
fn crashes_of_an_earlier_host_count() {
    let mut bench = Bench::new(desktop());
    let ago = |seconds| Moment::ORIGIN.before(Duration::from_secs(seconds));
    bench.life.restore(None, [ago(500), ago(400), ago(300), ago(20)]);
    bench.does("admitted");
    bench.does("start first");
    bench.becomes_ready();
    assert!(bench.crash().ends_with("crash_loop"));

    let mut bench = Bench::new(desktop());
    bench.life.restore(Some(DisabledReason::Operator), []);
    assert_eq!(bench.state(), State::Disabled);
    assert_eq!(bench.does("admitted"), "");
    assert_eq!(bench.does("start first"), "");
    assert_eq!(bench.does("enable"), "persist, disabled → stopped: enable");
}

#[test]
fn a_person_who_asks_does_not_wait_for_the_timer() {
    let mut bench = Bench::ready(desktop());
    bench.crash();
    assert_eq!(bench.does("start lazy_action"), "");
    assert_eq!(bench.does("start first"), "");
    assert_eq!(bench.does("start manual"), "backoff → starting: manual, spawn manual");
}

#[test]
fn a_stop_is_no_crash() {
    let mut bench = Bench::ready(desktop());
    for _ in 0..30 {
        bench.does("stop");
        bench.does("exit 1");
        bench.does("start manual");
        bench.becomes_ready();
    }
    assert_eq!(bench.life.crashes().count(), 0);
}

#[test]
fn one_that_fell_silent_after_five_quiet_minutes_had_them_all_the_same() {
    let mut bench = Bench::ready(desktop());
    crashes(&mut bench, 3, 0.0);
    // The host was asleep for most of it, and then nobody answered.
    bench.sleep(300.0);
    assert_eq!(bench.does("tick"), "ping 1");
    let said = bench.after(40.0);
    assert!(said.ends_with("kill"), "{said}");
    bench.does("signal 9");
    let wait = bench.life.view().next_start.expect("a restart").since(bench.now).as_secs_f64();
    assert!(wait <= 0.6, "{wait}");
}
