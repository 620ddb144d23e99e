//! The terminal while somebody talks: keys come one by one, and it is left as it was found.

use std::io::{IsTerminal, Read, Write};

use anyhow::Context;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use tokio::sync::mpsc;

use super::keys::{Decoder, Key};

/// Reads that may wait; beyond it the keyboard waits.
const WAITING: usize = 64;

/// A terminal that gives keys instead of lines. Dropping it gives the terminal back.
pub(super) struct Terminal {
    before: Termios,
    keys: mpsc::Receiver<Vec<Key>>,
    ready: std::collections::VecDeque<Key>,
}

impl Terminal {
    /// None when there is nobody to talk to.
    pub(super) fn open() -> anyhow::Result<Option<Self>> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(None);
        }
        let before = termios::tcgetattr(&stdin).context("the terminal cannot be asked for its mode")?;
        let mut raw = before.clone();
        // Lines, echo and signals are ours; what we print is still formatted by the terminal.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        raw.input_modes -= termios::InputModes::ICRNL | termios::InputModes::IXON;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(&stdin, OptionalActions::Now, &raw).context("the terminal cannot be set up")?;
        print(b"\x1b[?2004h");
        let (send, keys) = mpsc::channel(WAITING);
        let spawned = std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || listen(&send));
        let terminal = Self { before, keys, ready: std::collections::VecDeque::new() };
        spawned.context("no thread for the keyboard")?;
        Ok(Some(terminal))
    }

    /// The next key; none when the terminal has gone.
    pub(super) async fn key(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.ready.pop_front() {
                return Some(key);
            }
            self.ready.extend(self.keys.recv().await?);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        print(b"\x1b[?2004l");
        // A terminal that has gone needs nothing back.
        let _ = termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// How many columns there are.
pub(super) fn width() -> usize {
    let size = termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(80)
}

/// Reads keys in a thread of its own, which does not hold up our exit.
fn listen(keys: &mpsc::Sender<Vec<Key>>) {
    let mut decoder = Decoder::default();
    let mut bytes = [0; 4096];
    let mut stdin = std::io::stdin().lock();
    loop {
        match stdin.read(&mut bytes) {
            Ok(0) => return,
            Ok(length) => {
                let found = decoder.keys(&bytes[..length]);
                if !found.is_empty() && keys.blocking_send(found).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn print(bytes: &[u8]) {
    let mut out = std::io::stdout();
    // A reader that has gone wants nothing more.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}
