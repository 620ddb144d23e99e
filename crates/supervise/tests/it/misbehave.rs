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
            abandon(&["sleep"]);
            say("ready");
            kill_self(rustix::process::Signal::STOP.as_raw());
        }
        "try" => {
            for attempt in &args[1..] {
                attempt_and_tell(attempt);
            }
        }
        "bomb" => {
            for _ in 0..number(1) {
                abandon(&["escaped"]);
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
    abandon(&["sleep"]);
}

/// Tries one thing that a box may forbid (`verb:object`), and says what came of it.
fn attempt_and_tell(attempt: &str) {
    use rustix::net::{AddressFamily, SocketType, socket};
    let (verb, object) = attempt.split_once(':').unwrap_or((attempt, ""));
    let result: std::io::Result<()> = match verb {
        "read" => std::fs::read(object).map(drop),
        "list" => std::fs::read_dir(object).map(drop),
        "write" => std::fs::write(object, "written"),
        "mkdir" => std::fs::create_dir(object),
        "execute" => run(object),
        "connect" => std::net::TcpStream::connect(object).map(drop),
        "udp" => std::net::UdpSocket::bind("127.0.0.1:0").and_then(|s| s.send_to(b"x", object).map(drop)),
        "unix" => std::os::unix::net::UnixStream::connect(object).map(drop),
        "unix-pair" => std::os::unix::net::UnixStream::pair().map(drop),
        "netlink" => socket(AddressFamily::NETLINK, SocketType::RAW, None).map(drop).map_err(Into::into),
        "signal" => {
            let pid = rustix::process::Pid::from_raw(object.parse().expect("a pid")).expect("a pid");
            rustix::process::test_kill_process(pid).map_err(Into::into)
        }
        "ptrace" => nix::sys::ptrace::traceme().map_err(Into::into),
        "unshare" => nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUTS).map_err(Into::into),
        "mount" => rustix::mount::mount("none", object, "tmpfs", rustix::mount::MountFlags::empty(), None)
            .map_err(Into::into),
        "chroot" => rustix::process::chroot(object).map_err(Into::into),
        "thread" => std::thread::Builder::new().spawn(|| {}).map(|thread| thread.join().expect("a thread")),
        "fork" => run("/bin/true"),
        "files" => (0..object.parse().expect("a number"))
            .map(|_| std::fs::File::open("/dev/null"))
            .collect::<Result<Vec<_>, _>>()
            .map(drop),
        _ => Err(std::io::Error::other("unknown attempt")),
    };
    match result {
        Ok(()) => say(&format!("{attempt} ok")),
        Err(error) => {
            say(&format!("{attempt} {}", error.raw_os_error().map_or(error.to_string(), errno_name)))
        }
    }
}

fn run(program: &str) -> std::io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the misbehaving child starts processes behind our back")]
    Command::new(program).stdout(Stdio::null()).status().map(drop)
}

fn errno_name(errno: i32) -> String {
    format!("{:?}", nix::errno::Errno::from_raw(errno))
}

/// Starts a child and never waits for it.
#[expect(clippy::zombie_processes, reason = "that is the misbehaviour")]
fn abandon(args: &[&str]) {
    start(args);
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
