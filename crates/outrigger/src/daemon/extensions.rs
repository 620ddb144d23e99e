//! The extension host of a daemon, if one is configured.

use outrigger_supervise::driver::Supervisor;

use super::app::Extensions;
use crate::config::Config;
use crate::ext::up::Hosted;

/// Starts it. One that cannot be started does not keep the daemon from being up: its page says why.
pub(super) async fn start(config: &Config, supervisor: &Supervisor) -> Extensions {
    if !config.extensions.enabled {
        let hint = "no extensions are configured; write to outrigger.toml:\n[extensions]\nenabled = true";
        return Extensions::Off { hint: hint.to_owned() };
    }
    match Hosted::open(config.extensions.home.clone(), supervisor).await {
        Ok(hosted) => {
            let fleet = hosted.fleet.clone();
            tokio::spawn(hosted.serve());
            Extensions::On(fleet)
        }
        Err(error) => Extensions::Failed { why: crate::say::whole(&error) },
    }
}
