//! From arguments to a run that can go: the script's text, the host and its sidecar, the rules.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use outrigger_mustard::host::{
    Capabilities, CompileError, Fanout, Host, HostKey, Limits, Plain, Pool, PoolRules, ProgramSource, Run,
    RunRules, Script, Terms, TopLevelReturn,
};
use outrigger_supervise::driver::Supervisor;

use super::args::{LimitArgs, WorldArgs};
use super::json::FromJson;
use super::show::Origin;
use super::tool::{Tool, Tools};

/// The longest script, and the longest file of inputs.
const MAX_SOURCE: u64 = 32 << 20;

/// How long a run may take that has no limit: longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A script's text and what to call it.
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) text: String,
}

/// Reads a script from a file, or from standard input.
pub(crate) fn read_source(file: &Path) -> anyhow::Result<Source> {
    if file.as_os_str() == "-" {
        let name = "<stdin>".to_owned();
        let text = read_text(std::io::stdin(), &name)?;
        return Ok(Source { origin: Origin { name }, text });
    }
    let name = file.display().to_string();
    let text = read_file(file, "the script")?;
    Ok(Source { origin: Origin { name }, text })
}

fn read_file(file: &Path, what: &str) -> anyhow::Result<String> {
    let name = format!("{what} {}", file.display());
    let opened = std::fs::File::open(file).with_context(|| format!("{name} cannot be opened"))?;
    read_text(opened, &name)
}

/// All of it, if it is text and not longer than a script may be.
fn read_text(from: impl Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_SOURCE + 1).read_to_end(&mut bytes).with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > MAX_SOURCE {
        bail!("{name} is longer than {MAX_SOURCE} bytes");
    }
    String::from_utf8(bytes)
        .map_err(|error| anyhow::anyhow!("{name} is not UTF-8 (byte {})", error.utf8_error().valid_up_to()))
}

/// A host with one sidecar, which is this very program.
pub(crate) fn host(supervisor: &Supervisor, key: HostKey) -> anyhow::Result<Host> {
    let source = Arc::new(ProgramSource::this_program(supervisor.clone()));
    let terms = Terms { request_bytes: 256 << 20, ..Terms::usual() };
    Host::new(Pool::new(source, terms, PoolRules::single()), key)
        .context("the system has no randomness to give")
}

/// Compiles, with `return` at top level as the user says.
pub(crate) async fn compile(
    host: &Host,
    source: &Source,
    lenient_return: bool,
) -> Result<Script, CompileError> {
    let end = if lenient_return { TopLevelReturn::Allowed } else { TopLevelReturn::Refused };
    host.compile(source.text.as_str(), end).await
}

/// What the script may use, as the user says.
pub(crate) fn limits(args: &LimitArgs) -> Limits {
    let named = args.limits.map_or(Limits::DEFAULTS, |limits| limits.0);
    Limits {
        instruction_budget: args.instructions.or(named.instruction_budget),
        heap_limit_bytes: args.heap.map(|bytes| bytes.0).or(named.heap_limit_bytes),
        allocation_budget: args.objects.or(named.allocation_budget),
        call_depth_limit: args.call_depth.or(named.call_depth_limit),
        max_outstanding_host_calls: args.host_calls.or(named.max_outstanding_host_calls),
    }
}

/// How a run is conducted. Answers are sent as they come, so that a race is won by the first.
pub(crate) fn rules(args: &LimitArgs, limits: Limits) -> RunRules {
    RunRules {
        limits,
        step_within: args.deadline,
        total_within: args.timeout.unwrap_or(FOR_EVER),
        fanout: Fanout::AsTheyCome,
        ..RunRules::usual()
    }
}

/// A run of a script with everything that the arguments give it, but for its capabilities.
pub(crate) fn run(host: &Host, script: &Script, world: &WorldArgs) -> anyhow::Result<Run> {
    let mut run = host.run(script).rules(rules(&world.limits, limits(&world.limits)));
    for (name, value) in inputs(world)? {
        run = run.input(name, value);
    }
    if let Some(seed) = world.seed {
        run = run.seed(seed);
    }
    if let Some(now) = world.now {
        run = run.now_ms(now);
    }
    Ok(run)
}

/// Inputs of the file, then those of the command line, which win.
fn inputs(world: &WorldArgs) -> anyhow::Result<Vec<(String, Plain)>> {
    let mut inputs = Vec::new();
    if let Some(path) = &world.inputs_file {
        let name = path.display();
        let text = read_file(path, "the inputs")?;
        let FromJson(read) =
            serde_json::from_str(&text).with_context(|| format!("the inputs {name} are not JSON"))?;
        match &read {
            Plain::Object(members) => inputs = members.clone(),
            _ => bail!("the inputs {name} must be a JSON object: names and values"),
        }
    }
    for given in &world.inputs {
        inputs.retain(|(name, _)| *name != given.name);
        inputs.push((given.name.clone(), given.value.clone()));
    }
    Ok(inputs)
}

/// A table in which every capability is answered by its tool.
pub(crate) fn table(tools: &Tools, mut table: Capabilities) -> Capabilities {
    for (name, tool) in tools {
        table = match tool {
            Tool::Person => table.park(name),
            _ => {
                let tool = tool.clone();
                table.on(name, move |args| {
                    let tool = tool.clone();
                    async move { tool.answer(args).await }
                })
            }
        };
    }
    table
}
