//! `outrigger config`: what holds, and whether what is written down can.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use toml::{Table, Value};

use crate::config::{AGENTS, Config, keys};
use crate::runs::DefaultAnswer;
use crate::say::{self, Format, printable};

/// What a wrong configuration ends with.
const WRONG: u8 = 2;

/// What stands for the value of a variable: it may be a secret.
const HIDDEN: &str = "(hidden)";

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  outrigger config show                   what holds here, as TOML; defaults are marked
  outrigger config show --json            the same as one JSON object
  outrigger config check                  is the configuration right? exit 0 if so, 2 if not
  outrigger config check deploy/outrigger.toml

The file is outrigger.toml in this folder, else backplane.toml, else $XDG_CONFIG_HOME/outrigger/outrigger.toml.
Every key: docs/configuration.md")]
pub(crate) enum ConfigCommand {
    /// Show the configuration that holds, defaults and all. Values of variables are not shown.
    Show {
        /// The file [default: as it is looked for].
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Say whether a configuration is right, and if not, what is wrong with it on which line.
    Check {
        /// The file [default: as it is looked for].
        file: Option<PathBuf>,
    },
}

pub(crate) fn run(command: ConfigCommand, format: Format) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Show { config } => {
            let config = Config::find(config.as_deref())?;
            let shown = Shown::of(&config);
            match format {
                Format::Text => anstream::print!("{}", shown.text()),
                Format::Json => say::line(&shown.json()),
            }
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Check { file } => Ok(check(file.as_deref(), format)),
    }
}

fn check(file: Option<&Path>, format: Format) -> ExitCode {
    match Config::find(file) {
        Ok(config) => {
            let path = config.source.map(|source| source.path.display().to_string());
            match (format, path) {
                (Format::Json, path) => say::line(&json!({ "event": "checked", "ok": true, "file": path })),
                (Format::Text, Some(path)) => anstream::println!("{} is right", printable(&path)),
                (Format::Text, None) => {
                    anstream::println!("there is no configuration here, and none is needed");
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let problem = format!("{error:#}");
            match format {
                Format::Json => say::line(&json!({ "event": "checked", "ok": false, "problem": problem })),
                Format::Text => anstream::eprintln!("{}: {}", say::label(), printable(&problem)),
            }
            ExitCode::from(WRONG)
        }
    }
}

/// The configuration as it is shown.
struct Shown {
    file: Option<String>,
    tables: Vec<Shelf>,
}

/// A table: what is in it, and of what nothing is known.
struct Shelf {
    /// `[]` for what has no table.
    path: Vec<String>,
    entries: Vec<Entry>,
}

struct Entry {
    key: &'static str,
    /// None is what is not set and has no value by itself.
    value: Option<Value>,
    origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Written,
    Default,
}

impl Shown {
    fn of(config: &Config) -> Self {
        // It was read before, so it can be read; without a file everything is a default.
        let mut written: Table =
            config.source.as_ref().and_then(|source| source.text.parse().ok()).unwrap_or_default();
        if let Some(policy) = &config.policy {
            // Another control plane calls it `policy_profiles`.
            written.entry("policy").or_insert_with(|| policy.display().to_string().into());
        }
        let mut tables = vec![Shelf::new(&[], keys::TOP, Some(&written), |key| match key {
            "default_backend" => Some("mock".into()),
            _ => None,
        })];
        for (section, keys) in keys::SECTIONS {
            let members = written.get(*section).and_then(Value::as_table);
            tables.push(Shelf::new(&[section], keys, members, |key| usual(config, section, key)));
        }
        let named = |table: &str| written.get(table).and_then(Value::as_table).cloned().unwrap_or_default();
        let mut backends = named("backends");
        for name in ["mock", "mustard", "steerable"].into_iter().chain(AGENTS) {
            backends.entry(name).or_insert_with(|| Value::Table(Table::new()));
        }
        for (name, members) in &backends {
            let at_once = |key: &str| match key {
                "at_once" => i64::try_from(config.at_once(name)).ok().map(Value::Integer),
                _ => None,
            };
            let keys = keys::backend_keys();
            tables.push(Shelf::written(&["backends", name], &keys, members, at_once));
        }
        for (name, members) in &named("tools") {
            let usual = |key: &str| match (key, members.get("value")) {
                ("approval", _) => Some("never".into()),
                ("repeat", None) => Some("ask".into()),
                ("repeat", Some(_)) => Some("safe".into()),
                ("within", _) => Some("10m".into()),
                _ => None,
            };
            tables.push(Shelf::written(&["tools", name], keys::TOOL, members, usual));
        }
        let file = config.source.as_ref().map(|source| source.path.display().to_string());
        Self { file, tables }
    }

    /// As TOML that can be read again.
    fn text(&self) -> String {
        let mut text = match &self.file {
            Some(file) => format!("# {}\n", printable(file)),
            None => "# nothing is written down: these are the defaults\n".to_owned(),
        };
        for Shelf { path, entries } in &self.tables {
            if !path.is_empty() {
                let path: Vec<_> = path.iter().map(|key| quoted(key)).collect();
                let _ = writeln!(text, "\n[{}]", path.join("."));
            }
            for Entry { key, value, origin } in entries {
                let _ = match (value, origin) {
                    (None, _) => writeln!(text, "# {key} is not set"),
                    (Some(value), Origin::Default) => writeln!(text, "{key} = {value} # default"),
                    (Some(value), Origin::Written) => writeln!(text, "{key} = {value}"),
                };
            }
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let mut defaults = Vec::new();
        let mut whole = Table::new();
        for Shelf { path, entries } in &self.tables {
            let Some(table) = inside(&mut whole, path) else { continue };
            for Entry { key, value, origin } in entries {
                let Some(value) = value else { continue };
                table.insert((*key).to_owned(), value.clone());
                if *origin == Origin::Default {
                    let path: Vec<&str> = path.iter().map(String::as_str).chain([*key]).collect();
                    defaults.push(path.join("."));
                }
            }
        }
        json!({ "file": self.file, "config": whole, "defaults": defaults })
    }
}

impl Shelf {
    /// A table that is always there, with all of its keys.
    fn new(
        path: &[&str],
        keys: &[&'static str],
        written: Option<&Table>,
        usual: impl Fn(&str) -> Option<Value>,
    ) -> Self {
        let entry = |key: &&'static str| match written.and_then(|written| written.get(*key)) {
            Some(value) => Entry { key, value: Some(value.clone()), origin: Origin::Written },
            None => Entry { key, value: usual(key), origin: Origin::Default },
        };
        Self {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            entries: keys.iter().map(entry).collect(),
        }
    }

    /// A table with a name of its own: only what is set in it, or has a value by itself.
    fn written(
        path: &[&str],
        keys: &[&'static str],
        members: &Value,
        usual: impl Fn(&str) -> Option<Value>,
    ) -> Self {
        let mut shelf = Self::new(path, keys, members.as_table(), usual);
        shelf.entries.retain(|entry| entry.value.is_some());
        for entry in shelf.entries.iter_mut().filter(|entry| entry.key == "env") {
            if let Some(Value::Table(variables)) = &mut entry.value {
                variables.iter_mut().for_each(|(_, value)| *value = HIDDEN.into());
            }
        }
        shelf
    }
}

/// The table at a path, made if it is not there.
fn inside<'a>(table: &'a mut Table, path: &[String]) -> Option<&'a mut Table> {
    match path {
        [] => Some(table),
        [first, rest @ ..] => {
            let inner = table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new()));
            inside(inner.as_table_mut()?, rest)
        }
    }
}

/// What holds for a key of a section that is not written.
fn usual(config: &Config, section: &str, key: &str) -> Option<Value> {
    let number = |number: u64| i64::try_from(number).ok().map(Value::Integer);
    let Config { server, store, runs, extensions, .. } = config;
    match (section, key) {
        ("server", "address") => Some(server.address.to_string().into()),
        ("server", "port") => number(server.port.into()),
        ("server", "hosts") => Some(Value::Array(Vec::new())),
        ("server", "behind_tls_proxy") => Some(server.behind_tls_proxy.into()),
        ("server", "body_limit") => Some(size(server.body_limit).into()),
        ("server", "connections") => number(server.connections as u64),
        ("server", "requests_per_second") => number(server.requests_per_second.into()),
        ("store", "keep_runs") => Some(time(store.keep_runs).into()),
        ("store", "keep_at_most") => number(store.keep_at_most as u64),
        ("runs", "queued") => number(runs.queued),
        ("runs", "retries") => number(runs.retries.into()),
        ("runs", "approve_within") => {
            Some(runs.approve_within.map_or_else(|| "never".to_owned(), time).into())
        }
        ("runs", "approve_default") => Some(
            match runs.approve_default {
                DefaultAnswer::Deny => "deny",
                DefaultAnswer::Approve => "approve",
            }
            .into(),
        ),
        ("extensions", "enabled") => Some(extensions.enabled.into()),
        // The others have a value only once somebody gives them one.
        _ => None,
    }
}

/// The largest unit that goes in evenly.
fn time(time: Duration) -> String {
    let millis = time.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let fits = units.into_iter().find(|(unit, _)| millis.is_multiple_of(*unit));
    let (unit, word) = fits.unwrap_or((1, "ms"));
    format!("{}{word}", millis / unit)
}

fn size(bytes: usize) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"), (1, "")];
    let fits = units.into_iter().find(|(unit, _)| bytes.is_multiple_of(*unit));
    let (unit, word) = fits.unwrap_or((1, ""));
    format!("{}{word}", bytes / unit)
}

/// A key as TOML writes it.
fn quoted(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match !key.is_empty() && key.bytes().all(bare) {
        true => key.to_owned(),
        false => Value::String(key.to_owned()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn shown(text: &str) -> (Config, Shown) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("outrigger.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::read(&path).unwrap();
        let shown = Shown::of(&config);
        (config, shown)
    }

    const SOME: &str = r#"
policy = "/etc/policy.json"
[server]
port = 7800
[runs]
approve_within = "90m"
[backends.mine]
type = "sidecar"
command = "node"
env = { TOKEN = "s3cret" }
[backends."odd name"]
type = "mock"
[tools.deploy]
command = "./deploy.sh"
"#;

    #[test]
    fn what_holds_is_shown_with_its_defaults_and_without_secrets() {
        let (_, shown) = shown(SOME);
        let text = shown.text();
        for line in [
            "default_backend = \"mock\" # default",
            "# receipts_dir is not set",
            "policy = \"/etc/policy.json\"",
            "port = 7800",
            "address = \"127.0.0.1\" # default",
            "body_limit = \"8M\" # default",
            "keep_runs = \"30d\" # default",
            "approve_within = \"90m\"",
            "approve_default = \"deny\" # default",
            "[backends.mine]",
            "env = { TOKEN = \"(hidden)\" }",
            "[backends.\"odd name\"]",
            "[backends.mustard]",
            "at_once = 4 # default",
            "repeat = \"ask\" # default",
        ] {
            assert!(text.lines().any(|shown| shown == line), "no line {line:?} in:\n{text}");
        }
        assert!(!text.contains("s3cret"));
        let json = shown.json();
        assert!(!json.to_string().contains("s3cret"));
        assert_eq!(json["config"]["server"]["port"], 7800);
        assert_eq!(json["config"]["backends"]["mine"]["env"]["TOKEN"], HIDDEN);
        let defaults: Vec<_> =
            json["defaults"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
        assert!(defaults.contains(&"server.address") && !defaults.contains(&"server.port"), "{defaults:?}");
    }

    #[test]
    fn what_is_shown_means_the_same_when_it_is_read() {
        for text in ["", SOME] {
            let (config, first) = shown(text);
            let (again, second) = shown(&first.text());
            assert_eq!((again.server, again.store), (config.server, config.store));
            assert_eq!((again.runs, again.extensions), (config.runs, config.extensions));
            let without_file = |shown: Shown| shown.json()["config"].clone();
            assert_eq!(without_file(second), without_file(first));
        }
    }

    #[test]
    fn times_and_sizes_are_written_in_the_largest_unit_that_fits() {
        let times =
            [86_400_000, 5_400_000, 90_000, 1500, 0].map(|millis| time(Duration::from_millis(millis)));
        assert_eq!(times, ["1d", "90m", "90s", "1500ms", "0d"]);
        assert_eq!([8 << 20, 1536, 1000].map(size), ["8M", "1536", "1000"]);
    }
}
