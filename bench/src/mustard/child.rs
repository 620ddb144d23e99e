//! One child and its two pipes: a frame there, a frame back, and what the kernel says about its time and memory.

#![expect(clippy::disallowed_methods, reason = "nothing may stand between the clock and the child")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::figure::Bytes;

/// The two lengths before a frame.
const LENGTHS: usize = 8;

/// What a driver does while it waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// Sleeps in `read`: whoever writes the reply has to wake it.
    Sleeps,
    /// Looks for the reply for a moment before it sleeps, and lets others have the processor in between.
    Looks,
}

/// How long a driver looks before it sleeps: what a small hop takes in another process, and some more.
const LOOK: Duration = Duration::from_micros(60);

pub(super) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: ChildStdout,
    request: Vec<u8>,
    /// What was read of the reply; `reply[..filled]` counts.
    reply: Vec<u8>,
    filled: usize,
    pub(super) patience: Patience,
    pub(super) traffic: Traffic,
}

/// The sizes of one request and its reply, for an echo of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) sent: FrameSize,
    pub(super) got: FrameSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameSize {
    pub(super) header: usize,
    pub(super) blob: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Reply<'a> {
    pub(super) header: &'a str,
    pub(super) blob: &'a [u8],
}

/// What of a child is in memory.
pub(super) struct Resident {
    pub(super) all: Bytes,
    /// Of that, what is neither the program's file nor a library's.
    pub(super) anonymous: Bytes,
}

impl Child {
    /// The sidecar that is released.
    pub(super) fn sidecar() -> Result<Self> {
        Self::start(&mut Command::new(sidecar()?))
    }

    /// This program as an echo.
    pub(super) fn echo() -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).arg(super::echo::ARGUMENT))
    }

    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let input = process.stdin.take().context("standard input is piped")?;
        let output = process.stdout.take().context("standard output is piped")?;
        let nothing = FrameSize { header: 0, blob: 0 };
        Ok(Self {
            process,
            input,
            output,
            request: Vec::new(),
            reply: vec![0; 1 << 20],
            filled: 0,
            patience: Patience::Sleeps,
            traffic: Traffic { sent: nothing, got: nothing },
        })
    }

    /// One request and its reply, whatever it says.
    pub(super) fn ask(&mut self, header: &str, blob: &[u8]) -> Result<Reply<'_>> {
        self.request.clear();
        self.request.extend(u32::try_from(header.len())?.to_le_bytes());
        self.request.extend(u32::try_from(blob.len())?.to_le_bytes());
        self.request.extend(header.as_bytes());
        self.request.extend(blob);
        self.input.write_all(&self.request).context("the child does not take the request")?;
        self.filled = 0;
        self.fill(LENGTHS)?;
        let length = |at: usize| {
            let bytes = [self.reply[at], self.reply[at + 1], self.reply[at + 2], self.reply[at + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        let got = FrameSize { header: length(0), blob: length(4) };
        let end = LENGTHS + got.header + got.blob;
        self.fill(end)?;
        ensure!(self.filled == end, "the child said {} bytes more than one reply", self.filled - end);
        self.traffic = Traffic { sent: FrameSize { header: header.len(), blob: blob.len() }, got };
        let (header, blob) = self.reply[LENGTHS..end].split_at(got.header);
        Ok(Reply { header: std::str::from_utf8(header)?, blob })
    }

    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.reply.len() < wanted {
            self.reply.resize(wanted, 0);
        }
        while self.filled < wanted {
            if self.patience == Patience::Looks {
                self.look()?;
            }
            match self.output.read(&mut self.reply[self.filled..])? {
                0 => bail!("the child ended with {:?} instead of a reply", self.process.wait()?),
                more => self.filled += more,
            }
        }
        Ok(())
    }

    /// Waits for a moment without falling asleep.
    fn look(&self) -> Result<()> {
        let began = Instant::now();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        while poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&at_once))? == 0
            && began.elapsed() < LOOK
        {
            rustix::thread::sched_yield();
        }
        Ok(())
    }

    /// What it used of a processor since it was started. Exact while it waits for the next request.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.process.id()))?;
        let nanos = text.split(' ').next().context("schedstat is empty")?.parse()?;
        Ok(Duration::from_nanos(nanos))
    }

    pub(super) fn resident(&self) -> Result<Resident> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = |name: &str| -> Result<Bytes> {
            let line = text.lines().find(|line| line.starts_with(name)).context("status lacks a line")?;
            let kibibytes: u64 = line.split_whitespace().nth(1).context("the line is empty")?.parse()?;
            Ok(Bytes(kibibytes * 1024))
        };
        Ok(Resident { all: line("VmRSS:")?, anonymous: line("RssAnon:")? })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nothing that it has is worth keeping, and one that is gone already cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program that is released, not a smaller one that starts faster.
pub(super) fn sidecar() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("mustard-sidecar");
    ensure!(path.exists(), "{} is not built: cargo build --release -p outrigger", path.display());
    Ok(path)
}
