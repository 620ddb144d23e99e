//! From the arguments of `exec` to the spec of a child.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use outrigger_supervise::ready::{Before, Field, Gate, LineMatch, Ready, StdoutGate};
use outrigger_supervise::sandbox::{Containment, Limits, Network, Processes, Request};
use outrigger_supervise::spec::{LogFile, Logs, Rules, Spec, Stdin};
use outrigger_supervise::state::{Ask, Backoff, Counted, CrashLimit, Heartbeat, Restart, Retry};

use crate::args::{EnvArg, ExecArgs, HeartbeatArg, NetArg, ReadyArg, RestartArg, StdinArg};

/// Variables that every program gets, if we have them.
const PASSED: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR"];

/// The longest pause between restarts.
const BACKOFF_CAP: Duration = Duration::from_secs(60);
/// After this long without a break the pauses start small again.
const STABLE_AFTER: Duration = Duration::from_secs(300);
/// The longest line that can open the ready gate or be kept for a report.
const MAX_LINE: usize = 64 << 10;
/// Files that share `--log-size`.
const LOG_FILES: u32 = 4;
/// What a child may write to its log file in a second; more is dropped and counted there.
const LOG_RATE: u64 = 4 << 20;

pub(super) fn spec(args: &ExecArgs) -> anyhow::Result<Spec> {
    // The parser refuses an empty command.
    let (program, rest) = args.command.split_first().context("no program was given")?;
    let here = std::env::current_dir().context("the current folder cannot be found")?;
    let cwd = args.cwd.as_ref().map_or(here.clone(), |cwd| here.join(cwd));
    let name = match &args.name {
        Some(name) => name.clone(),
        None => Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned(),
    };
    let rules = Rules {
        ready: ready(&args.ready, args.ready_within),
        heartbeat: heartbeat(&args.heartbeat)?,
        restart: restart(args)?,
        logs: logs(args, &here),
    };
    let mut spec = Spec::new(name, program, &cwd, sandbox(args, &cwd), rules).args(rest);
    spec.program.environment.pass = match args.env_all {
        true => std::env::vars_os().map(|(name, _)| name).collect(),
        false => PASSED.iter().map(Into::into).collect(),
    };
    for variable in &args.env {
        match variable {
            EnvArg::Pass(name) => spec.program.environment.pass.push(name.into()),
            EnvArg::Set(name, value) => spec.program.environment.set.push((name.into(), value.clone())),
        }
    }
    if needs_stdin(args) {
        spec.stdin = Stdin::Session;
    }
    if !args.ask_within.is_zero() {
        spec.ask = Ask::Session;
    }
    Ok(spec)
}

/// Whether we write to the program: its input, pings, or the end of input as a request to leave.
pub(super) fn needs_stdin(args: &ExecArgs) -> bool {
    let pings = matches!(args.heartbeat, HeartbeatArg::Ping { .. });
    args.stdin == StdinArg::Forward || pings || !args.ask_within.is_zero()
}

fn ready(gate: &ReadyArg, within: Duration) -> Ready {
    let stdout = |line| Gate::Stdout(StdoutGate { line, before: Before::Skip, max_line_bytes: MAX_LINE });
    let gate = match gate {
        ReadyArg::None => return Ready::OnSpawn,
        ReadyArg::Line(text) => stdout(LineMatch::Contains(text.clone())),
        ReadyArg::Stderr(prefix) => Gate::Stderr(LineMatch::Prefix(prefix.clone())),
        ReadyArg::Json { pointer, value } => {
            // `json:/code=7` means the number, `json:/type=ready` the string.
            let equals = serde_json::from_str(value).unwrap_or_else(|_| value.as_str().into());
            stdout(LineMatch::Json(vec![Field { pointer: pointer.clone(), equals }]))
        }
    };
    Ready::When { gate, within }
}

fn heartbeat(rule: &HeartbeatArg) -> anyhow::Result<Heartbeat> {
    Ok(match rule {
        HeartbeatArg::None => Heartbeat::None,
        HeartbeatArg::Silence(silence) | HeartbeatArg::Beat { within: silence, .. } => {
            Heartbeat::TheyBeat { silence: *silence, counted: Counted::Always }
        }
        HeartbeatArg::Ping { every, misses } => {
            let missed =
                NonZeroU32::new(*misses).context("--heartbeat: at least one miss must be allowed")?;
            Heartbeat::WePing { every: *every, missed }
        }
    })
}

fn restart(args: &ExecArgs) -> anyhow::Result<Restart> {
    let crashes = NonZeroU32::new(args.crash_limit.count).context("--crash-limit: at least one crash")?;
    let retry = Retry {
        backoff: Backoff { first: args.backoff, cap: BACKOFF_CAP.max(args.backoff), jitter_percent: 20 },
        stable_after: STABLE_AFTER,
        max_attempts: None,
        crash_loop: CrashLimit { crashes, within: args.crash_limit.window },
        slow_crash: None,
        permanent_codes: Vec::new(),
    };
    Ok(match args.restart {
        RestartArg::Never => Restart::Never,
        RestartArg::OnFailure => Restart::OnFailure(retry),
        RestartArg::Always => Restart::Always(retry),
    })
}

fn logs(args: &ExecArgs, here: &Path) -> Logs {
    let file = args.log_file.as_ref().map(|path| LogFile {
        path: here.join(path),
        max_bytes: (args.log_size.0 / u64::from(LOG_FILES)).max(MAX_LINE as u64 * 2),
        max_files: LOG_FILES,
        bytes_per_second: LOG_RATE,
    });
    Logs { tail_lines: 20, tail_bytes: 256 << 10, max_line_bytes: MAX_LINE, file }
}

fn sandbox(args: &ExecArgs, cwd: &Path) -> Request {
    let absolute = |paths: &[std::path::PathBuf]| paths.iter().map(|path| cwd.join(path)).collect();
    Request {
        level: args.sandbox.level(),
        containment: Containment::Strongest,
        network: match args.net {
            NetArg::Deny => Network::Deny,
            NetArg::Unix => Network::UnixOnly,
            NetArg::Allow => Network::Allow,
        },
        read: absolute(&args.read),
        write: absolute(&args.write),
        processes: Processes::Many,
        limits: Limits {
            open_files: args.open_files,
            file_size_bytes: None,
            // A limit of half a second is a limit; the kernel only counts whole ones.
            cpu_seconds: args.cpu_time.map(|time| time.as_secs_f64().ceil() as u64),
            address_space_bytes: args.memory.map(|bytes| bytes.0),
            processes: None,
            core_bytes: None,
        },
    }
}
