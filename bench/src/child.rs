//! One child and its two pipes: lines there, lines back, and what the kernel says about its time and memory.

#![expect(clippy::disallowed_methods, reason = "nothing may stand between the clock and the child")]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::figure::Bytes;

pub(crate) struct Child {
    process: std::process::Child,
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
    line: String,
}

impl Child {
    /// A sidecar that is released, with arguments and variables.
    pub(crate) fn released(
        name: &str,
        arguments: &[OsString],
        variables: &[(&str, OsString)],
    ) -> Result<Self> {
        let path = std::env::current_exe()?.with_file_name(name);
        ensure!(path.exists(), "{} is not built: cargo build --release -p outrigger", path.display());
        let variables = variables.iter().map(|(name, value)| (*name, value));
        Self::start(Command::new(path).args(arguments).envs(variables).stderr(Stdio::null()))
    }

    /// This program with other arguments.
    pub(crate) fn ourselves(arguments: &[String]) -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).args(arguments))
    }

    /// This program with a variable that says what it is.
    pub(crate) fn agent(variable: &str) -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).env(variable, "1"))
    }

    /// A script.
    pub(crate) fn python(script: &str) -> Result<Self> {
        Self::start(Command::new("python3").arg(script))
    }

    fn start(command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let input = process.stdin.take().context("standard input is piped")?;
        let output = process.stdout.take().context("standard output is piped")?;
        Ok(Self { process, input, output: BufReader::with_capacity(1 << 20, output), line: String::new() })
    }

    /// Writes one line.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes()).context("the child does not take the line")
    }

    /// Reads one line.
    pub(crate) fn hear(&mut self) -> Result<&str> {
        self.line.clear();
        if self.output.read_line(&mut self.line)? == 0 {
            bail!("the child ended with {:?} instead of a line", self.process.wait()?);
        }
        Ok(self.line.trim_end())
    }

    /// What all its threads used of a processor since it was started. Exact while it waits.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let used: u64 = text.split(' ').next().context("schedstat is empty")?.parse()?;
            nanos += used;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// What of it is in memory.
    pub(crate) fn resident(&self) -> Result<Bytes> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).context("status lacks a line")?;
        let kibibytes: u64 = line.split_whitespace().nth(1).context("the line is empty")?.parse()?;
        Ok(Bytes(kibibytes * 1024))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nothing that it has is worth keeping, and one that is gone already cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
