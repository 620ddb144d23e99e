//! A capability that is a command: each call starts it once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use outrigger_mustard::host::HostError;
use outrigger_mustard::host::Plain;
use outrigger_supervise::driver::{Child, Outcome, Session, Supervisor};
use outrigger_supervise::launch::Status;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::failed;
use crate::js::json::{FromJson, Json};

/// The longest answer of a command.
const MAX_ANSWER: u64 = 64 << 20;

/// How long a command that closed its output may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// A command line and where it runs.
pub(crate) struct Shell {
    name: String,
    command: String,
    cwd: PathBuf,
    supervisor: Supervisor,
}

/// The rules of a child that lives for one answer, or for a conversation.
pub(super) fn rules() -> Rules {
    Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 16 << 10, max_line_bytes: 4096, file: None },
    }
}

/// A child that runs a command line as the user's shell would, with the user's environment.
pub(super) fn shell(name: &str, command: &str, cwd: &Path) -> Spec {
    let sandbox = Request::new(Level::Basic, Limits::as_the_host());
    Spec::new(name, "/bin/sh", cwd, sandbox, rules())
        .args(["-c", command])
        .pass_env(std::env::vars_os().map(|(name, _)| name))
        .spoken_to()
}

impl Shell {
    /// A command of this program's own folder.
    pub(crate) fn new(name: &str, command: &str, supervisor: &Supervisor) -> anyhow::Result<Shell> {
        let cwd = std::env::current_dir().context("the current folder cannot be found")?;
        Self::in_folder(name, command, &cwd, supervisor)
    }

    /// A command of a certain folder.
    pub(crate) fn in_folder(
        name: &str,
        command: &str,
        cwd: &Path,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Shell> {
        let shell = Shell {
            name: name.to_owned(),
            command: command.to_owned(),
            cwd: cwd.to_owned(),
            supervisor: supervisor.clone(),
        };
        self::shell(&shell.name, &shell.command, &shell.cwd).check()?;
        Ok(shell)
    }

    /// Runs the command for one call.
    pub(crate) async fn answer(&self, args: &[Plain]) -> Result<Plain, HostError> {
        let refused = |why: String| failed("CommandError", format!("`{}`: {why}", self.name), None);
        let child = self.supervisor.start(shell(&self.name, &self.command, &self.cwd));
        let child = child.map_err(|error| refused(error.to_string()))?;
        let Some(session) = child.next_session().await else {
            return Err(self.failure(&child.wait().await));
        };
        let said = converse(session, args).await.map_err(|error| refused(error.to_string()))?;
        if said.len() as u64 > MAX_ANSWER {
            child.kill().await;
            return Err(refused(format!("its answer is longer than {MAX_ANSWER} bytes")));
        }
        let outcome = self.end(&child).await;
        let succeeded =
            outcome.report.as_ref().is_some_and(|report| report.status.is_some_and(Status::success));
        if !succeeded {
            return Err(self.failure(&outcome));
        }
        if said.trim_ascii().is_empty() {
            return Ok(Plain::Undefined);
        }
        let value: Result<FromJson, _> = serde_json::from_slice(&said);
        let FromJson(answer) = value.map_err(|error| {
            let start: String = String::from_utf8_lossy(&said).chars().take(60).collect();
            refused(format!("its answer is not JSON ({error}): {}", start.escape_debug()))
        })?;
        Ok(answer)
    }

    /// A command that has said everything should end; one that does not is killed.
    async fn end(&self, child: &Child) -> Outcome {
        match tokio::time::timeout(ENDS_WITHIN, child.wait()).await {
            Ok(outcome) => outcome,
            Err(_) => child.kill().await,
        }
    }

    /// The error that the script sees: the command's last words, and how it ended as the code.
    fn failure(&self, outcome: &Outcome) -> HostError {
        let report = outcome.report.as_ref();
        let status = report.and_then(|report| report.status);
        let words: Vec<String> = report
            .iter()
            .flat_map(|report| &report.stderr)
            .map(|line| line.text.trim_end().to_owned())
            .collect();
        let (how, code) = match status {
            Some(Status::Code(code)) => (format!("exit code {code}"), Some(format!("exit_{code}"))),
            Some(Status::Signal(signal)) => (format!("signal {signal}"), Some(format!("signal_{signal}"))),
            Some(Status::Unknown) | None => ("it could not be started or watched".to_owned(), None),
        };
        let said = if words.is_empty() { String::new() } else { format!(": {}", words.join("\n")) };
        failed("CommandError", format!("`{}` failed ({how}){said}", self.name), code)
    }
}

/// Writes the arguments and reads the answer, both at once: a command may write before it reads.
async fn converse(mut session: Session, args: &[Plain]) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&args.iter().map(Json).collect::<Vec<_>>())?;
    line.push(b'\n');
    let (stdin, stdout) = (session.stdin.take(), session.stdout.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A command that does not care for its arguments may close its input.
            let _ = stdin.write_all(&line).await;
        }
    };
    let read = async {
        let mut said = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(MAX_ANSWER + 1).read_to_end(&mut said).await?;
        }
        Ok(said)
    };
    let ((), said) = tokio::join!(write, read);
    said
}
