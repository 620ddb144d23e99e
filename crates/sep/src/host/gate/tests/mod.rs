//! The gate as extensions meet it: over a channel in memory, on a paused clock, with services that watch.

mod conduct;
mod frozen;
mod interface;
mod messages;
mod order;
mod permission;
mod session;

use std::sync::Arc;

use outrigger_wire::peer::{Deadline, End, Peer, Wiring};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::desk::Desk;
use super::grants::GrantLayers;
use super::trial::{Numbers, Pages, Stage, Witness, config};
use crate::manifest::ceilings;
use crate::protocol::{HostMethod, Limits, Permission, SessionId, TrustLevel, V1_1, Version};

/// What an extension may use in these tests.
fn limits() -> Limits {
    Limits { max_frame_bytes: 64 << 10, ..ceilings(TrustLevel::TrustedThirdParty) }
}

fn everything() -> GrantLayers {
    GrantLayers::all_of(Permission::ALL.to_vec())
}

/// An extension and the gate it stands before.
struct Trial {
    stage: Stage,
    desk: Arc<Desk>,
    witness: Arc<Witness>,
    numbers: Arc<Numbers>,
    pages: Arc<Pages>,
    peer: Peer,
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Trial {
    /// A session that is not open yet.
    fn attached(limits: Limits, layers: GrantLayers) -> Self {
        let witness = Arc::new(Witness::default());
        let (numbers, pages) = (Arc::new(Numbers::default()), Arc::new(Pages::default()));
        let stage = Stage::with(limits, layers, &witness, Arc::clone(&numbers), Arc::clone(&pages));
        let desk = stage.gate.desk(SessionId::from_text("01TRIAL"));
        let (near, far) = tokio::io::duplex(1 << 22);
        let (input, output) = tokio::io::split(near);
        let peer = Peer::start(Wiring::new(input, output), Arc::clone(&desk) as _, config(&limits));
        let (input, output) = tokio::io::split(far);
        Self { stage, desk, witness, numbers, pages, peer, input: BufReader::new(input), output }
    }

    /// A session that speaks `version`.
    fn at(version: Version, limits: Limits, layers: GrantLayers) -> Self {
        let trial = Self::attached(limits, layers);
        trial.desk.opened(version);
        trial
    }

    /// A session of the newest version with everything granted.
    fn open() -> Self {
        Self::at(V1_1, limits(), everything())
    }

    async fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes()).await;
    }

    async fn send_bytes(&mut self, line: &[u8]) {
        self.output.write_all(line).await.expect("a pipe in memory");
        self.output.write_all(b"\n").await.expect("a pipe in memory");
    }

    /// The next line from the host; nothing at the end.
    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.input.read_line(&mut line).await.expect("a pipe in memory");
        (!line.is_empty()).then(|| serde_json::from_str(&line).expect("a frame is JSON"))
    }

    /// Sends a frame and reads the answer.
    async fn exchange(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.read().await.expect("an answer")
    }

    /// Calls a method and returns its result, or its error without the sentence for people.
    async fn call(&mut self, method: HostMethod, params: Value) -> Result<Value, Value> {
        let answer = self.exchange(&request(&json!("call"), method.as_str(), Some(params))).await;
        assert_eq!(answer["id"], "call");
        outcome(answer)
    }

    /// How the conversation ended.
    async fn end(&mut self) -> End {
        while self.read().await.is_some() {}
        self.peer.ended().await
    }
}

/// The result of an answer, or its error without the sentence for people.
fn outcome(mut answer: Value) -> Result<Value, Value> {
    match answer.get_mut("error") {
        None => Ok(answer["result"].take()),
        Some(error) => {
            let message = error.as_object_mut().expect("an object").remove("message").expect("a sentence");
            assert!(
                !message.as_str().expect("a text").contains("/secret"),
                "no paths of the host: {message}"
            );
            Err(error.take())
        }
    }
}

fn request(id: &Value, method: &str, params: Option<Value>) -> String {
    let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if let Some(params) = params {
        request["params"] = params;
    }
    request.to_string()
}

fn notification(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// Params that are right for a method.
fn right_params(method: HostMethod) -> Value {
    match method {
        HostMethod::Attach => json!({ "token": "00", "session": "x" }),
        HostMethod::GetCapabilities | HostMethod::MessagesList | HostMethod::ContactsList => json!({}),
        HostMethod::MessagesSend => json!({ "destinationHash": "11".repeat(16), "content": "hello" }),
        HostMethod::RegisterPanel => json!({ "id": "stats", "title": "Stats", "slot": "tools.page.primary" }),
        HostMethod::UpdatePanel | HostMethod::UnregisterPanel => json!({ "id": "stats" }),
        HostMethod::Toast => json!({ "message": "hello", "level": "info" }),
        HostMethod::Subscribe | HostMethod::Unsubscribe => json!({ "topics": ["peer.online"] }),
        HostMethod::Log => json!({ "level": "info", "message": "hello" }),
    }
}

/// A host's call that an extension has to answer.
async fn host_calls(peer: Peer, method: &'static str) {
    let _ = peer.call(method, None, Deadline::Never).await;
}
