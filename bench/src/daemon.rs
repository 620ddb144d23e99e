//! The daemon under load: a thousand scripts that wait, fifty agents that stream, and people who ask for the list meanwhile.
//!
//! # Theory of operation
//!
//! The program that is released, started as its users start it, and spoken with over its socket. A script that waits is no process,
//! so that a thousand of them are rows in a file; an agent that streams is a child process and a reader of its events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::Filter;
use crate::child::Child;
use crate::figure::{Bytes, Figure, Measured, Spread, Target};

/// Scripts that wait for a person.
const WAITING: usize = 1000;
/// Agents that stream.
const STREAMING: usize = 50;
/// How often the list is asked for.
const ASKED: usize = 500;
/// Readers that do not read.
const SLOW: usize = 100;
/// Pieces that an agent says while nobody reads.
const FLOOD: usize = 20_000;
/// How often it does, with and without them.
const BOUTS: usize = 11;

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Figure>> {
    let names = ["daemon/suspend", "daemon/list-p99", "daemon/waiting-memory", "daemon/slow-readers"];
    if !names.iter().any(|name| filter.wants(name)) {
        return Ok(Vec::new());
    }
    let mut daemon = Daemon::start()?;
    let before = daemon.memory()?;
    let began = Instant::now();
    for _ in 0..WAITING {
        let script = "const answer = ask('may I?'); ({ answer });";
        daemon.submit(&json!({"script": script, "tools": {"ask": "person"}}))?;
    }
    daemon.until("waiting", WAITING)?;
    let suspended = began.elapsed();
    let each = daemon.memory()?.saturating_sub(before) / WAITING as u64;
    let quiet = p99(&mut daemon)?;
    let mut readers = Vec::new();
    for _ in 0..STREAMING {
        let run = daemon.submit(&json!({"task": "stream", "backend": "stream"}))?;
        readers.push(daemon.reader(&run)?);
    }
    daemon.until("running", STREAMING)?;
    let read: Vec<_> = readers.into_iter().map(|reader| std::thread::spawn(move || drain(reader))).collect();
    let busy = p99(&mut daemon)?;
    let memory = daemon.memory()?;
    let mut events = 0;
    for reader in read {
        events += reader.join().map_err(|_| anyhow::anyhow!("a reader failed"))??;
    }
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for _ in 0..BOUTS {
        alone.push(daemon.flood(0)?);
        watched.push(daemon.flood(SLOW)?);
    }
    let alone = Spread::of(alone).context("no bout")?;
    let watched = Spread::of(watched).context("no bout")?;
    let after = daemon.memory()?;
    let spread = |at: Duration| Measured::Time { wall: Spread { best: at, median: at }, processor: None };
    let floor = |at: Duration| Spread { best: at, median: at };
    let figures = vec![
        Figure {
            name: "daemon/suspend",
            measured: Ok(spread(suspended / WAITING as u32)),
            floor: None,
            goal: Target::Shown,
            note: format!("one of {WAITING} scripts, from its request to a snapshot on disk, in turns"),
        },
        Figure {
            name: "daemon/list-p99",
            measured: Ok(spread(busy)),
            floor: Some(("the same without the streams", floor(quiet))),
            goal: Target::Wall(Duration::from_millis(20)),
            note: format!(
                "99 % of {ASKED} GET /v1/runs with {WAITING} waiting and {STREAMING} streaming ({events} events read meanwhile)"
            ),
        },
        Figure {
            name: "daemon/waiting-memory",
            measured: Ok(Measured::Size(Bytes(each))),
            floor: None,
            goal: Target::Size(Bytes(20_000)),
            note: format!(
                "what the daemon grows by for a script that waits; {} MB in all under load",
                memory / 1_000_000
            ),
        },
        Figure {
            name: "daemon/slow-readers",
            measured: Ok(Measured::Time { wall: watched, processor: None }),
            goal: Target::Wall(alone.median * 5 / 4),
            floor: Some(("the same run alone", alone)),
            note: format!(
                "a run of {FLOOD} events with {SLOW} readers that do not read, within a quarter more than alone; {} MB after {BOUTS} of them",
                after / 1_000_000
            ),
        },
    ];
    Ok(figures.into_iter().filter(|figure| filter.wants(figure.name)).collect())
}

/// What 99 of 100 requests for the list take at most.
fn p99(daemon: &mut Daemon) -> Result<Duration> {
    let mut times = Vec::with_capacity(ASKED);
    for _ in 0..ASKED {
        let began = Instant::now();
        daemon.ask("GET", "/v1/runs?limit=50", "")?;
        times.push(began.elapsed());
        // As people ask, not as a loop does.
        std::thread::sleep(Duration::from_millis(4));
    }
    times.sort();
    times.get(ASKED * 99 / 100).copied().context("nothing was asked")
}

/// Reads events until there are no more, and counts them.
fn drain(mut reader: BufReader<TcpStream>) -> Result<usize> {
    let (mut line, mut events) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(events);
        }
        events += usize::from(line.starts_with("id:"));
    }
}

/// A daemon that is up.
struct Daemon {
    child: Child,
    address: String,
    token: String,
    folder: PathBuf,
    /// A connection that is kept.
    line: BufReader<TcpStream>,
}

impl Daemon {
    fn start() -> Result<Self> {
        let nanos = std::time::UNIX_EPOCH.elapsed()?.as_nanos();
        let folder =
            std::env::temp_dir().join(format!("outrigger-bench-daemon-{}-{nanos}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let config = folder.join("outrigger.toml");
        std::fs::write(
            &config,
            "[server]\nrequests_per_second = 100000\n\n[backends.stream]\ntype = \"mock\"\nscript = \"stream.json\"\nat_once = 64\n\n[backends.flood]\ntype = \"mock\"\nscript = \"flood.json\"\n",
        )?;
        let piece = json!([{"do": "delta", "text": "word "}, {"do": "wait", "ms": 20}]);
        let steps: Vec<Value> =
            (0..400).flat_map(|_| piece.as_array().cloned().unwrap_or_default()).collect();
        std::fs::write(folder.join("stream.json"), json!({ "steps": steps }).to_string())?;
        let flood = json!({"steps": [{"do": "delta", "text": "a piece of what it says", "times": FLOOD}]});
        std::fs::write(folder.join("flood.json"), flood.to_string())?;
        let words = ["--json", "up", "--no-open", "--no-example", "--port", "0", "--config"];
        let mut arguments: Vec<std::ffi::OsString> = words.map(Into::into).to_vec();
        arguments.push(config.into());
        arguments.extend(["--state".into(), folder.join("state").into_os_string()]);
        let mut child =
            Child::released("outrigger", &arguments, &[("HOME", folder.clone().into_os_string())])?;
        let up: Value = serde_json::from_str(child.hear()?)?;
        let address = up["address"].as_str().context("the daemon says where it is")?.to_owned();
        let token = std::fs::read_to_string(folder.join("state/token"))?.trim().to_owned();
        let line = BufReader::new(TcpStream::connect(&address)?);
        line.get_ref().set_nodelay(true)?;
        Ok(Self { child, address, token, folder, line })
    }

    fn head(&self, method: &str, path: &str, accept: &str, length: usize) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\naccept: {accept}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            self.address, self.token
        )
    }

    /// One request on the connection that is kept, and its body.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        let request = format!("{}{body}", self.head(method, path, "application/json", body.len()));
        self.line.get_mut().write_all(request.as_bytes())?;
        let (mut line, mut length, mut status) = (String::new(), 0, 0);
        loop {
            line.clear();
            ensure!(self.line.read_line(&mut line)? > 0, "the daemon hung up");
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest.get(..3).context("a status")?.parse()?;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.line.read_exact(&mut body)?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    fn submit(&mut self, request: &Value) -> Result<String> {
        let state: Value = serde_json::from_slice(&self.ask("POST", "/v1/runs", &request.to_string())?)?;
        Ok(state["id"].as_str().context("a run has an id")?.to_owned())
    }

    /// A reader of the events of a run.
    fn reader(&self, run: &str) -> Result<BufReader<TcpStream>> {
        let mut socket = TcpStream::connect(&self.address)?;
        let head = self.head("GET", &format!("/v1/runs/{run}/events"), "text/event-stream", 0);
        // So that the end of the events is the end of what there is to read.
        let head = head.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
        socket.write_all(head.as_bytes())?;
        Ok(BufReader::new(socket))
    }

    /// Waits until so many runs are in a phase.
    fn until(&mut self, phase: &str, count: usize) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let text = String::from_utf8(self.ask("GET", "/metrics", "")?)?;
            let sample = format!("outrigger_runs{{phase=\"{phase}\"}} ");
            let found =
                text.lines().find_map(|line| line.strip_prefix(&sample)).and_then(|count| count.parse().ok());
            if found == Some(count) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{found:?} of {count} runs are {phase}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How long a run takes that says much, with so many readers that do not read.
    fn flood(&mut self, readers: usize) -> Result<Duration> {
        let began = Instant::now();
        let run = self.submit(&json!({"task": "flood", "backend": "flood"}))?;
        let held: Vec<_> = (0..readers).map(|_| self.reader(&run)).collect::<Result<_>>()?;
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let state: Value = serde_json::from_slice(&self.ask("GET", &format!("/v1/runs/{run}"), "")?)?;
            if state["phase"] == "completed" {
                drop(held);
                return Ok(began.elapsed());
            }
            ensure!(Instant::now() < deadline, "it is {}", state["phase"]);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What the daemon itself takes of the memory.
    fn memory(&self) -> Result<u64> {
        Ok(self.child.resident()?.0)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // What is left is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
