//! The driver task: waits for the next thing to happen, lets the machine decide, does what it says.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::sleep_until;

use super::child::{ChildId, ChildStatus, Command, SessionSlot};
use super::events::{ChildEvent, EventLog};
use super::live::{LaunchResult, Live, Process, Progress, Undelivered, launch};
use super::pump::{LastCall, LogGate, LogPump, Pumped, Then, gate};
use super::session::{Frames, LastBeat, Opened, Output, Request, Said, Session, SessionHandle, What};
use super::supervisor::Shared;
use crate::launch::{Exit, Launched, Signal};
use crate::leftovers::Note;
use crate::logs::{FileSink, LineFeed, Stream, Tails};
use crate::ready::{Gate, Ready};
use crate::report::Report;
use crate::spec::{Spec, Stdout};
use crate::state::{
    Action, Cause, Change, Ending, Event, Fault, Happening, Incarnation, Machine, Phase, SpawnFailure, step,
};

/// Requests that may wait for a session: a ping and a goodbye.
const REQUESTS: usize = 4;

/// The log file gets this long to take the last lines before the exit is reported.
const FILE_LIMIT: Duration = Duration::from_millis(500);

/// Where a driver hears from.
pub(super) struct Ears {
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) owner: oneshot::Receiver<Infallible>,
    pub(super) said: mpsc::Receiver<Said>,
    pub(super) said_sender: mpsc::Sender<Said>,
}

/// Where a driver speaks to.
pub(super) struct Voice {
    pub(super) status: watch::Sender<ChildStatus>,
    pub(super) events: Arc<EventLog>,
    pub(super) sessions: Arc<SessionSlot>,
    pub(super) tails: Arc<Tails>,
}

/// One child, from start to the end of its last process.
pub(super) struct Driver {
    id: ChildId,
    shared: Arc<Shared>,
    spec: Spec,
    machine: Machine,
    ears: Ears,
    voice: Voice,
    owned: Owned,
    file: Option<Arc<FileSink>>,
    process: Process,
    /// The right to be starting.
    permit: Option<OwnedSemaphorePermit>,
    /// What opened the gate, for the session.
    opening: Option<Opened>,
    /// What a fault was about; it belongs into the report if the fault is what ended the process.
    fault: Option<(Cause, String)>,
    /// What else the report should say.
    detail: Option<String>,
    /// The stable code of the launch error, for the report.
    launch_error: Option<&'static str>,
    /// The process that was just reaped, for the report.
    gone: Option<Gone>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owned {
    Yes,
    No,
}

/// What remains of a process.
struct Gone {
    live: Box<Live>,
    exit: Exit,
}

/// What woke the driver.
enum Woken {
    Command(Command),
    Orphaned,
    Said(Said),
    Progress(Progress),
    Timer,
}

impl Driver {
    pub(super) fn new(
        id: ChildId,
        shared: Arc<Shared>,
        spec: Spec,
        machine: Machine,
        ears: Ears,
        voice: Voice,
    ) -> Self {
        let file = spec.logs.file.as_ref().map(FileSink::new);
        Self {
            id,
            shared,
            spec,
            machine,
            ears,
            voice,
            owned: Owned::Yes,
            file,
            process: Process::Absent,
            permit: None,
            opening: None,
            fault: None,
            detail: None,
            launch_error: None,
            gone: None,
        }
    }

    pub(super) async fn run(mut self) {
        self.feed(Event::Start);
        while self.machine.ended().is_none() {
            match self.wake().await {
                Woken::Command(Command::Stop(ladder)) => self.feed(Event::Stop(ladder)),
                Woken::Command(Command::Kill) => self.stop_now(),
                Woken::Command(Command::Restart(ladder)) => self.feed(Event::Restart(ladder)),
                Woken::Orphaned => {
                    self.owned = Owned::No;
                    self.stop_now();
                }
                Woken::Said(said) => self.said(said),
                Woken::Progress(Progress::Launched(result)) => self.launched(*result),
                Woken::Progress(Progress::Pumped(pumped)) => self.pumped(pumped),
                Woken::Progress(Progress::Exited(exit)) => self.process.exited(exit),
                Woken::Progress(Progress::Drained) => self.drained().await,
                Woken::Timer => self.tick(),
            }
        }
    }

    async fn wake(&mut self) -> Woken {
        let deadline = self.machine.next_deadline().map(|deadline| self.shared.clock.instant(deadline));
        let timer = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let Ears { commands, owner, said, said_sender: _ } = &mut self.ears;
        // The order matters: what was said about a process is heard before its end, and its end before the timer.
        tokio::select! {
            biased;
            Some(command) = commands.recv() => Woken::Command(command),
            _ = owner, if self.owned == Owned::Yes => Woken::Orphaned,
            Some(said) = said.recv() => Woken::Said(said),
            progress = self.process.progress() => Woken::Progress(progress),
            () = timer => Woken::Timer,
        }
    }

    /// Nobody waits for anything any more, not even for whoever reads the tee.
    fn stop_now(&mut self) {
        if let Some(live) = self.process.live() {
            live.last_call.cut();
        }
        self.feed(Event::StopNow);
    }

    fn tick(&mut self) {
        if let Some(live) = self.process.live()
            && let Some(at) = live.last_beat.get()
        {
            let beat = Event::Of(live.incarnation, Happening::Beat(at));
            self.feed(beat);
        }
        self.feed(Event::Tick);
    }

    fn said(&mut self, said: Said) {
        let Said { incarnation, what } = said;
        let happening = match what {
            What::Attached => {
                // Only one gate listens to this word.
                let Ready::When { gate: Gate::Attach, .. } = &self.spec.ready else { return };
                self.opening = Some(Opened::Attached);
                Happening::Ready
            }
            What::Happening(happening) => happening,
            What::Fault(fault, detail) => {
                self.fault(incarnation, fault, detail);
                return;
            }
        };
        self.feed(Event::Of(incarnation, happening));
    }

    fn fault(&mut self, incarnation: Incarnation, fault: Fault, detail: String) {
        if incarnation == self.machine.incarnation() {
            self.fault = Some((fault.cause(), detail));
        }
        self.feed(Event::Of(incarnation, Happening::Fault(fault)));
    }

    /// Lets the machine decide, and does what it says until nothing is left to do.
    fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in step(&mut self.machine, event, self.shared.clock.now()) {
                self.perform(action, &mut events);
            }
        }
        self.publish();
    }

    /// Shows the status that resulted, if it is another one than before.
    fn publish(&mut self) {
        let running = self.process.live().map(|live| (live.pid, live.spawned));
        let now = ChildStatus {
            phase: self.machine.phase(),
            incarnation: self.machine.incarnation(),
            pid: running.map(|(pid, _)| pid),
            running_since: running.map(|(_, since)| since),
            ended: self.machine.ended(),
        };
        self.voice.status.send_if_modified(|status| std::mem::replace(status, now) != now);
    }

    fn perform(&mut self, action: Action, events: &mut VecDeque<Event>) {
        match action {
            Action::Spawn(incarnation) => {
                self.voice.tails.begin(incarnation);
                (self.opening, self.fault, self.detail) = (None, None, None);
                self.process = launch(Arc::clone(&self.shared), &self.spec, incarnation);
            }
            Action::CancelSpawn(incarnation) => {
                self.process = Process::Absent;
                events.push_back(Event::Of(incarnation, Happening::SpawnFailed(SpawnFailure::Cancelled)));
            }
            Action::Ask { within } => {
                let incarnation = self.machine.incarnation();
                if !self.request(Request::Leave { within }) {
                    events.push_back(Event::Of(incarnation, Happening::AskRefused));
                }
            }
            Action::Term => {
                if let Some(live) = self.process.live() {
                    live.control.signal(Signal::Term);
                }
            }
            Action::Kill => {
                if let Some(live) = self.process.live() {
                    live.control.kill();
                }
            }
            // A ping that cannot be delivered is a ping that is not answered.
            Action::Ping(seq) => {
                self.request(Request::Ping(seq));
            }
            Action::Changed(change) => self.changed(change),
            Action::Ended(ending) => self.ended(ending),
        }
    }

    /// Asks the session for something; says whether there is anybody to ask.
    fn request(&mut self, request: Request) -> bool {
        let Some(live) = self.process.live() else { return false };
        self.voice.sessions.was_taken(live.incarnation) && live.requests.try_send(request).is_ok()
    }

    fn launched(&mut self, result: LaunchResult) {
        let incarnation = self.machine.incarnation();
        let LaunchResult { permit, launched } = result;
        match launched {
            Ok((launched, note)) => {
                self.permit = permit;
                self.take_charge(incarnation, launched, note);
                self.shared.registry.spawned(incarnation);
                self.feed(Event::Of(incarnation, Happening::Spawned));
            }
            Err(failure) => {
                self.process = Process::Absent;
                self.detail = Some(failure.to_string());
                self.launch_error = Some(failure.code());
                self.feed(Event::Of(incarnation, Happening::SpawnFailed(failure.kind())));
            }
        }
    }

    /// Sets the pumps on the streams of a new process and gives its session to whoever waits for it.
    fn take_charge(&mut self, incarnation: Incarnation, launched: Launched, note: Option<Note>) {
        let Launched { pid, stdin, stdout, stderr, enforced, control, .. } = launched;
        let (requests, request_receiver) = mpsc::channel(REQUESTS);
        let (opened, opened_receiver) = oneshot::channel();
        let mut live = Live {
            incarnation,
            pid,
            control,
            spawned: tokio::time::Instant::now(),
            pumps: tokio::task::JoinSet::new(),
            requests,
            opened: Some(opened),
            undelivered: None,
            last_beat: Arc::new(LastBeat::new(self.shared.clock)),
            note,
            last_call: LastCall::new(),
        };
        if let Some(stderr) = stderr {
            let gate = match &self.spec.ready {
                Ready::When { gate: Gate::Stderr(line), .. } => Some(LogGate::Stderr(line.clone())),
                Ready::When { gate: Gate::Stdout(_) | Gate::Attach, .. } | Ready::OnSpawn => None,
            };
            let closing = live.last_call.listen();
            live.pumps.spawn(
                LogPump::new(stderr, self.line_feed(Stream::Stderr), gate, self.spec.tee.clone(), closing)
                    .run(),
            );
        }
        let session = Undelivered { stdin, enforced, requests: request_receiver, opened: opened_receiver };
        match (stdout, self.spec.stdout, self.spec.stdout_gate()) {
            (Some(stdout), Stdout::Session, Some(wanted)) => {
                let closing = live.last_call.listen();
                live.pumps.spawn(gate(stdout, wanted.clone(), Arc::clone(&self.voice.tails), closing));
                live.undelivered = Some(session);
            }
            (Some(stdout), Stdout::Session, None) => {
                let output = Output::new(Vec::new(), stdout);
                self.deliver(&live, session, Some(output));
            }
            (Some(stdout), Stdout::Log | Stdout::Null | Stdout::Inherit, wanted) => {
                let gate = wanted.cloned().map(LogGate::Stdout);
                let closing = live.last_call.listen();
                live.pumps.spawn(
                    LogPump::new(
                        stdout,
                        self.line_feed(Stream::Stdout),
                        gate,
                        self.spec.tee.clone(),
                        closing,
                    )
                    .run(),
                );
                self.deliver(&live, session, None);
            }
            (None, _, _) => self.deliver(&live, session, None),
        }
        if self.spec.ready == Ready::OnSpawn {
            self.opening = Some(Opened::OnSpawn);
        }
        self.process = Process::Live(Box::new(live));
    }

    fn line_feed(&self, stream: Stream) -> LineFeed {
        let incarnation = self.machine.incarnation();
        let tails = Arc::clone(&self.voice.tails);
        LineFeed::new(stream, incarnation, self.spec.logs.max_line_bytes, tails, self.file.clone())
    }

    fn deliver(&self, live: &Live, session: Undelivered, stdout: Option<Output>) {
        let Undelivered { stdin, enforced, requests, opened } = session;
        let handle = SessionHandle::new(
            live.incarnation,
            self.ears.said_sender.clone(),
            Arc::clone(&live.last_beat),
            Frames { tails: Arc::clone(&self.voice.tails), max_bytes: self.spec.logs.max_line_bytes },
        );
        let (incarnation, pid) = (live.incarnation, live.pid);
        self.voice.sessions.put(Session {
            incarnation,
            pid,
            enforced,
            stdin,
            stdout,
            requests,
            opened,
            handle,
        });
    }

    fn pumped(&mut self, pumped: Pumped) {
        let incarnation = self.machine.incarnation();
        match pumped {
            Pumped::Ended => {}
            Pumped::Opened { line, then } => {
                self.opening = Some(Opened::Line(line));
                self.pump_on(then);
                self.feed(Event::Of(incarnation, Happening::Ready));
            }
            Pumped::Refused { detail, then } => {
                let detail = match &self.spec.ready {
                    Ready::When { gate, .. } => format!("it waits for {gate}, but {detail}"),
                    Ready::OnSpawn => detail,
                };
                // Nobody will read this stream; as a closed pipe it stops a child that goes on writing.
                drop(then);
                self.fault(incarnation, Fault::ProtocolViolation, detail);
            }
            Pumped::ClosedBeforeReady => {
                self.fault(
                    incarnation,
                    Fault::ChannelLost,
                    "it closed stdout before it was ready".to_owned(),
                );
            }
        }
    }

    /// The gate has opened: the rest of standard output goes where the spec sends it.
    fn pump_on(&mut self, then: Then) {
        let Some(live) = self.process.live() else { return };
        match then {
            Then::Log(pump) => {
                live.pumps.spawn(pump.run());
            }
            Then::Session(output) => {
                if let Some(session) = live.undelivered.take()
                    && self.machine.phase() == Phase::Starting
                    && let Process::Live(live) | Process::Draining(live, _) = &self.process
                {
                    self.deliver(live, session, Some(output));
                }
            }
        }
    }

    async fn drained(&mut self) {
        let Process::Draining(mut live, exit) = std::mem::replace(&mut self.process, Process::Absent) else {
            return;
        };
        live.note = None;
        if let Some(file) = &self.file {
            // A disk that is too slow does not hold up the report.
            let _ = tokio::time::timeout(FILE_LIMIT, file.settled()).await;
        }
        let (incarnation, status) = (live.incarnation, exit.status);
        if let Some(lost) = &exit.keeper_lost {
            self.detail = Some(lost.clone());
        }
        self.gone = Some(Gone { live, exit });
        self.feed(Event::Of(incarnation, Happening::Reaped(status)));
    }

    fn changed(&mut self, change: Change) {
        if change.to != Phase::Starting {
            self.permit = None;
        }
        if change.to == Phase::Ready
            && let Some(opening) = self.opening.take()
            && let Some(opened) = self.process.live().and_then(|live| live.opened.take())
        {
            // A session that does not wait to be ready is free not to.
            let _ = opened.send(opening);
        }
        self.voice.events.push(ChildEvent::Changed(change));
        if self.machine.ended().is_some() {
            self.close();
        }
    }

    /// Nothing more will come; safe to say twice.
    fn close(&self) {
        self.voice.events.close();
        self.voice.sessions.close();
        self.shared.registry.remove(self.id);
    }

    fn ended(&mut self, ending: Ending) {
        let Ending { incarnation, died_in, cause, next } = ending;
        self.shared.registry.ended(cause);
        let gone = self.gone.take();
        let exit = gone.as_ref().map(|gone| &gone.exit);
        let fault = self.fault.take().filter(|(about, _)| *about == cause).map(|(_, detail)| detail);
        let report = Report {
            name: self.spec.name.clone(),
            incarnation,
            pid: gone.as_ref().map(|gone| gone.live.pid),
            died_in,
            cause,
            status: exit.map(|exit| exit.status),
            launch_error: self.launch_error.take(),
            detail: self.detail.take().or(fault).or_else(|| self.explain(cause)),
            runtime: gone.as_ref().map_or(Duration::ZERO, |gone| gone.live.spawned.elapsed()),
            stderr: self.voice.tails.lines(Stream::Stderr),
            stdout: self.voice.tails.lines(Stream::Stdout),
            leftovers: exit.map_or(0, |exit| exit.leftovers),
            cpu: exit.map_or(Duration::ZERO, |exit| exit.cpu),
            max_rss_bytes: exit.map_or(0, |exit| exit.max_rss_bytes),
            next,
        };
        self.voice.events.push(ChildEvent::Ended(Arc::new(report)));
    }

    /// What can be said about a cause when nobody else said anything.
    fn explain(&self, cause: Cause) -> Option<String> {
        match (cause, &self.spec.ready) {
            (Cause::StartupTimeout, Ready::When { gate, within }) => {
                Some(format!("it waited {within:?} for {gate}, which did not come"))
            }
            (_, Ready::When { .. } | Ready::OnSpawn) => None,
        }
    }
}

/// A driver that is dropped with its runtime leaves nobody waiting.
impl Drop for Driver {
    fn drop(&mut self) {
        self.close();
    }
}
