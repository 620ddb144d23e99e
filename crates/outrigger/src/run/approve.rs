//! Asking whoever sits at the terminal. The answer goes where any other process would write it: into the run's ledger.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use outrigger_abp::govern::{AnswerError, Answered, ApprovalRequest, Choice, Ledger};
use outrigger_abp::protocol::Timestamp;

use super::show::Screen;
use crate::say::short;

/// How many questions may wait behind the one that is being asked.
const WAITING: usize = 64;

/// Asks one question after the other, in a thread of its own that does not hold up our exit.
pub(super) struct Prompter {
    questions: SyncSender<ApprovalRequest>,
}

impl Prompter {
    /// None when there is nobody to ask.
    pub(super) fn start(ledger: PathBuf) -> Option<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return None;
        }
        let (questions, asked) = sync_channel(WAITING);
        let ask = move || ask_all(&asked, &ledger);
        std::thread::Builder::new().name("approvals".to_owned()).spawn(ask).ok()?;
        Some(Self { questions })
    }

    /// Says whether the question will be asked.
    pub(super) fn ask(&self, request: &ApprovalRequest) -> bool {
        self.questions.try_send(request.clone()).is_ok()
    }
}

fn ask_all(questions: &Receiver<ApprovalRequest>, ledger: &std::path::Path) {
    let mut screen = Screen::new();
    for request in questions {
        let Some(choice) = ask(&mut screen, &request) else { return };
        match answer(ledger, &request, choice) {
            Ok(()) => {}
            Err(error) => screen.warn(&error),
        }
    }
}

/// What the person says; none when they have gone.
fn ask(screen: &mut Screen, request: &ApprovalRequest) -> Option<Choice> {
    let left = request.deadline.since(Timestamp::now()).as_secs();
    screen.ask(&format!(
        "{} {} [y]es, [n]o, [a]lways in this run ({} in {left} s):",
        request.tool_name,
        short(&request.input),
        if request.default.allows() { "allowed" } else { "denied" },
    ));
    let mut line = String::new();
    loop {
        line.clear();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Some(Choice::Allow),
            "n" | "no" => return Some(Choice::Deny),
            "a" | "always" => return Some(Choice::AllowAlways),
            _ => screen.ask("y, n or a:"),
        }
    }
}

/// Writes an answer into a ledger, as a sentence if that is not possible.
pub(crate) fn answer(
    ledger: &std::path::Path,
    request: &ApprovalRequest,
    choice: Choice,
) -> Result<(), String> {
    let by = std::env::var("USER").unwrap_or_else(|_| "terminal".to_owned());
    let answered = Answered { id: request.id.clone(), choice, by, at: Timestamp::now(), reason: None };
    let mut ledger = Ledger::open_existing(ledger).map_err(|error| error.to_string())?;
    ledger.answer(&answered).map_err(|error: AnswerError| error.to_string())
}
