//! Which program an agent is, how it is started, and who it may be logged in as.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Flavour;
use crate::protocol::AgentProxy;
use crate::provider::locate::{self, CURSOR};
use crate::provider::process::Command;
use crate::provider::{Failure, FailureCode};

/// An agent that is known by its name alone.
struct Known {
    name: &'static str,
    command: &'static [&'static str],
    install: &'static str,
}

const KNOWN: [Known; 4] = [
    Known { name: "gemini", command: &["gemini", "--acp"], install: "npm install -g @google/gemini-cli" },
    Known { name: "opencode", command: &["opencode", "acp"], install: "npm install -g opencode-ai" },
    Known {
        name: "claude-agent-acp",
        command: &["claude-agent-acp"],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
    },
    Known {
        name: "codex-acp",
        command: &["codex-acp"],
        install: "npm install -g @agentclientprotocol/codex-acp",
    },
];

/// The command of an agent that is known by this name.
#[must_use]
pub fn known_command(name: &str) -> Option<Vec<String>> {
    let known = KNOWN.iter().find(|known| known.name == name)?;
    Some(known.command.iter().map(|&word| word.to_owned()).collect())
}

/// The names of the agents that need no command.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

/// What makes one program different from another: when it changes, a new one has to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) cwd: PathBuf,
    pub(super) directories: Vec<PathBuf>,
    pub(super) proxy: Option<AgentProxy>,
    pub(super) api_key: Option<String>,
}

/// The program as it is to be started. `name` is what it is called in errors and on tapes.
pub(super) fn command(flavour: &Flavour, key: &Key, name: String) -> Result<Command, Failure> {
    let (program, args) = match flavour {
        Flavour::Cursor { program, .. } => {
            let found = locate::find(&CURSOR, program.as_deref(), Some(&key.cwd))?;
            (found.path, vec![OsString::from("acp")])
        }
        Flavour::Named { name, command } => named(name, command, &key.cwd)?,
    };
    let mut set: Vec<(OsString, OsString)> = Vec::new();
    if let Some(AgentProxy::Custom(url)) = &key.proxy {
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            set.push((name.into(), url.into()));
        }
    }
    if let (Flavour::Cursor { .. }, Some(api_key)) = (flavour, &key.api_key) {
        set.push(("CURSOR_API_KEY".into(), api_key.into()));
    }
    Ok(Command { name, program, args, cwd: Some(key.cwd.clone()), set, unset: Vec::new() })
}

fn named(name: &str, command: &[String], cwd: &Path) -> Result<(PathBuf, Vec<OsString>), Failure> {
    let known = known_command(name).unwrap_or_default();
    let words = if command.is_empty() { &known } else { command };
    let not_installed = |message: String| Failure::new(FailureCode::NotInstalled, message);
    let Some((program, args)) = words.split_first() else {
        let names: Vec<&str> = known_names().collect();
        let names = names.join("`, `");
        let message = format!(
            "no command is known for the agent `{name}`; give one with --acp {name}=COMMAND (known without: `{names}`)"
        );
        return Err(not_installed(message));
    };
    let args = args.iter().map(OsString::from).collect();
    if program.contains('/') {
        return Ok((PathBuf::from(program), args));
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let nearby = || {
        let bins: Vec<PathBuf> = cwd.ancestors().map(|folder| folder.join("node_modules/.bin")).collect();
        locate::on_path(&std::env::join_paths(bins).ok()?, program)
    };
    match locate::on_path(&search, program).or_else(nearby) {
        Some(path) => Ok((path, args)),
        None => {
            let install = KNOWN.iter().find(|known| known.command[0] == program);
            let how = install.map_or_else(String::new, |known| format!(" To install it: {}.", known.install));
            Err(not_installed(format!(
                "the agent `{name}` is not installed: there is no `{program}` on PATH.{how}"
            )))
        }
    }
}

/// Ways to log in that need nobody, because a variable has what they need.
const LOGINS: [(&str, &str); 5] = [
    ("gemini-api-key", "GEMINI_API_KEY"),
    ("openai-api-key", "OPENAI_API_KEY"),
    ("codex-api-key", "CODEX_API_KEY"),
    ("anthropic-api-key", "ANTHROPIC_API_KEY"),
    ("vertex-ai", "GOOGLE_API_KEY"),
];

/// The way to log in that needs nobody, of those that an agent offers.
pub(super) fn login(methods: &[AuthMethod], is_set: impl Fn(&str) -> bool) -> Option<&str> {
    let usable = |method: &&AuthMethod| {
        let by_variables = !method.vars.is_empty() && method.vars.iter().all(|name| is_set(name));
        // Cursor takes the login that is there, and says no if there is none.
        let by_name = method.id == "cursor_login"
            || LOGINS.iter().any(|(id, variable)| method.id == *id && is_set(variable));
        by_variables || by_name
    };
    methods.iter().find(usable).map(|method| method.id.as_str())
}

/// A way to log in, as an agent offers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuthMethod {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// The variables that it takes a key from.
    pub(super) vars: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(id: &str, vars: &[&str]) -> AuthMethod {
        let vars = vars.iter().map(|&name| name.to_owned()).collect();
        AuthMethod { id: id.to_owned(), name: id.to_owned(), description: None, vars }
    }

    #[test]
    fn only_a_login_that_needs_nobody_is_used() {
        let methods =
            [method("oauth", &[]), method("gemini-api-key", &[]), method("by-env", &["A_KEY", "B_KEY"])];
        let found = |set: &[&str]| login(&methods, |name| set.contains(&name));
        assert_eq!(found(&[]), None);
        assert_eq!(found(&["GEMINI_API_KEY"]), Some("gemini-api-key"));
        assert_eq!(found(&["A_KEY"]), None);
        assert_eq!(found(&["A_KEY", "B_KEY"]), Some("by-env"));
        assert_eq!(login(&[method("cursor_login", &[])], |_| false), Some("cursor_login"));
    }

    #[test]
    fn an_agent_that_is_not_there_is_a_failure_that_says_how_to_get_it() {
        let failure = |name: &str, command: &[&str]| {
            let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
            named(name, &command, Path::new("/")).unwrap_err().message
        };
        assert!(failure("mine", &[]).contains("--acp mine=COMMAND"));
        assert!(failure("mine", &["no-such-agent", "acp"]).contains("no `no-such-agent` on PATH"));
        assert_eq!(
            named("mine", &["/x/y".to_owned(), "acp".to_owned()], Path::new("/")).unwrap().0,
            Path::new("/x/y")
        );
        assert_eq!(known_command("gemini").unwrap(), ["gemini", "--acp"]);
    }
}
