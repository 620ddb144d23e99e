//! `outrigger doctor`: what this machine can enforce, found out by doing it, and what degrades where it cannot.

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use outrigger_supervise::launch::Launcher;
use outrigger_supervise::sandbox::{Capabilities, Capability, Cgroup, Contained, Level, probe};
use serde::Serialize;

use crate::say::{self, Format};
use crate::trees;

/// What `doctor --json` prints.
#[derive(Serialize)]
#[serde(tag = "event", rename = "doctor")]
struct Report<'a> {
    version: &'a str,
    sandbox: &'a Capabilities,
    open_files: Option<u64>,
    registry: Option<String>,
}

pub(crate) fn run(format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let found = runtime.block_on(probe(&Launcher::current_exe()));
    let found = found.context("no program can be launched on this machine")?;
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        sandbox: &found,
        open_files: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        registry: trees::registry().map(|path| path.display().to_string()),
    };
    match format {
        Format::Json => say::line(&serde_json::to_value(&report)?),
        Format::Text => anstream::print!("{}", to_text(&report)),
    }
    Ok(ExitCode::SUCCESS)
}

/// One thing we looked at: its name, whether it works, and what it is for or what happens without it.
struct Finding<'a> {
    name: &'a str,
    capability: &'a Capability,
    with: &'a str,
    without: &'a str,
}

fn to_text(report: &Report<'_>) -> String {
    let bold = Style::new().bold();
    let found = report.sandbox;
    let user = if found.root { "root" } else { "an ordinary user" };
    let mut text = format!("{bold}outrigger {}{bold:#} on {}, as {user}\n", report.version, found.kernel);

    section(
        &mut text,
        "Nothing outlives its owner",
        &[
            Finding {
                name: "pid namespace",
                capability: &found.pid_namespace,
                with: "the kernel kills a tree with its owner",
                without: "a subreaper sweeps instead; a host and a keeper killed in the same instant leave orphans until the next start",
            },
            Finding {
                name: "user namespace",
                capability: &found.user_namespace,
                with: "the same without root",
                without: "only root gets pid namespaces",
            },
            Finding {
                name: "own /proc",
                capability: &found.proc_mount,
                with: "a child sees only its own tree there",
                without: "a child that looks itself up in /proc by its own number finds somebody else",
            },
            Finding {
                name: "subreaper",
                capability: &found.subreaper,
                with: "orphans come back to us",
                without: "a grandchild in its own session is lost without a pid namespace",
            },
            Finding {
                name: "pidfd",
                capability: &found.pidfd,
                with: "we never kill a recycled number",
                without: "nothing can be started",
            },
        ],
    );
    section(
        &mut text,
        "The box",
        &[
            Finding {
                name: "no new privileges",
                capability: &found.no_new_privs,
                with: "setuid programs gain nothing",
                without: "levels basic and above are refused",
            },
            Finding {
                name: "resource limits",
                capability: &found.limits,
                with: "memory, processor time and files of a process",
                without: "limits are refused",
            },
            Finding {
                name: "Landlock",
                capability: &found.landlock,
                with: "files, TCP, signals and abstract sockets",
                without: "levels strict and required are refused",
            },
            Finding {
                name: "seccomp",
                capability: &found.seccomp,
                with: "dangerous system calls and socket families",
                without: "levels strict and required are refused",
            },
            Finding {
                name: "cgroup kill",
                capability: &found.cgroup_kill,
                with: "a control group of our own could be killed whole",
                without: "not needed for the tree kill",
            },
        ],
    );

    let level = match found.auto_level {
        Level::Off => "off",
        Level::Basic => "basic",
        Level::Strict | Level::Auto | Level::Required => "strict",
    };
    let held = match found.strongest {
        Contained::PidNamespace { .. } => "a pid namespace",
        Contained::Subreaper { .. } => "a subreaper",
    };
    let cgroup = match found.cgroup {
        Cgroup::None => "none",
        Cgroup::V1 => "version 1",
        Cgroup::Hybrid => "version 1 with an empty version 2",
        Cgroup::V2 => "version 2",
    };
    let abi = found.landlock_abi.map_or_else(|| "none".to_owned(), |abi| abi.to_string());
    let files = report.open_files.map_or_else(|| "no limit".to_owned(), |files| files.to_string());
    let registry = report.registry.as_deref().unwrap_or("none: set XDG_STATE_HOME or HOME");
    text.push_str(&format!("\n{bold}In short{bold:#}\n"));
    for (name, value) in [
        ("--sandbox auto", level),
        ("trees are held by", held),
        ("Landlock interface", &abi),
        ("control groups", cgroup),
        ("open files", &files),
        ("tree registry", registry),
    ] {
        text.push_str(&format!("  {name:<20} {value}\n"));
    }
    text
}

fn section(text: &mut String, title: &str, findings: &[Finding<'_>]) {
    let bold = Style::new().bold();
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Yellow.on_default());
    text.push_str(&format!("\n{bold}{title}{bold:#}\n"));
    for Finding { name, capability, with, without } in findings {
        match &capability.reason {
            _ if capability.available => text.push_str(&format!("  {good}yes{good:#} {name:<18} {with}\n")),
            Some(reason) => text.push_str(&format!("  {bad}no {bad:#} {name:<18} {reason}; {without}\n")),
            None => text.push_str(&format!("  {bad}no {bad:#} {name:<18} {without}\n")),
        }
    }
}
