//! Who is talked to and on which terms: the command line, then `outrigger.toml`, then the environment.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use outrigger_steerable::model::Provider;
use serde_json::{Map, Value, json};

use super::args::{ApproveArg, ChatArgs, CommandsArg};
use crate::config::{Config, nearest};

/// The longest schema.
const MAX_SCHEMA: u64 = 1 << 20;

/// Everything a turn is asked with, but for what is said in it.
pub(super) struct Settings {
    pub(super) provider: String,
    pub(super) model: String,
    /// The members of every `agent.chat.stream`.
    pub(super) members: Map<String, Value>,
}

impl Settings {
    pub(super) fn new(args: &ChatArgs, config: &Config, someone: bool) -> anyhow::Result<Self> {
        let chat = &config.chat;
        let provider = args.provider.clone().or_else(|| chat.provider.clone());
        let provider = match (provider, &args.script) {
            (Some(provider), _) => provider,
            (None, Some(_)) => "scripted".to_owned(),
            (None, None) => by_key()?,
        };
        let known = Provider::from_word(&provider).with_context(|| unknown_provider(&provider))?;
        let model = args.model.clone().or_else(|| chat.model.clone());
        let model = match (model, known) {
            (Some(model), _) => model,
            (None, Provider::Scripted) => "scripted".to_owned(),
            (None, _) => {
                bail!("which model? --model NAME, OUTRIGGER_MODEL, or `model` under [chat] in outrigger.toml")
            }
        };
        let mut members = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                members.insert(name.to_owned(), value);
            }
        };
        put("provider", Some(provider.clone().into()));
        put("model", Some(model.clone().into()));
        put("baseUrl", base_url(args, config, known)?.map(Value::from));
        put("apiKey", api_key(args, config, known)?.map(Value::from));
        put("reasoningEffort", args.effort.clone().map(Value::from));
        put("maxTokens", args.max_tokens.map(Value::from));
        put("useCoreLoop", Some(true.into()));
        put("resume", Some(true.into()));
        put("systemPrompt", args.system.clone().map(Value::from));
        put("responseSchema", args.schema.as_deref().map(schema).transpose()?);
        put("maxRounds", args.max_rounds.map(Value::from));
        put("budgetTokens", args.budget_tokens.map(Value::from));
        put("maxContextTokens", args.context_tokens.map(Value::from));
        let millis = args.tool_timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        put("toolTimeoutMs", millis.map(Value::from));
        let names = match args.tools.as_str() {
            "all" => None,
            "none" => Some(json!([])),
            names => Some(names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()),
        };
        put("toolNames", names);
        // Approvals that nobody can give are denied by the runtime itself.
        let approval = match (args.approve, someone) {
            (ApproveArg::All, _) => Some(json!({ "mode": "auto" })),
            (ApproveArg::Ask, true) => Some(json!({ "mode": "host" })),
            (ApproveArg::Ask, false) | (ApproveArg::None, _) => None,
        };
        put("approval", approval);
        put("askUser", someone.then(|| true.into()));
        let servers = args.mcp.iter().map(|text| server(text)).collect::<anyhow::Result<Vec<_>>>()?;
        put("mcp", (!servers.is_empty()).then(|| servers.into()));
        Ok(Self { provider, model, members })
    }
}

/// The flags of the sidecar: what it may reach, whatever is asked of it later.
pub(super) fn grants(args: &ChatArgs) -> anyhow::Result<Vec<String>> {
    let mut flags = Vec::new();
    let mut folder = |flag: &str, path: &Path| -> anyhow::Result<()> {
        let real = path.canonicalize().with_context(|| format!("{flag} {}", path.display()))?;
        if !real.is_dir() {
            bail!("{flag} {}: that is no folder", path.display());
        }
        let real = real.into_os_string().into_string();
        let real = real.map_err(|_| anyhow::anyhow!("{flag} {}: the path is not UTF-8", path.display()))?;
        flags.extend([flag.replace("--read", "--read-root").replace("--write", "--write-root"), real]);
        Ok(())
    };
    for path in &args.read {
        folder("--read", path)?;
    }
    for path in &args.write {
        folder("--write", path)?;
    }
    for host in &args.allow_host {
        flags.extend(["--allow-host".to_owned(), host.clone()]);
    }
    let commands = match args.commands {
        CommandsArg::Deny => "deny",
        CommandsArg::Ask => "ask",
        CommandsArg::Allow => "allow",
    };
    flags.extend(["--commands".to_owned(), commands.to_owned()]);
    Ok(flags)
}

/// The provider whose key is in the environment.
fn by_key() -> anyhow::Result<String> {
    let has = |name: &str| std::env::var_os(name).is_some_and(|key| !key.is_empty());
    let providers = [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
        ("GEMINI_API_KEY", "gemini"),
        ("XAI_API_KEY", "xai"),
    ];
    match providers.iter().find(|(key, _)| has(key)) {
        Some((_, provider)) => Ok((*provider).to_owned()),
        None => bail!(
            "who runs the model? --provider NAME, `provider` under [chat] in outrigger.toml, or a key in ANTHROPIC_API_KEY, \
             OPENAI_API_KEY, GEMINI_API_KEY or XAI_API_KEY"
        ),
    }
}

fn unknown_provider(word: &str) -> String {
    let words = ["openai", "openai-responses", "ollama", "anthropic", "gemini", "xai", "scripted"];
    match nearest(word, words.iter().copied()) {
        Some(near) => format!("there is no provider `{word}`; did you mean `{near}`?"),
        None => format!("there is no provider `{word}`; there are: {}", words.join(", ")),
    }
}

fn base_url(args: &ChatArgs, config: &Config, provider: Provider) -> anyhow::Result<Option<String>> {
    if provider == Provider::Scripted {
        let path = args.script.as_deref().context("--provider scripted needs --script FILE")?;
        let path = std::path::absolute(path).context("the current folder cannot be found")?;
        let path = path.into_os_string().into_string();
        return path.map(Some).map_err(|_| anyhow::anyhow!("the path of --script is not UTF-8"));
    }
    if args.script.is_some() {
        bail!("--script is for --provider scripted");
    }
    Ok(args.base_url.clone().or_else(|| config.chat.base_url.clone()))
}

/// The key, from the variable that was named or the one that is usual.
fn api_key(args: &ChatArgs, config: &Config, provider: Provider) -> anyhow::Result<Option<String>> {
    let named = args.api_key_env.as_ref().or(config.chat.api_key_env.as_ref());
    if let Some(name) = named {
        let key = std::env::var(name).ok().filter(|key| !key.is_empty());
        return key.map(Some).with_context(|| format!("the variable {name} has no key"));
    }
    let name = match provider {
        Provider::Messages => "ANTHROPIC_API_KEY",
        Provider::Xai => "XAI_API_KEY",
        Provider::ChatCompletions | Provider::Responses => "OPENAI_API_KEY",
        Provider::Gemini => "GEMINI_API_KEY",
        Provider::Ollama | Provider::Scripted => return Ok(None),
    };
    // A server of one's own may want none; one that wants it says so.
    Ok(std::env::var(name).ok().filter(|key| !key.is_empty()))
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let name = || format!("the schema {}", path.display());
    let length = std::fs::metadata(path).with_context(|| format!("{} cannot be read", name()))?.len();
    if length > MAX_SCHEMA {
        bail!("{} has {length} bytes; it may have {MAX_SCHEMA}", name());
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", name()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", name()))
}

/// `[NAME=]COMMAND…` or `[NAME=]http…`.
fn server(text: &str) -> anyhow::Result<Value> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let (name, rest) = match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, rest)) => (Some(name), rest),
        None => (None, text),
    };
    let mut server = if rest.starts_with("http://") || rest.starts_with("https://") {
        json!({ "url": rest })
    } else {
        let words = crate::words::words(rest).with_context(|| format!("--mcp {text}"))?;
        let Some((command, args)) = words.split_first() else { bail!("--mcp {text}: there is no command") };
        let here: PathBuf = std::env::current_dir().context("the current folder cannot be found")?;
        json!({ "command": command, "args": args, "cwd": here })
    };
    if let Some(name) = name {
        server["name"] = name.into();
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_command_line_or_an_address_with_or_without_a_name() {
        let got = server("npx -y 'a b'").unwrap();
        assert_eq!(
            (&got["command"], &got["args"], &got["name"]),
            (&json!("npx"), &json!(["-y", "a b"]), &Value::Null)
        );
        assert_eq!(server("x=http://h/mcp").unwrap(), json!({ "url": "http://h/mcp", "name": "x" }));
        assert_eq!(server("http://h/mcp?a=b").unwrap(), json!({ "url": "http://h/mcp?a=b" }));
        assert!(server("x=").is_err());
    }
}
