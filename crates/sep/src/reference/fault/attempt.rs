//! The steps that try the box: files, sockets, signals, processes, memory, output.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::puppet::{name, print};
use super::{Hands, Step, argument};

/// How long a copy of a bomb lives.
const COPY_LIFE_MS: u64 = 30_000;

/// Does one of these steps and prints what came of it.
pub(super) fn attempt(step: &Step, hands: Hands) -> io::Result<()> {
    let found = match step {
        Step::Setsid => json!(i32::from(rustix::process::setsid()?.as_raw_nonzero())),
        Step::Start { script, times } => {
            let args = ["--free".to_owned(), argument(script)];
            let pids: Result<Vec<u32>, _> = (0..times.unwrap_or(1)).map(|_| (hands.start)(&args)).collect();
            json!(pids?)
        }
        Step::Bomb { most } => bomb(*most, hands),
        Step::Eat { bytes } => {
            let mut eaten = vec![0u8; *bytes];
            // One byte of every page, so that it is really there.
            eaten.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            // It is not given back: whoever watches need not look at the right moment.
            json!(black_box(eaten.leak()).len())
        }
        Step::Spin { ms } => {
            let end = Instant::now() + Duration::from_millis(*ms);
            let mut rounds = 0u64;
            while Instant::now() < end {
                rounds = black_box(rounds + 1);
            }
            json!(rounds)
        }
        Step::Open { path } => {
            let mut first = Vec::new();
            fs::File::open(path)?.take(64).read_to_end(&mut first)?;
            json!(first.len())
        }
        Step::Create { path } => {
            fs::write(path, b"fault\n")?;
            json!(path)
        }
        Step::Tcp { to } => json!(TcpStream::connect(to)?.peer_addr()?.to_string()),
        Step::Udp { to } => json!(UdpSocket::bind("127.0.0.1:0")?.send_to(b"fault", to)?),
        Step::Unix { path } => {
            UnixStream::connect(path)?;
            json!(path)
        }
        Step::Signal { pid, signal } => {
            let whom = pid.map_or_else(nix::unistd::getppid, Pid::from_raw);
            kill(whom, Signal::try_from(*signal)?)?;
            json!(whom.as_raw())
        }
        Step::Look => look(),
        Step::Print { text } => {
            writeln!(io::stdout(), "{text}")?;
            return io::stdout().flush();
        }
        Step::PrintFlood { bytes, stderr } => {
            let text = "flood ".repeat(1024);
            let mut left = *bytes;
            while left > 0 {
                let part = &text.as_bytes()[..left.min(text.len())];
                match stderr {
                    Some(true) => io::stderr().write_all(part)?,
                    Some(false) | None => io::stdout().write_all(part)?,
                }
                left -= part.len();
            }
            return io::stdout().flush();
        }
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "this step is not an attempt")),
    };
    print(&json!({"do": name(step), "ok": true, "found": found}));
    Ok(())
}

/// The how manieth process of this extension this is, by a file in its data directory.
pub(super) fn count() -> io::Result<u32> {
    let home =
        env::var_os("HOME").ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "HOME is not set"))?;
    let file = std::path::Path::new(&home).join("starts");
    let before = fs::read(&file).map_or(0, |bytes| bytes.len());
    fs::OpenOptions::new().create(true).append(true).open(&file)?.write_all(b".")?;
    u32::try_from(before + 1).map_err(io::Error::other)
}

fn bomb(most: u32, hands: Hands) -> Value {
    let args = ["--free".to_owned(), argument(&[Step::Sleep { ms: COPY_LIFE_MS }])];
    let mut pids = Vec::new();
    let mut refused = None;
    for _ in 0..most {
        match (hands.start)(&args) {
            Ok(pid) => pids.push(pid),
            Err(error) => {
                refused = Some(error.to_string());
                break;
            }
        }
    }
    json!({"started": pids.len(), "pids": pids, "refused": refused})
}

fn look() -> Value {
    let names: Vec<String> = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let descriptors: Vec<String> = fs::read_dir("/proc/self/fd")
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    let args: Vec<String> = env::args().collect();
    json!({
        "pid": process::id(),
        "environment": names,
        "descriptors": descriptors,
        "directory": env::current_dir().ok(),
        "args": args.len(),
    })
}
