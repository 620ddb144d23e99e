//! Which servers a turn wants: the member `mcp` of a stream's params.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::chat::Secret;

/// The most servers of one turn.
const MAX_SERVERS: usize = 64;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpSpec {
    /// What its tools are called after.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is a program that we start, spoken to over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the usual ones. They may be keys, so they are not shown.
        env: Vec<(String, Secret)>,
        /// Where it runs; otherwise where we do.
        cwd: Option<PathBuf>,
    },
    /// It is at an address, spoken to by streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request. They may be keys, so they are not shown.
        headers: Vec<(String, Secret)>,
    },
}

/// Why something is no server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{member}` must be {must}")]
pub struct McpSpecError {
    /// The member, from `mcp` on: `mcp[0].args`.
    pub member: String,
    /// What it must be.
    pub must: &'static str,
}

impl McpSpec {
    /// Reads the member `mcp`. Servers without a name are named after their program or host; a name that is there already
    /// gets a number.
    ///
    /// # Errors
    /// The first member that is wrong.
    pub fn read_list(value: &Value) -> Result<Vec<Self>, McpSpecError> {
        let wrong = |member: String, must| Err(McpSpecError { member, must });
        let Value::Array(entries) = value else {
            return wrong("mcp".into(), "an array of servers");
        };
        if entries.len() > MAX_SERVERS {
            return wrong("mcp".into(), "an array of at most 64 servers");
        }
        let mut servers: Vec<Self> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let at = format!("mcp[{index}]");
            let Value::Object(members) = entry else {
                return wrong(at, "an object with `command` or `url`");
            };
            let mut server = read_one(&at, members)?;
            let wanted = server.name.clone();
            let mut number = 2;
            while servers.iter().any(|other| other.name == server.name) {
                server.name = format!("{wanted}_{number}");
                number += 1;
            }
            servers.push(server);
        }
        Ok(servers)
    }
}

fn read_one(at: &str, members: &Map<String, Value>) -> Result<McpSpec, McpSpecError> {
    let wrong = |member: &str, must| McpSpecError { member: format!("{at}.{member}"), must };
    let text = |member: &'static str| match members.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() && !text.contains('\0') => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(wrong(member, "a string that is not empty")),
    };
    let name = text("name")?;
    if name.as_ref().is_some_and(|name| name.chars().count() > 64 || name.contains(char::is_control)) {
        return Err(wrong("name", "a string of at most 64 characters"));
    }
    let (usual, reach) = match (text("command")?, text("url")?) {
        (Some(command), None) => {
            let args = strings(members.get("args")).ok_or_else(|| wrong("args", "an array of strings"))?;
            let env = secrets(members.get("env")).ok_or_else(|| wrong("env", "an object of strings"))?;
            let cwd = text("cwd")?.map(PathBuf::from);
            if cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
                return Err(wrong("cwd", "an absolute path"));
            }
            let usual = Path::new(&command).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            (usual, Reach::Stdio { command, args, env, cwd })
        }
        (None, Some(url)) => {
            let parsed = reqwest::Url::parse(&url).ok();
            let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            let parsed =
                parsed.ok_or_else(|| wrong("url", "an address that begins with http:// or https://"))?;
            let headers =
                secrets(members.get("headers")).ok_or_else(|| wrong("headers", "an object of strings"))?;
            (parsed.host_str().map(str::to_owned), Reach::Http { url, headers })
        }
        (Some(_), Some(_)) => {
            return Err(McpSpecError {
                member: at.to_owned(),
                must: "an object with either `command` or `url`",
            });
        }
        (None, None) => {
            return Err(McpSpecError { member: at.to_owned(), must: "an object with `command` or `url`" });
        }
    };
    let name = name.or(usual).unwrap_or_else(|| "server".to_owned());
    Ok(McpSpec { name, reach })
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    }
}

fn secrets(value: Option<&Value>) -> Option<Vec<(String, Secret)>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Object(members)) => members
            .iter()
            .map(|(name, value)| value.as_str().map(|value| (name.clone(), Secret::new(value))))
            .collect(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_are_read_and_named() {
        let list = json!([
            {"command": "/opt/files/server.js", "args": ["-v"], "env": {"KEY": "k"}},
            {"name": "server", "url": "https://example.org/mcp", "headers": {"authorization": "Bearer x"}},
            {"url": "http://127.0.0.1:1/mcp"},
        ]);
        let read = McpSpec::read_list(&list).unwrap();
        let names: Vec<&str> = read.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["server", "server_2", "127.0.0.1"]);
        assert!(!format!("{read:?}").contains("Bearer"), "{read:?}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (json!({}), "`mcp` must be an array of servers"),
            (json!([1]), "`mcp[0]` must be an object with `command` or `url`"),
            (json!([{}]), "`mcp[0]` must be an object with `command` or `url`"),
            (
                json!([{"command": "a", "url": "b"}]),
                "`mcp[0]` must be an object with either `command` or `url`",
            ),
            (json!([{"command": ""}]), "`mcp[0].command` must be a string that is not empty"),
            (json!([{"command": "a", "args": [1]}]), "`mcp[0].args` must be an array of strings"),
            (json!([{"command": "a", "env": {"A": 1}}]), "`mcp[0].env` must be an object of strings"),
            (json!([{"command": "a", "cwd": "b"}]), "`mcp[0].cwd` must be an absolute path"),
            (
                json!([{"url": "ftp://a"}]),
                "`mcp[0].url` must be an address that begins with http:// or https://",
            ),
            (json!(vec![json!({"command": "a"}); 65]), "`mcp` must be an array of at most 64 servers"),
        ];
        for (list, told) in table {
            assert_eq!(McpSpec::read_list(&list).unwrap_err().to_string(), told);
        }
    }
}
