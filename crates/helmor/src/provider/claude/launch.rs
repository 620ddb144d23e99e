//! How Claude Code is started: its arguments and its variables, from what a turn wants.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::{AgentProxy, PermissionMode, SendMessage};
use crate::provider::process::Command;

/// A project's MCP servers longer than this are left out: the system takes no argument of more than 128 KiB.
const MAX_ARGUMENT: usize = 120 << 10;

/// A settings file longer than this is not looked into.
const MAX_SETTINGS: u64 = 32 << 20;

/// What a running program cannot change: a turn that wants another one of these needs a new program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) cwd: Option<PathBuf>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directories: Vec<PathBuf>,
    pub(super) effort: Option<&'static str>,
    pub(super) fast: bool,
    pub(super) thinking_display: &'static str,
    pub(super) mcp_config: Option<String>,
    pub(super) ask_every_tool: bool,
}

/// What it is started with beside that, and can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changing {
    pub(super) model: Option<String>,
    pub(super) mode: PermissionMode,
    pub(super) resume: Option<String>,
}

impl Fixed {
    /// What a turn wants.
    pub(super) fn of(send: &SendMessage) -> Self {
        let environment = environment(&send.claude_environment, send.agent_proxy.as_ref());
        let mcp_config = send.source_repo.as_deref().and_then(|repo| mcp_servers(repo, &environment));
        Self {
            cwd: send.cwd.clone(),
            directories: send.additional_directories.clone(),
            effort: send.effort.as_ref().and_then(|effort| effort_word(&effort.0)),
            fast: send.fast_mode,
            thinking_display: send.thinking_display.unwrap_or("summarized"),
            mcp_config,
            ask_every_tool: send.ask_every_tool,
            environment,
        }
    }

    /// A program that is asked something and thrown away.
    pub(super) fn throw_away(cwd: Option<PathBuf>, environment: Vec<(String, String)>) -> Self {
        Self {
            cwd,
            environment,
            directories: Vec::new(),
            effort: None,
            fast: false,
            thinking_display: "summarized",
            mcp_config: None,
            ask_every_tool: false,
        }
    }
}

/// The command for a session.
pub(super) fn session(name: String, program: PathBuf, fixed: &Fixed, changing: &Changing) -> Command {
    let mut args = vec!["--thinking".to_owned(), "adaptive".to_owned()];
    args.extend(["--thinking-display".to_owned(), fixed.thinking_display.to_owned()]);
    let mut pair = |flag: &str, value: Option<&str>| {
        if let Some(value) = value {
            args.extend([flag.to_owned(), value.to_owned()]);
        }
    };
    pair("--effort", fixed.effort);
    pair("--model", changing.model.as_deref());
    pair("--resume", changing.resume.as_deref());
    pair("--mcp-config", fixed.mcp_config.as_deref());
    pair("--permission-prompt-tool", Some("stdio"));
    pair("--permission-mode", Some(changing.mode.word()));
    pair("--settings", fixed.fast.then_some(r#"{"fastMode":true}"#));
    args.push("--setting-sources=user,project,local".to_owned());
    args.push("--include-partial-messages".to_owned());
    // For root this flag is refused in every mode, so it is only given when it is needed.
    if changing.mode == PermissionMode::BypassPermissions {
        args.push("--allow-dangerously-skip-permissions".to_owned());
    }
    command(name, program, args, fixed)
}

/// The command for one answer of a model, without tools and without a trace.
pub(super) fn one_shot(program: PathBuf, fixed: &Fixed, model: &str) -> Command {
    let args = ["--thinking", "disabled", "--model", model, "--tools", "", "--permission-mode", "dontAsk"];
    let traceless = ["--setting-sources=", "--strict-mcp-config", "--no-session-persistence"];
    let args = args.into_iter().chain(traceless).map(str::to_owned).collect();
    command("claude:title".to_owned(), program, args, fixed)
}

fn command(name: String, program: PathBuf, more: Vec<String>, fixed: &Fixed) -> Command {
    let mut args: Vec<OsString> =
        ["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
            .map(OsString::from)
            .into();
    args.extend(more.into_iter().map(OsString::from));
    for directory in &fixed.directories {
        args.extend([OsString::from("--add-dir"), directory.clone().into_os_string()]);
    }
    let mut set: Vec<(OsString, OsString)> = [
        ("CLAUDE_CODE_ENTRYPOINT", "outrigger"),
        // Without it a turn's end is not known for sure: what was said in the last text runs afterwards.
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        // The first prompt waits until the servers are there.
        ("MCP_CONNECTION_NONBLOCKING", "0"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    if !fixed.directories.is_empty() {
        set.push(("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD".into(), "1".into()));
    }
    set.extend(fixed.environment.iter().map(|(name, value)| (name.into(), value.into())));
    // The first two change node; with the third, Claude Code takes us for its own tool and refuses to start.
    let unset = vec!["NODE_OPTIONS", "DEBUG", "CLAUDECODE"];
    Command { name, program, args, cwd: fixed.cwd.clone(), set, unset }
}

/// The variables that a request adds.
pub(super) fn environment(own: &[(String, String)], proxy: Option<&AgentProxy>) -> Vec<(String, String)> {
    let mut all = own.to_vec();
    if let Some(AgentProxy::Custom(url)) = proxy {
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            all.push((name.to_owned(), url.clone()));
        }
    }
    all
}

fn effort_word(word: &str) -> Option<&'static str> {
    ["low", "medium", "high", "xhigh", "max"].into_iter().find(|known| *known == word)
}

/// The MCP servers that the user gave to the repository of a worktree. Claude Code itself looks only under the worktree's path.
fn mcp_servers(repo: &Path, environment: &[(String, String)]) -> Option<String> {
    let variable = |name: &str| {
        let own = environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.into());
        own.or_else(|| std::env::var_os(name)).filter(|value: &OsString| !value.is_empty())
    };
    let folder = variable("CLAUDE_CONFIG_DIR").or_else(|| variable("HOME"))?;
    let file = Path::new(&folder).join(".claude.json");
    if file.metadata().ok()?.len() > MAX_SETTINGS {
        return None;
    }
    servers_in(&std::fs::read_to_string(file).ok()?, repo.to_str()?)
}

/// The value for `--mcp-config`, from the text of the settings.
fn servers_in(settings: &str, repo: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Settings<'a> {
        #[serde(borrow, default)]
        projects: std::collections::HashMap<String, &'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Project<'a> {
        #[serde(rename = "mcpServers", borrow)]
        servers: &'a RawValue,
    }
    let settings: Settings<'_> = serde_json::from_str(settings).ok()?;
    let project: Project<'_> = serde_json::from_str(settings.projects.get(repo)?.get()).ok()?;
    let servers: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(project.servers.get()).ok()?;
    let mut config = String::new();
    write!(config, "{{\"mcpServers\":{}}}", project.servers.get()).ok()?;
    (!servers.is_empty() && config.len() <= MAX_ARGUMENT).then_some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed() -> Fixed {
        Fixed::throw_away(None, Vec::new())
    }

    fn changing(mode: PermissionMode) -> Changing {
        Changing { model: Some("haiku".to_owned()), mode, resume: Some("id".to_owned()) }
    }

    fn args(command: &Command) -> String {
        command.args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_session_is_started_as_the_contract_says() {
        let mut fixed = fixed();
        fixed.effort = effort_word("max");
        fixed.fast = true;
        fixed.directories = vec!["/linked".into()];
        let command = session("claude:s".into(), "claude".into(), &fixed, &changing(PermissionMode::Plan));
        assert_eq!(
            args(&command),
            "--output-format stream-json --input-format stream-json --verbose --thinking adaptive \
             --thinking-display summarized --effort max --model haiku --resume id --permission-prompt-tool stdio \
             --permission-mode plan --settings {\"fastMode\":true} --setting-sources=user,project,local \
             --include-partial-messages --add-dir /linked"
        );
        assert!(command.set.iter().any(|(name, _)| name == "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"));
    }

    #[test]
    fn only_who_bypasses_permissions_gets_the_flag_that_root_may_not_have() {
        let has = |mode| {
            let command = session("s".into(), "claude".into(), &fixed(), &changing(mode));
            args(&command).contains("--allow-dangerously-skip-permissions")
        };
        assert!(has(PermissionMode::BypassPermissions));
        assert!(!has(PermissionMode::Default) && !has(PermissionMode::AcceptEdits));
    }

    #[test]
    fn an_effort_that_the_program_does_not_know_is_dropped() {
        assert_eq!(
            (effort_word("xhigh"), effort_word("minimal"), effort_word("")),
            (Some("xhigh"), None, None)
        );
    }

    #[test]
    fn a_proxy_is_set_under_all_its_names_and_the_systems_is_left_alone() {
        let own = [("A".to_owned(), "b".to_owned())];
        let all = environment(&own, Some(&AgentProxy::Custom("http://p:1".into())));
        assert_eq!(all.len(), 7);
        assert!(all[1..].iter().all(|(_, value)| value == "http://p:1"));
        assert_eq!(environment(&own, Some(&AgentProxy::System)), own);
    }

    #[test]
    fn servers_of_a_repository_are_passed_on_as_they_are_spelled() {
        let settings = r#"{"projects":{"/repo":{"mcpServers":{"b":{"n":1.0},"a":{}}},"/none":{"mcpServers":{}},"/odd":{"mcpServers":[]},"/bare":{}}}"#;
        let found = r#"{"mcpServers":{"b":{"n":1.0},"a":{}}}"#;
        assert_eq!(servers_in(settings, "/repo").as_deref(), Some(found));
        for repo in ["/none", "/odd", "/bare", "/unknown"] {
            assert_eq!(servers_in(settings, repo), None, "{repo}");
        }
        assert_eq!(servers_in("no json", "/repo"), None);
    }
}
