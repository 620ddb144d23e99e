//! A conversation with a server, whichever way it goes, and what every conversation begins with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::http::HttpLink;
use super::message::{Introduced, Listed, introduction, read_page};
use super::spec::{McpSpec, Reach};
use super::stdio::StdioLink;
use crate::net::http::Http;
use outrigger_supervise::driver::Supervisor;

/// How long a server may take to be there and say what it has. Packages may have to be fetched first.
const START: Duration = Duration::from_secs(60);

/// How long a server may take to list its tools again.
const LIST: Duration = Duration::from_secs(30);

/// Pages of tools that a server may have.
const MAX_PAGES: usize = 100;

/// The most tools of one server.
const MAX_TOOLS: usize = 1024;

/// A conversation.
pub(super) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkError {
    /// The server answered with an error.
    Refused(String),
    /// The server went away before the request could have reached it.
    NotSent(String),
    /// The server went away, and nobody knows how far it got.
    Gone(String),
}

impl LinkError {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Refused(text) | Self::NotSent(text) | Self::Gone(text) => text,
        }
    }
}

/// Whether the server's tools are others than those we know.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed(Arc<AtomicBool>);

impl Changed {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// A server that is there.
pub(super) struct Live {
    link: Link,
    changed: Changed,
    tools: tokio::sync::Mutex<Arc<[Listed]>>,
    has_tools: bool,
}

impl Live {
    /// Starts or reaches a server and asks for its tools. What is wrong is told with the server's last words.
    pub(super) async fn connect(
        spec: &McpSpec,
        supervisor: &Supervisor,
        http: &Http,
    ) -> Result<Self, String> {
        let changed = Changed::default();
        let link = match &spec.reach {
            Reach::Stdio { command, args, env, cwd } => {
                let program = super::stdio::program(&spec.name, command, args, env, cwd.as_deref());
                Link::Stdio(StdioLink::start(supervisor, program, changed.clone()).await?)
            }
            Reach::Http { url, headers } => Link::Http(HttpLink::new(http, url, headers, changed.clone())?),
        };
        let mut live = Self { link, changed, tools: tokio::sync::Mutex::new(Arc::new([])), has_tools: false };
        let greeted = tokio::time::timeout(START, live.greet()).await;
        let problem = match greeted {
            Ok(Ok(())) => return Ok(live),
            Ok(Err(problem)) => problem,
            Err(_) => format!("it was not ready within {} s", START.as_secs()),
        };
        Err(match &live.link {
            Link::Stdio(link) => link.last_words(&problem).await,
            Link::Http(_) => problem,
        })
    }

    async fn greet(&mut self) -> Result<(), String> {
        let told = self.ask("initialize", &introduction()).await?;
        let introduced: Introduced =
            serde_json::from_str(told.get()).map_err(|error| format!("it does not speak MCP: {error}"))?;
        self.has_tools = introduced.capabilities.tools.is_some();
        if let Link::Http(link) = &mut self.link {
            link.agreed(&introduced.protocol);
        }
        let ready = match &self.link {
            Link::Stdio(link) => link.notify("notifications/initialized").await,
            Link::Http(link) => link.notify("notifications/initialized").await,
        };
        ready.map_err(|error| error.text().to_owned())?;
        if let Link::Http(link) = &mut self.link {
            link.listen();
        }
        let tools = self.list().await?;
        *self.tools.get_mut() = tools;
        Ok(())
    }

    async fn list(&self) -> Result<Arc<[Listed]>, String> {
        if !self.has_tools {
            return Ok(Arc::new([]));
        }
        let mut tools: Vec<Listed> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = match &cursor {
                Some(cursor) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let page = read_page(&self.ask("tools/list", &params).await?)?;
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                return Err(format!("it has more than {MAX_TOOLS} tools"));
            }
            match page.next_cursor {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                // A server that gives the same page for ever has said what it has.
                Some(_) | None => return Ok(tools.into()),
            }
        }
        Err(format!("its list of tools has more than {MAX_PAGES} pages"))
    }

    async fn ask(&self, method: &str, params: &Value) -> Result<Box<RawValue>, String> {
        let params = to_raw_value(params).map_err(|error| error.to_string())?;
        self.call(method, &params).await.map_err(|error| error.text().to_owned())
    }

    /// The tools, asked for again if the server said that they are others now.
    pub(super) async fn tools(&self) -> Result<Arc<[Listed]>, String> {
        let mut tools = self.tools.lock().await;
        if self.changed.take() {
            match tokio::time::timeout(LIST, self.list()).await {
                Ok(Ok(listed)) => *tools = listed,
                Ok(Err(problem)) => {
                    self.changed.note();
                    return Err(problem);
                }
                Err(_) => {
                    self.changed.note();
                    return Err(format!("it did not list its tools within {} s", LIST.as_secs()));
                }
            }
        }
        Ok(Arc::clone(&tools))
    }

    pub(super) async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, LinkError> {
        match &self.link {
            Link::Stdio(link) => link.call(method, params).await,
            Link::Http(link) => link.call(method, params).await,
        }
    }

    /// Whether it is known to be gone.
    pub(super) fn is_over(&self) -> bool {
        match &self.link {
            Link::Stdio(link) => link.is_over(),
            Link::Http(link) => link.is_over(),
        }
    }

    /// A problem, with the server's last words if it ended.
    pub(super) async fn last_words(&self, problem: &str) -> String {
        match &self.link {
            Link::Stdio(link) => link.last_words(problem).await,
            Link::Http(_) => problem.to_owned(),
        }
    }

    /// Ends the conversation in good order.
    pub(super) async fn close(&self) {
        match &self.link {
            Link::Stdio(link) => link.close().await,
            Link::Http(link) => link.close().await,
        }
    }
}
