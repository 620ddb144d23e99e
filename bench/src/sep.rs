//! The extension host as an extension sees it: what a call through the gate and the audit takes, fifty at once, and what one
//! that waits costs.
//!
//! # Theory of operation
//!
//! The host is this process, with everything it has: folders, digests, boxes, the audit on disk. The extension is this program
//! again ([`intercept`]), speaking over the bare socket, so that nothing of a kit is in the times.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outrigger_sep::config::HostPolicy;
use outrigger_sep::host::{Begin, Fleet, FleetOptions};
use outrigger_sep::manifest::HostFacts;
use outrigger_sep::mesh::{
    Address, Contact, ContactQuery, Ear, MeshError, Message, MessageQuery, Messaging, Outgoing, Sent,
};
use outrigger_sep::protocol::{Permission, Profile, State, TrustLevel};
use outrigger_sep::reference::{Draft, Program};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use outrigger_wire::peer::BoxFuture;
use serde_json::{Value, json};

use crate::Filter;
use crate::figure::{Bytes, Figure, Measured, Spread, Target};

/// What makes this program an extension.
const ROLE: &str = "__sep_extension";
/// Calls that are timed: as many as a first party may make in a second.
const CALLS: usize = 900;
/// Extensions that run at the same time.
const MANY: usize = 50;

pub(crate) fn bench(filter: &Filter) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if filter.wants("sep/call") {
        figures.push(runtime.block_on(call())?);
    }
    if filter.wants("sep/fifty") || filter.wants("sep/idle-memory") {
        let both = runtime.block_on(fifty())?;
        figures.extend(both.into_iter().filter(|figure| filter.wants(figure.name)));
    }
    Ok(figures)
}

/// Is an extension, if the arguments say so.
pub(crate) fn intercept() -> Option<Result<()>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    (args.first().map(String::as_str) == Some(ROLE))
        .then(|| extension(args.get(1).map_or("", String::as_str)))
}

async fn call() -> Result<Figure> {
    let place = Place::new()?;
    place.put("org.example.caller", "call")?;
    let fleet = place.start().await?;
    let log = place.folder.join("state/logs/org.example.caller/current.log");
    let times = until("the calls are made", || {
        let text = std::fs::read_to_string(&log).ok()?;
        let line = text.lines().find(|line| line.contains("nanos"))?;
        let line: Value = serde_json::from_str(line).ok()?;
        serde_json::from_str::<Value>(line["msg"].as_str()?).ok()
    })
    .await?;
    fleet.shutdown().await;
    let nanos = times["nanos"].as_array().context("times")?.iter().filter_map(Value::as_u64);
    let wall = Spread::of(nanos.map(Duration::from_nanos).collect()).context("no call was made")?;
    Ok(Figure {
        name: "sep/call",
        measured: Ok(Measured::Time { wall, processor: None }),
        floor: Some(("bare echo over a socket", echo()?)),
        goal: Target::Wall(Duration::from_micros(60)),
        note: format!("{CALLS} × host.contacts.list: rate, permission, audit on disk, params, answer"),
    })
}

async fn fifty() -> Result<Vec<Figure>> {
    let place = Place::new()?;
    place.put("org.example.first", "idle")?;
    let fleet = place.start().await?;
    all_ready(&fleet, 1).await?;
    let before = resident()?;
    for number in 0..MANY {
        place.put(&format!("org.example.idle-{number}"), "idle")?;
    }
    let began = Instant::now();
    fleet.rescan().await;
    all_ready(&fleet, MANY + 1).await?;
    let took = began.elapsed();
    let grown = resident()?.saturating_sub(before) / MANY as u64;
    let began = Instant::now();
    fleet.shutdown().await;
    let left = began.elapsed();
    let wall = Spread { best: took, median: took };
    Ok(vec![
        Figure {
            name: "sep/fifty",
            measured: Ok(Measured::Time { wall, processor: None }),
            floor: None,
            goal: Target::Shown,
            note: format!(
                "found, hashed, boxed and ready, ten starts a second at most; all gone {left:.1?} after the end"
            ),
        },
        Figure {
            name: "sep/idle-memory",
            measured: Ok(Measured::Size(Bytes(grown))),
            floor: None,
            goal: Target::Size(Bytes(300 * 1000)),
            note: "what the host grows by for an extension that waits".to_owned(),
        },
    ])
}

async fn all_ready(fleet: &Fleet, count: usize) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let list = fleet.list().await;
        if list.iter().filter(|one| one.state == State::Ready).count() == count {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "they are not all ready: {list:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "it never came to be that {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A folder for a host.
struct Place {
    folder: std::path::PathBuf,
}

impl Place {
    fn new() -> Result<Self> {
        let nanos = std::time::UNIX_EPOCH.elapsed()?.as_nanos();
        let folder = std::env::temp_dir().join(format!("outrigger-bench-sep-{}-{nanos}", std::process::id()));
        std::fs::create_dir_all(folder.join("builtin"))?;
        Ok(Self { folder })
    }

    fn put(&self, id: &str, role: &str) -> Result<()> {
        let own = std::env::current_exe()?;
        let draft = Draft {
            trust: TrustLevel::FirstParty,
            permissions: vec![Permission::ContactsRead],
            limits: (65536, 1000, 16),
            startup_ms: 60_000,
            ..Draft::bare(id)
        };
        draft.install(&self.folder.join("builtin"), Program::Own { file: &own, args: &[ROLE, role] })?;
        Ok(())
    }

    async fn start(&self) -> Result<Fleet> {
        let mut policy = HostPolicy::new(self.folder.join("state"), Vec::new());
        policy.builtin_dir = Some(self.folder.join("builtin"));
        let starting_at_once = std::num::NonZeroUsize::new(4).context("four")?;
        let fleet = Fleet::start(FleetOptions {
            policy,
            facts: HostFacts::here("0.0.0", Profile::Desktop),
            supervisor: Supervisor::new(Settings {
                launcher: Launcher::current_exe().with_spare(),
                starting_at_once,
            }),
            messaging: Arc::new(Nobody),
            auto_level: "strict",
            seed: 1,
            begin: Begin::Running,
        })
        .await?;
        fleet.rescan().await;
        Ok(fleet)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is left is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A network in which nobody is known and every question is answered at once.
struct Nobody;

impl Messaging for Nobody {
    fn own_address(&self) -> Address {
        Address([0; 16])
    }

    fn send(&self, _: Outgoing) -> BoxFuture<Result<Sent, MeshError>> {
        Box::pin(async { Err(MeshError::Unavailable { why: "nobody is there".to_owned() }) })
    }

    fn messages(&self, _: MessageQuery) -> BoxFuture<Result<Vec<Message>, MeshError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn contacts(&self, _: ContactQuery) -> BoxFuture<Result<Vec<Contact>, MeshError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn listen(&self, _: Arc<dyn Ear>) {}
}

fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).context("status lacks a line")?;
    Ok(line.split_whitespace().nth(1).context("the line is empty")?.parse::<u64>()? * 1024)
}

/// What a line there and a line back take between two threads.
fn echo() -> Result<Spread> {
    let (mut near, far) = UnixStream::pair()?;
    let answering = std::thread::spawn(move || -> std::io::Result<()> {
        let mut output = far.try_clone()?;
        for line in BufReader::new(far).lines() {
            output.write_all(format!("{}\n", line?).as_bytes())?;
        }
        Ok(())
    });
    let mut input = BufReader::new(near.try_clone()?);
    let mut times = Vec::new();
    let mut line = String::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        near.write_all(format!("{}\n", request(1)).as_bytes())?;
        line.clear();
        input.read_line(&mut line)?;
        times.push(began.elapsed());
    }
    near.shutdown(std::net::Shutdown::Both)?;
    // It ends because its socket did.
    let _ = answering.join();
    Spread::of(times).context("no echo")
}

fn request(id: usize) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "host.contacts.list", "params": { "limit": 10 } })
}

/// The extension: attaches, answers, and if it is the caller, calls.
fn extension(role: &str) -> Result<()> {
    let mut bootstrap = String::new();
    std::io::stdin().read_line(&mut bootstrap)?;
    let bootstrap: Value = serde_json::from_str(&bootstrap)?;
    let endpoint = bootstrap["endpoint"].as_str().context("an endpoint")?;
    let mut output = UnixStream::connect(Path::new(endpoint.trim_start_matches("unix:")))?;
    let mut input = BufReader::new(output.try_clone()?);
    let mut line = String::new();
    let attach = json!({ "jsonrpc": "2.0", "id": 0, "method": "host.attach", "params": {
        "token": bootstrap["token"], "session": bootstrap["session"] } });
    output.write_all(format!("{attach}\n").as_bytes())?;
    input.read_line(&mut line)?;
    let mut called = role != "call";
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let asked: Value = serde_json::from_str(&line)?;
        let result = match asked["method"].as_str() {
            Some("sep.initialize") => json!({ "protocolVersion": "1.1.0" }),
            Some("sep.health") => json!({ "status": "ok", "seq": asked["params"]["seq"] }),
            _ => json!({}),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        output.write_all(format!("{answer}\n").as_bytes())?;
        if asked["method"] == "sep.shutdown" {
            return Ok(());
        }
        if !std::mem::replace(&mut called, true) {
            let mut nanos = Vec::new();
            for id in 1..=CALLS {
                let frame = format!("{}\n", request(id));
                let began = Instant::now();
                output.write_all(frame.as_bytes())?;
                line.clear();
                input.read_line(&mut line)?;
                nanos.push(began.elapsed().as_nanos() as u64);
                ensure!(line.contains("\"result\""), "a call was refused: {line}");
            }
            let mut out = std::io::stdout().lock();
            // A line of a log may have 8 KiB.
            nanos.sort_unstable();
            let some: Vec<u64> = nanos.iter().copied().step_by(3).collect();
            writeln!(out, "{}", json!({ "nanos": some }))?;
        }
    }
}
