//! Workers: each runs tests in a process of its own, so that a crash or a hang is a verdict and not the end of the run.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result};

/// How long one test may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail(String),
    /// The worker died, or had to be killed.
    Crash(String),
}

/// Runs all tests on `jobs` workers, started with `args`, and tells each verdict as it comes.
pub(crate) fn run(
    tests: &[String],
    jobs: usize,
    args: &[String],
    told: &(dyn Fn(&str, Verdict) + Sync),
) -> Result<()> {
    let next = Mutex::new(tests.iter());
    let take = || next.lock().ok().and_then(|mut next| next.next());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs)
            .map(|_| {
                scope.spawn(|| {
                    let mut worker = Worker::start(args)?;
                    while let Some(test) = take() {
                        let verdict = worker.run(test);
                        if let Verdict::Crash(_) = verdict {
                            worker = Worker::start(args)?;
                        }
                        told(test, verdict);
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("a thread that drives a worker panicked"),
        })
    })
}

struct Worker {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
}

impl Worker {
    #[expect(clippy::disallowed_methods, reason = "a test runner starts its own workers")]
    fn start(args: &[String]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting a worker")?;
        let stdin = child.stdin.take().context("a worker has no stdin")?;
        let stdout = child.stdout.take().context("a worker has no stdout")?;
        let (answer, answers) = sync_channel(1);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if answer.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, stdin, answers })
    }

    fn run(&mut self, test: &str) -> Verdict {
        if writeln!(self.stdin, "{test}").and_then(|()| self.stdin.flush()).is_err() {
            return Verdict::Crash("the worker was gone before the test".to_owned());
        }
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => match line.split_once('\t') {
                Some(("pass", _)) => Verdict::Pass,
                Some(("fail", reason)) => Verdict::Fail(reason.to_owned()),
                Some(("crash", reason)) => Verdict::Crash(reason.to_owned()),
                _ => Verdict::Crash(format!("the worker said `{line}`")),
            },
            Err(RecvTimeoutError::Timeout) => {
                Verdict::Crash(format!("timeout: no answer within {PATIENCE:?}"))
            }
            Err(RecvTimeoutError::Disconnected) => match self.child.wait() {
                Ok(status) => Verdict::Crash(format!("the worker ended: {status}")),
                Err(error) => Verdict::Crash(error.to_string()),
            },
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
