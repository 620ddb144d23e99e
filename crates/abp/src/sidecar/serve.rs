//! The loop of a sidecar: says hello, gives every run to the handler, answers pings while it works, and ends each run with
//! exactly one `final` or `fatal`, whatever the handler does.

use std::any::Any;
use std::borrow::Cow;
use std::future::Future;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use outrigger_wire::line::{Head, Item, LineReadError, LineReader, dialect};
use outrigger_wire::standard;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};

use super::output::{HostGone, Output};
use super::run::Run;
use super::terms::{Done, Failure, Identity, Options};
use crate::protocol::{
    ContractVersion, EXTENSIONS, Envelope, ErrorCode, Hello, OrderId, Outcome, Powers, Raw, ReceivedReceipt,
    Timestamp, read,
};

/// The id of an order that has none; hosts of the original need one in a receipt.
const NO_ID: &str = "00000000-0000-0000-0000-000000000000";

/// Serves runs on the standard streams of this process, until the host has gone. From here on whatever else is printed to
/// standard output goes to standard error.
///
/// # Errors
/// When the standard streams cannot be used.
pub async fn serve<H, F>(identity: Identity, handler: H) -> io::Result<()>
where
    H: Fn(Run) -> F,
    F: Future<Output = Result<Done, Failure>> + Send + 'static,
{
    let (input, output) = standard::take()?;
    serve_on(input, output, identity, Options::usual(), handler).await;
    Ok(())
}

/// As [`serve`], as a whole process: with a runtime of its own, and gone when the host is. A handler may block its thread
/// without keeping pings from being answered.
pub fn main<H, F>(identity: Identity, handler: H) -> ExitCode
where
    H: Fn(Run) -> F,
    F: Future<Output = Result<Done, Failure>> + Send + 'static,
{
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let served = built.and_then(|runtime| {
        let served = runtime.block_on(serve(identity, handler));
        // A thread that waits for a terminal, or a handler that blocks, must not keep the process alive.
        runtime.shutdown_background();
        served
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("the standard streams cannot be used: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Serves runs on any pair of streams, until `input` has ended and the last run with it, or the other end is gone.
pub async fn serve_on<H, F>(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + 'static,
    identity: Identity,
    options: Options,
    handler: H,
) where
    H: Fn(Run) -> F,
    F: Future<Output = Result<Done, Failure>> + Send + 'static,
{
    let output = Arc::new(Output::new(output));
    let server = Server { output: Arc::clone(&output), identity, options, handler, current: None };
    tokio::select! {
        // Whatever the handler does, it is dropped when there is nobody left to tell.
        () = output.until_gone() => {}
        served = server.serve(LineReader::new(input, dialect::ABP)) => {
            let (Ok(()) | Err(HostGone)) = served;
        }
    }
}

struct Server<H> {
    output: Arc<Output>,
    identity: Identity,
    options: Options,
    handler: H,
    current: Option<Current>,
}

/// A run with the task that does it. Dropping it drops the handler.
struct Current {
    run: Run,
    task: JoinHandle<Result<Done, Failure>>,
    /// When a cancelled handler is dropped.
    overdue: Option<Instant>,
}

impl Drop for Current {
    fn drop(&mut self) {
        self.task.abort();
    }
}

enum Happened {
    Said(String),
    Ended(Result<Result<Done, Failure>, JoinError>),
    Overdue,
    /// The input is over, for a reason if it was not its end.
    Over(Option<String>),
}

impl<H, F> Server<H>
where
    H: Fn(Run) -> F,
    F: Future<Output = Result<Done, Failure>> + Send + 'static,
{
    async fn serve<R: AsyncRead + Unpin>(mut self, reader: LineReader<R>) -> Result<(), HostGone> {
        self.hello().await?;
        let mut reader = Some(reader);
        while reader.is_some() || self.current.is_some() {
            match happened(&mut reader, &mut self.current).await {
                Happened::Said(line) => self.receive(&line).await?,
                Happened::Ended(result) => self.end(result).await?,
                Happened::Overdue => self.drop_handler().await?,
                Happened::Over(why) => {
                    reader = None;
                    if let Some(why) = why {
                        self.refuse(why).await?;
                    }
                    if let Some(current) = &self.current {
                        current.run.host_is_silent();
                    }
                }
            }
        }
        Ok(())
    }

    async fn hello(&self) -> Result<(), HostGone> {
        let Identity { backend, capabilities, mode, asks, takes } = self.identity.clone();
        let silent = asks.is_empty() && takes.is_empty();
        let outrigger = (!silent).then_some(Powers { version: EXTENSIONS, asks, takes });
        let contract_version = ContractVersion::ours();
        let hello = Hello { contract_version, backend, capabilities, mode, outrigger };
        self.output.send(&Envelope::Hello(Box::new(hello))).await
    }

    async fn receive(&mut self, line: &str) -> Result<(), HostGone> {
        let message = match read(line) {
            Ok(message) => message,
            Err(error) => {
                return match run_id(line) {
                    Some(id) => {
                        self.fatal(Some(&id), &error.to_string(), ErrorCode::ContractSchemaViolation).await
                    }
                    None => self.refuse(format!("invalid json: {error}")).await,
                };
            }
        };
        match message {
            Envelope::Run(run) => self.start(*run).await,
            Envelope::Ping { seq } => self.output.send(&Envelope::Pong { seq }).await,
            Envelope::Cancel { ref_id, reason } => {
                let grace = self.options.cancel_grace;
                match &mut self.current {
                    Some(current) if current.run.id().as_str() == ref_id => {
                        current.run.cancel(reason.map_or_else(|| "cancelled".to_owned(), Cow::into_owned));
                        current.overdue.get_or_insert_with(|| Instant::now() + grace);
                    }
                    Some(_) | None => log(&format!(
                        "a cancel for {:?}, which is not under way",
                        Head::of(ref_id.as_bytes())
                    )),
                }
                Ok(())
            }
            Envelope::Steer { ref_id, text } => {
                let own = self.current.as_ref().filter(|current| current.run.id().as_str() == ref_id);
                if !own.is_some_and(|current| current.run.steer(text.into_owned())) {
                    log("what the user said came too late, or too much of it waits already");
                }
                Ok(())
            }
            Envelope::Answer(answer) => {
                let id = Head::of(answer.id.as_bytes());
                if !self.current.as_ref().is_some_and(|current| current.run.answer(answer)) {
                    log(&format!("an answer to {id:?}, which was not asked"));
                }
                Ok(())
            }
            Envelope::Hello(_)
            | Envelope::Event { .. }
            | Envelope::Final { .. }
            | Envelope::Fatal { .. }
            | Envelope::Pong { .. }
            | Envelope::Ask(_)
            | Envelope::Other { .. } => {
                log(&format!("a message of type {:?} was ignored", Head::of(message.t().as_bytes())));
                Ok(())
            }
        }
    }

    async fn start(&mut self, run: crate::protocol::Run) -> Result<(), HostGone> {
        if let Some(current) = &self.current {
            let error = format!("run {} is under way, and there is one at a time", current.run.id());
            return self.fatal(Some(run.id.as_str()), &error, ErrorCode::ProtocolUnexpectedMessage).await;
        }
        let run = Run::new(run, &self.identity, Arc::clone(&self.output), self.options.trace_events);
        let task = tokio::spawn((self.handler)(run.clone()));
        self.current = Some(Current { run, task, overdue: None });
        Ok(())
    }

    /// Says that a line could not be understood. During a run only in the log: a fatal without an id would end that run.
    async fn refuse(&self, error: String) -> Result<(), HostGone> {
        if self.current.is_some() {
            log(&error);
            return Ok(());
        }
        self.fatal(None, &error, ErrorCode::ProtocolInvalidEnvelope).await
    }

    async fn fatal(&self, ref_id: Option<&str>, error: &str, code: ErrorCode) -> Result<(), HostGone> {
        let ref_id = ref_id.map(Cow::Borrowed);
        self.output
            .send(&Envelope::Fatal { ref_id, error: Cow::Borrowed(error), error_code: Some(code) })
            .await
    }

    async fn drop_handler(&mut self) -> Result<(), HostGone> {
        if let Some(current) = &mut self.current {
            log("the handler did not stop in time after the cancel, and is dropped");
            current.task.abort();
            current.overdue = None;
        }
        Ok(())
    }

    async fn end(&mut self, result: Result<Result<Done, Failure>, JoinError>) -> Result<(), HostGone> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let run = &current.run;
        let failure = match result {
            Ok(Ok(done)) => return run.end(&self.final_of(run, done)).await,
            Ok(Err(failure)) => failure,
            Err(error) if error.is_panic() => {
                let words = words_of(&*error.into_panic());
                Failure::internal(format!("the handler panicked: {words}"))
            }
            // Only we abort it, and only after a cancel.
            Err(_) => return run.end(&self.final_of(run, Done::as_it_went())).await,
        };
        let code = match failure.code {
            ErrorCode::Other(_) => None,
            known => Some(known),
        };
        let (ref_id, error) = (Some(Cow::Borrowed(run.id().as_str())), Cow::Owned(failure.message));
        run.end(&Envelope::Fatal { ref_id, error, error_code: code }).await
    }

    fn final_of<'r>(&self, run: &'r Run, done: Done) -> Envelope<'r> {
        let mut notes = run.notes();
        let artifacts = std::mem::take(&mut notes.artifacts);
        let trace = std::mem::take(&mut notes.trace);
        let usage = notes.spent;
        drop(notes);
        let (started_at, finished_at) = (run.inner.started_at, Timestamp::now().max(run.inner.started_at));
        let order = match run.order().id.as_str() {
            "" => OrderId::new(NO_ID),
            _ => run.order().id.clone(),
        };
        let as_it_went = || if run.cancel_reason().is_some() { Outcome::Partial } else { Outcome::Complete };
        let receipt = ReceivedReceipt {
            run_id: Some(run.id().clone()),
            work_order_id: Some(order),
            contract_version: Some(ContractVersion::ours()),
            started_at: Some(started_at),
            finished_at: Some(finished_at),
            duration_ms: Some(u64::try_from(finished_at.since(started_at).as_millis()).unwrap_or(u64::MAX)),
            backend: Some(self.identity.backend.clone()),
            capabilities: Some(self.identity.capabilities.clone()),
            mode: Some(run.mode().clone()),
            usage_raw: Some(done.usage_raw.unwrap_or_else(|| Raw::trusted("{}".to_owned()))),
            usage,
            // Events are text that was written here.
            trace: Some(Raw::trusted(format!("[{}]", String::from_utf8_lossy(&trace)))),
            artifacts,
            verification: done.verification,
            outcome: Some(done.outcome.unwrap_or_else(as_it_went)),
            receipt_sha256: None,
            problems: Vec::new(),
        };
        Envelope::Final { ref_id: Cow::Borrowed(run.id().as_str()), receipt: Box::new(receipt) }
    }
}

async fn happened<R: AsyncRead + Unpin>(
    reader: &mut Option<LineReader<R>>,
    current: &mut Option<Current>,
) -> Happened {
    let line = async {
        match reader {
            Some(reader) => next_line(reader).await,
            None => std::future::pending().await,
        }
    };
    let Some(current) = current else { return line.await };
    let overdue = async {
        match current.overdue {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // The end of a run first, so that the next one does not find it under way.
        biased;
        result = &mut current.task => Happened::Ended(result),
        said = line => said,
        () = overdue => Happened::Overdue,
    }
}

async fn next_line<R: AsyncRead + Unpin>(reader: &mut LineReader<R>) -> Happened {
    match reader.next().await {
        Ok(Some(Item::Line(line))) => Happened::Said(line.text_lossy().into_owned()),
        Ok(Some(Item::TooLong(_) | Item::Defective(_))) => Happened::Over(None),
        Ok(None) => Happened::Over(None),
        Err(LineReadError::Line(error)) => Happened::Over(Some(error.to_string())),
        Err(LineReadError::Io(error)) => Happened::Over(Some(error.to_string())),
    }
}

/// The id of a `run` that could not be read otherwise.
fn run_id(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct RunHead {
        t: String,
        id: String,
    }
    let head: RunHead = serde_json::from_str(line).ok()?;
    (head.t == "run").then_some(head.id)
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}

/// A line for people. There is nobody to tell when it cannot be written.
pub(super) fn log(text: &str) {
    let _ = writeln!(io::stderr(), "abp: {text}");
}
