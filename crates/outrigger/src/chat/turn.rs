//! One turn: what was said goes to the agent; its words come back, its questions are answered, and it can be steered.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_steerable::host::{
    Answers, Decision, Questions, Sidecar, SteerBy, Steered, Stream, StreamEvent, Verdict,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ask::Asked;
use super::keys::Key;
use super::line::{Line, Typed};
use super::screen::Screen;
use super::show::{self, Ending};
use super::terminal::Terminal;
use crate::exec::owner::{Owner, Wish};
use crate::say::{self, Format};

/// What a turn needs of the conversation around it.
pub(super) struct Around<'a> {
    pub(super) format: Format,
    pub(super) sidecar: &'a Sidecar,
    pub(super) screen: &'a mut Screen,
    pub(super) terminal: &'a mut Option<Terminal>,
    pub(super) line: &'a mut Line,
    pub(super) asked: &'a mut mpsc::Receiver<Asked>,
    pub(super) owner: &'a mut Owner,
    pub(super) within: Option<Duration>,
}

/// The prompt while the agent works.
const STEER: &str = "steer ›";
const ANSWER: &str = "answer ›";

/// Runs a turn to its end.
pub(super) async fn run(around: Around<'_>, stream: Stream) -> Ending {
    let deadline = around.within.map(|within| Instant::now() + within);
    let mut turn = Turn {
        around,
        stream,
        said: String::new(),
        questions: VecDeque::new(),
        filled: Answers::new(),
        stopping: false,
    };
    loop {
        let due = async {
            match deadline {
                Some(at) if !turn.stopping => tokio::time::sleep_until(at).await,
                _ => std::future::pending().await,
            }
        };
        let key = async {
            match turn.around.terminal {
                Some(terminal) => terminal.key().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = turn.stream.next() => match event {
                Some(StreamEvent::Chunk(chunk)) => turn.chunk(&chunk),
                Some(StreamEvent::Missed(count)) => turn.around.screen.warn(&format!("{count} pieces were missed")),
                Some(StreamEvent::End(end)) => {
                    return show::end(turn.around.format, turn.around.screen, &end, &turn.said);
                }
                // There is exactly one end, and it was seen.
                None => return Ending { code: show::CANCELLED, trace: None },
            },
            Some(asked) = turn.around.asked.recv() => turn.ask(asked),
            key = key => match key {
                Some(key) => turn.key(key).await,
                None => turn.cancel("the terminal is gone").await,
            },
            wish = turn.around.owner.next() => match wish {
                Wish::Stop => turn.cancel("cancelling; once more to leave at once").await,
                Wish::Kill => return Ending { code: show::CANCELLED, trace: None },
            },
            () = due => turn.cancel("the time is up").await,
        }
    }
}

struct Turn<'a> {
    around: Around<'a>,
    stream: Stream,
    said: String,
    /// What waits for an answer; the first one is on the screen.
    questions: VecDeque<Asked>,
    /// The answers to the first of them, as far as they were given.
    filled: Answers,
    stopping: bool,
}

impl Turn<'_> {
    fn chunk(&mut self, chunk: &outrigger_steerable::host::Chunk) {
        show::chunk(self.around.format, self.around.screen, chunk, &mut self.said);
        self.draw();
    }

    /// The line that is typed, if there is something in it or something is asked.
    fn draw(&mut self) {
        let label = match self.questions.front() {
            Some(Asked::Questions { .. }) => ANSWER,
            Some(Asked::Approval { .. }) => return,
            None if self.around.line.is_empty() => return self.around.screen.erase(),
            None => STEER,
        };
        self.around.screen.draw(label, self.around.line);
    }

    /// The agent wants to know something.
    fn ask(&mut self, asked: Asked) {
        if self.around.format == Format::Json {
            match &asked {
                Asked::Approval { request, .. } => say::members(&[
                    ("event", "approval".into()),
                    ("tool", request.tool_name.clone().into()),
                    ("arguments", request.arguments.clone().into()),
                    ("mode", request.mode.clone().into()),
                ]),
                Asked::Questions { questions, .. } => {
                    let texts = questions.questions.iter().map(|one| one.question.clone());
                    say::members(&[("event", "question".into()), ("questions", texts.collect())]);
                }
            }
        }
        // Nobody types, so nobody answers; dropping it says so.
        if self.around.terminal.is_none() {
            return;
        }
        self.questions.push_back(asked);
        if self.questions.len() == 1 {
            self.pose();
        }
    }

    /// Puts the first question on the screen.
    fn pose(&mut self) {
        let screen = &mut *self.around.screen;
        match self.questions.front() {
            None => {}
            Some(Asked::Approval { request, .. }) => {
                // All of it, because all of it is approved.
                screen.question(&format!(
                    "{} {}\n  [y]es  [n]o  [a]lways in this session  [q]uit the turn",
                    request.tool_name,
                    Value::Object(request.arguments.clone())
                ));
            }
            Some(Asked::Questions { questions, .. }) => {
                if self.filled.is_empty()
                    && let Some(intro) = &questions.intro
                {
                    screen.note(intro);
                }
                if let Some(question) = questions.questions.get(self.filled.len()) {
                    let options: Vec<String> = question
                        .options
                        .iter()
                        .enumerate()
                        .map(|(at, option)| {
                            format!(
                                "  {}. {}",
                                at + 1,
                                option.as_str().map_or_else(|| option.to_string(), str::to_owned)
                            )
                        })
                        .collect();
                    screen.question(&[vec![question.question.clone()], options].concat().join("\n"));
                }
            }
        }
        self.draw();
    }

    async fn key(&mut self, key: Key) {
        if let Some(Asked::Approval { .. }) = self.questions.front() {
            return self.decide(&key).await;
        }
        match self.around.line.key(key) {
            Typed::Nothing => self.draw(),
            Typed::Over => {}
            Typed::Stop if !self.around.line.is_empty() => {
                self.around.line.clear();
                self.draw();
            }
            Typed::Stop => self.cancel("cancelling").await,
            Typed::Sent(text) => match self.questions.front() {
                Some(Asked::Questions { .. }) => self.answer(text),
                Some(Asked::Approval { .. }) | None => self.steer(text).await,
            },
        }
    }

    /// One key decides.
    async fn decide(&mut self, key: &Key) {
        let (verdict, word) = match key {
            Key::Text('y' | 'Y') => (Verdict::AllowOnce, "yes"),
            Key::Text('a' | 'A') => (Verdict::AllowForSession, "always in this session"),
            Key::Text('n' | 'N') | Key::Enter => (Verdict::DenyOnce, "no"),
            Key::Text('q' | 'Q') | Key::Escape | Key::Interrupt => (Verdict::Abort, "quit"),
            _ => return,
        };
        if let Some(Asked::Approval { answer, .. }) = self.questions.pop_front() {
            // It may have been answered by its deadline meanwhile.
            let _ = answer.send(Decision::new(verdict).because("by the person at the terminal"));
        }
        self.around.screen.note(&format!("  {word}"));
        self.pose();
    }

    /// A line answers the question on the screen; a number picks an option.
    fn answer(&mut self, text: String) {
        let Some(Asked::Questions { questions, .. }) = self.questions.front() else { return };
        let Questions { questions: all, .. } = questions;
        if let Some(question) = all.get(self.filled.len()) {
            let picked =
                text.trim().parse::<usize>().ok().and_then(|at| question.options.get(at.checked_sub(1)?));
            let value = picked.cloned().unwrap_or_else(|| Value::from(text.trim()));
            self.around.screen.sent("›", value.as_str().unwrap_or(&text));
            self.filled.insert(question.id.clone(), value);
        }
        if self.filled.len() >= all.len() {
            let filled = std::mem::take(&mut self.filled);
            if let Some(Asked::Questions { answer, .. }) = self.questions.pop_front() {
                let _ = answer.send(Ok(filled));
            }
        }
        self.pose();
    }

    async fn steer(&mut self, text: String) {
        self.around.screen.sent(STEER, &text);
        match self.around.sidecar.steer(self.stream.id(), &text, SteerBy::Boundary).await {
            Ok(Steered::Accepted) => {}
            Ok(Steered::Refused(_)) => self.around.screen.warn("it came too late: the turn is over"),
            Err(error) => self.around.screen.warn(&error.to_string()),
        }
    }

    async fn cancel(&mut self, why: &str) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        match self.around.format {
            Format::Json => say::members(&[("event", "cancelling".into()), ("message", why.into())]),
            Format::Text => self.around.screen.note(why),
        }
        if let Err(error) = self.around.sidecar.cancel(self.stream.id()).await {
            self.around.screen.warn(&error.to_string());
        }
    }
}
