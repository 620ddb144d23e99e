//! A scripted host for sidecars that are served in this very process.

use std::future::Future;

use outrigger_abp::sidecar::{Done, Failure, Identity, Options, Run, serve_on};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};
use tokio::task::JoinHandle;

pub(crate) const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

/// The host's end of a sidecar.
pub(crate) struct Host {
    to_child: Option<WriteHalf<DuplexStream>>,
    from_child: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub(crate) serving: JoinHandle<()>,
}

impl Host {
    /// Serves a handler and has heard its hello.
    pub(crate) async fn of<F>(options: Options, handler: impl Fn(Run) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Done, Failure>> + Send + 'static,
    {
        let (host, child) = duplex(64 * 1024);
        let (input, output) = split(child);
        let serving = tokio::spawn(serve_on(input, output, Identity::named("kit"), options, handler));
        let (from_child, to_child) = split(host);
        let mut host =
            Self { to_child: Some(to_child), from_child: BufReader::new(from_child).lines(), serving };
        let hello = host.hear().await;
        assert_eq!(
            hello,
            json!({"t":"hello","contract_version":"abp/v0.1","backend":{"id":"kit","backend_version":null,"adapter_version":null},
                   "capabilities":{},"mode":"mapped"})
        );
        host
    }

    pub(crate) async fn say(&mut self, line: impl ToString) {
        let line = line.to_string() + "\n";
        self.to_child.as_mut().expect("open").write_all(line.as_bytes()).await.expect("a child that listens");
    }

    pub(crate) async fn run(&mut self, order: Value) {
        self.say(json!({"t":"run","id":RUN,"work_order":order})).await;
    }

    pub(crate) async fn run_offering(&mut self, features: &[&str]) {
        let outrigger = json!({"version":1,"features":features});
        self.say(json!({"t":"run","id":RUN,"work_order":{},"outrigger":outrigger})).await;
    }

    pub(crate) async fn close(&mut self) {
        // The other half keeps the stream open, so the end must be said.
        self.to_child.take().expect("open").shutdown().await.expect("a child that listens");
    }

    /// Closes both ends.
    pub(crate) fn leave(self) -> JoinHandle<()> {
        self.serving
    }

    pub(crate) async fn line(&mut self) -> Option<String> {
        self.from_child.next_line().await.expect("a stream of text")
    }

    pub(crate) async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.line().await.expect("a line")).expect("JSON")
    }

    /// Everything to the end of the run, each as its type; of the end all of it.
    pub(crate) async fn rest(&mut self) -> (Vec<String>, Value) {
        let mut types = Vec::new();
        loop {
            let message = self.hear().await;
            match message["t"].as_str() {
                Some("final" | "fatal") => return (types, message),
                Some("event") => types.push(message["event"]["type"].as_str().expect("a type").to_owned()),
                Some(other) => types.push(other.to_owned()),
                None => panic!("a message without t: {message}"),
            }
        }
    }
}
