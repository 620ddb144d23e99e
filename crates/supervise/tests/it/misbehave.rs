//! The misbehaving child: this binary, started as `__child <behaviour> …`.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::Signal;

/// Plays one child. Unknown behaviours end with code 64, which no test expects.
pub(crate) fn child(args: &[String]) -> ExitCode {
    let number = |index: usize| args.get(index).and_then(|text| text.parse::<i32>().ok()).expect("a number");
    let behaviour = args.first().map_or("", String::as_str);
    match behaviour {
        "exit" => return ExitCode::from(u8::try_from(number(1)).expect("an exit code")),
        "signal" => kill_self(number(1)),
        "show" => show(),
        "cat" => cat(),
        "extra" => extra(),
        "sleep" => announce_and_sleep(),
        "escape" => escape(),
        "escape-and-exit" => {
            escape();
            return ExitCode::from(7);
        }
        "escaped" => escaped(),
        "stopped" => {
            // Stops a whole family: this process, and a child of it.
            start(&["sleep"]);
            say("ready");
            kill_self(rustix::process::Signal::STOP.as_raw());
        }
        "bomb" => {
            for _ in 0..number(1) {
                start(&["escaped"]);
            }
            announce_and_sleep();
        }
        _ => return ExitCode::from(64),
    }
    if matches!(behaviour, "escape") {
        announce_and_sleep();
    }
    ExitCode::SUCCESS
}

/// Everything a child can see of its start, one fact a line.
fn show() {
    let mut out = std::io::stdout().lock();
    for arg in std::env::args_os().skip(3) {
        writeln!(out, "arg {}", hex(arg.as_bytes())).expect("stdout");
    }
    for (name, value) in std::env::vars_os() {
        writeln!(out, "env {}={}", hex(name.as_bytes()), hex(value.as_bytes())).expect("stdout");
    }
    writeln!(out, "cwd {}", std::env::current_dir().expect("a cwd").display()).expect("stdout");
    for entry in std::fs::read_dir("/proc/self/fd").expect("/proc").map(|entry| entry.expect("an entry")) {
        // The listing's own descriptor is gone when its target is asked for.
        if let Ok(target) = std::fs::read_link(entry.path())
            && !target.starts_with("/proc")
        {
            writeln!(out, "fd {}", entry.file_name().display()).expect("stdout");
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    for line in status.lines().filter(|line| {
        ["NoNewPrivs", "Seccomp:", "SigBlk", "SigIgn", "CapEff", "CapAmb", "Umask"]
            .iter()
            .any(|name| line.starts_with(name))
    }) {
        writeln!(out, "{}", line.replace('\t', "")).expect("stdout");
    }
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    writeln!(out, "leads its group {}", rustix::process::getpgrp().as_raw_nonzero().get() == pid)
        .expect("stdout");
    let seen = std::fs::read_link("/proc/self").expect("/proc/self");
    writeln!(out, "own number in /proc {}", seen.to_str() == Some(&pid.to_string())).expect("stdout");
    writeln!(out, "pid {pid}").expect("stdout");
}

/// Copies standard input to standard output, and says how much on standard error.
fn cat() {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("stdin");
    std::io::stdout().write_all(&bytes).expect("stdout");
    std::io::stderr().write_all(format!("{} bytes", bytes.len()).as_bytes()).expect("stderr");
}

/// Talks to descriptors 3 and 4.
fn extra() {
    let text = std::fs::read_to_string("/proc/self/fd/3").expect("descriptor 3");
    std::fs::write("/proc/self/fd/4", text.to_uppercase()).expect("descriptor 4");
}

/// Leaves a grandchild in a session of its own, whose parent is gone: what escapes every `kill(-pgid)`.
fn escape() {
    let mut child = start(&["escaped"]);
    child.wait().expect("the child in between");
}

fn escaped() {
    rustix::process::setsid().expect("a session of its own");
    start(&["sleep"]);
}

fn start(args: &[&str]) -> std::process::Child {
    #[expect(clippy::disallowed_methods, reason = "the misbehaving child starts processes behind our back")]
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.arg("__child").args(args).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a child")
}

fn announce_and_sleep() {
    say("ready");
    loop {
        std::thread::park();
    }
}

fn say(text: &str) {
    // Nobody may be listening any more; that is not what the tests are about.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn kill_self(signal: i32) {
    let signal = Signal::from_named_raw(signal).expect("a signal");
    rustix::process::kill_process(rustix::process::getpid(), signal).expect("kill");
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
