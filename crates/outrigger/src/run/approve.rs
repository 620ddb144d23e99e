//! Whoever sits at the terminal: what needs approval and what the agent asks is put to them, one thing at a time, and what they
//! type meanwhile is for the agent. Approvals go where any other process would write them: into the run's ledger.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_abp::govern::{AnswerError, Answered, ApprovalRequest, Choice, Ledger};
use outrigger_abp::protocol::{Answer, AskDecision, Raw, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc;

use super::form::{Form, Step};
use super::show::Screen;
use crate::say::short;

/// How much may wait behind what is being asked, and how much typed text may wait for the run.
const WAITING: usize = 64;

/// What was typed, for the run.
#[derive(Debug)]
pub(super) enum Typed {
    /// To the agent.
    Words(String),
    /// The answer to a question of the agent.
    Answer(Answer),
}

/// A person at a terminal.
pub(super) struct Person {
    open: Arc<Mutex<VecDeque<Asked>>>,
}

/// Something that waits for a person.
enum Asked {
    Approval(ApprovalRequest),
    Question { ref_id: String, id: String, form: Form },
}

impl Person {
    /// None when nobody is there. A thread of its own reads what they type and does not hold up our exit.
    pub(super) fn start(ledger: PathBuf, typed: mpsc::Sender<Typed>) -> Option<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return None;
        }
        let open = Arc::new(Mutex::new(VecDeque::new()));
        let reader = Reader { open: Arc::clone(&open), ledger, typed };
        std::thread::Builder::new().name("typing".to_owned()).spawn(move || reader.read()).ok()?;
        Some(Self { open })
    }

    /// A channel for what is typed.
    pub(super) fn channel() -> (mpsc::Sender<Typed>, mpsc::Receiver<Typed>) {
        mpsc::channel(WAITING)
    }

    /// Asks for approval. Says whether it will be asked.
    pub(super) fn approve(&self, screen: &mut Screen, request: &ApprovalRequest) -> bool {
        self.put(screen, Asked::Approval(request.clone()))
    }

    /// Puts a question of the agent. Says whether it will be asked.
    pub(super) fn question(&self, screen: &mut Screen, ref_id: &str, id: &str, question: &Value) -> bool {
        let Some(form) = Form::read(question) else { return false };
        self.put(screen, Asked::Question { ref_id: ref_id.to_owned(), id: id.to_owned(), form })
    }

    fn put(&self, screen: &mut Screen, asked: Asked) -> bool {
        let mut open = lock(&self.open);
        if open.len() >= WAITING {
            return false;
        }
        if open.is_empty() {
            asked.show(screen);
        }
        open.push_back(asked);
        true
    }
}

/// What reads the terminal.
struct Reader {
    open: Arc<Mutex<VecDeque<Asked>>>,
    ledger: PathBuf,
    typed: mpsc::Sender<Typed>,
}

impl Reader {
    fn read(self) {
        let mut screen = Screen::new();
        let mut line = String::new();
        loop {
            line.clear();
            match std::io::stdin().lock().read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let typed = self.take(&mut screen, line.trim());
            if typed.is_some_and(|typed| self.typed.blocking_send(typed).is_err()) {
                return;
            }
        }
    }

    /// What a line means: an answer to what is open, else words for the agent.
    fn take(&self, screen: &mut Screen, line: &str) -> Option<Typed> {
        let mut open = lock(&self.open);
        let typed = match open.front_mut() {
            None if line.is_empty() => return None,
            None => return Some(Typed::Words(line.to_owned())),
            Some(Asked::Approval(request)) => {
                let Some(choice) = choice(line) else {
                    screen.ask("y, n or a:");
                    return None;
                };
                if let Err(error) = answer(&self.ledger, request, choice) {
                    screen.warn(&error);
                }
                None
            }
            Some(Asked::Question { ref_id, id, form }) => {
                let (decision, content) = match form.answer(line) {
                    Step::Again(why) => {
                        screen.ask(&why);
                        return None;
                    }
                    Step::Next => {
                        screen.ask(&form.prompt());
                        return None;
                    }
                    Step::Done(members) => (AskDecision::Allow, Raw::of(&Value::Object(members)).ok()),
                    Step::Declined => (AskDecision::Deny, None),
                };
                let (ref_id, id) = (std::mem::take(ref_id), std::mem::take(id));
                Some(Typed::Answer(Answer {
                    ref_id,
                    id,
                    decision,
                    reason: "the user's answer".to_owned(),
                    content,
                }))
            }
        };
        open.pop_front();
        if let Some(next) = open.front() {
            next.show(screen);
        }
        typed
    }
}

impl Asked {
    fn show(&self, screen: &mut Screen) {
        match self {
            Self::Approval(request) => {
                let left = request.deadline.since(Timestamp::now()).as_secs();
                screen.ask(&format!(
                    "{} {} [y]es, [n]o, [a]lways in this run ({} in {left} s):",
                    request.tool_name,
                    short(&request.input),
                    if request.default.allows() { "allowed" } else { "denied" },
                ));
            }
            Self::Question { form, .. } => {
                screen.note(&form.heading());
                screen.ask(&form.prompt());
            }
        }
    }
}

fn choice(line: &str) -> Option<Choice> {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Choice::Allow),
        "n" | "no" => Some(Choice::Deny),
        "a" | "always" => Some(Choice::AllowAlways),
        _ => None,
    }
}

/// Writes an answer into a ledger, as a sentence if that is not possible.
pub(crate) fn answer(ledger: &Path, request: &ApprovalRequest, choice: Choice) -> Result<(), String> {
    let by = std::env::var("USER").unwrap_or_else(|_| "terminal".to_owned());
    let answered = Answered { id: request.id.clone(), choice, by, at: Timestamp::now(), reason: None };
    let mut ledger = Ledger::open_existing(ledger).map_err(|error| error.to_string())?;
    ledger.answer(&answered).map_err(|error: AnswerError| error.to_string())
}

fn lock(open: &Mutex<VecDeque<Asked>>) -> MutexGuard<'_, VecDeque<Asked>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}
