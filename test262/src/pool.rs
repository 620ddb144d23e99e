//! Workers: each runs tests in a process of its own, so that a crash or a hang is a verdict and not the end of the run.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long one test may take: far more than its fuel lasts, since the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail(String),
    /// The worker died, or had to be killed.
    Crash(String),
}

/// The processes that a test goes through, each as the arguments it is started with.
pub(crate) enum Crew {
    /// One does it all.
    One(Vec<String>),
    /// The first leaves a snapshot in the folder, the second goes on from it; both must come to the same end.
    Two { first: Vec<String>, second: Vec<String>, folder: PathBuf },
}

/// Runs all tests on `jobs` crews, and tells each verdict as it comes. Answers how many went on from a snapshot.
pub(crate) fn run(
    tests: &[String],
    jobs: usize,
    crew: &Crew,
    told: &(dyn Fn(&str, Verdict, Duration) + Sync),
) -> Result<usize> {
    let next = Mutex::new(tests.iter());
    let take = || next.lock().ok().and_then(|mut next| next.next());
    let drive = |job: usize| {
        let mut team = Team::start(crew, job)?;
        let mut hops = 0;
        while let Some(test) = take() {
            let start = Instant::now();
            let verdict = team.run(test, &mut hops)?;
            told(test, verdict, start.elapsed());
        }
        anyhow::Ok(hops)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|job| scope.spawn(move || drive(job))).collect();
        threads.into_iter().try_fold(0, |hops, thread| match thread.join() {
            Ok(result) => Ok(hops + result?),
            Err(_) => anyhow::bail!("a thread that drives a worker panicked"),
        })
    })
}

/// The workers of one thread.
enum Team<'a> {
    One(Worker<'a>),
    Two { first: Worker<'a>, second: Worker<'a>, file: PathBuf },
}

impl<'a> Team<'a> {
    fn start(crew: &'a Crew, job: usize) -> Result<Self> {
        Ok(match crew {
            Crew::One(args) => Self::One(Worker::start(args)?),
            Crew::Two { first, second, folder } => Self::Two {
                first: Worker::start(first)?,
                second: Worker::start(second)?,
                file: folder.join(format!("{job}.snapshot")),
            },
        })
    }

    fn run(&mut self, test: &str, hops: &mut usize) -> Result<Verdict> {
        match self {
            Self::One(worker) => Ok(worker.ask(test)?.verdict),
            Self::Two { first, second, file } => {
                let request = format!("{test}\t{}", file.display());
                let left = first.ask(&request)?;
                // Without a file the test ended before the hop, or the worker did.
                if !file.exists() {
                    return Ok(left.verdict);
                }
                *hops += 1;
                let arrived = second.ask(&request)?;
                std::fs::remove_file(&*file).context("removing a snapshot")?;
                Ok(agree(left, arrived))
            }
        }
    }
}

/// The verdict of both, if they agree in everything.
fn agree(left: Answer, arrived: Answer) -> Verdict {
    match (&left.verdict, &arrived.verdict) {
        (Verdict::Crash(reason), _) => Verdict::Crash(format!("before or beside the hop: {reason}")),
        (_, Verdict::Crash(reason)) => Verdict::Crash(format!("after the hop: {reason}")),
        _ if left == arrived => left.verdict,
        _ => Verdict::Fail(format!("the hop makes a difference: {left}, and {arrived} after it")),
    }
}

/// What a worker says about a test.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    verdict: Verdict,
    fuel_left: Option<u64>,
}

impl Answer {
    fn read(line: &str) -> Self {
        let mut parts = line.splitn(3, '\t');
        let (word, fuel, reason) = (parts.next(), parts.next(), parts.next());
        let reason = reason.unwrap_or_default().to_owned();
        let verdict = match word {
            Some("pass") => Verdict::Pass,
            Some("fail") => Verdict::Fail(reason),
            Some("crash") => Verdict::Crash(reason),
            _ => Verdict::Crash(format!("the worker said `{line}`")),
        };
        Self { verdict, fuel_left: fuel.and_then(|fuel| fuel.parse().ok()) }
    }

    fn crash(reason: String) -> Self {
        Self { verdict: Verdict::Crash(reason), fuel_left: None }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.verdict {
            Verdict::Pass => write!(f, "passed")?,
            Verdict::Fail(reason) => write!(f, "failed ({reason})")?,
            Verdict::Crash(reason) => write!(f, "crashed ({reason})")?,
        }
        match self.fuel_left {
            Some(fuel) => write!(f, " with {fuel} fuel left"),
            None => Ok(()),
        }
    }
}

struct Worker<'a> {
    args: &'a [String],
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
}

impl<'a> Worker<'a> {
    #[expect(clippy::disallowed_methods, reason = "a test runner starts its own workers")]
    fn start(args: &'a [String]) -> Result<Self> {
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
        Ok(Self { args, child, stdin, answers })
    }

    /// Asks for a verdict. A worker that crashed is replaced.
    fn ask(&mut self, request: &str) -> Result<Answer> {
        let answer = self.answer(request);
        if let Verdict::Crash(_) = answer.verdict {
            *self = Self::start(self.args)?;
        }
        Ok(answer)
    }

    fn answer(&mut self, request: &str) -> Answer {
        if writeln!(self.stdin, "{request}").and_then(|()| self.stdin.flush()).is_err() {
            return Answer::crash("the worker was gone before the test".to_owned());
        }
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => Answer::read(&line),
            Err(RecvTimeoutError::Timeout) => {
                Answer::crash(format!("timeout: no answer within {PATIENCE:?}"))
            }
            Err(RecvTimeoutError::Disconnected) => match self.child.wait() {
                Ok(status) => Answer::crash(format!("the worker ended: {status}")),
                Err(error) => Answer::crash(error.to_string()),
            },
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_must_change_neither_the_verdict_nor_the_reason_nor_the_fuel() {
        let verdict = |a: &str, b: &str| agree(Answer::read(a), Answer::read(b));
        assert_eq!(verdict("pass\t7\t", "pass\t7\t"), Verdict::Pass);
        assert_eq!(verdict("fail\t7\tno", "fail\t7\tno"), Verdict::Fail("no".to_owned()));
        let differs = |what: &str| Verdict::Fail(format!("the hop makes a difference: {what} after it"));
        assert_eq!(
            verdict("pass\t7\t", "pass\t8\t"),
            differs("passed with 7 fuel left, and passed with 8 fuel left")
        );
        assert_eq!(
            verdict("fail\t7\ta", "fail\t7\tb"),
            differs("failed (a) with 7 fuel left, and failed (b) with 7 fuel left")
        );
        assert_eq!(verdict("pass\t7\t", "crash\t\tx"), Verdict::Crash("after the hop: x".to_owned()));
        assert_eq!(verdict("what", "pass\t7\t"), {
            Verdict::Crash("before or beside the hop: the worker said `what`".to_owned())
        });
    }
}
