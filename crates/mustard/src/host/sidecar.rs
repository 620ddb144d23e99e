//! One child and everything that can be said to it. A child that dies, lies or hangs is an error with its last words, never
//! a wait.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::report::Report;
use outrigger_supervise::state::Fault;
use outrigger_wire::frame::FrameLimit;

use super::conversation::{Answered, Conversation, ExchangeError};
use super::source::{Link, Process, Source, SpawnError};
use super::store::Dialect;
use crate::protocol::feature::{Feature, Features, MAX_REQUEST};
use crate::protocol::ids::ProgramId;
use crate::protocol::request::{Compile, Hello, Method};
use crate::protocol::response::{Failure, Greeting, Reply};

/// How long a child that closed its streams may take to be gone, so that the report has its own exit status.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How many programs a child is remembered to have; beyond that it is simply sent the bytes again.
const REMEMBERED: usize = 1024;

/// What a host takes from its children, and how long it waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The time for starting, greeting, compiling: everything that is not a step of a script.
    pub within: Duration,
    /// The largest request that we ask to be allowed to send; children of version 2 always take 1 MiB.
    pub request_bytes: u64,
    /// The largest response that is read; a child that says more is killed.
    pub response_bytes: u64,
}

impl Terms {
    /// Ten seconds, 64 MiB each way.
    pub fn usual() -> Self {
        Self { within: Duration::from_secs(10), request_bytes: 64 << 20, response_bytes: 64 << 20 }
    }
}

/// One child. Dropping it ends it.
pub struct Sidecar {
    conversation: Conversation,
    process: Process,
    dialect: Dialect,
    features: Features,
    greeting: Option<Greeting>,
    terms: Terms,
    programs: BTreeSet<ProgramId>,
    runs: u32,
}

/// Why a child did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SidecarError {
    /// It did, and the answer is no. The child is fine.
    #[error("{}", .0.error)]
    Refused(Failure),
    /// The request would be larger than it may be. Nothing was sent, and the child is fine.
    #[error("the request has {bytes} bytes, and this sidecar takes at most {limit}")]
    TooLarge {
        /// How large it would be.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The child is lost.
    #[error("{0}")]
    Lost(Lost),
    /// There is no child.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// How a child was lost.
#[derive(Clone, Debug)]
pub struct Lost {
    /// How.
    pub how: Loss,
    /// What was noticed.
    pub what: String,
    /// Its end, if it was a process of this host: exit status and last lines.
    pub report: Option<Arc<Report>>,
}

/// In which way a child was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It is gone.
    Died,
    /// It said something that is not a response to what it was asked, and was killed.
    Garbage,
    /// It took too long, and was killed.
    Late,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the sidecar was lost: {}", self.what)?;
        match &self.report {
            Some(report) => write!(f, "\n{report}"),
            None => Ok(()),
        }
    }
}

/// Whether `return` may end a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopLevelReturn {
    /// As the language has it.
    Refused,
    /// With the value of the script. Only children that speak our extensions can.
    Allowed,
}

/// A compiled script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub id: ProgramId,
    /// Itself.
    pub bytes: Vec<u8>,
}

impl Sidecar {
    /// Starts a child. One of ours is greeted; one that speaks only version 2 would die of that, and is not.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or does not greet.
    pub async fn start(source: &dyn Source, terms: Terms) -> Result<Self, SidecarError> {
        let spawned = tokio::time::timeout(terms.within, source.spawn()).await;
        let late = || SpawnError::Elsewhere(format!("nothing within {} ms", terms.within.as_millis()));
        let Link { input, output, process } = spawned.map_err(|_| late())??;
        let mut sidecar = Self {
            conversation: Conversation::new(input, output, MAX_REQUEST, FrameLimit(terms.response_bytes)),
            process,
            dialect: source.dialect(),
            features: Features::NONE,
            greeting: None,
            terms,
            programs: BTreeSet::new(),
            runs: 0,
        };
        let greeted = match sidecar.dialect {
            Dialect::Version2 => Ok(()),
            Dialect::Extended => sidecar.greet().await,
        };
        match greeted {
            Ok(()) => Ok(sidecar),
            Err(error) => {
                sidecar.end().await;
                Err(error)
            }
        }
    }

    /// What it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What it said of itself, if it was greeted.
    pub fn greeting(&self) -> Option<&Greeting> {
        self.greeting.as_ref()
    }

    /// Its process, if it is one of this host.
    pub fn pid(&self) -> Option<u32> {
        match &self.process {
            Process::Supervised { pid, .. } => Some(*pid),
            Process::Elsewhere => None,
        }
    }

    /// How many scripts it has begun or continued.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Whether it can take a request: it is not in the middle of one, and is not known to be gone.
    pub fn is_idle(&self) -> bool {
        let alive = match &self.process {
            Process::Supervised { child, .. } => child.status().ended.is_none(),
            Process::Elsewhere => true,
        };
        alive && self.conversation.is_idle()
    }

    /// Makes a program of a script.
    ///
    /// # Errors
    ///
    /// [`SidecarError::Refused`] says what is wrong with the script.
    pub async fn compile(&mut self, script: &str, end: TopLevelReturn) -> Result<Program, SidecarError> {
        let lenient_return = end == TopLevelReturn::Allowed;
        let method = Method::Compile(Compile { source: script.into(), lenient_return });
        let answered = self.ask(method, &[], self.terms.within).await?;
        match answered.outcome {
            Ok(Reply::Program(id)) if ProgramId::of(&answered.blob) == id => {
                self.remember(id);
                Ok(Program { id, bytes: answered.blob })
            }
            Ok(Reply::Program(id)) => {
                Err(self.lose(ExchangeError::Garbage(format!("its program is not {id}"))).await)
            }
            Ok(other) => Err(self.nonsense(&other).await),
            Err(failure) => Err(SidecarError::Refused(failure)),
        }
    }

    /// Ends it: its input is closed, and if it does not leave it is killed. Returns when it is gone.
    pub async fn end(self) {
        let Self { conversation, process, .. } = self;
        drop(conversation);
        match process {
            Process::Elsewhere => {}
            Process::Supervised { child, .. } => {
                if tokio::time::timeout(LAST_WORDS, child.wait()).await.is_err() {
                    child.kill().await;
                }
            }
        }
    }

    /// Sends any request. What is refused in-band is in the answer.
    pub(super) async fn ask(
        &mut self,
        method: Method<'_>,
        blob: &[u8],
        within: Duration,
    ) -> Result<Answered, SidecarError> {
        match self.conversation.exchange(method, blob, within).await {
            Ok(answered) => Ok(answered),
            Err(ExchangeError::TooLarge { bytes, limit }) => Err(SidecarError::TooLarge { bytes, limit }),
            Err(error) => Err(self.lose(error).await),
        }
    }

    /// Whether an extension is on.
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// Whether it probably has a program.
    pub(super) fn knows(&self, program: ProgramId) -> bool {
        self.programs.contains(&program)
    }

    pub(super) fn remember(&mut self, program: ProgramId) {
        if self.programs.len() >= REMEMBERED {
            self.programs.clear();
        }
        self.programs.insert(program);
    }

    pub(super) fn forget(&mut self, program: ProgramId) {
        self.programs.remove(&program);
    }

    pub(super) fn count_run(&mut self) {
        self.runs = self.runs.saturating_add(1);
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// It answered, but not what was asked.
    pub(super) async fn nonsense(&mut self, reply: &Reply) -> SidecarError {
        let kind = match reply {
            Reply::Program(_) => "a program",
            Reply::Completed(_) | Reply::Suspended(_) => "a step",
            Reply::Hello(_) => "a greeting",
            Reply::Released(_) => "a release",
            Reply::Inspection(_) => "an inspection",
        };
        self.lose(ExchangeError::Garbage(format!("it answered with {kind}, which was not asked"))).await
    }

    /// Gives it up: from here on it is dead, and this says how.
    pub(super) async fn lose(&mut self, error: ExchangeError) -> SidecarError {
        let how = match &error {
            ExchangeError::Closed | ExchangeError::Pipe(_) | ExchangeError::TooLarge { .. } => Loss::Died,
            ExchangeError::Garbage(_) => Loss::Garbage,
            ExchangeError::Late { .. } => Loss::Late,
        };
        self.conversation.give_up();
        let what = error.to_string();
        let report = match &self.process {
            Process::Elsewhere => None,
            Process::Supervised { child, handle, .. } => {
                match how {
                    Loss::Died => {}
                    Loss::Garbage => handle.fault(Fault::ProtocolViolation, what.clone()).await,
                    Loss::Late => handle.fault(Fault::Unhealthy, what.clone()).await,
                }
                match tokio::time::timeout(LAST_WORDS, child.wait()).await {
                    Ok(outcome) => outcome.report,
                    Err(_) => child.kill().await.report,
                }
            }
        };
        SidecarError::Lost(Lost { how, what, report })
    }

    async fn greet(&mut self) -> Result<(), SidecarError> {
        let hello = Hello::asking(Features::all(), Some(self.terms.request_bytes));
        let answered = self.ask(Method::Hello(hello), &[], self.terms.within).await?;
        match answered.outcome {
            Ok(Reply::Hello(greeting)) => {
                self.features = Features::named(greeting.enabled.iter().map(String::as_str));
                self.conversation.set_request_limit(greeting.limits.max_frame_bytes);
                self.greeting = Some(greeting);
                Ok(())
            }
            Ok(other) => Err(self.nonsense(&other).await),
            Err(failure) => Err(SidecarError::Refused(failure)),
        }
    }
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar")
            .field("pid", &self.pid())
            .field("dialect", &self.dialect)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}
