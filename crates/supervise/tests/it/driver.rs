//! Real children under the driver: they ignore signals, hang, lie, fork and die, and nothing of them stays.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::{Launcher, Status};
use outrigger_supervise::leftovers::Leftovers;
use outrigger_supervise::ready::{Before, Gate, LineMatch, Ready, StdoutGate};
use outrigger_supervise::sandbox::Containment;
use outrigger_supervise::spec::{Spec, SpecError, Stdin, Stdout};
use outrigger_supervise::state::{Ask, Cause, CrashLimit, Final, Incarnation, Ladder, Next, Phase, Restart};
use outrigger_supervise::tree::in_box_of;

use crate::driver_kit::{
    LADDER, Mark, logs, retry, secs, shell, shell_that_says_up, story, supervisor, up, when,
};
use crate::launch_kit::{PATIENCE, trial, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_stop_ends_a_child_that_ignores_sigterm_and_its_grandchildren", ignores_sigterm),
        trial("a_second_stop_does_not_wait_for_the_ladder", second_stop),
        trial("a_child_that_is_never_ready_is_killed_and_the_report_says_what_it_waited_for", never_ready),
        trial("a_child_that_forks_and_exits_leaves_nothing_behind", forks_and_exits),
        trial("what_left_its_parents_and_its_session_is_still_seen_in_the_box", seen_in_the_box),
        trial("a_stopped_child_still_hears_sigterm", stopped_child),
        trial("a_program_that_does_not_exist_is_reported_with_where_it_was_sought", missing_program),
        trial("a_child_that_dies_in_a_loop_is_given_up", dies_in_a_loop),
        trial("exit_zero_before_ready_is_a_failure_with_its_last_words", exit_zero_before_ready),
        trial("a_slow_starter_can_be_stopped_before_it_is_ready", stopped_while_starting),
        trial("a_child_that_waits_for_its_turn_to_start_can_be_stopped", stopped_while_queued),
        trial("a_child_that_crashes_comes_back_after_a_wait", restarted_after_a_crash),
        trial("a_restart_replaces_the_process_at_once", restart_on_demand),
        trial("dropping_the_last_handle_kills_the_child", dropped_handle),
        trial("a_host_task_that_panics_leaves_nothing_running", panicking_host),
        trial("no_more_children_start_at_once_than_the_supervisor_allows", start_limit),
        trial("a_child_sees_only_the_environment_it_is_given", environment),
        trial("a_tree_that_could_outlive_its_host_is_written_down_while_it_runs", written_down),
        trial("a_spec_that_cannot_work_is_refused_before_anything_starts", refused_specs),
        Trial::test("a_runtime_that_shuts_down_takes_its_children_along", || {
            runtime_shutdown();
            Ok(())
        }),
    ]
}

const STUBBORN: &str = "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & echo up; while :; do sleep 1000; done";

async fn ignores_sigterm() {
    let mark = Mark::new();
    let child = supervisor().start(mark.on(shell_that_says_up(STUBBORN))).expect("a good spec");
    child.next_session().await.expect("a session").ready().await.expect("it says up");
    assert!(mark.count() >= 2, "the child and its grandchild run");
    let outcome = child.stop(LADDER).await;
    assert_eq!(mark.count(), 0, "stop returns when everything is gone");
    assert_eq!(outcome.why, Final::Requested);
    let report = outcome.report.expect("it ran");
    assert_eq!((report.status, report.died_in), (Some(Status::Signal(9)), Phase::Ready));
    assert_eq!(story(&child).await, "starting ready stopping_term stopping_kill (requested) exited");
}

async fn seen_in_the_box() {
    let script = "setsid sh -c 'sleep 1000 &'; sleep 1000 & echo up; wait";
    let child = supervisor().start(shell_that_says_up(script)).expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    session.ready().await.expect("it says up");
    let seen = in_box_of(session.pid).expect("the process table");
    assert_eq!(seen.len(), 3, "the shell, its child and the one that left: {seen:?}");
    assert!(seen.iter().any(|process| process.pid == session.pid));
    child.kill().await;
    assert!(seen.iter().all(|process| !process.exists()), "all of them are individuals that can be gone");
    assert_eq!(in_box_of(session.pid).expect("the process table"), []);
}

async fn second_stop() {
    let child = supervisor().start(shell_that_says_up(STUBBORN)).expect("a good spec");
    child.next_session().await.expect("a session").ready().await.expect("it says up");
    let patient = Ladder { ask: secs(1000), term: secs(1000) };
    let (first, second) = tokio::join!(child.stop(patient), child.stop(patient));
    assert_eq!((first.why, second.why), (Final::Requested, Final::Requested));
    assert_eq!(story(&child).await, "starting ready stopping_term stopping_kill (requested) exited");
}

async fn never_ready() {
    let spec =
        Spec { ready: when(up(), Duration::from_millis(300)), ..shell("echo loading >&2; sleep 1000") };
    let child = supervisor().start(spec).expect("a good spec");
    let outcome = child.wait().await;
    assert_eq!(outcome.why, Final::NotRestarted(Cause::StartupTimeout));
    let report = outcome.report.expect("it ran");
    assert_eq!(
        report.detail.as_deref(),
        Some("it waited 300ms for the line \"up\" on stdout, which did not come")
    );
    assert_eq!((report.stderr.len(), report.stderr[0].text.as_str()), (1, "loading"));
    assert_eq!(story(&child).await, "starting stopping_kill (startup_timeout) exited");
}

async fn forks_and_exits() {
    let mark = Mark::new();
    let child = supervisor().start(mark.on(shell("sleep 1000 & sleep 1000 & exit 0"))).expect("a good spec");
    let outcome = child.wait().await;
    assert_eq!(mark.count(), 0);
    assert_eq!(outcome.why, Final::Voluntary);
    assert_eq!(outcome.report.expect("it ran").leftovers, 2);
}

async fn stopped_child() {
    let child =
        supervisor().start(shell_that_says_up("echo up; kill -STOP $$; sleep 1000")).expect("a good spec");
    let session = child.next_session().await.expect("a session");
    until("the child stops itself", PATIENCE, || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", session.pid)).expect("it lives");
        stat.contains(") T ")
    })
    .await;
    let outcome = child.stop(Ladder { ask: secs(1), term: secs(20) }).await;
    assert_eq!(outcome.report.expect("it ran").status, Some(Status::Signal(15)));
    assert_eq!(story(&child).await, "starting ready stopping_term (requested) exited");
}

async fn missing_program() {
    let mut spec = Spec { restart: Restart::Always(retry()), ..shell("") };
    spec.program.path = "/no/such/program".into();
    let outcome = supervisor().start(spec).expect("a good spec").wait().await;
    assert_eq!(outcome.why, Final::Failed(Cause::SpawnFailed));
    let report = outcome.report.expect("a report even without a process");
    assert_eq!((report.pid, report.status), (None, None));
    let text = report.to_string();
    assert!(text.contains("could not be started") && text.contains("/no/such/program"), "{text}");
}

async fn dies_in_a_loop() {
    let supervisor = supervisor();
    let spec = Spec {
        restart: Restart::OnFailure(retry()),
        ..shell_that_says_up("echo up; echo broken >&2; exit 3")
    };
    let child = supervisor.start(spec).expect("a good spec");
    let outcome = child.wait().await;
    assert_eq!(outcome.why, Final::CrashLoop(Cause::Crash));
    let report = outcome.report.expect("it ran");
    assert_eq!((report.incarnation, report.status), (Incarnation(3), Some(Status::Code(3))));
    assert_eq!(report.stderr.len(), 1, "only the last words of the last process");
    let once = "starting ready (crash)";
    assert_eq!(story(&child).await, format!("{once} backoff {once} backoff {once} exited"));
    let metrics = supervisor.metrics();
    assert_eq!((metrics.starts, metrics.restarts, metrics.children.len()), (3, 2, 0));
    assert!(metrics.exits.contains(&(Cause::Crash, 3)), "{:?}", metrics.exits);
}

async fn exit_zero_before_ready() {
    let child = supervisor()
        .start(shell_that_says_up("echo nothing to do; echo bye >&2; exit 0"))
        .expect("a good spec");
    let outcome = child.wait().await;
    assert_eq!(outcome.why, Final::NotRestarted(Cause::ExitBeforeReady));
    let report = outcome.report.expect("it ran");
    assert_eq!((report.stderr[0].text.as_str(), report.stdout[0].text.as_str()), ("bye", "nothing to do"));
    assert_eq!((report.status, report.died_in), (Some(Status::Code(0)), Phase::Starting));
}

async fn stopped_while_starting() {
    let mark = Mark::new();
    let child = supervisor().start(mark.on(shell_that_says_up("sleep 1000; echo up"))).expect("a good spec");
    let mut status = child.watch();
    status.wait_for(|status| status.pid.is_some()).await.expect("it runs");
    assert_eq!(child.status().phase, Phase::Starting);
    assert_eq!(child.stop(LADDER).await.why, Final::Requested);
    assert_eq!(mark.count(), 0);
    assert_eq!(story(&child).await, "starting stopping_term (requested) exited");
}

async fn stopped_while_queued() {
    let supervisor = supervisor();
    let starting: Vec<_> = (0..8)
        .map(|_| supervisor.start(shell_that_says_up("sleep 1000; echo up")).expect("a good spec"))
        .collect();
    for child in &starting {
        child.watch().wait_for(|status| status.pid.is_some()).await.expect("it runs");
    }
    let queued = supervisor.start(shell("sleep 1000")).expect("a good spec");
    queued.watch().wait_for(|status| status.phase == Phase::Starting).await.expect("it waits for its turn");
    let outcome = queued.stop(LADDER).await;
    assert_eq!((outcome.why, outcome.report.and_then(|report| report.pid)), (Final::Requested, None));
    assert_eq!(story(&queued).await, "starting stopping_kill (requested) exited");
}

async fn restarted_after_a_crash() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = "if mkdir first; then echo up; exit 7; else echo up; sleep 1000; fi";
    let mut spec = Spec { restart: Restart::OnFailure(retry()), ..shell_that_says_up(script) };
    spec.program.cwd = directory.path().to_owned();
    let child = supervisor().start(spec).expect("a good spec");
    child
        .watch()
        .wait_for(|status| status.incarnation == Incarnation(2) && status.phase == Phase::Ready)
        .await
        .expect("it comes back");
    let report = child.last_report().expect("the first one ended");
    assert_eq!((report.incarnation, report.status), (Incarnation(1), Some(Status::Code(7))));
    let Next::Restart { after, attempt: 1 } = report.next else { panic!("{:?}", report.next) };
    assert!((Duration::from_millis(16)..=Duration::from_millis(24)).contains(&after), "{after:?}");
    child.kill().await;
    assert_eq!(
        story(&child).await,
        "starting ready (crash) backoff starting ready stopping_kill (requested) exited"
    );
}

async fn restart_on_demand() {
    let child = supervisor().start(shell_that_says_up("echo up; sleep 1000")).expect("a good spec");
    let mut first = child.next_session().await.expect("a session");
    first.ready().await.expect("it says up");
    child.restart(LADDER).await;
    let mut second = child.next_session().await.expect("another session");
    second.ready().await.expect("it says up again");
    assert_eq!((first.incarnation, second.incarnation), (Incarnation(1), Incarnation(2)));
    assert_ne!(first.pid, second.pid);
    child.kill().await;
    assert_eq!(
        story(&child).await,
        "starting ready stopping_term (restarted) starting ready stopping_kill (requested) exited"
    );
}

async fn dropped_handle() {
    let mark = Mark::new();
    let child = supervisor().start(mark.on(shell_that_says_up(STUBBORN))).expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    session.ready().await.expect("it says up");
    let clone = child.clone();
    let (mut events, handle) = (child.events(), session.handle());
    drop(child);
    handle.attached().await;
    assert!(mark.count() >= 2, "a clone still owns it");
    drop(clone);
    while events.next().await.is_some() {}
    assert_eq!(mark.count(), 0);
}

async fn panicking_host() {
    let mark = Mark::new();
    let spec = mark.on(shell_that_says_up(STUBBORN));
    let (events_sender, events) = tokio::sync::oneshot::channel();
    let host = tokio::spawn(async move {
        let child = supervisor().start(spec).expect("a good spec");
        child.next_session().await.expect("a session").ready().await.expect("it says up");
        events_sender.send(child.events()).expect("the test listens");
        // The message would only litter the output of the tests.
        std::panic::resume_unwind(Box::new("as the test wants it"));
    });
    let mut events = events.await.expect("the host came that far");
    assert!(host.await.expect_err("it panics").is_panic());
    while events.next().await.is_some() {}
    assert_eq!(mark.count(), 0);
}

fn runtime_shutdown() {
    let mark = Mark::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let child = runtime.block_on(async {
        let child = supervisor().start(mark.on(shell_that_says_up(STUBBORN))).expect("a good spec");
        child.next_session().await.expect("a session").ready().await.expect("it says up");
        child
    });
    assert!(mark.count() >= 2);
    drop(runtime);
    let second = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    second.block_on(async {
        until("the tree is gone", PATIENCE, || mark.count() == 0).await;
        assert_eq!(child.wait().await.why, Final::Requested, "and nobody waits for ever");
    });
}

async fn start_limit() {
    let supervisor = supervisor();
    let children: Vec<_> = (0..20)
        .map(|_| {
            supervisor
                .start(shell_that_says_up("read line; echo up; sleep 1000").keep_stdin())
                .expect("a good spec")
        })
        .collect();
    let running = |children: &[outrigger_supervise::driver::Child]| {
        children.iter().filter(|child| child.status().pid.is_some()).count()
    };
    until("eight of twenty start", PATIENCE, || running(&children) == 8).await;
    // One becomes ready; exactly one more may start.
    let ready = children.iter().find(|child| child.status().pid.is_some()).expect("one of the eight");
    let mut session = ready.next_session().await.expect("a session");
    tokio::io::AsyncWriteExt::write_all(session.stdin.as_mut().expect("a pipe"), b"go\n")
        .await
        .expect("it reads");
    session.ready().await.expect("it says up");
    until("the ninth starts", PATIENCE, || running(&children) == 9).await;
    let starting =
        supervisor.metrics().children.iter().filter(|child| child.phase == Phase::Starting).count();
    assert_eq!(starting, 19, "eight of these run, the others wait");
    assert_eq!(supervisor.metrics().starts, 9);
}

async fn environment() {
    let mut spec = shell("env | grep -v '^PWD=\\|^OUTRIGGER_TREE=\\|^SHLVL=\\|^_='; exit 0")
        .set_env("B", "set")
        .set_env("A", "1");
    spec = spec.pass_env(["HOME", "NO_SUCH_VARIABLE_ANYWHERE", "B"]).set_env("A", "2");
    let outcome = supervisor().start(spec).expect("a good spec").wait().await;
    let mut lines: Vec<_> =
        outcome.report.expect("it ran").stdout.iter().map(|line| line.text.clone()).collect();
    lines.sort();
    let home = std::env::var("HOME").expect("a home");
    assert_eq!(lines, ["A=2", "B=set", &format!("HOME={home}"), "PATH=/usr/local/bin:/usr/bin:/bin"]);
}

async fn written_down() {
    let registry = tempfile::tempdir().expect("a directory");
    let settings = || Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN };
    let notes = || {
        let host = std::fs::read_dir(registry.path()).expect("the registry").flatten().next();
        let folder = host.map(|host| std::fs::read_dir(host.path()).expect("a host's folder"));
        // The lock is always there while the host lives.
        folder.map(|folder| folder.count() - 1)
    };
    let supervisor =
        Supervisor::with_leftovers(settings(), Leftovers::open(registry.path()).expect("a registry"));
    for (containment, written) in [(Containment::Subreaper, 1), (Containment::PidNamespace, 0)] {
        let mut spec = shell_that_says_up("echo up; sleep 1000");
        spec.sandbox.containment = containment;
        let child = supervisor.start(spec).expect("a good spec");
        child.watch().wait_for(|status| status.phase == Phase::Ready).await.expect("it says up");
        assert_eq!(notes(), Some(written), "{containment:?}");
        child.kill().await;
        assert_eq!(notes(), Some(0), "{containment:?}");
    }
    drop(supervisor);

    let lost = Supervisor::with_leftovers(settings(), Leftovers::open(registry.path()).expect("a registry"));
    std::fs::remove_dir_all(registry.path()).expect("somebody removes it");
    let mut spec = shell("sleep 1000");
    spec.sandbox.containment = Containment::Subreaper;
    let report = lost.start(spec).expect("a good spec").wait().await.report.expect("a report");
    assert_eq!((report.cause, report.launch_error), (Cause::LaunchFailed, Some("leftovers_registry")));
}

async fn refused_specs() {
    let refused = |spec: Spec| supervisor().start(spec).expect_err("it must be refused").to_string();
    let named = |name: &str| Spec { name: name.into(), ..shell("") };
    assert!(supervisor().start(named(&"x".repeat(256))).is_ok());
    assert!(refused(named(&"x".repeat(257))).contains("not a name"));
    assert!(refused(named("a\nb")).contains("a\\nb"));
    assert!(refused(named("")).contains("not a name"));

    let mut relative = shell("");
    relative.program.cwd = "here".into();
    assert_eq!(refused(relative), "the working directory `here` of `test` is not absolute");
    assert!(refused(shell("").set_env("A=B", "c")).contains("A=B"));

    let deaf = Spec { stdout: Stdout::Null, ..shell_that_says_up("") };
    assert!(refused(deaf).contains("its stdout is not read"));
    let mute = Gate::Stdout(StdoutGate {
        line: LineMatch::Exact("up".into()),
        before: Before::Skip,
        max_line_bytes: 0,
    });
    assert!(refused(Spec { ready: when(mute, secs(1)), ..shell("") }).contains("0 bytes"));
    let mut silent = logs();
    silent.max_line_bytes = 0;
    assert!(refused(Spec { logs: silent, ..shell("") }).contains("max_line_bytes"));

    let mut trap = retry();
    trap.crash_loop = CrashLimit { crashes: NonZeroU32::new(5).expect("not zero"), within: secs(60) };
    let trap = Spec { restart: Restart::Always(trap), ready: when(up(), secs(20)), ..shell("") };
    let error = supervisor().start(trap).expect_err("it can never trip");
    assert!(matches!(error, SpecError::Policy { .. }), "{error}");
    assert_eq!(shell("").ready, Ready::OnSpawn);
    assert_eq!(shell("").ask, Ask::Skip);
}

trait KeepStdin {
    fn keep_stdin(self) -> Self;
}

impl KeepStdin for Spec {
    fn keep_stdin(mut self) -> Self {
        self.stdin = Stdin::Session;
        self
    }
}
