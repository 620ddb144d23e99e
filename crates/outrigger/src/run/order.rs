//! From the command line, the order's file and the policy's file to one work order. What the command line says wins.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use outrigger_abp::protocol::{
    Capability, MinSupport, OrderId, PolicyProfile, Raw, Requirement, WorkOrder, WorkspaceMode,
};
use serde_json::{Map, Value};

use super::args::RunArgs;
use crate::config::nearest;

/// The longest order and the longest policy.
const MAX_BYTES: u64 = 16 << 20;

/// The longest task.
const MAX_TASK_BYTES: usize = 100_000;

/// The order, with the folder it is about as an absolute path.
pub(super) fn build(args: &RunArgs, policy: Option<&Path>) -> anyhow::Result<WorkOrder> {
    let mut order = match &args.order {
        Some(path) => read(path)?,
        None => WorkOrder::new(fresh_id()?, ""),
    };
    if order.id.as_str().is_empty() {
        order.id = fresh_id()?;
    }
    if let Some(task) = &args.task {
        order.task = task.clone();
    }
    match (order.task.trim().is_empty(), order.task.len()) {
        (true, _) => bail!("there is no task; say what is to be done, or give an --order that does"),
        (false, length) if length > MAX_TASK_BYTES => {
            bail!(
                "the task has {length} bytes; it may have {MAX_TASK_BYTES}. Put long texts into files of the workspace"
            )
        }
        (false, _) => {}
    }
    workspace(args, &mut order)?;
    if let Some(path) = policy {
        order.policy = read_policy(path)?;
    }
    config(args, &mut order)?;
    order.context.files.extend(args.context.iter().cloned());
    for text in &args.require {
        order.requirements.required.push(requirement(text)?);
    }
    Ok(order)
}

fn fresh_id() -> anyhow::Result<OrderId> {
    OrderId::random().context("the system has no randomness to give")
}

fn read(path: &Path) -> anyhow::Result<WorkOrder> {
    let text = read_text(path, "the order")?;
    WorkOrder::read(&text).with_context(|| format!("the order {} is not a work order", path.display()))
}

fn read_text(path: &Path, what: &str) -> anyhow::Result<String> {
    let name = format!("{what} {}", path.display());
    let mut text = String::new();
    let reader: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).with_context(|| format!("{name} cannot be opened"))?),
    };
    reader.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(|| format!("{name} cannot be read"))?;
    if text.len() as u64 > MAX_BYTES {
        bail!("{name} is longer than {MAX_BYTES} bytes");
    }
    Ok(text)
}

fn workspace(args: &RunArgs, order: &mut WorkOrder) -> anyhow::Result<()> {
    let workspace = &mut order.workspace;
    match (args.staged, args.in_place) {
        (true, _) => workspace.mode = WorkspaceMode::Staged,
        (_, true) => workspace.mode = WorkspaceMode::PassThrough,
        (false, false) => {}
    }
    if let WorkspaceMode::Other(mode) = &workspace.mode {
        bail!("the order's workspace.mode is `{mode}`; it may be `staged` or `pass_through`");
    }
    let root = args.root.clone().unwrap_or_else(|| PathBuf::from(&workspace.root));
    let absolute =
        root.canonicalize().with_context(|| format!("the folder {} cannot be used", root.display()))?;
    if !absolute.is_dir() {
        bail!("{} is not a folder", root.display());
    }
    let Some(text) = absolute.to_str() else {
        bail!("the folder {} has a name that is not UTF-8, which a work order cannot say", root.display());
    };
    workspace.root = text.to_owned();
    workspace.include.extend(args.include.iter().cloned());
    workspace.exclude.extend(args.exclude.iter().cloned());
    Ok(())
}

fn config(args: &RunArgs, order: &mut WorkOrder) -> anyhow::Result<()> {
    let config = &mut order.config;
    if let Some(model) = &args.model {
        config.model = Some(model.clone());
    }
    if let Some(turns) = args.max_turns {
        config.max_turns = Some(turns);
    }
    if let Some(money) = args.budget_usd.or(config.max_budget_usd) {
        if !money.is_finite() || money < 0.0 {
            bail!("a budget of {money} US dollars is none; it is a number from 0 up");
        }
        config.max_budget_usd = Some(money);
    }
    for text in &args.env {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            bail!("--env {text}: it is NAME=VALUE");
        };
        config.env.insert(name.to_owned(), value.to_owned());
    }
    let Value::Object(mut vendor) = config.vendor.to_value() else {
        bail!("the order's config.vendor is not an object");
    };
    for text in &args.param {
        parameter(&mut vendor, text)?;
    }
    agent(args, &mut vendor)?;
    if vendor.is_empty() {
        return Ok(());
    }
    config.vendor = Raw::of(&vendor).context("--param")?;
    Ok(())
}

/// What only coding agents understand: members of `agent`.
fn agent(args: &RunArgs, vendor: &mut Map<String, Value>) -> anyhow::Result<()> {
    let mut members = Map::new();
    if let Some(resume) = &args.resume {
        members.insert("resume".to_owned(), resume.as_str().into());
    }
    if let Some(mode) = args.permission_mode.and_then(|mode| mode.to_possible_value()) {
        members.insert("permission_mode".to_owned(), mode.get_name().into());
    }
    if let Some(effort) = &args.effort {
        members.insert("effort".to_owned(), effort.as_str().into());
    }
    if !args.image.is_empty() {
        let images: anyhow::Result<Vec<Value>> = args.image.iter().map(|path| picture(path)).collect();
        members.insert("images".to_owned(), images?.into());
    }
    if members.is_empty() {
        return Ok(());
    }
    match vendor.entry("agent").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(agent) => agent.extend(members),
        _ => bail!("the order's config.vendor.agent is not an object"),
    }
    Ok(())
}

/// A picture by its absolute path; a missing one is said now.
fn picture(path: &Path) -> anyhow::Result<Value> {
    let absolute =
        path.canonicalize().with_context(|| format!("the picture {} cannot be used", path.display()))?;
    let text = absolute
        .to_str()
        .with_context(|| format!("the picture {} has a name that is not UTF-8", path.display()))?;
    Ok(text.into())
}

/// `a.b=VALUE` sets `{"a":{"b":VALUE}}`; what is no JSON is text.
fn parameter(vendor: &mut Map<String, Value>, text: &str) -> anyhow::Result<()> {
    let Some((path, value)) =
        text.split_once('=').filter(|(path, _)| path.split('.').all(|key| !key.is_empty()))
    else {
        bail!("--param {text}: it is KEY=VALUE, and dots in the key nest");
    };
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    let (folders, key) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = vendor;
    for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
        let inner = place.entry(folder).or_insert_with(|| Value::Object(Map::new()));
        place = match inner {
            Value::Object(inner) => inner,
            _ => bail!("--param {text}: `{folder}` has a value already and cannot hold others"),
        };
    }
    place.insert(key.to_owned(), value);
    Ok(())
}

fn requirement(text: &str) -> anyhow::Result<Requirement> {
    let (name, level) = text.split_once('=').unwrap_or((text, "any"));
    let capability = Capability::from(name);
    if let Capability::Other(name) = &capability {
        let near = nearest(name, Capability::ALL.iter().map(|known| known.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        bail!("--require {text}: the contract has no capability `{name}`{hint}");
    }
    let min_support = MinSupport::from(level);
    if let MinSupport::Other(level) = &min_support {
        bail!("--require {text}: `{level}` is no level; there are native, emulated and any");
    }
    Ok(Requirement { capability, min_support })
}

/// A policy's file: any of the seven lists, and nothing else.
pub(crate) fn read_policy(path: &Path) -> anyhow::Result<PolicyProfile> {
    let name = path.display();
    let text = read_text(path, "the policy")?;
    let members: Map<String, Value> =
        serde_json::from_str(&text).with_context(|| format!("the policy {name} is not a JSON object"))?;
    let mut profile = PolicyProfile::unrestricted();
    for (key, value) in members {
        let list = match key.as_str() {
            "allowed_tools" => &mut profile.allowed_tools,
            "disallowed_tools" => &mut profile.disallowed_tools,
            "deny_read" => &mut profile.deny_read,
            "deny_write" => &mut profile.deny_write,
            "allow_network" => &mut profile.allow_network,
            "deny_network" => &mut profile.deny_network,
            "require_approval_for" => &mut profile.require_approval_for,
            _ => {
                let near = nearest(&key, LISTS);
                let hint = near.map_or_else(|| LISTS.join(", "), |near| format!("did you mean `{near}`?"));
                bail!("the policy {name} has an unknown list `{key}`; {hint}");
            }
        };
        *list = serde_json::from_value(value)
            .with_context(|| format!("`{key}` of the policy {name} is not a list of patterns"))?;
    }
    // A pattern that is wrong is said now, before anything is started.
    profile.compile().with_context(|| format!("the policy {name}"))?;
    Ok(profile)
}

const LISTS: [&str; 7] = [
    "allowed_tools",
    "disallowed_tools",
    "deny_read",
    "deny_write",
    "allow_network",
    "deny_network",
    "require_approval_for",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_nest_and_are_json_where_they_can_be() {
        let mut vendor = Map::new();
        for text in ["claude.max=3", "claude.name=opus", "plain=[1]", "abp.mode=passthrough"] {
            parameter(&mut vendor, text).unwrap();
        }
        let expected = serde_json::json!({
            "claude": {"max": 3, "name": "opus"}, "plain": [1], "abp": {"mode": "passthrough"}
        });
        assert_eq!(Value::Object(vendor.clone()), expected);
        for wrong in ["x", "=1", "a..b=1", "plain.x=1"] {
            let error = parameter(&mut vendor, wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--param {wrong}")), "{error}");
        }
    }

    #[test]
    fn a_requirement_that_the_contract_does_not_know_is_a_slip() {
        assert_eq!(requirement("tool_bash=native").unwrap().min_support, MinSupport::Native);
        assert_eq!(requirement("streaming").unwrap().min_support, MinSupport::Any);
        let error = requirement("tool_bsh").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `tool_bash`?"), "{error}");
        let error = requirement("tool_bash=fully").unwrap_err().to_string();
        assert!(error.contains("`fully` is no level"), "{error}");
    }
}
