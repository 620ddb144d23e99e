//! The control plane with children that behave: runs one after the other, cancels, answers, pings, and what is reported.

use std::num::NonZeroU32;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::host::{
    Foreign, How, Noise, Pulse, Remote, RunControl, Sidecar, Terms, Unwatched, Warning, Watcher, Wish,
};
use outrigger_abp::protocol::{
    AgentEvent, Answer, AskDecision, Offer, Requirement, Requirements, SupportLevel, WorkOrder,
};
use outrigger_supervise::sandbox::{Level, Limits, Request};

use crate::host_kit::{
    Mark, Notes, PATIENCE, millis, order, play, quick, run_id, shell, start, supervisor, trial, until,
};

/// A child that serves as many runs as it is given.
const SERVER: &str = "hello; while run && [ -n \"$line\" ]; do event one; event two; final; done";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_run_gives_its_events_in_order_and_its_receipt", whole_run),
        trial("a_child_that_stays_gets_one_run_after_the_other", reuse),
        trial("a_child_that_left_after_its_run_is_not_reusable", left_after_final),
        trial("a_child_that_gave_up_and_stays_gets_another_run", reuse_after_fatal),
        trial("a_child_that_says_more_after_final_gets_no_other_run", late_means_spent),
        trial("what_is_said_late_is_only_counted_if_the_terms_forgive", late_forgiven),
        trial("requirements_that_fail_are_all_listed_and_no_run_is_sent", requirements),
        trial("a_cancelled_run_ends_with_the_receipt_of_its_child", cancelled_by_remote),
        trial("a_cancelled_child_that_does_not_react_is_taken_down_the_ladder", cancelled_and_deaf),
        trial("a_receipt_that_comes_only_with_sigterm_is_still_taken", final_on_term),
        trial("a_watcher_can_cancel_the_run_it_watches", cancelled_by_watcher),
        trial("a_watcher_can_kill_the_child_it_watches", killed_by_watcher),
        trial("a_second_interruption_kills", cancelled_then_killed),
        trial("a_watcher_is_woken_when_it_wants_to_be", woken),
        trial("a_question_is_answered_at_once_or_later", asks),
        trial("a_child_that_waits_for_an_answer_is_not_silent", asks_and_waits),
        trial("what_the_user_says_meanwhile_reaches_a_child_that_listens", is_steered),
        trial("what_the_user_says_to_a_child_that_does_not_listen_is_a_warning", is_not_steered),
        trial("a_child_that_answers_pings_may_think_for_long", pongs),
        trial("a_child_that_streams_is_alive_without_pongs", streams_without_pongs),
        trial("a_dropped_run_kills_the_child_and_nothing_can_be_run_on_it", dropped_run),
        trial("a_dropped_sidecar_kills_the_child_with_its_grandchildren", dropped_sidecar),
        trial("a_start_that_is_dropped_leaves_nothing", dropped_start),
        trial("what_is_said_after_the_last_run_is_told_by_the_stop", late_in_stop),
        trial("a_child_that_closes_its_input_during_a_run_is_warned_about_and_served", deaf),
        trial("a_watcher_that_does_not_move_its_alarm_is_not_asked_without_end", stuck_alarm),
        trial("bytes_that_never_become_a_line_are_silence", trickle),
        trial("a_child_that_asks_and_never_reads_the_answers_is_given_up", asks_and_never_reads),
        trial("a_program_that_does_not_exist_is_told_so", no_such_program),
        trial("a_work_order_larger_than_any_pipe_reaches_a_child_that_talks_first", large_order),
        trial("a_child_that_never_reads_is_given_up", never_reads),
        trial("noise_before_hello_is_shown_as_a_warning", noise_is_warned),
        trial("foreign_messages_are_counted_when_they_may_be_dropped", foreign_counted),
        trial("the_node_sidecar_of_the_documentation_is_served", node_example),
        trial("the_seven_rows_of_the_error_table", error_table),
    ]
}

async fn whole_run() {
    let played = play("hello; run; event one; event two; final", &quick()).await;
    let ended = played.ended.expect("a run");
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(played.notes.heard, ["one", "two"]);
    assert_eq!((ended.observed.events, ended.warnings.total()), (2, 0));
    assert!(ended.receipt.is_some() && ended.negotiation.is_satisfied());
    assert!(ended.observed.started_at <= ended.observed.finished_at);
}

/// What can be given to another thread.
fn sendable<T: Send>(value: T) -> T {
    value
}

async fn reuse() {
    let mut sidecar = start(SERVER, &quick()).await;
    let pid = sidecar.pid();
    for _ in 0..5 {
        let mut notes = Notes::default();
        let (id, order) = (run_id(), order("again"));
        let ended = sendable(sidecar.run(&id, &order, &mut notes, RunControl::none())).await;
        assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
        assert_eq!(notes.heard, ["one", "two"]);
        assert!(sidecar.is_reusable());
    }
    assert_eq!(sidecar.pid(), pid);
    let stopped = sidecar.stop(quick().ladder).await;
    let report = stopped.report.expect("a report");
    assert!(report.status.is_some_and(|status| status.success()), "a closed input is enough: {report}");
}

async fn left_after_final() {
    let mut sidecar = start("hello; run; final; exit 0", &quick()).await;
    let ended = sidecar.run(&run_id(), &order("once"), &mut Unwatched, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    until("the end of the child", PATIENCE, || !sidecar.is_reusable()).await;
    let ended = sidecar.run(&run_id(), &order("twice"), &mut Unwatched, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!((failure.code(), failure.exit_code()), ("exited", Some(0)), "{failure}");
}

async fn reuse_after_fatal() {
    let mut sidecar = start("hello; run; fatal no; run; event two; final", &quick()).await;
    let ended = sidecar.run(&run_id(), &order("first"), &mut Unwatched, RunControl::none()).await;
    assert_eq!(ended.how.failure().expect("a failure").code(), "fatal");
    assert!(sidecar.is_reusable());
    let mut notes = Notes::default();
    let ended = sidecar.run(&run_id(), &order("second"), &mut notes, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(notes.heard, ["two"]);
}

/// One write, so that what is late is there when the run ends.
const SAYS_MORE: &str = "hello; run; printf '%s\\n%s\\n' \"$(final)\" \"$(event late)\"; run; final; park";

async fn late_means_spent() {
    let mut sidecar = start(SAYS_MORE, &quick()).await;
    let ended = sidecar.run(&run_id(), &order("first"), &mut Unwatched, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "it does not change the run: {:?}", ended.how);
    assert_eq!(ended.warnings.first(), [Warning::Late { t: "event".to_owned() }]);
    assert!(ended.warnings.first()[0].to_string().contains("protocol violation"));
    assert!(!sidecar.is_reusable());
    let ended = sidecar.run(&run_id(), &order("second"), &mut Unwatched, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "protocol", "{failure}");
    assert!(sidecar.pid().is_none());
}

async fn late_forgiven() {
    let terms = Terms { foreign: Foreign::DropAndCount, ..quick() };
    let mut sidecar = start(SAYS_MORE, &terms).await;
    let ended = sidecar.run(&run_id(), &order("first"), &mut Unwatched, RunControl::none()).await;
    assert_eq!(ended.warnings.total(), 1);
    assert!(sidecar.is_reusable());
    let ended = sidecar.run(&run_id(), &order("second"), &mut Unwatched, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
}

async fn requirements() {
    let mark = Mark::new();
    // A child that would end well if it saw a run.
    let spec = mark.on(shell("hello; run; final"));
    let mut sidecar = Sidecar::start(&supervisor(), &spec, &quick()).await.expect("a child");
    assert_eq!(sidecar.hello().capabilities.level(&"streaming".into()), Some(&SupportLevel::Native));
    let need = |capability: &str, minimum: &str| Requirement {
        capability: capability.into(),
        min_support: minimum.into(),
    };
    let required = vec![need("streaming", "native"), need("tool_read", "native"), need("vision", "any")];
    let order = WorkOrder { requirements: Requirements { required }, ..order("hard") };
    let ended = sidecar.run(&run_id(), &order, &mut Unwatched, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "requirements");
    insta::assert_snapshot!(
        failure.what,
        @"cannot do what the work order requires: tool_read: `native` is needed, the backend offers emulated; vision: `any` is needed, the backend offers nothing"
    );
    assert_eq!((ended.negotiation.native.len(), ended.negotiation.missing.len()), (1, 2));
    assert_eq!(mark.count(), 0, "the child is stopped");
    assert!(!sidecar.is_reusable());
}

/// Runs this child while somebody does something with its remote as soon as it has said `up`.
async fn interfered<F>(
    script: &str,
    terms: &Terms,
    hand: impl FnOnce(Remote) -> F,
) -> (Sidecar, outrigger_abp::host::Ended)
where
    F: Future<Output = ()>,
{
    let mut sidecar = start(script, terms).await;
    let (remote, control) = RunControl::pair();
    let (up, is_up) = tokio::sync::oneshot::channel();
    let mut watcher = TellsUp { up: Some(up) };
    let id = run_id();
    let order = order("test");
    let (ended, ()) = tokio::join!(sidecar.run(&id, &order, &mut watcher, control), async {
        is_up.await.expect("the child says something");
        hand(remote).await;
    });
    (sidecar, ended)
}

struct TellsUp {
    up: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Watcher for TellsUp {
    fn event(&mut self, _event: &AgentEvent<'_>, _line: &str) -> Wish {
        if let Some(up) = self.up.take() {
            up.send(()).expect("somebody waits");
        }
        Wish::GoOn
    }
}

async fn cancel(remote: Remote) {
    remote.cancel("the user has enough").await.expect("a run");
}

async fn cancelled_by_remote() {
    let script = "hello; run; event up; IFS= read -r line; echo \"$line\" >&2; final; run; final";
    let terms = Terms { cancel_grace: PATIENCE, ..quick() };
    let (mut sidecar, ended) = interfered(script, &terms, cancel).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "cancelled");
    assert_eq!(failure.what, "was cancelled: the user has enough; it ended the run with its receipt");
    assert!(ended.receipt.is_some());
    assert!(sidecar.is_reusable(), "it kept to the protocol");
    let ended = sidecar.run(&run_id(), &order("next"), &mut Unwatched, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    let stopped = sidecar.stop(quick().ladder).await;
    let said = stopped.report.expect("a report").stderr[0].text.clone();
    let cancel: serde_json::Value = serde_json::from_str(&said).expect("the cancel");
    assert_eq!((&cancel["t"], &cancel["reason"]), (&"cancel".into(), &"the user has enough".into()));
    assert_eq!(cancel.as_object().map(serde_json::Map::len), Some(3), "{said}");
}

async fn cancelled_and_deaf() {
    let (sidecar, ended) = interfered("trap '' TERM; hello; run; event up; park", &quick(), cancel).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!((failure.code(), failure.signal()), ("cancelled", Some(9)), "{failure}");
    assert!(failure.what.starts_with("was cancelled: the user has enough; exited"), "{failure}");
    assert!(ended.receipt.is_none() && !sidecar.is_reusable());
}

async fn final_on_term() {
    let script = "trap 'final; exit 0' TERM; hello; run; event up; while :; do sleep 0.05; done";
    let terms = Terms { cancel_grace: millis(50), ..quick() };
    let terms =
        Terms { ladder: outrigger_supervise::state::Ladder { term: PATIENCE, ..terms.ladder }, ..terms };
    let (_, ended) = interfered(script, &terms, cancel).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!((failure.code(), failure.exit_code()), ("cancelled", Some(0)), "{failure}");
    assert!(ended.receipt.is_some());
}

async fn cancelled_by_watcher() {
    let mut sidecar = start("hello; run; event bad; event more; read -r line; final", &quick()).await;
    let why = "the policy forbids `bad`".to_owned();
    let mut notes = Notes { wishes: vec![("bad", Wish::Cancel { why })], ..Notes::default() };
    let ended = sidecar.run(&run_id(), &order("test"), &mut notes, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "cancelled");
    assert!(failure.what.contains("the policy forbids `bad`"), "{failure}");
    assert_eq!(notes.heard, ["bad", "more"], "what it still says is still seen");
}

async fn killed_by_watcher() {
    let mark = Mark::new();
    let spec = mark.on(shell("hello; run; event bad; park"));
    let mut sidecar = Sidecar::start(&supervisor(), &spec, &quick()).await.expect("a child");
    let why = "enough".to_owned();
    let mut notes = Notes { wishes: vec![("bad", Wish::Kill { why })], ..Notes::default() };
    let ended = sidecar.run(&run_id(), &order("test"), &mut notes, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!((failure.code(), failure.what.as_str()), ("cancelled", "was killed: enough"));
    assert_eq!(mark.count(), 0);
}

async fn cancelled_then_killed() {
    let terms = Terms { cancel_grace: PATIENCE, ..quick() };
    let script = "trap '' TERM; hello; run; event up; park";
    let (_, ended) = interfered(script, &terms, |remote| async move {
        remote.cancel("once").await.expect("a run");
        remote.kill("twice").await.expect("a run");
    })
    .await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.what, "was cancelled: once; was killed: twice");
    assert!(ended.observed.took < PATIENCE / 2, "nobody waited for the grace");
}

struct Sleeper {
    at: Option<tokio::time::Instant>,
}

impl Watcher for Sleeper {
    fn event(&mut self, _event: &AgentEvent<'_>, _line: &str) -> Wish {
        self.at = Some(tokio::time::Instant::now() + millis(50));
        Wish::GoOn
    }

    fn wake_at(&self) -> Option<tokio::time::Instant> {
        self.at
    }

    fn tick(&mut self, now: tokio::time::Instant) -> Wish {
        assert!(self.at.take().is_some_and(|at| at <= now), "not before its time");
        Wish::Cancel { why: "the budget of time is spent".to_owned() }
    }
}

async fn woken() {
    let mut sidecar = start("hello; run; event a; read -r line; final", &quick()).await;
    let ended = sidecar.run(&run_id(), &order("test"), &mut Sleeper { at: None }, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert!(failure.what.contains("the budget of time is spent"), "{failure}");
}

/// Asks twice and says as events what it was answered.
const ASKS: &str = r#"hello; run
ask() { say '{"t":"ask","ref_id":"'$id'","id":"'$1'","action":"tool","tool_name":"Bash","input":{"command":"ls"}}'; IFS= read -r line; }
case "$line" in *'"outrigger":{"version":1,"features":["ask","usage","question"]}'*) event offered;; esac
ask now; event "${line#*decision}"; ask later; event "${line#*decision}"; final"#;

fn asking() -> Terms {
    Terms { offer: Some(Offer::all()), ..quick() }
}

fn answer(run: &str, id: &str, decision: AskDecision) -> Answer {
    Answer { ref_id: run.to_owned(), id: id.to_owned(), decision, reason: "policy".to_owned(), content: None }
}

async fn asks() {
    let script = ASKS.replace(
        "event \"${line#*decision}\"",
        "case \"$line\" in *deny*) event denied;; *allow*) event allowed;; esac",
    );
    let mut sidecar = start(&script, &asking()).await;
    let id = run_id();
    let (remote, control) = RunControl::pair();
    let now = Wish::Answer(answer(id.as_str(), "now", AskDecision::Deny));
    let (asked, is_asked) = tokio::sync::oneshot::channel();
    let mut notes = Notes { wishes: vec![("now", now)], waiting: Some(("later", asked)), ..Notes::default() };
    let order = order("test");
    let (ended, ()) = tokio::join!(sidecar.run(&id, &order, &mut notes, control), async {
        is_asked.await.expect("the question");
        remote.answer(answer(id.as_str(), "later", AskDecision::Allow)).await.expect("a run");
    });
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(notes.heard, ["offered", "denied", "allowed"]);
    assert_eq!((notes.asks, ended.observed.asks), (vec!["now tool".to_owned(), "later tool".to_owned()], 2));
}

/// Says as events what the user says.
const LISTENS: &str = r#"say '{"t":"hello","contract_version":"abp/v0.1","backend":{"id":"x"},"capabilities":{},"outrigger":{"version":1,"asks":[],"takes":["steer"]}}'
run; event up; IFS= read -r line; case "$line" in *'"t":"steer"'*'left, please'*) event heard;; esac; final"#;

async fn is_steered() {
    let mut sidecar = start(LISTENS, &quick()).await;
    let (remote, control) = RunControl::pair();
    remote.steer("to the left, please").await.expect("a run");
    let mut notes = Notes::default();
    let ended = sidecar.run(&run_id(), &order("test"), &mut notes, control).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(notes.heard, ["up", "heard"]);
    assert_eq!(ended.warnings.total(), 0, "{:?}", ended.warnings);
}

async fn is_not_steered() {
    let mut sidecar = start("hello; run; event up; final", &quick()).await;
    let (remote, control) = RunControl::pair();
    remote.steer("to the left").await.expect("a run");
    let ended = sidecar.run(&run_id(), &order("test"), &mut Notes::default(), control).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    let said: Vec<String> = ended.warnings.first().iter().map(ToString::to_string).collect();
    assert_eq!(said, ["what you said did not reach it: this backend does not listen while it works"]);
}

async fn asks_and_waits() {
    let terms = Terms { silence: Some(millis(600)), ..asking() };
    let script = r#"hello; run
say '{"t":"ask","ref_id":"'$id'","id":"slow","action":"read","path":"/etc/passwd"}'; IFS= read -r line; event answered; final"#;
    let mut sidecar = start(script, &terms).await;
    let id = run_id();
    let (remote, control) = RunControl::pair();
    let (asked, is_asked) = tokio::sync::oneshot::channel();
    let mut notes = Notes { waiting: Some(("slow", asked)), ..Notes::default() };
    let order = order("test");
    let (ended, ()) = tokio::join!(sidecar.run(&id, &order, &mut notes, control), async {
        is_asked.await.expect("the question");
        // Twice what would be too long: that this time passes is what is tested.
        tokio::time::sleep(2 * terms.silence.expect("a limit")).await;
        remote.answer(answer(id.as_str(), "slow", AskDecision::Deny)).await.expect("a run");
    });
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(notes.heard, ["answered"]);
}

fn pinged(every: Duration) -> Terms {
    Terms { pulse: Pulse::Ping { every, missed: NonZeroU32::new(3).expect("not zero") }, ..quick() }
}

async fn pongs() {
    let script = r#"hello; run; n=0
while [ $n -lt 5 ]; do IFS= read -r line; seq=${line#*\"seq\":}; say '{"t":"pong","seq":'${seq%%\}*}'}'; n=$((n+1)); done; final"#;
    let played = play(script, &pinged(millis(200))).await;
    let ended = played.ended.expect("a run");
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert!(ended.observed.pongs == 5 && ended.observed.pings >= 5, "{:?}", ended.observed);
}

async fn streams_without_pongs() {
    let script = "hello; run; n=0; while [ $n -lt 20 ]; do event a; sleep 0.05; n=$((n+1)); done; final";
    let played = play(script, &pinged(millis(200))).await;
    let ended = played.ended.expect("a run");
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert!(ended.observed.pings > 1 && ended.observed.pongs == 0, "{:?}", ended.observed);
}

async fn dropped_run() {
    let mark = Mark::new();
    let spec = mark.on(shell("hello; run; event up; (trap '' TERM; sleep 1000) & park"));
    let mut sidecar = Sidecar::start(&supervisor(), &spec, &quick()).await.expect("a child");
    let (up, is_up) = tokio::sync::oneshot::channel();
    let mut watcher = TellsUp { up: Some(up) };
    let (id, wanted) = (run_id(), order("test"));
    tokio::select! {
        _ = sidecar.run(&id, &wanted, &mut watcher, RunControl::none()) => panic!("it never ends"),
        up = is_up => up.expect("the child says something"),
    }
    until("the end of everything", PATIENCE, || mark.count() == 0).await;
    assert!(!sidecar.is_reusable());
    let ended = sidecar.run(&run_id(), &order("next"), &mut Unwatched, RunControl::none()).await;
    assert_eq!(ended.how.failure().expect("a failure").code(), "exited");
}

async fn dropped_sidecar() {
    let mark = Mark::new();
    let spec = mark.on(shell("(trap '' TERM; sleep 1000) & hello; park"));
    let sidecar = Sidecar::start(&supervisor(), &spec, &quick()).await.expect("a child");
    assert!(mark.count() >= 2);
    drop(sidecar);
    until("the end of everything", PATIENCE, || mark.count() == 0).await;
}

async fn dropped_start() {
    let mark = Mark::new();
    let spec = mark.on(shell("park"));
    let (supervisor, terms) = (supervisor(), quick());
    tokio::select! {
        _ = Sidecar::start(&supervisor, &spec, &terms) => panic!("it never says hello"),
        () = until("a child", PATIENCE, || mark.count() > 1) => {}
    }
    until("the end of everything", PATIENCE, || mark.count() == 0).await;
}

async fn late_in_stop() {
    // It says more when its input is closed, so that only the stop can hear it.
    let mut sidecar = start("hello; run; final; cat; event late; final", &quick()).await;
    let ended = sidecar.run(&run_id(), &order("test"), &mut Unwatched, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final) && ended.warnings.total() == 0, "{ended:?}");
    let terms = Terms::usual();
    let stopped = sidecar.stop(terms.ladder).await;
    let late = |t: &str| Warning::Late { t: t.to_owned() };
    assert_eq!(stopped.warnings.first(), [late("event"), late("final")]);
}

async fn deaf() {
    let script =
        "hello; run; exec 0<&-; n=0; while [ $n -lt 10 ]; do event a; sleep 0.05; n=$((n+1)); done; final";
    let played = play(script, &pinged(millis(100))).await;
    let ended = played.ended.expect("a run");
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(ended.warnings.first(), [Warning::Deaf]);
}

/// Always names a time that has long come.
struct Stuck {
    since: tokio::time::Instant,
    ticks: u32,
}

impl Watcher for Stuck {
    fn event(&mut self, _event: &AgentEvent<'_>, _line: &str) -> Wish {
        Wish::GoOn
    }

    fn wake_at(&self) -> Option<tokio::time::Instant> {
        Some(self.since)
    }

    fn tick(&mut self, _now: tokio::time::Instant) -> Wish {
        self.ticks += 1;
        Wish::GoOn
    }
}

async fn stuck_alarm() {
    let mut sidecar = start("hello; run; sleep 0.3; final", &quick()).await;
    let mut watcher = Stuck { since: tokio::time::Instant::now(), ticks: 0 };
    let ended = sidecar.run(&run_id(), &order("test"), &mut watcher, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    let most = ended.observed.took.as_millis() / 10 + 2;
    assert!(watcher.ticks > 1 && u128::from(watcher.ticks) <= most, "{} ticks", watcher.ticks);
}

async fn trickle() {
    let terms = Terms { silence: Some(millis(300)), ..quick() };
    for script in ["hello; run; while :; do printf x; sleep 0.02; done", "hello; run; yes ''"] {
        let played = play(script, &terms).await;
        assert_eq!(played.code(), "silent", "{}", played.told());
    }
}

struct Allows {
    run: String,
}

impl Watcher for Allows {
    fn event(&mut self, _event: &AgentEvent<'_>, _line: &str) -> Wish {
        Wish::GoOn
    }

    fn ask(&mut self, ask: &outrigger_abp::protocol::Ask<'_>) -> Wish {
        Wish::Answer(answer(&self.run, &ask.id, AskDecision::Allow))
    }
}

async fn asks_and_never_reads() {
    let script = r#"hello; run
ask='{"t":"ask","ref_id":"'$id'","id":"1","action":"tool","tool_name":"Bash"}'; yes "$ask""#;
    let mut sidecar = start(script, &asking()).await;
    let id = run_id();
    let mut watcher = Allows { run: id.to_string() };
    let ended = sidecar.run(&id, &order("test"), &mut watcher, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "write", "{failure}");
    assert!(failure.what.starts_with("asks without reading the answers"), "{failure}");
}

async fn no_such_program() {
    let mut spec = shell("");
    spec.program = "abp-sidecar-that-is-not-there".into();
    let failure = Sidecar::start(&supervisor(), &spec, &quick()).await.expect_err("no child");
    assert_eq!(failure.code(), "spawn");
    assert!(failure.to_string().contains("abp-sidecar-that-is-not-there"), "{failure}");
    assert!(!failure.is_retryable());
    // What could never work is refused before anything is started.
    let mut spec = shell("");
    spec.cwd = "relative".into();
    let failure = Sidecar::start(&supervisor(), &spec, &quick()).await.expect_err("no child");
    assert!(failure.to_string().contains("is not absolute"), "{failure}");
    let strict = Request::new(Level::Basic, Limits::as_the_host());
    assert_eq!(spec.sandbox, strict);
}

async fn large_order() {
    // It writes more than a pipe holds before it reads, and the run is more than a pipe holds: both must move at once.
    let script = "hello; id=x; head -c 300000 /dev/zero | tr '\\0' ' '; echo; run; event ${#line}; final";
    let mut sidecar = start(script, &quick()).await;
    let order = order(&"x".repeat(2_000_000));
    let mut notes = Notes::default();
    let ended = sidecar.run(&run_id(), &order, &mut notes, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    let length: usize = notes.heard[0].parse().expect("a number");
    assert!(length > 2_000_000, "{length}");
}

async fn never_reads() {
    let terms = Terms { write_stall: millis(300), ..quick() };
    let mut sidecar = start("hello; park", &terms).await;
    let order = order(&"x".repeat(2_000_000));
    let ended = sidecar.run(&run_id(), &order, &mut Unwatched, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.code(), "write");
    assert!(failure.what.contains("did not read its standard input for 300 ms"), "{failure}");
    // The same if it goes on talking all the time.
    let mut sidecar = start("hello; while :; do say '{\"t\":\"pong\",\"seq\":1}'; done", &terms).await;
    let ended = sidecar.run(&run_id(), &order, &mut Unwatched, RunControl::none()).await;
    assert_eq!(ended.how.failure().expect("a failure").code(), "write");
    // And a child that closed its input before the run is told apart from one that is slow.
    let mut sidecar = start("hello; exec 0<&-; park", &quick()).await;
    let ended = sidecar.run(&run_id(), &order, &mut Unwatched, RunControl::none()).await;
    let failure = ended.how.failure().expect("a failure");
    assert_eq!(failure.what, "closed its standard input before the run was sent");
}

async fn noise_is_warned() {
    let terms = Terms { noise: Noise::SkipAndWarn, ..quick() };
    let mut sidecar = start("echo Welcome; hello; run; echo 'debug \u{1b}[31m'; final", &terms).await;
    assert_eq!(sidecar.warnings().total(), 1);
    assert!(sidecar.warnings().first()[0].to_string().ends_with("\"Welcome\""));
    let mut notes = Notes::default();
    let ended = sidecar.run(&run_id(), &order("test"), &mut notes, RunControl::none()).await;
    assert_eq!((ended.observed.noise, ended.warnings.total()), (1, 1));
    assert!(notes.warnings[0].ends_with("\"debug \\u{1b}[31m\""), "{:?}", notes.warnings);
}

async fn foreign_counted() {
    let terms = Terms { foreign: Foreign::DropAndCount, ..quick() };
    let script = "hello; run; own=$id; id=other; event a; final; fatal b; id=$own; event c; final";
    let played = play(script, &terms).await;
    let ended = played.ended.expect("a run");
    assert_eq!((ended.observed.events, ended.observed.foreign), (1, 3));
    assert_eq!(played.notes.warnings[1], "dropped `final` of another run, \"other\"");
}

/// In the words of the documentation of the protocol: hello at once, one run, one message, a receipt that says nothing.
const NODE: &str = r#"
const say = (message) => process.stdout.write(JSON.stringify(message) + '\n');
say({ t: 'hello', contract_version: 'abp/v0.1', backend: { id: 'my-node-sidecar' }, capabilities: { streaming: 'native' } });
(async () => {
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    if (message.t !== 'run') continue;
    say({ t: 'event', ref_id: message.id, event: { ts: new Date().toISOString(), type: 'assistant_message', text: 'Done' } });
    say({ t: 'final', ref_id: message.id, receipt: {} });
    break;
  }
})();
"#;

async fn node_example() {
    let mut spec = shell("");
    (spec.program, spec.args) = ("node".into(), vec!["-e".into(), NODE.into()]);
    let mut sidecar = Sidecar::start(&supervisor(), &spec, &quick()).await.expect("node");
    assert_eq!(sidecar.hello().backend.id, "my-node-sidecar");
    let ended = sidecar.run(&run_id(), &order("test"), &mut Unwatched, RunControl::none()).await;
    assert!(matches!(ended.how, How::Final), "{:?}", ended.how);
    assert_eq!(ended.observed.events, 1);
    assert!(ended.receipt.is_some(), "an empty receipt is one whose claims are missing");
    let report = sidecar.stop(quick().ladder).await.report.expect("a report");
    assert!(report.status.is_some_and(|status| status.success()), "{report}");
}

/// Each row of the error table of the protocol's documentation.
async fn error_table() {
    let pinged = Terms { pulse: pinged(millis(50)).pulse, ..quick() };
    for (situation, script, terms, code) in [
        ("sends invalid JSON", "hello; run; echo oops; park", quick(), "protocol"),
        ("the first line is not hello", "id=x; event a; park", quick(), "handshake"),
        ("ref_id is not run.id", "hello; run; id=x; event a; park", quick(), "correlation"),
        ("exits before final or fatal", "hello; run; exit 9", quick(), "exited"),
        ("sends fatal", "hello; run; fatal 'ANTHROPIC_API_KEY not set'", quick(), "fatal"),
        ("another major version", "hello | sed s/v0.1/v1.0/; park", quick(), "version"),
        ("no pong in time", "hello; run; park", pinged, "stalled"),
    ] {
        let played = play(script, &terms).await;
        assert_eq!((played.code(), played.left), (code, 0), "{situation}: {}", played.told());
    }
}
