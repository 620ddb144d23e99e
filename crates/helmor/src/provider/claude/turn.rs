//! One turn: what the program says is passed on, what it asks is asked, what the host says meanwhile is told to it, and in the end
//! it is certain that nothing is left to do, or nothing left running.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::tree::{self, Identity, Pid};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::Instant;

use super::ask::{self, Ask, Reply};
use super::frame::{self, Kind};
use super::link::{Line, Said};
use super::live::{Heard, Live};
use super::outcome::{self, Seen};
use super::progress::{End, Progress};
use crate::protocol::PermissionMode;
use crate::provider::prompt::{self, PICTURES};
use crate::provider::{Desk, Outcome, Steering, Turn};

/// How long we listen for more when the end is not certain.
const GRACE: Duration = Duration::from_secs(1);

/// How long an interruption by the protocol may take before signals are used.
const INTERRUPT: Duration = Duration::from_secs(2);

/// How long processes of a stopped turn may take to go when the program has killed them.
const LEAVES_WITHIN: Duration = Duration::from_millis(400);

/// How often we look whether they are gone.
const LOOK: Duration = Duration::from_millis(20);

/// How long the program has after SIGTERM.
const TERM: Duration = Duration::from_millis(500);

/// Lines that are handled before the host's pace is asked for.
const BATCH: usize = 32;

/// What to do with the program after the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// It stays.
    Warm,
    /// It is gone.
    Gone,
}

/// Runs a turn on a program that is ready for it.
pub(super) async fn run(live: &Live, heard: Heard, turn: &mut Turn) -> (Outcome, Keep) {
    let mut talk = Talk {
        live,
        desk: Arc::clone(&turn.desk),
        questions: JoinSet::new(),
        asked: HashMap::new(),
        progress: live.progress(),
        seen: Seen::default(),
        result: None,
        plan: None,
    };
    let stop = turn.stop.clone();
    let send = &turn.send;
    let text = prompt::text_of(&send.prompt, &send.images, &send.additional_directories);
    let opening = async {
        live.adapt(send).await?;
        let before = Processes::now(live);
        let content = prompt::image_blocks(&text, send.images.clone(), PICTURES).await;
        Ok(talk.say(&content).await.then_some(before))
    };
    let before = tokio::select! {
        biased;
        () = stop.cancelled() => {
            live.link.agent.kill().await;
            return (Outcome::Aborted, Keep::Gone);
        }
        opened = opening => match opened {
            Ok(Some(before)) => before,
            Ok(None) => return talk.died().await,
            Err(failure) => return (Outcome::Failed(failure), Keep::Warm),
        },
    };
    let Heard { early, mut said } = heard;
    for said in early {
        talk.hear(said).await;
    }
    let (mut host_has_room, mut steerable) = (true, true);
    loop {
        let end = talk.progress.end();
        if end == End::Now {
            break;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return talk.interrupt(said, before).await,
            Some(reply) = talk.questions.join_next() => talk.reply(reply.ok().flatten()).await,
            steering = turn.steering.recv(), if steerable => match steering {
                Some(steering) => talk.steer(steering).await,
                None => steerable = false,
            },
            heard = said.recv(), if host_has_room => {
                let Some(heard) = heard else { return talk.died().await };
                talk.hear(heard).await;
                for _ in 1..BATCH {
                    if talk.progress.end() == End::Now {
                        break;
                    }
                    let Ok(heard) = said.try_recv() else { break };
                    talk.hear(heard).await;
                }
                host_has_room = false;
            }
            () = turn.desk.room(), if !host_has_room => host_has_room = true,
            () = tokio::time::sleep(GRACE), if end == End::Soon && host_has_room => break,
        }
    }
    // Whoever comes now is told that there is no turn.
    turn.steering.close();
    live.link.stop_listening(said).await;
    (talk.over(&turn.send.session_id), Keep::Warm)
}

struct Talk<'a> {
    live: &'a Live,
    desk: Arc<dyn Desk>,
    /// Questions to the host; aborting one withdraws it.
    questions: JoinSet<Option<Reply>>,
    asked: HashMap<String, AbortHandle>,
    progress: Progress,
    seen: Seen,
    result: Option<Value>,
    /// The plan that was handed over last, with the name of its tool use.
    plan: Option<(String, String)>,
}

impl Talk<'_> {
    /// Writes a message of the user. `false` when the program does not read any more.
    async fn say(&mut self, content: &[Value]) -> bool {
        let uuid = frame::uuid();
        let line = frame::user(&uuid, content);
        self.progress.wrote(uuid);
        self.live.link.write(line).await
    }

    async fn steer(&mut self, Steering { steer, taken }: Steering) {
        if !self.live.link.is_open() {
            let _ = taken.send(Err("Claude Code has ended".to_owned()));
            return;
        }
        let images: Vec<_> = steer.images.iter().map(Into::into).collect();
        let text = prompt::strip_image_marks(&steer.prompt, &steer.images);
        let content = prompt::image_blocks(&text, images, PICTURES).await;
        self.desk.steered(&steer);
        let answer = if self.say(&content).await { Ok(()) } else { Err("Claude Code has ended".to_owned()) };
        // The host may have gone; the message counts all the same.
        let _ = taken.send(answer);
    }

    async fn hear(&mut self, said: Said) {
        let (kind, line) = match said {
            Said::Line(line) => (line.kind, line.text),
            Said::Noise(noise) => return self.desk.log(&noise),
        };
        match kind {
            Kind::Plain => self.desk.pass(&line),
            Kind::System => self.system(&line),
            Kind::Assistant => {
                match frame::made_up(&line) {
                    Some(trouble) => self.seen.trouble = Some(trouble),
                    None => self.seen.answer = true,
                }
                self.plan = frame::plan_in(&line).or(self.plan.take());
                if let Some(line) = frame::without_questions(&line) {
                    self.desk.pass(&line);
                }
            }
            Kind::Result => {
                self.progress.result();
                self.result = serde_json::from_str(&line).ok();
                self.desk.pass(&line);
            }
            Kind::Lifecycle => {
                if let Ok(said) = serde_json::from_str::<frame::Lifecycle>(&line) {
                    self.progress.message(&said.command_uuid, &said.state);
                }
            }
            Kind::Request => self.asks(&line).await,
            Kind::Cancel => {
                let withdrawn = serde_json::from_str::<frame::Cancel>(&line).ok();
                if let Some(question) = withdrawn.and_then(|cancel| self.asked.remove(&cancel.request_id)) {
                    question.abort();
                }
            }
            Kind::Answer | Kind::Quiet => {}
        }
    }

    fn system(&mut self, line: &str) {
        if let Ok(system) = serde_json::from_str::<frame::System>(line) {
            if let Some(word) = &system.permission_mode {
                self.has_mode(word);
            }
            match &*system.subtype {
                // We switched it on for ourselves.
                "session_state_changed" => return self.progress.state(&system.state),
                "init" => self.live.introduced(system.session_id, system.model),
                _ => {}
            }
        }
        self.desk.pass(line);
    }

    /// The model can change the mode too, with a tool for planning. Then the next turn must change it back.
    fn has_mode(&self, word: &str) {
        let mode = PermissionMode::from_word(word);
        if mode.word() == word && self.live.mode_is(mode) != mode {
            self.desk.tell("permissionModeChanged", &[("permissionMode", word.into())]);
        }
    }

    async fn asks(&mut self, line: &str) {
        match ask::about(line, &*self.desk, self.plan.as_ref()) {
            Ask::Now(reply) => self.reply(Some(reply)).await,
            Ask::Wait(answer) => {
                let question = self.questions.spawn(answer);
                if let Ok(request) = serde_json::from_str::<frame::Request<'_>>(line) {
                    self.asked.insert(request.request_id, question);
                }
            }
        }
    }

    /// `None`: the question was withdrawn, or the stream is over.
    async fn reply(&mut self, reply: Option<Reply>) {
        self.asked.retain(|_, question| !question.is_finished());
        let Some(reply) = reply else { return };
        if let Some(mode) = reply.mode {
            self.live.mode_is(PermissionMode::from_word(&mode));
            self.desk.tell("permissionModeChanged", &[("permissionMode", mode.into())]);
        }
        self.live.link.write(reply.line).await;
    }

    /// It ended by itself.
    fn over(&mut self, session_id: &str) -> Outcome {
        self.questions.abort_all();
        self.live.made(&self.progress);
        let result = self.result.take().unwrap_or_default();
        if let Some(meta) = outcome::usage_of(&result, self.live.model_in_use().as_deref()) {
            let members = [("sessionId", session_id.into()), ("meta", meta.into())];
            self.desk.tell("contextUsageUpdated", &members);
        }
        outcome::of(&result, &self.seen)
    }

    /// The program has ended under it.
    async fn died(&mut self) -> (Outcome, Keep) {
        self.questions.abort_all();
        let outcome = match self.result.take() {
            Some(result) if self.progress.all_answered() => outcome::of(&result, &self.seen),
            Some(_) | None => {
                let words = self.live.link.agent.last_words("Claude Code ended in the middle of a turn");
                Outcome::Failed(words.await)
            }
        };
        // It may have closed its output and run on.
        self.live.link.agent.kill().await;
        (outcome, Keep::Gone)
    }

    /// It is to stop: first by the protocol, which keeps the program; then by signals.
    async fn interrupt(mut self, said: mpsc::Receiver<Said>, before: Processes) -> (Outcome, Keep) {
        self.questions.abort_all();
        let agent = &self.live.link.agent;
        // A program that has not begun may not have seen our message yet, and would begin with it after the interruption.
        if !self.progress.has_run() {
            agent.kill().await;
            return (Outcome::Aborted, Keep::Gone);
        }
        let rests = tokio::time::timeout(INTERRUPT, self.comes_to_rest(said)).await.unwrap_or(false);
        if !rests {
            agent.stop(TERM).await;
            return (Outcome::Aborted, Keep::Gone);
        }
        if !before.are_alone_again(self.live).await {
            // Something of the turn runs on that the program does not know any more: a tool that went into the background.
            agent.kill().await;
            return (Outcome::Aborted, Keep::Gone);
        }
        self.live.made(&self.progress);
        (Outcome::Aborted, Keep::Warm)
    }

    /// Interrupts what runs and takes back what waits. `false` when the program does not do that.
    async fn comes_to_rest(&mut self, mut said: mpsc::Receiver<Said>) -> bool {
        for uuid in self.progress.open() {
            // Otherwise a message that waits would be begun with when the running one has been interrupted.
            let take_back = json!({"subtype": "cancel_async_message", "message_uuid": uuid});
            self.live.link.write(frame::request(&format!("outrigger-cancel-{uuid}"), &take_back)).await;
        }
        let request = json!({"subtype": "interrupt"});
        let interrupt = self.live.link.control(&request, INTERRUPT);
        tokio::pin!(interrupt);
        let mut confirmed = false;
        while !confirmed || !self.progress.rests() {
            tokio::select! {
                answer = &mut interrupt, if !confirmed => match answer {
                    Ok(_) => confirmed = true,
                    Err(_) => return false,
                },
                heard = said.recv() => match heard {
                    Some(Said::Line(line)) => self.rested(&line),
                    Some(Said::Noise(_)) => {}
                    None => return false,
                },
            }
        }
        self.live.link.stop_listening(said).await;
        true
    }

    /// What is said after the stop is only of interest for whether it is the last.
    fn rested(&mut self, line: &Line) {
        if line.kind == Kind::Result {
            self.progress.result();
        }
        if let Some(state) = line.state() {
            self.progress.state(&state);
        }
    }
}

/// The processes in the program's box when the turn began: its MCP servers, and what earlier turns left in the background.
struct Processes(JoinHandle<HashSet<Identity>>);

impl Processes {
    fn now(live: &Live) -> Self {
        let pid = live.link.agent.child().status().pid;
        Self(tokio::task::spawn_blocking(move || look(pid)))
    }

    /// Whether all that began since is gone, or goes soon.
    async fn are_alone_again(self, live: &Live) -> bool {
        let Ok(before) = self.0.await else { return false };
        let pid = live.link.agent.child().status().pid;
        let until = Instant::now() + LEAVES_WITHIN;
        loop {
            let Ok(now) = tokio::task::spawn_blocking(move || look(pid)).await else { return false };
            if now.is_subset(&before) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A table that cannot be read says nothing, and then the interruption has to be believed.
fn look(pid: Option<Pid>) -> HashSet<Identity> {
    let processes = pid.and_then(|pid| tree::in_box_of(pid).ok());
    processes.unwrap_or_default().into_iter().collect()
}
