//! A child that is a task of the test: it understands two tiny scripts, and dies, lies, hangs or forgets when it is told to.
//!
//! `seq N` calls `tick(0)`, `tick(1)`, … one after the other; `fan N` makes all N calls at once. Both give the sum of the
//! answers. A snapshot is the state in plain text, so a fresh child can go on with it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_mustard::host::store::Dialect;
use outrigger_mustard::host::{BoxFuture, Link, Plain, Process, Source, SpawnError};
use outrigger_mustard::protocol::feature::Features;
use outrigger_mustard::protocol::ids::{Digest, PolicyId, ProgramId, SnapshotId};
use outrigger_mustard::protocol::request::{Answer, Claim, Method, Payload, Request};
use outrigger_mustard::protocol::response::{
    Call, Failure, Greeting, Reply, Response, SidecarLimits, Suspended,
};
use outrigger_wire::frame::{FrameLimit, FrameReader};
use tokio::io::{AsyncWriteExt, DuplexStream};

/// What a child does when it gets its `n`th request, counted from 1; the greeting does not count.
pub(crate) type Temper = dyn Fn(Child, usize) -> Mood + Send + Sync;

/// Which child of the source, counted from 1.
pub(crate) type Child = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Answers.
    Good,
    /// Dies before it answers.
    Dies,
    /// Dies in the middle of its answer.
    DiesHalfWay,
    /// Says something that is no response.
    Babbles,
    /// Answers something that was not asked.
    AnswersAnother,
    /// Gives a snapshot that is not what its id says.
    Forges,
    /// Says nothing, for ever.
    Hangs,
    /// Has lost every id it ever gave.
    Forgets,
}

pub(crate) struct Fake {
    dialect: Dialect,
    temper: Arc<Temper>,
    children: AtomicUsize,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub(crate) fn new(
        dialect: Dialect,
        temper: impl Fn(Child, usize) -> Mood + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (children, seen) = (AtomicUsize::new(0), Arc::default());
        Arc::new(Self { dialect, temper: Arc::new(temper), children, seen })
    }

    pub(crate) fn good(dialect: Dialect) -> Arc<Self> {
        Self::new(dialect, |_, _| Mood::Good)
    }

    /// What the children were asked, in order, with `+blob` where bytes came along.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no test panics here").clone()
    }

    pub(crate) fn children(&self) -> usize {
        self.children.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl Source for Fake {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn spawn(&self) -> BoxFuture<'_, Result<Link, SpawnError>> {
        let number = self.children.fetch_add(1, Ordering::SeqCst) + 1;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (output, input) = tokio::io::split(ours);
        let brain = Brain {
            number,
            features: Features::NONE,
            known: BTreeSet::new(),
            temper: Arc::clone(&self.temper),
            seen: Arc::clone(&self.seen),
        };
        tokio::spawn(brain.live(theirs));
        Box::pin(async move {
            Ok(Link { input: Box::pin(input), output: Box::pin(output), process: Process::Elsewhere })
        })
    }
}

struct Brain {
    number: Child,
    features: Features,
    /// Programs, snapshots and policies, by their ids.
    known: BTreeSet<(String, Vec<u8>)>,
    temper: Arc<Temper>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Brain {
    async fn live(mut self, stream: DuplexStream) {
        let (input, mut output) = tokio::io::split(stream);
        let mut frames = FrameReader::new(input, FrameLimit(1 << 30));
        let mut count = 0;
        while let Ok(Some(frame)) = frames.next().await {
            let header = String::from_utf8(frame.header.to_vec()).expect("a host writes text");
            let request =
                Request::decode(&header, frame.blob, self.features).expect("a host writes requests");
            let greeting = matches!(request.method, Method::Hello(_));
            count += usize::from(!greeting);
            let mood = if greeting { Mood::Good } else { (self.temper)(self.number, count) };
            if mood == Mood::Forgets {
                self.known.clear();
            }
            self.note(&request);
            let id = if mood == Mood::AnswersAnother { request.id + 1 } else { request.id };
            let (outcome, mut blob) = match self.handle(&request) {
                Ok((reply, blob)) => (Ok(reply), blob),
                Err(error) => (Err(Failure { error, detail: None }), Vec::new()),
            };
            if mood == Mood::Forges {
                blob.push(0);
            }
            let mut bytes = Vec::new();
            Response { id, outcome, profile: None }.encode(blob.len(), &mut bytes);
            bytes.extend_from_slice(&blob);
            match mood {
                Mood::Dies => return,
                Mood::DiesHalfWay => {
                    let _ = output.write_all(&bytes[..bytes.len() / 2]).await;
                    return;
                }
                Mood::Babbles => bytes = b"\x09\0\0\0\0\0\0\0hi there!".to_vec(),
                Mood::Hangs => std::future::pending().await,
                Mood::Good | Mood::AnswersAnother | Mood::Forges | Mood::Forgets => {}
            }
            if output.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }

    fn note(&self, request: &Request<'_>) {
        let word = match &request.method {
            Method::Compile(_) => "compile",
            Method::Start(_) => "start",
            Method::Resume(_) => "resume",
            Method::Hello(_) => "hello",
            Method::Release(_) => "release",
            Method::Inspect(_) => "inspect",
        };
        let blob = if request.blob.is_empty() { "" } else { "+blob" };
        self.seen.lock().expect("no test panics here").push(format!("{}:{word}{blob}", self.number));
    }

    fn handle(&mut self, request: &Request<'_>) -> Result<(Reply, Vec<u8>), String> {
        match &request.method {
            Method::Hello(hello) => {
                self.features = Features::named(hello.features.iter().map(String::as_str));
                let limits = SidecarLimits {
                    max_frame_bytes: hello.max_frame_bytes.unwrap_or(1 << 20),
                    max_frame_bytes_ceiling: 1 << 28,
                    program_cache_bytes: 0,
                    snapshot_cache_bytes: 0,
                    policy_cache_entries: 0,
                };
                let text = String::new;
                let greeting = Greeting {
                    name: "fake".into(),
                    version: text(),
                    protocol_versions: vec![2],
                    engine: text(),
                    features: hello.features.clone(),
                    enabled: hello.features.clone(),
                    limits,
                    landlock: text(),
                    seccomp: text(),
                };
                Ok((Reply::Hello(greeting), Vec::new()))
            }
            Method::Compile(compile) => {
                if compile.source.starts_with("bad") {
                    return Err("Parse: this is bad".into());
                }
                let bytes = compile.source.as_bytes().to_vec();
                let id = ProgramId::of(&bytes);
                self.known.insert((id.to_string(), bytes.clone()));
                Ok((Reply::Program(id), bytes))
            }
            Method::Start(start) => {
                let id = start.program_id.as_deref().expect("a host names its program");
                let program = self.find(id, &request.blob).ok_or(format!("unknown program_id `{id}`"))?;
                let program = String::from_utf8(program).expect("text");
                let (kind, count) = program.split_once(' ').expect("two words");
                let count: u64 = count.parse().expect("a number");
                let open = if kind == "fan" { (1..=count).collect() } else { vec![1] };
                self.go(State { kind: kind.into(), count, open, sum: 0.0 })
            }
            Method::Resume(resume) => {
                let Claim { snapshot_id, policy, policy_id, auth } = &resume.claim;
                let id = snapshot_id.as_deref().expect("a host names its snapshot");
                let snapshot = self.find(id, &request.blob).ok_or(format!("unknown snapshot_id `{id}`"))?;
                match (policy, policy_id, auth) {
                    (Some(policy), None, None) => {
                        assert_eq!(policy.capabilities, ["tick"], "the policy goes along");
                        assert!(policy.limits.is_some());
                        assert_eq!(policy.snapshot_id, *snapshot_id);
                    }
                    (None, Some(_), Some(auth)) => assert!(!auth.snapshot_token.is_empty()),
                    other => panic!("neither a policy nor its id: {other:?}"),
                }
                let mut state = State::read(&snapshot);
                let answers = match &resume.payload {
                    Payload::Answer(answer) => vec![(state.open[0], answer.clone())],
                    Payload::Answers(answers) => answers.clone(),
                    Payload::Cancelled => return Err("Limit: execution cancelled".into()),
                };
                for (call, answer) in answers {
                    assert!(state.open.contains(&call), "only what waits is answered");
                    match answer {
                        Answer::Value(Plain::Number(number)) => state.sum += number,
                        Answer::Value(_) => return Err("Runtime: TypeError: not a number".into()),
                        Answer::Error(error) => {
                            return Err(format!("Runtime: {}: {}", error.name, error.message));
                        }
                    }
                    state.open.retain(|open| *open != call);
                    if state.kind == "seq" && call < state.count {
                        state.open.push(call + 1);
                    }
                }
                self.go(state)
            }
            Method::Release(_) | Method::Inspect(_) => Err("not in this fake".into()),
        }
    }

    fn find(&mut self, id: &str, blob: &[u8]) -> Option<Vec<u8>> {
        if !blob.is_empty() {
            assert_eq!(Digest::of(blob).to_string(), id);
            self.known.insert((id.to_owned(), blob.to_vec()));
        }
        self.known.iter().find(|(known, _)| known == id).map(|(_, bytes)| bytes.clone())
    }

    fn go(&mut self, state: State) -> Result<(Reply, Vec<u8>), String> {
        if state.open.is_empty() || state.count == 0 {
            return Ok((Reply::Completed(Plain::Number(state.sum)), Vec::new()));
        }
        let bytes = state.write();
        let snapshot_id = SnapshotId::of(&bytes);
        self.known.insert((snapshot_id.to_string(), bytes.clone()));
        let batch = self.features != Features::NONE;
        let listed = if batch { state.open.len() } else { 1 };
        let call = |number: &u64| Call {
            call_id: batch.then_some(*number),
            capability: "tick".into(),
            args: vec![Plain::Number((*number - 1) as f64)],
        };
        let calls = state.open[..listed].iter().map(call).collect();
        let policy_id = PolicyId(Digest::of(b"policy"));
        Ok((Reply::Suspended(Suspended { snapshot_id, policy_id, calls }), bytes))
    }
}

/// Where a script stands.
struct State {
    kind: String,
    count: u64,
    open: Vec<u64>,
    sum: f64,
}

impl State {
    fn write(&self) -> Vec<u8> {
        let open: Vec<_> = self.open.iter().map(u64::to_string).collect();
        format!("{} {} {} {}", self.kind, self.count, self.sum, open.join(",")).into_bytes()
    }

    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let words: Vec<_> = text.split(' ').collect();
        let number = |word: &str| word.parse().expect("a number");
        Self {
            kind: words[0].to_owned(),
            count: number(words[1]),
            sum: words[2].parse().expect("a number"),
            open: words[3].split(',').map(number).collect(),
        }
    }
}
