//! Puts the daemon together: processes, backends, extensions, runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use outrigger_abp::conduct;
use outrigger_abp::govern::default_profile;
use outrigger_abp::protocol::PolicyProfile;
use outrigger_abp::receipt::{Folder, SpoolLimit};
use outrigger_supervise::driver::Supervisor;

use super::app::Extensions;
use super::place::Place;
use crate::backends::order::{self, House, Orders};
use crate::backends::script::{self, Scripts};
use crate::backends::talk::Talk;
use crate::backends::tools::Tools;
use crate::config::{AGENTS, Backend, Config};
use crate::engine::Engine;
use crate::http::ServerLimits;
use crate::runs::dispatch::Lane;
use crate::runs::service::Complaints;
use crate::runs::{Receipts, RunRules, Runs, RunsOptions};

/// A daemon that can begin.
pub(super) struct Built {
    pub(super) runs: Runs,
    pub(super) supervisor: Supervisor,
    pub(super) extensions: Extensions,
}

/// Puts it together. What attempts left that died with an earlier daemon is sealed first.
pub(super) async fn assemble(
    config: &Config,
    place: &Place,
    engine: Arc<dyn Engine>,
    complaints: Complaints,
) -> anyhow::Result<Built> {
    let supervisor = crate::trees::supervisor();
    let receipts = config.receipts_dir.clone().unwrap_or_else(|| place.receipts());
    let folder = Arc::new(Folder::open(&receipts, SpoolLimit::USUAL)?);
    let sign = Some(crate::run::signing_key(&place.root().join("receipts.key"))?);
    let receipts = Receipts { folder: Arc::clone(&folder), sign };
    for left in conduct::recover(&receipts.folder, receipts.sign.as_ref())? {
        if let Err(why) = left {
            complaints(&format!("what a killed daemon left cannot be sealed: {why}"));
        }
    }
    let policy = config.policy.as_deref().map(crate::run::read_policy).transpose()?;
    let tools = Tools::new(config.tools.clone(), &supervisor)?;
    let of_scripts = policy.clone().unwrap_or_else(PolicyProfile::unrestricted);
    let mut lanes = vec![scripts(config, place, &supervisor, &tools, &of_scripts)?];
    lanes.extend(agents(config, place, &supervisor, policy)?);
    let default_backend = config.default_backend.clone().unwrap_or_else(|| "mock".to_owned());
    let runs = Runs::open(RunsOptions {
        engine,
        lanes,
        default_backend,
        receipts,
        rules: rules(config),
        tools: tools.list(),
        left: Box::new(move |id| order::left_behind(&folder, id)),
        complaints,
    });
    let extensions = super::extensions::start(config, &supervisor).await;
    Ok(Built { runs, supervisor, extensions })
}

fn scripts(
    config: &Config,
    place: &Place,
    supervisor: &Supervisor,
    tools: &Tools,
    policy: &PolicyProfile,
) -> anyhow::Result<Lane> {
    let host = script::host(supervisor, &place.root().join("script.key")).context("scripts cannot be run")?;
    let scripts = Scripts::new(host, tools.clone()).under(policy)?;
    Ok(Lane::new(Arc::new(scripts), config.at_once(script::NAME)))
}

/// Every backend with a name: those of the configuration, and those that need none.
fn agents(
    config: &Config,
    place: &Place,
    supervisor: &Supervisor,
    policy: Option<PolicyProfile>,
) -> anyhow::Result<Vec<Lane>> {
    // Agents without a policy have the same one as under `outrigger run`.
    let of_talks = policy.clone().unwrap_or_else(default_profile);
    let house = House {
        here: std::env::current_dir().context("the current folder cannot be found")?,
        stages: place.stages(),
        scratch: place.scratch(),
        policy,
    };
    let mut named: BTreeMap<String, Backend> = config.backends.clone();
    for name in ["mock"].into_iter().chain(AGENTS) {
        if !named.contains_key(name) {
            named.insert(name.to_owned(), config.backend(name)?);
        }
    }
    let talk = |name: &str, chat: crate::config::Chat| {
        let folder = place.root().join("steerable");
        let at_once = config.at_once(name);
        Lane::new(
            Arc::new(Talk::new(name, chat, at_once, folder, of_talks.clone(), supervisor.clone())),
            at_once,
        )
    };
    let mut lanes = Vec::new();
    if !config.talks.contains_key("steerable") && !named.contains_key("steerable") {
        lanes.push(talk("steerable", config.chat.clone()));
    }
    lanes.extend(config.talks.iter().map(|(name, chat)| talk(name, chat.clone())));
    lanes.extend(named.into_iter().map(|(name, backend)| {
        let at_once = config.at_once(&name);
        let orders = Orders::new(name, backend, at_once, house.clone(), supervisor.clone());
        Lane::new(Arc::new(orders), at_once)
    }));
    Ok(lanes)
}

fn rules(config: &Config) -> RunRules {
    RunRules {
        queued: config.runs.queued,
        retries: config.runs.retries,
        approve_within: config.runs.approve_within,
        approve_default: config.runs.approve_default,
        keep_for: config.store.keep_runs,
        keep_at_most: config.store.keep_at_most,
    }
}

/// What the server gives.
pub(super) fn limits(config: &Config) -> ServerLimits {
    let server = &config.server;
    ServerLimits {
        connections: server.connections,
        streams: server.connections / 2,
        per_second: server.requests_per_second,
        burst: server.requests_per_second.saturating_mul(2),
        body_bytes: server.body_limit,
        ..ServerLimits::USUAL
    }
}
