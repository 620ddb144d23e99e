//! The conversations, and which rules each of them shows.

use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::launch::Status as ExitStatus;
use outrigger_wire::conformance::{Report, Status, shown};
use serde_json::json;

use super::conversation::{Conversation, Next};
use super::report::{Add, Found, Rule};
use super::seen::Seen;
use crate::host::BackendSpec;
use crate::protocol::{Capability, Envelope, Mode, Outcome, RunId, SupportLevel, WorkOrder, read};

/// How long a child may take for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From spawn to hello.
    pub hello: Duration,
    /// A whole run.
    pub run: Duration,
    /// From a ping to its pong.
    pub pong: Duration,
    /// From a cancel to the end of the run.
    pub cancel: Duration,
    /// From the end of its input to its exit.
    pub exit: Duration,
    /// How long nothing more may come after the end of a run before we believe that nothing will.
    pub quiet: Duration,
}

impl Limits {
    /// Ten seconds for hello, two minutes for a run, five seconds for a cancel and an exit.
    pub fn usual() -> Self {
        let secs = Duration::from_secs;
        Self {
            hello: secs(10),
            run: secs(120),
            pong: secs(2),
            cancel: secs(5),
            exit: secs(5),
            quiet: Duration::from_millis(200),
        }
    }
}

/// Tries every rule on a sidecar. `order` is what it is given to do; it is done several times.
pub async fn run(supervisor: &Supervisor, spec: &BackendSpec, order: &WorkOrder, limits: &Limits) -> Report {
    let suite = Suite { supervisor, spec, order, limits };
    let mut report = Report { checks: Vec::new() };
    suite.usual(&mut report).await;
    let cancelled = suite.cancelled().await;
    report.add(CANCEL, cancelled);
    for (rule, disturbance) in [
        (CLOSED_INPUT, Disturbance::ClosedInput),
        (BAD_JSON, Disturbance::BadJson),
        (UNKNOWN_T, Disturbance::UnknownT),
        (UNKNOWN_MEMBERS, Disturbance::UnknownMembers),
    ] {
        report.add(rule, suite.disturbed(disturbance).await);
    }
    report
}

const HELLO_FIRST: Rule = Rule("hello_first", "hello is the very first line on standard output");
const VERSION: Rule =
    Rule("hello_version", "the contract version has the form abp/vMAJOR.MINOR, with major 0");
const IDENTITY: Rule = Rule("hello_backend", "the backend has an id");
const MANIFEST: Rule = Rule("hello_capabilities", "capabilities and levels are those of the contract");
const MODE: Rule = Rule("hello_mode", "the mode is mapped or passthrough");
const PING_IDLE: Rule = Rule("ping_idle", "a ping between runs is answered");
const PING_RUN: Rule = Rule("ping_during_run", "a ping during a run is answered");
const ONLY_JSON: Rule = Rule("stdout_only_json", "nothing but JSON is on standard output");
const MESSAGES: Rule = Rule("messages_known", "only messages of a sidecar are sent");
const WELL_FORMED: Rule = Rule("messages_well_formed", "every message has its members, of the right type");
const TYPES: Rule = Rule("event_types", "the types of events are those of the contract");
const REF_ID: Rule = Rule("ref_id", "events and the end of a run name that run");
const TIME: Rule = Rule("event_time", "the times of events do not go backwards");
const ONE_END: Rule = Rule("one_end", "a run ends with exactly one final or fatal, and nothing follows it");
const RECEIPT: Rule = Rule("receipt_form", "the receipt has every member that the contract demands");
const RECEIPT_RUN: Rule = Rule("receipt_run", "the receipt names the run");
const RECEIPT_HASH: Rule = Rule("receipt_hash", "the hash of the receipt is absent or right");
const RECEIPT_TRACE: Rule = Rule("receipt_trace", "the trace of the receipt is empty or what was sent");
const SECOND_RUN: Rule = Rule("second_run", "a sidecar that stays takes another run");
const EXIT: Rule = Rule("exit_code", "it exits with code 0 when its input ends");
const CANCEL: Rule = Rule("cancel", "a cancelled run ends soon");
const CLOSED_INPUT: Rule =
    Rule("closed_input", "a run goes on when standard input is closed after it was sent");
const BAD_JSON: Rule = Rule("bad_json", "a line that is not JSON does not end the sidecar");
const UNKNOWN_T: Rule = Rule("unknown_message", "a message that it does not know does not end the sidecar");
const UNKNOWN_MEMBERS: Rule = Rule("unknown_members", "members that it does not know are ignored");

struct Suite<'s> {
    supervisor: &'s Supervisor,
    spec: &'s BackendSpec,
    order: &'s WorkOrder,
    limits: &'s Limits,
}

/// What a run is disturbed by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disturbance {
    ClosedInput,
    BadJson,
    UnknownT,
    UnknownMembers,
}

/// How a run ended for who read it.
#[derive(PartialEq, Eq)]
enum Ending {
    Ended,
    Closed,
    Late,
    Broken(String),
}

impl Suite<'_> {
    /// A usual run, and what comes after it.
    async fn usual(&self, report: &mut Report) {
        let mut talk = match self.greeted(report).await {
            Some(talk) => talk,
            None => return,
        };
        talk.say(r#"{"t":"ping","seq":1}"#).await;
        report.add(PING_IDLE, pong(&talk.next(self.limits.pong).await, 1));
        let (seen, ending) = self.one_run(&mut talk, Some(2)).await;
        judge(report, &seen, &ending);
        let second = match (&ending, talk.next(self.limits.quiet).await) {
            (Ending::Ended, Next::Nothing) => {
                let (again, ending) = self.one_run(&mut talk, None).await;
                match ending {
                    Ending::Ended => Found::pass("it did"),
                    Ending::Closed | Ending::Late | Ending::Broken(_) => Found::new(
                        Status::Warn,
                        format!("it stayed, and did not end another run ({} events)", again.events),
                    ),
                }
            }
            (Ending::Ended, _) => Found::skipped("it ends after one run"),
            (Ending::Closed | Ending::Late | Ending::Broken(_), _) => {
                Found::skipped("the first run did not end")
            }
        };
        report.add(SECOND_RUN, second);
        report.add(EXIT, exit(talk.end(self.limits.exit).await));
    }

    /// A child that has said hello, and what there is to say about that.
    async fn greeted(&self, report: &mut Report) -> Option<Conversation> {
        let mut talk = match Conversation::start(self.supervisor, self.spec).await {
            Ok(talk) => talk,
            Err(why) => {
                report.add(HELLO_FIRST, Found::new(Status::Fail, format!("it cannot be started: {why}")));
                return None;
            }
        };
        let line = match talk.next(self.limits.hello).await {
            Next::Line(line) => line,
            Next::Nothing => {
                report.add(
                    HELLO_FIRST,
                    Found::new(Status::Fail, format!("nothing within {:?}", self.limits.hello)),
                );
                return None;
            }
            Next::Closed => {
                let status = talk.exit(self.limits.exit).await;
                report
                    .add(HELLO_FIRST, Found::new(Status::Fail, format!("it {} before hello", left(status))));
                return None;
            }
            Next::Broken(why) => {
                report.add(HELLO_FIRST, Found::new(Status::Fail, why));
                return None;
            }
        };
        let hello = match read(&line) {
            Ok(Envelope::Hello(hello)) => hello,
            Ok(other) => {
                let found = Found::new(Status::Fail, format!("the first line is `{}`", shown(other.t())))
                    .shown_by(&line);
                report.add(HELLO_FIRST, found);
                return None;
            }
            Err(error) => {
                report.add(HELLO_FIRST, Found::new(Status::Fail, error.to_string()).shown_by(&line));
                return None;
            }
        };
        report.add(HELLO_FIRST, Found::pass("it is"));
        let version = shown(hello.contract_version.as_str());
        report.add(
            VERSION,
            match hello.contract_version.is_compatible() {
                true => Found::pass(version),
                false => Found::new(Status::Fail, version).shown_by(&line),
            },
        );
        report.add(
            IDENTITY,
            match hello.backend.id.as_str() {
                "" => Found::new(Status::Fail, "it is empty").shown_by(&line),
                id => Found::pass(shown(id)),
            },
        );
        let strange = hello.capabilities.0.iter().find(|(name, level)| {
            matches!(name, Capability::Other(_)) || matches!(level, SupportLevel::Other(_))
        });
        report.add(
            MANIFEST,
            match strange {
                None => Found::pass(format!("{} capabilities", hello.capabilities.0.len())),
                Some((name, level)) => {
                    let detail = format!(
                        "`{}`: `{}` is not in the contract",
                        shown(name.as_str()),
                        shown(level.word())
                    );
                    Found::new(Status::Warn, detail).shown_by(&line)
                }
            },
        );
        report.add(
            MODE,
            match &hello.mode {
                Mode::Other(word) => {
                    Found::new(Status::Fail, format!("it is `{}`", shown(word))).shown_by(&line)
                }
                known => Found::pass(known.as_str()),
            },
        );
        Some(talk)
    }

    /// Gives it the order and listens to the end of the run; a ping is sent after its first line.
    async fn one_run(&self, talk: &mut Conversation, ping: Option<u64>) -> (Seen, Ending) {
        let id = run_id();
        talk.say(&self.run_line(&id)).await;
        let mut seen = Seen::default();
        let ending = self.listen(talk, &mut seen, &id, ping, self.limits.run).await;
        if ending == Ending::Ended {
            // A pong, a second end or an event too many may be on its way.
            while let Next::Line(line) = talk.next(self.limits.quiet).await {
                seen.take(&line, id.as_str());
            }
        }
        (seen, ending)
    }

    async fn listen(
        &self,
        talk: &mut Conversation,
        seen: &mut Seen,
        id: &RunId,
        mut ping: Option<u64>,
        within: Duration,
    ) -> Ending {
        let deadline = tokio::time::Instant::now() + within;
        while !seen.has_ended() {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match talk.next(left).await {
                Next::Line(line) => seen.take(&line, id.as_str()),
                Next::Closed => return Ending::Closed,
                Next::Nothing => return Ending::Late,
                Next::Broken(why) => return Ending::Broken(why),
            }
            if let Some(seq) = ping.take().filter(|_| !seen.has_ended()) {
                talk.say(&format!(r#"{{"t":"ping","seq":{seq}}}"#)).await;
            }
        }
        Ending::Ended
    }

    async fn cancelled(&self) -> Found {
        let Some(mut talk) = self.greeted(&mut Report { checks: Vec::new() }).await else {
            return no_hello();
        };
        let id = run_id();
        talk.say(&self.run_line(&id)).await;
        talk.say(&json!({"t":"cancel","ref_id":id.as_str(),"reason":"a test of the cancel"}).to_string())
            .await;
        let mut seen = Seen::default();
        let ending = self.listen(&mut talk, &mut seen, &id, None, self.limits.cancel).await;
        let outcome = seen.receipt.as_ref().and_then(|receipt| receipt.outcome.clone());
        match (ending, outcome) {
            (Ending::Ended, Some(Outcome::Complete)) => {
                Found::skipped("the run was complete before the cancel could matter")
            }
            (Ending::Ended, Some(outcome)) => Found::pass(format!("it ended as {outcome}")),
            (Ending::Ended, None) => Found::pass("it ended with fatal"),
            (Ending::Late, _) => Found::new(
                Status::Warn,
                format!("the run did not end within {:?} of the cancel", self.limits.cancel),
            ),
            (Ending::Closed, _) => Found::new(Status::Warn, "it ended without final or fatal"),
            (Ending::Broken(why), _) => Found::new(Status::Fail, why),
        }
    }

    async fn disturbed(&self, disturbance: Disturbance) -> Found {
        let Some(mut talk) = self.greeted(&mut Report { checks: Vec::new() }).await else {
            return no_hello();
        };
        let id = run_id();
        let mut line = self.run_line(&id);
        match disturbance {
            Disturbance::ClosedInput => {}
            Disturbance::BadJson => {
                talk.say("{\"t\":").await;
                // It may complain, as a fatal of no run.
                if talk.next(self.limits.quiet).await == Next::Closed {
                    return Found::new(Status::Fail, "it ended");
                }
            }
            Disturbance::UnknownT => talk.say(r#"{"t":"a_message_of_tomorrow","x":1}"#).await,
            Disturbance::UnknownMembers => {
                line = line.replacen('{', r#"{"a_member_of_tomorrow":{"x":[1]},"#, 1);
                line = line.replacen(r#""work_order":{"#, r#""work_order":{"a_member_of_tomorrow":null,"#, 1);
            }
        }
        talk.say(&line).await;
        if disturbance == Disturbance::ClosedInput {
            talk.close_input();
        }
        let mut seen = Seen::default();
        match self.listen(&mut talk, &mut seen, &id, None, self.limits.run).await {
            Ending::Ended => match (&seen.fatal, &seen.receipt) {
                (None, Some(_)) => Found::pass("the run ended with a receipt"),
                (fatal, _) => {
                    let why = fatal.as_deref().unwrap_or("nothing");
                    Found::new(Status::Fail, format!("the run ended with fatal: {why}"))
                }
            },
            Ending::Late => {
                Found::new(Status::Fail, format!("the run did not end within {:?}", self.limits.run))
            }
            Ending::Closed => {
                let status = talk.exit(self.limits.exit).await;
                Found::new(Status::Fail, format!("it {} without final or fatal", left(status)))
            }
            Ending::Broken(why) => Found::new(Status::Fail, why),
        }
    }

    fn run_line(&self, id: &RunId) -> String {
        let run = crate::protocol::Run { id: id.clone(), order: self.order.clone(), outrigger: None };
        Envelope::Run(Box::new(run)).to_line()
    }
}

/// What a usual run shows.
fn judge(report: &mut Report, seen: &Seen, ending: &Ending) {
    let never = |broken: &Option<String>, status: Status| match broken {
        None => Found::pass("it is so"),
        Some(line) => Found::new(status, "it is not so").shown_by(line),
    };
    report.add(
        ONLY_JSON,
        match ending {
            Ending::Broken(why) => Found::new(Status::Fail, why.clone()),
            Ending::Ended | Ending::Closed | Ending::Late => never(&seen.noise, Status::Fail),
        },
    );
    report.add(MESSAGES, never(&seen.unknown_t, Status::Fail));
    report.add(
        WELL_FORMED,
        match &seen.malformed {
            None => Found::pass(format!("{} events", seen.events)),
            Some((why, line)) => Found::new(Status::Fail, why.clone()).shown_by(line),
        },
    );
    report.add(TYPES, never(&seen.unknown_type, Status::Warn));
    report.add(REF_ID, never(&seen.foreign, Status::Fail));
    report.add(TIME, never(&seen.backwards, Status::Warn));
    report.add(
        PING_RUN,
        match (seen.pongs.contains(&2), seen.events) {
            (true, _) => Found::pass("it was"),
            (false, 0) => Found::skipped("the run ended at once"),
            (false, _) => Found::new(Status::Warn, "no pong came before the run had ended"),
        },
    );
    report.add(
        ONE_END,
        match (ending, &seen.after_end) {
            (Ending::Ended, None) => Found::pass("one"),
            (Ending::Ended, Some(line)) => {
                Found::new(Status::Fail, "something follows the end").shown_by(line)
            }
            (Ending::Closed, _) => Found::new(Status::Fail, "its output ended without final or fatal"),
            (Ending::Late, _) => Found::new(Status::Fail, "neither final nor fatal came in time"),
            (Ending::Broken(why), _) => Found::new(Status::Fail, why.clone()),
        },
    );
    let Some(receipt) = &seen.receipt else {
        let why = seen
            .fatal
            .as_ref()
            .map_or("there is no receipt".to_owned(), |error| format!("the run ended with fatal: {error}"));
        for rule in [RECEIPT, RECEIPT_RUN, RECEIPT_HASH, RECEIPT_TRACE] {
            report.add(rule, Found::skipped(why.clone()));
        }
        return;
    };
    let kept = |what: &Result<(), String>| match what {
        Ok(()) => Found::pass("it does"),
        Err(why) => Found::new(Status::Fail, why.clone()).shown_by(&receipt.line),
    };
    report.add(RECEIPT, kept(&receipt.form));
    report.add(RECEIPT_RUN, kept(&receipt.run));
    report.add(RECEIPT_HASH, receipt.hash.clone());
    report.add(RECEIPT_TRACE, receipt.trace.clone());
}

fn pong(next: &Next, seq: u64) -> Found {
    match next {
        Next::Line(line) => match read(line) {
            Ok(Envelope::Pong { seq: echoed }) if echoed == seq => Found::pass("it was"),
            Ok(Envelope::Pong { seq }) => {
                Found::new(Status::Fail, format!("it was answered with {seq}")).shown_by(line)
            }
            Ok(_) | Err(_) => Found::new(Status::Warn, "it was answered with something else").shown_by(line),
        },
        Next::Nothing => Found::new(Status::Warn, "no pong came"),
        Next::Closed => Found::new(Status::Fail, "it closed its output"),
        Next::Broken(why) => Found::new(Status::Fail, why.clone()),
    }
}

fn exit(status: Option<ExitStatus>) -> Found {
    match status {
        Some(ExitStatus::Code(0)) => Found::pass("it did"),
        None => Found::new(Status::Warn, "it stayed and was killed"),
        Some(status) => Found::new(Status::Fail, format!("it {}", left(Some(status)))),
    }
}

fn left(status: Option<ExitStatus>) -> String {
    match status {
        Some(ExitStatus::Code(code)) => format!("exited with code {code}"),
        Some(ExitStatus::Signal(signal)) => format!("was ended by signal {signal}"),
        Some(ExitStatus::Unknown) => "ended nobody knows how".to_owned(),
        None => "closed its output and stayed".to_owned(),
    }
}

fn no_hello() -> Found {
    Found::skipped("it did not say hello")
}

/// Unique enough where there is no randomness: the checks of one child never overlap.
fn run_id() -> RunId {
    RunId::random().unwrap_or_else(|_| RunId::new("00000000-0000-4000-8000-000000000001"))
}
