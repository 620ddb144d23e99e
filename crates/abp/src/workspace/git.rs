//! The `git` program, started so that nothing of the tree it looks at can tell it what to do.
//!
//! It gets a repository folder of ours, outside the tree, with our configuration and our attributes. It reads no system or
//! user configuration, runs no hook, filter, pager or monitor, opens no connection, writes only where it is told to, and has
//! a time limit. Its output comes here and is bounded; what it says on standard error is in the error.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Supervisor};
use outrigger_supervise::launch::Status;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::report::Report;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec, SpecError};
use outrigger_supervise::state::{Heartbeat, Restart};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

use super::changes::ObjectId;

/// Starts git.
#[derive(Clone, Debug)]
pub(super) struct Git {
    pub(super) supervisor: Supervisor,
    /// How long one command may take.
    pub(super) within: Duration,
}

/// A repository of ours and the tree it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// The repository folder. Git may write here and nowhere else.
    pub(super) folder: PathBuf,
    /// The tree.
    pub(super) tree: PathBuf,
}

/// One command of git.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subcommand<'a> {
    /// The arguments after `git`, which begin with the name of the command.
    pub(super) args: &'a [&'a str],
    /// What it reads on standard input.
    pub(super) input: &'a [u8],
}

/// Git did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error(
        "the program `git` was not found on the PATH; staged workspaces need it (Debian: `apt install git`), or work in place"
    )]
    Missing,
    /// It could not be started.
    #[error("git could not be started: {0}")]
    NotStarted(Arc<Report>),
    /// What was asked for could never work.
    #[error("git cannot be started: {0}")]
    Spec(#[from] SpecError),
    /// It said no.
    #[error("`git {command}` ended with {status}{said}")]
    Failed {
        /// The name of the command.
        command: String,
        /// How it ended.
        status: String,
        /// What it said on standard error: a colon and its last lines, or nothing.
        said: String,
    },
    /// It took too long and was killed.
    #[error("`git {command}` took more than {} s and was killed", within.as_secs())]
    Late {
        /// The name of the command.
        command: String,
        /// How long it had.
        within: Duration,
    },
    /// It said more than it may.
    #[error("`git {command}` gave more than {limit} bytes")]
    TooMuch {
        /// The name of the command.
        command: String,
        /// How much it may give.
        limit: u64,
    },
    /// Its answer is not what it should be.
    #[error("`git {command}` gave an answer that cannot be read: {what}")]
    Answer {
        /// The name of the command.
        command: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Its repository or a pipe to it failed.
    #[error("git's {what} failed: {error}")]
    Io {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        error: io::Error,
    },
}

/// What git reads at once from us and we from it.
const CHUNK: usize = 64 * 1024;

/// The configuration of our repositories. Attributes and ignore rules are files beside it.
const CONFIG: &str = "\
\tbare = false
\tfilemode = true
\tsymlinks = true
\tignorecase = false
\tautocrlf = false
\tsafecrlf = false
\tquotepath = false
\tprotectNTFS = false
\tprotectHFS = false
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tcompression = 0
\tfsync = none
[gc]
\tauto = 0
[maintenance]
\tauto = false
[protocol]
\tallow = never
[diff]
\trenameLimit = 2000
\tsuppressBlankEmpty = false
[advice]
\tdetachedHead = false
";

/// Bytes are bytes, whatever the attributes of a tree say: those of the repository win over those of the tree.
/// (`-working-tree-encoding` would be an error to git; taking the value back is not.)
const ATTRIBUTES: &str =
    "* -text -crlf !eol !filter -ident !working-tree-encoding !diff !merge !whitespace\n";

impl Repository {
    /// Makes a repository without any commit: a few small files, for which nobody needs a process. `like` is an object
    /// of the repository that is borrowed from, if any, because both must name their objects in the same way.
    pub(super) fn make(&self, like: Option<&ObjectId>) -> io::Result<()> {
        for folder in ["objects/pack", "objects/info", "refs/heads", "info"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        let sha256 = like.is_some_and(ObjectId::is_sha256);
        let version = if sha256 { "1" } else { "0" };
        let mut config = format!("[core]\n\trepositoryformatversion = {version}\n{CONFIG}");
        if sha256 {
            config.push_str("[extensions]\n\tobjectFormat = sha256\n");
        }
        fs::write(self.folder.join("config"), config)?;
        fs::write(self.folder.join("info/attributes"), ATTRIBUTES)?;
        fs::write(self.folder.join("HEAD"), "ref: refs/heads/main\n")
    }

    /// Lets it read the objects of another repository, beside its own.
    pub(super) fn borrow(&self, objects: &Path) -> io::Result<()> {
        let line = objects.as_os_str().as_bytes();
        if line.contains(&b'\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path with a line break"));
        }
        fs::write(self.folder.join("objects/info/alternates"), [line, b"\n"].concat())
    }

    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }
}

impl Git {
    /// Runs a command and gives what it says, of which there may be `limit` bytes.
    pub(super) async fn output(
        &self,
        repository: &Repository,
        command: Subcommand<'_>,
        limit: u64,
    ) -> Result<Vec<u8>, GitError> {
        let mut said = Vec::new();
        self.run(repository, command, |chunk| {
            if said.len() as u64 + chunk.len() as u64 > limit {
                return Err(GitError::TooMuch { command: command.name(), limit });
            }
            said.extend_from_slice(chunk);
            Ok(())
        })
        .await?;
        Ok(said)
    }

    /// Runs a command and gives what it says to `take`, piece by piece. An error of `take` ends the command.
    pub(super) async fn run(
        &self,
        repository: &Repository,
        command: Subcommand<'_>,
        mut take: impl FnMut(&[u8]) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let within = self.within;
        let mut talk = self.converse(repository, command.args).await?;
        let work = async {
            let Talk { child, name: _, stdin, stdout } = &mut talk;
            let input = async {
                if let Some(mut stdin) = stdin.take() {
                    // If it does not want to hear more, its exit code says whether that is fine.
                    let _ = stdin.write_all(command.input).await;
                }
            };
            let output = async {
                let mut buffer = vec![0; CHUNK];
                loop {
                    let read = stdout.read(&mut buffer).await.map_err(pipe_failed)?;
                    if read == 0 {
                        return Ok::<(), GitError>(());
                    }
                    take(&buffer[..read])?;
                }
            };
            let ((), output) = tokio::join!(input, output);
            output?;
            ended(child, command.name()).await
        };
        let finished = tokio::time::timeout(within, work).await;
        let late = Err(GitError::Late { command: command.name(), within });
        let result = finished.unwrap_or(late);
        if result.is_err() {
            talk.child.kill().await;
        }
        result
    }

    /// Starts a command that is spoken with.
    pub(super) async fn converse(&self, repository: &Repository, args: &[&str]) -> Result<Talk, GitError> {
        let child = self.supervisor.start(spec(repository, args))?;
        let Some(mut session) = child.next_session().await else {
            return Err(not_started(&child));
        };
        let (stdin, Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return Err(not_started(&child));
        };
        Ok(Talk { child, name: name(args), stdin, stdout: BufReader::with_capacity(CHUNK, stdout) })
    }
}

/// A git that is running.
#[derive(Debug)]
pub(super) struct Talk {
    child: Child,
    name: String,
    pub(super) stdin: Option<pipe::Sender>,
    pub(super) stdout: BufReader<Output>,
}

impl Talk {
    /// Tells it that there is nothing more to say and waits for its end.
    pub(super) async fn end(mut self, within: Duration) -> Result<(), GitError> {
        self.stdin = None;
        let finished = tokio::time::timeout(within, ended(&self.child, self.name.clone())).await;
        finished.unwrap_or(Err(GitError::Late { command: self.name, within }))
    }

    /// Its end, when it should not have ended yet.
    pub(super) async fn broke(self, within: Duration) -> GitError {
        let name = self.name.clone();
        match self.end(within).await {
            Err(error) => error,
            Ok(()) => GitError::Answer { command: name, what: "it ended in the middle" },
        }
    }
}

impl<'a> Subcommand<'a> {
    /// A command that reads nothing.
    pub(super) fn new(args: &'a [&'a str]) -> Self {
        Self { args, input: &[] }
    }

    fn name(&self) -> String {
        name(self.args)
    }
}

/// The name of the command, behind the settings that are given for it alone.
fn name(args: &[&str]) -> String {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "-c" => drop(args.next()),
            "--literal-pathspecs" => {}
            other => return other.to_owned(),
        }
    }
    String::new()
}

fn spec(repository: &Repository, args: &[&str]) -> Spec {
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 16 * 1024, max_line_bytes: 4096, file: None },
    };
    let mut sandbox = Request::new(Level::Auto, Limits::as_the_host());
    // Wherever git and its libraries are installed; what matters is where it can write.
    sandbox.read = vec![PathBuf::from("/")];
    sandbox.write = vec![repository.folder.clone()];
    let spec = Spec::new("git", "git", "/", sandbox, rules).args(args.iter().copied()).spoken_to();
    let folder = repository.folder.as_os_str();
    let set = [
        ("GIT_DIR", folder),
        ("GIT_WORK_TREE", repository.tree.as_os_str()),
        ("HOME", folder),
        ("XDG_CONFIG_HOME", folder),
    ];
    let fixed = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_PAGER", "cat"),
        ("LC_ALL", "C"),
        // A patch of ours says nothing of who made it; a commit must have somebody.
        ("GIT_AUTHOR_NAME", "outrigger"),
        ("GIT_AUTHOR_EMAIL", "outrigger@localhost"),
        ("GIT_COMMITTER_NAME", "outrigger"),
        ("GIT_COMMITTER_EMAIL", "outrigger@localhost"),
    ];
    let fixed = fixed.iter().map(|(name, value)| (*name, OsStr::new(*value)));
    set.into_iter()
        .chain(fixed)
        .fold(spec, |spec, (name, value)| spec.set_env(name, value))
        .pass_env(["PATH", "LD_LIBRARY_PATH"].map(OsString::from))
}

async fn ended(child: &Child, command: String) -> Result<(), GitError> {
    let outcome = child.wait().await;
    let Some(report) = outcome.report else {
        return Err(GitError::Failed { command, status: "no exit code".into(), said: String::new() });
    };
    match report.status {
        Some(Status::Code(0)) => Ok(()),
        Some(status) => {
            let mut said = String::new();
            for line in &report.stderr {
                // Writing into a string cannot fail.
                let _ = write!(said, "{}{}", if said.is_empty() { ": " } else { "\n  " }, line.text);
            }
            Err(GitError::Failed { command, status: status.to_string(), said })
        }
        None => Err(not_started(child)),
    }
}

fn not_started(child: &Child) -> GitError {
    match child.last_report() {
        Some(report) if report.launch_error == Some("program_not_found") => GitError::Missing,
        Some(report) => GitError::NotStarted(report),
        None => GitError::Io { what: "start", error: io::Error::other("the supervisor was shut down") },
    }
}

fn pipe_failed(error: io::Error) -> GitError {
    GitError::Io { what: "pipe", error }
}

/// The entries of a list that git made with `-z`.
pub(super) fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}
