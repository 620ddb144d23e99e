//! What the tests need from the machine beyond a Rust toolchain: the table, and the command that provides it.
//!
//! A new need is one line in [`NEEDS`]. `plan` decides without touching the machine, `install` does what was
//! decided. An npm package lands in the user's cache folder, and the tests find it through an environment
//! variable: `OUTRIGGER_NPM_JSON_RPC_2_0` names the folder that holds its `node_modules`. Python packages likewise:
//! `OUTRIGGER_PY_LXMF` names a folder for `PYTHONPATH`.

mod install;
mod plan;

use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

/// One thing that some test cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    what: What,
    /// The test that needs it and what for, as the end of the sentence "needed by …".
    needed_by: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Debian { package: &'static str, probe: Probe },
    Npm { package: &'static str, version: &'static str, parts: Parts },
    Python(Python),
}

/// Python packages that are installed together, each with its version, dependencies too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Python {
    /// What the folder and the variable are called after.
    name: &'static str,
    /// The first is the version of the whole.
    packages: &'static [(&'static str, &'static str)],
    /// Fails unless the packages can be used by this Python, and are the right ones.
    proof: &'static str,
}

/// How to tell that a Debian package, or something as good, is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Program(&'static str),
    File(&'static str),
}

/// What of an npm package is installed. Install scripts never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// All of it: native programs often are optional dependencies.
    All,
    /// Without optional dependencies.
    Required,
}

/// In the order of installation: npm itself is a Debian package.
const NEEDS: &[Need] = &[
    debian("zsh", Probe::Program("zsh"), "the test that reads the zsh completion script with `zsh -n`"),
    debian("fish", Probe::Program("fish"), "the test that reads the fish completion script with `fish -n`"),
    debian("git", Probe::Program("git"), "the tests of staged workspaces"),
    debian(
        "python3",
        // The system's own: one of a version manager lives in a home, which a strict box closes.
        Probe::File("/usr/bin/python3"),
        "the tests of the kit for Python, of MCP servers, and of backends in a strict box",
    ),
    debian("procps", Probe::Program("ps"), "the test of the kit for node that kills its sidecar"),
    debian("npm", Probe::Program("npm"), "the tests that run against programs from npm"),
    npm("json-rpc-2.0", "1.8.1", Parts::All, "the test of our JSON-RPC peer against another implementation"),
    npm(
        "@modelcontextprotocol/server-everything",
        "2026.8.31",
        Parts::All,
        "the tests that give an agent the tools of a real MCP server",
    ),
    npm(
        "@anthropic-ai/claude-code",
        "2.1.325",
        Parts::All,
        "the tests that drive the real Claude Code against a model server on loopback",
    ),
    npm(
        "@openai/codex",
        "0.166.0",
        Parts::All,
        "the tests that drive the real Codex against a model server on loopback",
    ),
    npm(
        "@agentclientprotocol/claude-agent-acp",
        "0.99.1",
        // It would bring a Claude Code of its own; the tests give it the one above.
        Parts::Required,
        "the tests that drive a real agent over ACP",
    ),
    debian("chromium", Probe::Program("chromium"), "the tests that use the dashboard in a real browser"),
    npm("playwright-core", "1.65.0", Parts::Required, "the tests that use the dashboard in a real browser"),
    debian("python3-pip", Probe::Program("pip3"), "the tests that run with packages for Python"),
    python(
        Python {
            name: "lxmf",
            packages: &[
                ("lxmf", "1.2.1"),
                ("rns", "1.5.7"),
                ("cryptography", "50.0.2"),
                ("cffi", "2.1.1"),
                ("pycparser", "3.12"),
                ("pyserial", "3.5"),
            ],
            proof: "import LXMF, RNS, cryptography.hazmat.bindings._rust; \
                    assert (LXMF.__version__, RNS.__version__) == ('1.2.1', '1.5.7')",
        },
        "the tests in which two real nodes of Reticulum exchange messages",
    ),
];

const fn debian(package: &'static str, probe: Probe, needed_by: &'static str) -> Need {
    Need { what: What::Debian { package, probe }, needed_by }
}

const fn npm(package: &'static str, version: &'static str, parts: Parts, needed_by: &'static str) -> Need {
    Need { what: What::Npm { package, version, parts }, needed_by }
}

const fn python(packages: Python, needed_by: &'static str) -> Need {
    Need { what: What::Python(packages), needed_by }
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the variables that the tests read, as shell `export` lines, on standard output.
    #[arg(long)]
    print_env: bool,
}

pub(crate) fn run(_root: &Path, args: &Args) -> Result<ExitCode> {
    let environment = provide()?;
    if args.print_env {
        for (name, value) in environment {
            println!("export {name}='{}'", value.replace('\'', r"'\''"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs what is missing, and returns the variables that tell the tests where things are.
pub(crate) fn provide() -> Result<Vec<(String, String)>> {
    let cache = install::cache_folder()?;
    let machine = install::look_around(NEEDS, &cache);
    match plan::plan(&machine) {
        plan::Plan::Nothing => eprintln!("the machine has everything that the tests need"),
        plan::Plan::Refuse { message } => anyhow::bail!(message),
        plan::Plan::Install(steps) => install::perform(&steps, &machine, &cache)?,
    }
    Ok(plan::environment(NEEDS, &cache))
}
