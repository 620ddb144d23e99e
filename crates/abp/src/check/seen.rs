//! What was seen of one run: of every rule the first line that breaks it, so that memory does not grow with the run.

use crate::protocol::{AgentEvent, Envelope, EventKind, Outcome, ReceivedReceipt, Timestamp, read};
use crate::receipt::canonical_sha256;

use outrigger_wire::conformance::{Status, shown};

use super::report::Found;

/// The notes on one run.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) events: u64,
    pub(super) ends: u32,
    pub(super) pongs: Vec<u64>,
    pub(super) noise: Option<String>,
    pub(super) malformed: Option<(String, String)>,
    pub(super) foreign: Option<String>,
    pub(super) unknown_t: Option<String>,
    pub(super) unknown_type: Option<String>,
    pub(super) backwards: Option<String>,
    pub(super) after_end: Option<String>,
    pub(super) fatal: Option<String>,
    pub(super) receipt: Option<ReceiptNotes>,
    last: Option<Timestamp>,
}

/// What there is to say about a receipt.
pub(super) struct ReceiptNotes {
    pub(super) line: String,
    pub(super) outcome: Option<Outcome>,
    pub(super) form: Result<(), String>,
    pub(super) run: Result<(), String>,
    pub(super) hash: Found,
    pub(super) trace: Found,
}

impl Seen {
    /// Takes a line of the child; `run` is the run that is under way.
    pub(super) fn take(&mut self, line: &str, run: &str) {
        let message = match read(line) {
            Ok(message) => message,
            Err(_) if !is_json(line) => {
                self.noise.get_or_insert_with(|| shown(line));
                return;
            }
            Err(error) => {
                self.malformed.get_or_insert_with(|| (error.to_string(), shown(line)));
                return;
            }
        };
        let mut ours = |ref_id: &str| {
            if ref_id != run {
                self.foreign.get_or_insert_with(|| shown(line));
            }
        };
        match message {
            Envelope::Event { ref_id, event } => {
                ours(&ref_id);
                self.event(&event, line);
            }
            Envelope::Final { ref_id, receipt } => {
                ours(&ref_id);
                self.end(line);
                let text = receipt_text(line);
                self.receipt = Some(ReceiptNotes::of(&receipt, &text, run, self.events, line));
            }
            Envelope::Fatal { ref_id, error, .. } => {
                if let Some(ref_id) = ref_id {
                    ours(&ref_id);
                }
                self.end(line);
                self.fatal = Some(shown(&error));
            }
            // No child sends so many that it matters.
            Envelope::Pong { seq } if self.pongs.len() < 64 => self.pongs.push(seq),
            Envelope::Pong { .. } | Envelope::Ask(_) => {}
            Envelope::Hello(_)
            | Envelope::Run(_)
            | Envelope::Cancel { .. }
            | Envelope::Ping { .. }
            | Envelope::Steer { .. }
            | Envelope::Answer(_)
            | Envelope::Other { .. } => {
                self.unknown_t.get_or_insert_with(|| shown(line));
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ends > 0
    }

    fn end(&mut self, line: &str) {
        self.ends += 1;
        if self.ends > 1 {
            self.after_end.get_or_insert_with(|| shown(line));
        }
    }

    fn event(&mut self, event: &AgentEvent<'_>, line: &str) {
        self.events += 1;
        if self.ends > 0 {
            self.after_end.get_or_insert_with(|| shown(line));
        }
        match event.kind {
            EventKind::Other { .. } | EventKind::Usage(_) => {
                self.unknown_type.get_or_insert_with(|| shown(line));
            }
            _ => {}
        }
        if self.last.is_some_and(|last| event.ts < last) {
            self.backwards.get_or_insert_with(|| shown(line));
        }
        self.last = Some(event.ts);
    }
}

impl ReceiptNotes {
    fn of(receipt: &ReceivedReceipt<'_>, text: &str, run: &str, events: u64, line: &str) -> Self {
        Self {
            line: shown(line),
            outcome: receipt.outcome.clone(),
            form: form(receipt),
            run: match &receipt.run_id {
                Some(id) if id.canonical() == crate::protocol::RunId::new(run).canonical() => Ok(()),
                Some(id) => Err(format!("it names the run {id}, not {run}")),
                None => Err("it names no run".to_owned()),
            },
            hash: hash(receipt, text),
            trace: trace(receipt, events),
        }
    }
}

/// Every member that hosts of the original cannot do without.
fn form(receipt: &ReceivedReceipt<'_>) -> Result<(), String> {
    if let Some(problem) = receipt.problems.first() {
        return Err(problem.to_string());
    }
    let members = [
        ("meta.run_id", receipt.run_id.is_some()),
        ("meta.work_order_id", receipt.work_order_id.is_some()),
        ("meta.contract_version", receipt.contract_version.is_some()),
        ("meta.started_at", receipt.started_at.is_some()),
        ("meta.finished_at", receipt.finished_at.is_some()),
        ("meta.duration_ms", receipt.duration_ms.is_some()),
        ("backend", receipt.backend.is_some()),
        ("capabilities", receipt.capabilities.is_some()),
        ("trace", receipt.trace.is_some()),
        ("outcome", receipt.outcome.is_some()),
    ];
    if let Some((missing, _)) = members.iter().find(|(_, there)| !there) {
        return Err(format!("`{missing}` is missing"));
    }
    if let Some(Outcome::Other(word)) = &receipt.outcome {
        return Err(format!("the outcome `{word}` is not in the contract"));
    }
    match receipt.finished_at < receipt.started_at {
        true => Err("it finished before it started".to_owned()),
        false => Ok(()),
    }
}

fn hash(receipt: &ReceivedReceipt<'_>, text: &str) -> Found {
    let Some(claimed) = &receipt.receipt_sha256 else {
        return Found::pass("there is none; the control plane fills it in");
    };
    match canonical_sha256(text) {
        Ok(hash) if hash.to_string() == *claimed => Found::pass("it is right"),
        Ok(hash) => {
            Found::new(Status::Fail, format!("it says {}, and the receipt hashes to {hash}", shown(claimed)))
        }
        Err(error) => Found::new(Status::Fail, format!("the receipt cannot be hashed: {error}")),
    }
}

fn trace(receipt: &ReceivedReceipt<'_>, events: u64) -> Found {
    let entries = receipt
        .trace
        .as_ref()
        .map(|trace| trace.parse::<Vec<serde::de::IgnoredAny>>().map(|all| all.len() as u64));
    match entries {
        None => Found::skipped("there is none"),
        Some(Ok(0)) => Found::pass("it is empty; the control plane fills it with what it saw"),
        Some(Ok(entries)) if entries == events => {
            Found::pass(format!("it has the {events} events that were sent"))
        }
        Some(Ok(entries)) => {
            Found::new(Status::Warn, format!("it has {entries} events, and {events} were sent"))
        }
        Some(Err(error)) => Found::new(Status::Fail, format!("it is not a list: {error}")),
    }
}

fn is_json(line: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
}

/// The receipt as the child spelled it.
fn receipt_text(line: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Final<'l> {
        #[serde(borrow)]
        receipt: &'l serde_json::value::RawValue,
    }
    serde_json::from_str::<Final<'_>>(line).map_or_else(|_| String::new(), |end| end.receipt.get().to_owned())
}
