//! Who owns us, and how they say that it is time to go: signals, and a pipe on standard input that closes.

use std::io::Read;

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::args::StdinArg;

/// What the owner wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Stop gracefully.
    Stop,
    /// Stop now.
    Kill,
}

/// Listens to the owner.
pub(crate) struct Owner {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    lifeline: Option<oneshot::Receiver<()>>,
    asked: bool,
}

impl Owner {
    pub(crate) fn watch(stdin: StdinArg) -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be received");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            lifeline: (stdin == StdinArg::Lifeline && is_open_pipe()).then(watch_stdin).transpose()?,
            asked: false,
        })
    }

    /// The next thing the owner wants; the second one is always [`Wish::Kill`].
    pub(crate) async fn next(&mut self) -> Wish {
        let cut = async {
            match &mut self.lifeline {
                Some(lifeline) => lifeline.await,
                None => std::future::pending().await,
            }
        };
        let by_lifeline = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => false,
            _ = self.hangup.recv() => false,
            _ = cut => true,
        };
        if by_lifeline {
            self.lifeline = None;
        }
        match std::mem::replace(&mut self.asked, true) {
            false => Wish::Stop,
            true => Wish::Kill,
        }
    }
}

/// Whether standard input is a pipe or a socket with somebody at its other end. A pipe that was closed before we came says
/// nothing about an owner, and neither does a terminal, a file or `/dev/null`.
fn is_open_pipe() -> bool {
    let stdin = std::io::stdin();
    let kind = rustix::fs::fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if !matches!(kind, Ok(FileType::Fifo | FileType::Socket)) {
        return false;
    }
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut polled, Some(&at_once)) {
        Ok(_) => !polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        Err(_) => false,
    }
}

/// Reads standard input to its end in a thread of its own, which does not hold up our exit.
fn watch_stdin() -> anyhow::Result<oneshot::Receiver<()>> {
    let (cut, lifeline) = oneshot::channel();
    let watch = move || {
        let mut sink = [0; 4096];
        let mut stdin = std::io::stdin().lock();
        loop {
            match stdin.read(&mut sink) {
                Ok(1..) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        // If nobody listens any more we are on our way out already.
        let _ = cut.send(());
    };
    std::thread::Builder::new()
        .name("lifeline".to_owned())
        .spawn(watch)
        .context("no thread for standard input")?;
    Ok(lifeline)
}
