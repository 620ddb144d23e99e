//! The arguments of `outrigger up` and `outrigger down`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(after_help = "\
Examples:
  outrigger up                          the daemon, and the dashboard in a browser
  outrigger up --no-open --port 7800    on another port, and only the link
  outrigger up --link                   another link to the dashboard of the daemon that is up
  outrigger down                        end it from anywhere

It listens on this machine alone. What it keeps is in one folder; what was accepted survives a restart and a kill.
Ctrl-C lets what is under way stand still first; a second one ends it at once.")]
pub(crate) struct UpArgs {
    /// The port; if it is taken, up is an error. Without this: 7700 or the next free one.
    #[arg(long, env = "OUTRIGGER_PORT")]
    pub(crate) port: Option<u16>,
    /// The configuration [default: outrigger.toml here, else the user's].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Do not open a browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Do not show example runs in a new daemon.
    #[arg(long)]
    pub(crate) no_example: bool,
    /// Print a new link to the dashboard of the daemon that is up, and leave.
    #[arg(long)]
    pub(crate) link: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  outrigger down\n  outrigger down --state ./state")]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Args)]
pub(crate) struct PlaceArgs {
    /// The folder of the daemon [default: as configured, else $XDG_STATE_HOME/outrigger/daemon].
    #[arg(long, value_name = "DIR", env = "OUTRIGGER_STATE")]
    pub(crate) state: Option<PathBuf>,
}
