//! The channel of the misbehaving extension: lines in both directions, and no manners of its own.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::extension::{Endpoint, Link};

/// Lines to and from the host. Whoever does not ask for lines does not read: two lines and a buffer, and the host has to wait.
pub(super) struct Channel {
    link: Link,
    lines: Receiver<String>,
    next: u64,
}

/// What came from the host.
pub(super) enum Heard {
    /// A line that is JSON.
    Line(Value),
    /// Nothing in time.
    Nothing,
    /// The host closed the channel.
    End,
}

impl Channel {
    pub(super) fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        let link = Link::connect(endpoint)?;
        let mut input = io::BufReader::new(link.try_clone()?);
        let (found, lines) = sync_channel(1);
        thread::spawn(move || {
            let mut line = String::new();
            while input.read_line(&mut line).is_ok_and(|length| length > 0) {
                if found.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Ok(Self { link, lines, next: 1 })
    }

    /// Writes these bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.link.write_all(bytes)
    }

    /// Writes a value as a line.
    pub(super) fn say(&mut self, value: &Value) -> io::Result<()> {
        self.write(format!("{value}\n").as_bytes())
    }

    /// Makes a request and says which id it has.
    pub(super) fn ask(&mut self, method: &str, params: Option<&Value>) -> io::Result<u64> {
        let id = self.next;
        self.next += 1;
        self.ask_as(id, method, params)?;
        Ok(id)
    }

    /// Makes a request with this id.
    pub(super) fn ask_as(&mut self, id: u64, method: &str, params: Option<&Value>) -> io::Result<()> {
        let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if let Some(params) = params {
            request["params"] = params.clone();
        }
        self.say(&request)
    }

    /// The next line, if it comes in time; whenever it comes if there is no time.
    pub(super) fn hear(&mut self, until: Option<Instant>) -> Heard {
        let line = match until {
            None => self.lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => self.lines.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        match line {
            Ok(line) => Heard::Line(serde_json::from_str(&line).unwrap_or(Value::String(line))),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// Closes it.
    pub(super) fn close(&self) -> io::Result<()> {
        self.link.close()
    }
}

/// From now on, so many milliseconds.
pub(super) fn after(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}
