//! What is read, what is refused, and that the document says the same.

use std::time::Duration;

use super::*;
use crate::args::SandboxArg;
use crate::backends::tools::{ApprovalRule, Repeat, ToolKind};
use crate::runs::DefaultAnswer;

fn parse(text: &str, dialect: Dialect) -> Result<Config, String> {
    Config::parse(text, dialect, Path::new("/etc/project/x.toml")).map_err(|error| format!("{error:#}"))
}

#[test]
fn a_configuration_of_the_original_is_read_as_it_is() {
    let text = r#"
default_backend = "agent"
workspace_dir = "/tmp/ws"
log_level = "debug"
receipts_dir = "receipts"
bind_address = "127.0.0.1"
port = 8088
policy_profiles = ["policy.json"]

[backends.agent]
type = "sidecar"
command = "node"
args = ["host.js", "--fast"]
timeout_secs = 60

[backends.fake]
type = "mock"
"#;
    let config = parse(text, Dialect::Backplane).unwrap();
    assert_eq!(config.default_backend.as_deref(), Some("agent"));
    assert_eq!(config.receipts_dir, Some("/etc/project/receipts".into()));
    assert_eq!(config.policy, Some("/etc/project/policy.json".into()));
    assert_eq!(config.backend("fake").unwrap(), Backend::Mock { script: None });
    let Backend::Sidecar(agent) = config.backend("sidecar:agent").unwrap() else { panic!() };
    assert_eq!((agent.program.as_str(), agent.args.len()), ("node", 2));
    assert_eq!(agent.timeout, Some(Duration::from_secs(60)));
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_the_likely_meaning() {
    let cases = [
        ("default_backed = 'mock'", "line 1: unknown key `default_backed`; did you mean `default_backend`?"),
        (
            "[backends.a]\ntype = 'mock'\ncomand = 'x'",
            "line 3: unknown key `backends.a.comand`; did you mean `command`?",
        ),
        ("[backends.a]\ntype = 'sidecar'", "backend `a`: `command` is missing"),
        ("[backends.a]\ntype = 'sidcar'", "did you mean \"sidecar\"?"),
        ("[backends.a]\ncommand = 'x'", "backend `a`: `type` is missing: mock, sidecar"),
        (
            "[backends.a]\ntype = 'sidecar'\ncommand = 'x'\ntimeout_secs = 0",
            "`timeout_secs` is 0; it may be 1 to 86400",
        ),
        ("[backends.a]\ntype = 'sidecar'\ncommand = 'x'\ntimeout_secs = 86401", "it may be 1 to 86400"),
        ("default_backend = 'mok'", "did you mean `mock`?"),
        ("default_backend = ", "line 1"),
        ("port = 80", "unknown key `port`"),
        ("[backends.a]\ntype = 'mock'\ncommand = 'x'", "line 3: a backend of type \"mock\" has no `command`"),
        ("[backends.mustard]\ncommand = 'x'", "line 2: a backend of type \"mustard\" has no `command`"),
        ("[backends.a]\ntype = 'mustard'", "line 1: backend `a`: `type` is \"mustard\""),
        (
            "\n[backends.a]\ntype = 'mock'\nat_once = 0",
            "line 2: backend `a`: `at_once` is 0; it may be 1 to 10000",
        ),
        ("[servr]", "did you mean `server`?"),
        ("[server]\nprot = 1", "line 2: unknown key `server.prot`; did you mean `port`?"),
        ("[server]\nport = 0", "line 2: `server.port`: it is 0; it may be 1 to 65535"),
        ("[server]\nport = 65536", "it may be 1 to 65535"),
        ("[server]\nport = '80'", "line 2: invalid type"),
        ("[server]\n\naddress = '0.0.0.0'", "line 3: `server.address`: 0.0.0.0 can be reached by others"),
        ("[server]\naddress = 'here'", "\"here\" is not an IP address"),
        ("[server]\nhosts = ['http://x']", "line 2: `server.hosts`: \"http://x\" is not the name of a host"),
        ("[server]\nbody_limit = '8'", "`server.body_limit`: it is 8 bytes; it may be 1024 to 268435456"),
        ("[server]\nbody_limit = 'much'", "`server.body_limit`: `much` is not a size"),
        ("[server]\nconnections = 7", "it may be 8 to 10000"),
        ("[store]\nkeep_runs = '30'", "line 2: `store.keep_runs`: `30` has no unit"),
        ("[store]\nkeep_runs = '0s'", "`0s` is no time"),
        ("[store]\nkeep_at_most = -1", "it is -1; it may be 1 to"),
        ("[runs]\nretries = 21", "`runs.retries`: it is 21; it may be 0 to 20"),
        ("[runs]\napprove_default = 'yes'", "\"yes\" is neither \"deny\" nor \"approve\""),
        ("[runs]\napprove_within = 'ever'", "or \"never\" if it is not to end"),
        ("[tools.t]\nabout = 'x'", "line 1: `tools.t`: what is it?"),
        ("[tools.t]\ncommand = 'x'\nmcp = 'y'", "more than one of `command`, `mcp` and `value`"),
        ("[tools.t]\ncommand = ' '", "line 2: `tools.t.command`: it is empty"),
        ("[tools.t]\ncommand = 'x'\ntool = 'y'", "line 3: `tools.t.tool`: it names a tool of an MCP server"),
        ("[tools.t]\nvalue = 1\napproval = 'no'", "neither \"never\" nor \"always\""),
        ("[tools.t]\nvalue = 1\nrepeat = 'no'", "neither \"safe\" nor \"ask\""),
        ("[tools.t]\nvalue = inf", "cannot be given to a script"),
        ("[tools.t]\nvalue = 1979-05-27", "in quotes"),
        ("[tools]\nt = 3", "line 2: invalid type: integer `3`, expected a table"),
        ("chat = 3", "expected a table"),
        ("[extensions]\nhoem = '/x'", "did you mean `home`?"),
    ];
    for (text, expected) in cases {
        let error = parse(text, Dialect::Outrigger).unwrap_err();
        assert!(error.contains(expected), "{text:?} gave {error:?}");
    }
    let error = parse("[backends.a]\ntype='mock'\nsandbox='off'", Dialect::Backplane).unwrap_err();
    assert!(error.contains("unknown key `backends.a.sandbox`"), "{error}");
}

#[test]
fn coding_agents_need_no_configuration_and_can_have_one() {
    let none = Config::of(Written::default(), None, Path::new("/")).unwrap();
    let agent = |backend| match backend {
        Backend::Agent(agent) => (agent.provider, agent.command),
        other => panic!("{other:?}"),
    };
    assert_eq!(agent(none.backend("claude").unwrap()), ("claude".to_owned(), vec![]));
    assert_eq!(agent(none.backend("acp:gemini").unwrap()), ("acp:gemini".to_owned(), vec![]));
    let words = vec!["node".to_owned(), "my agent.js".to_owned()];
    assert_eq!(agent(none.backend("acp:node 'my agent.js'").unwrap()), ("acp:agent".to_owned(), words));
    assert!(none.backend("acp:").is_err());
    assert!(none.backend("clade").unwrap_err().to_string().contains("did you mean `claude`?"));
    let text = "[backends.mine]\ntype = 'agent'\nprovider = 'codex'\ncommand = '/opt/codex'";
    let config = parse(text, Dialect::Outrigger).unwrap();
    assert_eq!(agent(config.backend("mine").unwrap()), ("codex".to_owned(), vec!["/opt/codex".to_owned()]));
    let wrong = parse("[backends.a]\ntype = 'agent'\nprovider = 'acp'", Dialect::Outrigger).unwrap_err();
    assert!(wrong.contains("`command` is missing"), "{wrong}");
    let wrong = parse("[backends.a]\ntype = 'agent'\nprovider = 'gpt'", Dialect::Outrigger).unwrap_err();
    assert!(wrong.contains("it may be claude, codex"), "{wrong}");
}

#[test]
fn a_longest_timeout_is_still_accepted() {
    let text = "[backends.a]\ntype = 'process'\ncommand = 'x'\ntimeout_secs = 86400\nsandbox = 'strict'";
    let config = parse(text, Dialect::Outrigger).unwrap();
    let Backend::Process(command) = config.backend("a").unwrap() else { panic!() };
    assert_eq!(command.timeout, Some(Duration::from_secs(86_400)));
    assert_eq!(command.sandbox, Some(SandboxArg::Strict));
}

#[test]
fn without_a_file_everything_has_a_value() {
    let none = Config::of(Written::default(), None, Path::new("/")).unwrap();
    assert_eq!((none.server.address.to_string(), none.server.port), ("127.0.0.1".to_owned(), 7700));
    assert_eq!((none.server.body_limit, none.server.connections), (8 << 20, 512));
    assert_eq!((none.server.requests_per_second, none.server.behind_tls_proxy), (2000, false));
    assert_eq!(none.store.keep_runs, Duration::from_secs(30 * 86_400));
    assert_eq!((none.store.keep_at_most, none.store.state_dir), (10_000, None));
    assert_eq!((none.runs.queued, none.runs.retries), (10_000, 0));
    assert_eq!(none.runs.approve_within, Some(Duration::from_secs(7 * 86_400)));
    assert_eq!(none.runs.approve_default, DefaultAnswer::Deny);
    assert_eq!(none.extensions, ExtensionsSection { enabled: false, home: None });
    assert_eq!(Config::parse("", Dialect::Outrigger, Path::new("/x")).unwrap().runs, none.runs);
}

#[test]
fn the_daemon_is_configured_in_its_tables() {
    let text = r#"
[server]
address = "0.0.0.0"
behind_tls_proxy = true
port = 65535
hosts = ["runs.example.org", "[::1]:8443"]
body_limit = "1MiB"

[store]
state_dir = "state"
keep_runs = "1.5d"

[runs]
retries = 20
approve_within = "never"
approve_default = "approve"

[extensions]
home = "ext"
"#;
    let config = parse(text, Dialect::Outrigger).unwrap();
    assert_eq!((config.server.address.to_string(), config.server.port), ("0.0.0.0".to_owned(), 65535));
    assert_eq!((config.server.hosts.len(), config.server.body_limit), (2, 1 << 20));
    assert_eq!(config.store.state_dir, Some("/etc/project/state".into()));
    assert_eq!(config.store.keep_runs, Duration::from_secs(129_600));
    let runs = RunsSection {
        queued: 10_000,
        retries: 20,
        approve_within: None,
        approve_default: DefaultAnswer::Approve,
    };
    assert_eq!(config.runs, runs);
    let home = Some("/etc/project/ext".into());
    assert_eq!(config.extensions, ExtensionsSection { enabled: true, home });
    let off = parse("[extensions]\nhome = 'ext'\nenabled = false", Dialect::Outrigger).unwrap();
    assert!(!off.extensions.enabled);
}

#[test]
fn a_backend_that_is_always_there_can_be_told_how_many_at_once() {
    let text = r#"
default_backend = "local"
[backends.mustard]
at_once = 64
[backends.claude]
at_once = 1
timeout_secs = 60
[backends.mock]
at_once = 10000
[backends.local]
type = "steerable"
provider = "openai"
model = "tiny"
base_url = "http://127.0.0.1:9/v1"
"#;
    let config = parse(text, Dialect::Outrigger).unwrap();
    let at_once = ["mustard", "claude", "mock", "local", "codex"].map(|name| config.at_once(name));
    assert_eq!(at_once, [64, 1, 10_000, 4, 4]);
    let Backend::Agent(claude) = config.backend("claude").unwrap() else { panic!() };
    assert_eq!((claude.provider.as_str(), claude.timeout), ("claude", Some(Duration::from_secs(60))));
    assert_eq!(config.backend("mock").unwrap(), Backend::Mock { script: None });
    assert_eq!(config.talks["local"].model.as_deref(), Some("tiny"));
    // A command that runs one order alone says who runs these.
    for name in ["local", "mustard", "steerable"] {
        let said = config.backend(name).unwrap_err().to_string();
        assert!(said.contains("is run by the daemon"), "{said}");
    }
}

#[test]
fn tools_are_commands_servers_and_values() {
    let text = r#"
[tools.deploy]
command = "./deploy.sh"
approval = "always"
about = "Deploys to production."
within = "1h"
[tools.search]
mcp = "npx search-server"
tool = "web_search"
repeat = "safe"
cwd = "servers"
[tools.fetch]
mcp = "npx fetch"
[tools.limits]
value = { most = 3, names = ["a", "b"], half = 0.5, strict = true }
"#;
    let tools = parse(text, Dialect::Outrigger).unwrap().tools;
    let kinds: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.kind.clone())).collect();
    let mcp = |command: &str, cwd: &str, tool: &str| ToolKind::Mcp {
        command: command.to_owned(),
        cwd: cwd.into(),
        tool: tool.to_owned(),
    };
    let command = ToolKind::Command { command: "./deploy.sh".to_owned(), cwd: "/etc/project".into() };
    let value = serde_json::json!({ "most": 3, "names": ["a", "b"], "half": 0.5, "strict": true });
    assert_eq!(
        kinds,
        [
            ("deploy", command),
            ("fetch", mcp("npx fetch", "/etc/project", "fetch")),
            ("limits", ToolKind::Value(value)),
            ("search", mcp("npx search-server", "/etc/project/servers", "web_search")),
        ]
    );
    let rules: Vec<_> = tools.iter().map(|tool| (tool.approval, tool.repeat)).collect();
    use ApprovalRule::{Always, Never};
    assert_eq!(
        rules,
        [(Always, Repeat::Ask), (Never, Repeat::Ask), (Never, Repeat::Safe), (Never, Repeat::Safe)]
    );
    assert_eq!(tools[0].within, Duration::from_secs(3600));
}

/// Every key in the order of the document.
fn all_keys() -> Vec<String> {
    let top = keys::TOP.iter().map(|key| (*key).to_owned());
    let sections = keys::SECTIONS
        .iter()
        .flat_map(|(section, keys)| keys.iter().map(move |key| format!("{section}.{key}")));
    let backends = keys::backend_keys().into_iter().map(|key| format!("backends.NAME.{key}"));
    let tools = keys::TOOL.iter().map(|key| format!("tools.NAME.{key}"));
    top.chain(sections).chain(backends).chain(tools).collect()
}

#[test]
fn every_key_is_in_the_document_and_the_document_has_no_other() {
    let document = include_str!("../../../../docs/configuration.md");
    let row = |line: &'static str| line.strip_prefix("| `")?.split('`').next().map(str::to_owned);
    let mut documented: Vec<String> = document.lines().filter_map(row).collect();
    let mut known = all_keys();
    documented.sort();
    known.sort();
    assert_eq!(documented, known);
}

#[test]
fn every_example_of_the_document_is_a_configuration() {
    let document = include_str!("../../../../docs/configuration.md");
    let examples: Vec<&str> =
        document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 7, "{} examples", examples.len());
    for example in examples {
        parse(example, Dialect::Outrigger).unwrap_or_else(|error| panic!("{example}\n{error}"));
    }
}

#[test]
fn an_agent_that_names_no_provider_takes_the_rest_from_chat() {
    let text = r#"
[chat]
provider = "anthropic"
model = "large"
api_key_env = "KEY"
[backends.small]
type = "steerable"
model = "small"
[backends.steerable]
at_once = 2
[backends.other]
type = "steerable"
provider = "openai"
"#;
    let talks = parse(text, Dialect::Outrigger).unwrap().talks;
    let said = |name: &str| {
        let Chat { provider, model, base_url, api_key_env } = talks[name].clone();
        [provider, model, base_url, api_key_env].map(Option::unwrap_or_default)
    };
    assert_eq!(said("small"), ["anthropic", "small", "", "KEY"]);
    assert_eq!(said("steerable"), ["anthropic", "large", "", "KEY"]);
    assert_eq!(said("other"), ["openai", "", "", ""]);
}
