//! A client of MCP servers over standard input and output: their tools become capabilities.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use outrigger_mustard::host::HostError;
use outrigger_mustard::host::Plain;
use outrigger_supervise::driver::{Child, Supervisor};
use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    Answer, BoxFuture, Call, CallError, CancelWire, Crowded, Deadline, DuplicateIds, Handler, IncomingLimits,
    Lane, Note, OutboxLimits, Peer, PeerConfig, Wiring,
};
use outrigger_wire::rpc::{EnvelopePolicy, ErrorObject, code};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::command::shell;
use super::failed;
use crate::js::json::{FromJson, Json};

/// The protocol that we speak; a server may answer with an older one.
const PROTOCOL: &str = "2025-06-18";

/// How long a server may take to introduce itself.
const START: Deadline = Deadline::After(Duration::from_secs(30));

/// Pages of tools that a server may have.
const MAX_PAGES: usize = 100;

/// The most tools of one server.
const MAX_TOOLS: usize = 4096;

const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STANDARD,
    max_line_out: 16 << 20,
    max_calls: 256,
    incoming: IncomingLimits { running: 16, waiting: 64, notifications: 64, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 16 << 20, reply_bytes: 1 << 20, events: 256, event_bytes: 1 << 18 },
    write_stall: Duration::from_secs(30),
    drain: Duration::from_secs(1),
    cancel: CancelWire::Silent,
    duplicate_ids: DuplicateIds::Refuse,
};

/// A running MCP server.
pub(crate) struct Server {
    peer: Peer,
    child: Child,
}

/// What a server may ask of us: whether we are there.
struct OnlyPing;

impl Handler for OnlyPing {
    fn request(&self, call: Call) -> Answer {
        Answer::Now(match (call.method.as_str(), to_raw_value(&json!({}))) {
            ("ping", Ok(empty)) => Ok(empty),
            _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, format!("`{}` is not offered", call.method))),
        })
    }

    fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
        None
    }
}

#[derive(Deserialize)]
struct ToolPage {
    tools: Vec<ListedTool>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct ListedTool {
    name: String,
}

#[derive(Deserialize)]
struct ToolResult {
    #[serde(default)]
    content: Vec<Content>,
    #[serde(rename = "structuredContent")]
    structured: Option<FromJson>,
    #[serde(rename = "isError", default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Content {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Described {
    content: FromJson,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    name: &'a str,
    arguments: Json<'a>,
}

/// The global name of a tool: what is no part of a name in JavaScript becomes `_`.
pub(super) fn granted_name(prefix: Option<&str>, tool: &str) -> String {
    let whole = prefix.map_or(tool.to_owned(), |prefix| format!("{prefix}_{tool}"));
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let name: String = whole.chars().map(|c| if legal(c) { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

impl Server {
    /// Starts a server in this program's own folder and asks for its tools.
    pub(super) async fn start(
        command: &str,
        supervisor: &Supervisor,
    ) -> anyhow::Result<(Server, Vec<String>)> {
        let cwd = std::env::current_dir().context("the current folder cannot be found")?;
        Self::start_in(command, &cwd, supervisor).await
    }

    /// Starts a server in a certain folder and asks for its tools.
    pub(crate) async fn start_in(
        command: &str,
        cwd: &Path,
        supervisor: &Supervisor,
    ) -> anyhow::Result<(Server, Vec<String>)> {
        let child = supervisor.start(shell("mcp", command, cwd))?;
        let mut session = child.next_session().await.context("the server could not be started")?;
        let (Some(stdin), Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return Err(anyhow!("the server has no pipes"));
        };
        let peer = Peer::start(Wiring::new(stdout, stdin), Arc::new(OnlyPing), CONFIG);
        let server = Server { peer, child };
        match server.greet().await {
            Ok(names) => Ok((server, names)),
            Err(error) => Err(server.last_words(error).await),
        }
    }

    async fn greet(&self) -> anyhow::Result<Vec<String>> {
        let client = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": { "name": "outrigger", "version": env!("CARGO_PKG_VERSION") },
        });
        self.peer.call("initialize", Some(&*to_raw_value(&client)?), START).await?;
        self.peer.notify(Lane::Control, "notifications/initialized", None).await?;
        let mut names = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let page = self.peer.call("tools/list", Some(&*to_raw_value(&params)?), START).await?;
            let page: ToolPage = serde_json::from_str(page.get()).context("its list of tools is none")?;
            names.extend(page.tools.into_iter().map(|tool| tool.name));
            if names.len() > MAX_TOOLS {
                return Err(anyhow!("it has more than {MAX_TOOLS} tools"));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(names);
            }
        }
        Err(anyhow!("its list of tools has more than {MAX_PAGES} pages"))
    }

    /// Whether its process is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.child.status().ended.is_none()
    }

    /// Why a server did not come up, with how it ended and what it said, if it ended.
    async fn last_words(&self, error: anyhow::Error) -> anyhow::Error {
        let ended = tokio::time::timeout(Duration::from_millis(500), self.child.wait()).await;
        match ended.ok().and_then(|outcome| outcome.report) {
            Some(report) => error.context(report.to_string()),
            None => error.context("the server does not speak MCP as expected"),
        }
    }

    /// Calls a tool. Its arguments are one object, as MCP has it.
    pub(crate) async fn call(&self, name: &str, args: Vec<Plain>) -> Result<Plain, HostError> {
        let wrong = |message: String| failed("McpError", format!("`{name}`: {message}"), None);
        let nothing = Plain::Object(Vec::new());
        let arguments = match args.as_slice() {
            [] | [Plain::Undefined] => Json(&nothing),
            [object @ Plain::Object(_)] => Json(object),
            _ => return Err(wrong("takes one object with its arguments".to_owned())),
        };
        let params = to_raw_value(&ToolCall { name, arguments }).map_err(|error| wrong(error.to_string()))?;
        let result = self.peer.call("tools/call", Some(&params), Deadline::Never).await;
        let result = result.map_err(|error| match error {
            CallError::Remote { error, .. } => {
                failed("McpError", format!("`{name}`: {}", error.message), Some(error.code.to_string()))
            }
            other => wrong(other.to_string()),
        })?;
        read_result(&result).map_err(wrong)?.map_err(|text| failed("ToolError", text, None))
    }
}

/// What a tool answered: a value, or the text of its own failure.
fn read_result(result: &RawValue) -> Result<Result<Plain, String>, String> {
    let read: ToolResult =
        serde_json::from_str(result.get()).map_err(|error| format!("its answer is none: {error}"))?;
    let texts: Vec<&str> = read
        .content
        .iter()
        .filter(|part| part.kind == "text")
        .filter_map(|part| part.text.as_deref())
        .collect();
    if read.is_error {
        return Ok(Err(texts.join("\n")));
    }
    if let Some(FromJson(structured)) = read.structured {
        return Ok(Ok(structured));
    }
    if texts.len() == read.content.len() {
        return Ok(Ok(Plain::String(texts.join("\n"))));
    }
    // Pictures and the like: as the server described them.
    let described: Described = serde_json::from_str(result.get()).map_err(|error| error.to_string())?;
    Ok(Ok(described.content.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn result(value: Value) -> Result<Result<Plain, String>, String> {
        read_result(&to_raw_value(&value).expect("JSON"))
    }

    #[test]
    fn names_of_tools_become_names_of_javascript() {
        assert_eq!(granted_name(None, "read_file"), "read_file");
        assert_eq!(granted_name(Some("fs"), "read-file"), "fs_read_file");
        assert_eq!(granted_name(None, "2fast"), "_2fast");
    }

    #[test]
    fn a_tool_answers_a_value_a_text_or_a_failure() {
        let text = json!({"content": [{"type": "text", "text": "hello"}]});
        assert_eq!(result(text), Ok(Ok(Plain::String("hello".into()))));
        let structured = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(result(structured), Ok(Ok(Plain::Object(vec![("a".into(), Plain::Number(1.0))]))));
        let failure = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
        assert_eq!(result(failure), Ok(Err("no such file".into())));
        assert!(result(json!([1])).is_err());
    }
}
