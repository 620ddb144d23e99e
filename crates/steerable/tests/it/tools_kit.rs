//! What the tests of tools share: a place with grants, calls that wait for their result, and a small HTTP server.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

use outrigger_steerable::chat::ToolResult;
use outrigger_steerable::tools::{
    Commands, Dispatch, Grants, Hosts, NoDispatch, Place, Programs, TodoList, Toolbox,
};
use outrigger_supervise::driver::{Settings, Supervisor};
use outrigger_supervise::launch::Launcher;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::new(Settings {
        launcher: Launcher::current_exe(),
        starting_at_once: NonZeroUsize::new(4).unwrap(),
    })
}

/// Grants to read and write below a folder, and to run commands.
pub(crate) fn grants(root: &Path) -> Grants {
    Grants {
        read_roots: vec![root.to_owned()],
        write_roots: vec![root.to_owned()],
        hosts: Hosts::none(),
        commands: Commands::Allow,
    }
}

pub(crate) fn hosts(patterns: &[&str]) -> Grants {
    Grants { hosts: Hosts::new(patterns).unwrap(), ..Grants::none() }
}

pub(crate) fn place(grants: &Grants, dispatch: Arc<dyn Dispatch>) -> Place {
    Place {
        grants: Arc::new(grants.clone()),
        dispatch,
        cancel: CancellationToken::new(),
        todo: TodoList::default(),
    }
}

/// Calls a built-in tool.
pub(crate) async fn call(grants: &Grants, tool: &str, arguments: Value) -> ToolResult {
    let toolbox = Toolbox::builtin(&Programs::new(supervisor(), None), grants, None);
    let tool = toolbox.get(tool).unwrap_or_else(|| panic!("{tool}: {:?}", toolbox.missing(tool)));
    let at = place(grants, Arc::new(NoDispatch));
    tool.invoke(&to_raw_value(&arguments).unwrap(), &at).await
}

pub(crate) fn text(result: &ToolResult) -> &str {
    data(result, "text").as_str().unwrap_or_default()
}

pub(crate) fn data<'a>(result: &'a ToolResult, member: &str) -> &'a Value {
    result.data.as_ref().and_then(|data| data.get(member)).unwrap_or(&Value::Null)
}

pub(crate) fn error(result: &ToolResult) -> &str {
    assert!(!result.success, "{result:?}");
    result.error.as_deref().unwrap_or_default()
}

/// A request as our server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// What a server does with a connection after it has read a request.
pub(crate) enum Reply {
    /// Writes this and closes.
    Whole(String),
    /// Writes this and whatever comes, as long as it comes.
    Stream(String, tokio::sync::mpsc::Receiver<String>),
}

pub(crate) fn page(kind: &str, body: &str) -> Reply {
    Reply::Whole(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

pub(crate) fn status(line: &str, headers: &str) -> Reply {
    Reply::Whole(format!("HTTP/1.1 {line}\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"))
}

/// A server on loopback that lives as long as its runtime.
pub(crate) struct Web {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

impl Web {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&kept), Arc::clone(&answer)));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut connection: TcpStream,
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Arc<impl Fn(&Seen) -> Reply + Send + Sync + 'static>,
) {
    let mut bytes = Vec::new();
    let request = loop {
        if let Some(request) = whole(&bytes) {
            break request;
        }
        if connection.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    seen.lock().unwrap().push(request.clone());
    match answer(&request) {
        Reply::Whole(text) => drop(connection.write_all(text.as_bytes()).await),
        Reply::Stream(head, mut pieces) => {
            if connection.write_all(head.as_bytes()).await.is_err() {
                return;
            }
            while let Some(piece) = pieces.recv().await {
                if connection.write_all(piece.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
    drop(connection.shutdown().await);
}

fn whole(bytes: &[u8]) -> Option<Seen> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut first = head.lines().next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let seen = Seen { method, path, head: head.to_owned(), body: body.to_owned() };
    let length: usize = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    (body.len() >= length).then_some(seen)
}
