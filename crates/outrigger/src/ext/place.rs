//! Where a host lives: its folder, its policy, and the socket of the one that is up.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use outrigger_sep::config::HostPolicy;
use outrigger_sep::manifest::HostFacts;
use outrigger_sep::protocol::Profile;

use super::args::Place;

/// The policy in the folder of a host.
const POLICY: &str = "policy.toml";

/// A host that may or may not be up.
pub(crate) struct Site {
    pub(crate) home: PathBuf,
    pub(crate) policy_file: PathBuf,
    pub(crate) policy: HostPolicy,
}

impl Place {
    /// Finds the folder and reads the policy.
    pub(crate) fn site(&self) -> anyhow::Result<Site> {
        let home = match &self.home {
            Some(home) => {
                std::path::absolute(home).with_context(|| format!("{} is not a path", home.display()))?
            }
            None => default_home()?,
        };
        let policy_file = self.policy.clone().unwrap_or_else(|| home.join(POLICY));
        let mut policy = if self.policy.is_some() || policy_file.exists() {
            let folder = policy_file.parent().map_or_else(|| home.clone(), Path::to_path_buf);
            let policy = HostPolicy::load(&policy_file).with_context(|| policy_file.display().to_string())?;
            // A policy that is somewhere else does not move the host.
            if folder == home { policy } else { HostPolicy { state_dir: home.join("state"), ..policy } }
        } else {
            HostPolicy::parse("", &home).context("the default policy")?
        };
        if !self.extensions.is_empty() {
            let absolute = |dir: &PathBuf| {
                let dir =
                    std::path::absolute(dir).with_context(|| format!("{} is not a path", dir.display()))?;
                if !dir.is_dir() {
                    bail!("{} is not a folder", dir.display());
                }
                Ok(dir)
            };
            policy.extensions_dirs = self.extensions.iter().map(absolute).collect::<anyhow::Result<_>>()?;
        }
        Ok(Site { home, policy_file, policy })
    }
}

/// The facts about this machine.
pub(crate) fn facts() -> HostFacts {
    facts_of(Profile::Desktop)
}

/// The facts about a machine of another kind that this one plays.
pub(crate) fn facts_of(profile: Profile) -> HostFacts {
    HostFacts::here(env!("CARGO_PKG_VERSION"), profile)
}

fn default_home() -> anyhow::Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let data = data.context("there is no place for a host: give --home, or set XDG_DATA_HOME or HOME")?;
    Ok(data.join("outrigger/ext"))
}
