//! A tool of a server, as a tool of ours.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::server::Server;
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::tools::tool::{Mode, Place, Tool, Turns};

pub(super) struct McpTool {
    pub(super) server: Arc<Server>,
    /// What the server calls it.
    pub(super) name: String,
    pub(super) spec: ToolSpec,
    pub(super) mode: Mode,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn turns(&self) -> Turns {
        match self.mode {
            Mode::Read => Turns::Together,
            Mode::SafeWrite | Mode::Destructive | Mode::Other => Turns::Alone,
        }
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, _at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let params = match to_raw_value(&json!({"name": self.name, "arguments": arguments})) {
                Ok(params) => params,
                Err(error) => return ToolResult::failure(format!("the arguments cannot be sent: {error}")),
            };
            let called = self.server.call("tools/call", &params, self.mode).await;
            match called.and_then(|result| super::message::read_result(&result)) {
                Ok(result) => result,
                Err(problem) => {
                    ToolResult::failure(format!("MCP server `{}`: {problem}", self.server.name()))
                }
            }
        })
    }
}
