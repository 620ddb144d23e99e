//! The pipes of one process of the node, and how it introduces itself.

use outrigger_supervise::driver::{Child, Output, Request, SessionHandle};
use outrigger_supervise::state::Fault as ChildFault;
use outrigger_wire::line::{Item, LineReader, LineWriter, dialect};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::talk::{Ask, Said};
use super::{LxmfError, Versions};
use crate::mesh::Address;

/// The longest line in either direction: a message of a megabyte, every character of it escaped.
const MAX_LINE: usize = 8 << 20;

/// How a node introduces itself.
#[derive(Debug)]
pub(super) struct Hello {
    pub(super) address: Address,
    pub(super) identity: Address,
    pub(super) versions: Versions,
}

/// The pipes of one process.
pub(super) struct Line {
    pub(super) handle: SessionHandle,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) reader: LineReader<Output>,
    /// Gone when the process was asked to leave.
    pub(super) writer: Option<LineWriter<pipe::Sender>>,
}

/// Takes the first process and waits until it has introduced itself.
pub(super) async fn first(child: &Child) -> Result<(Line, Hello), LxmfError> {
    let Some(mut line) = Line::take(child).await else { return Err(ended(child).await) };
    match line.hello().await {
        Some(Ok(hello)) => Ok((line, hello)),
        Some(Err(error)) => {
            child.kill().await;
            Err(error)
        }
        None => Err(ended(child).await),
    }
}

async fn ended(child: &Child) -> LxmfError {
    let outcome = child.kill().await;
    let why = outcome.report.map_or_else(|| "it never ran".to_owned(), |report| report.to_string());
    LxmfError::NotStarted { why }
}

impl Line {
    pub(super) async fn take(child: &Child) -> Option<Self> {
        let mut session = child.next_session().await?;
        let (stdout, stdin) = (session.stdout.take()?, session.stdin.take()?);
        let reader = LineReader::new(stdout, dialect::sep(MAX_LINE));
        let writer = Some(LineWriter::new(stdin, MAX_LINE));
        Some(Self { handle: session.handle(), requests: session.requests, reader, writer })
    }

    /// What the process says first; `None` if it says nothing.
    pub(super) async fn hello(&mut self) -> Option<Result<Hello, LxmfError>> {
        match self.hear().await? {
            Said::Ready { address, identity, rns, lxmf } => {
                let (Ok(address), Ok(identity)) = (Address::parse(&address), Address::parse(&identity))
                else {
                    let why = "it introduced itself without a proper address".to_owned();
                    return Some(Err(LxmfError::NotStarted { why }));
                };
                self.handle.attached().await;
                Some(Ok(Hello { address, identity, versions: Versions { rns, lxmf } }))
            }
            Said::Fatal { code, message } => Some(Err(match code.as_str() {
                "packages_missing" => LxmfError::NoPackages { detail: message },
                "version_unsupported" => LxmfError::Unsupported { detail: message },
                _ => LxmfError::NotStarted { why: message },
            })),
            Said::Accepted { .. }
            | Said::Refused { .. }
            | Said::Trouble { .. }
            | Said::State { .. }
            | Said::Received(_)
            | Said::Announce { .. }
            | Said::Other => {
                Some(Err(LxmfError::NotStarted { why: "it did not introduce itself".to_owned() }))
            }
        }
    }

    /// The next thing that the process says; `None` when it says nothing any more. Cancel safe.
    async fn hear(&mut self) -> Option<Said> {
        hear(&mut self.reader, &self.handle).await
    }

    /// Says something; `false` if nobody takes it.
    pub(super) async fn ask(&mut self, ask: &Ask) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        // What we say always has a spelling in JSON.
        let line = serde_json::to_vec(ask).unwrap_or_default();
        writer.write(&line).await.is_ok()
    }
}

/// The next thing that a process says; `None` when it says nothing any more. Cancel safe.
pub(super) async fn hear(reader: &mut LineReader<Output>, handle: &SessionHandle) -> Option<Said> {
    loop {
        let text = match reader.next().await {
            Ok(Some(Item::Line(line))) if line.bytes().is_empty() => continue,
            Ok(Some(Item::Line(line))) => line.bytes(),
            Ok(Some(Item::TooLong(_) | Item::Defective(_))) => b"",
            Ok(None) | Err(_) => return None,
        };
        if let Ok(said) = serde_json::from_slice(text) {
            return Some(said);
        }
        let detail = String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned();
        handle.fault(ChildFault::ProtocolViolation, detail).await;
    }
}
