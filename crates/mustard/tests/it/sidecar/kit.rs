//! Conversations in memory: what was said so far is said again from the beginning, so that nothing here waits or races.

use std::io::{self, Read};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_mustard::protocol::feature::Framing;
use outrigger_mustard::protocol::ids::{SnapshotId, SnapshotKey};
use outrigger_mustard::sidecar::{Budgets, Surroundings, World, serve};
use outrigger_wire::tape::every_split;
use serde_json::{Value, json};

/// A world in which nothing happens by itself.
pub(crate) struct Still {
    /// How much time passes between two looks at the clock.
    pub(crate) tick: Duration,
    pub(crate) elapsed: Duration,
}

pub(crate) const NOW: f64 = 1_700_000_000_000.0;

impl World for Still {
    fn now_ms(&mut self) -> f64 {
        NOW
    }

    fn elapsed(&mut self) -> Duration {
        self.elapsed += self.tick;
        self.elapsed
    }

    fn entropy(&mut self) -> u64 {
        7
    }
}

/// A stream that comes in pieces: no read goes past the end of one.
struct Pieces<'a, I> {
    now: &'a [u8],
    later: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Pieces<'a, I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            let Some(next) = self.later.next() else { return Ok(0) };
            self.now = next;
        }
        let (taken, rest) = self.now.split_at(self.now.len().min(into.len()));
        into[..taken.len()].copy_from_slice(taken);
        self.now = rest;
        Ok(taken.len())
    }
}

/// All that a sidecar wrote, and how it ended.
pub(crate) type Answers = (Vec<u8>, Result<(), String>);

/// What a sidecar in this world answers to these bytes.
pub(crate) fn answers_in<'a>(
    world: impl World,
    input: impl Iterator<Item = &'a [u8]>,
    framing: Framing,
    budgets: Budgets,
) -> Answers {
    let mut output = Vec::new();
    let nobody = Surroundings { landlock: "none".into(), seccomp: "none".into() };
    let end = serve(Pieces { now: b"", later: input }, &mut output, framing, world, budgets, nobody);
    (output, end.map_err(|fatal| fatal.to_string()))
}

/// The same in a world in which nothing happens.
pub(crate) fn answers<'a>(
    input: impl Iterator<Item = &'a [u8]>,
    framing: Framing,
    budgets: Budgets,
) -> Answers {
    answers_in(Still { tick: Duration::ZERO, elapsed: Duration::ZERO }, input, framing, budgets)
}

/// How the bytes of a conversation are cut. Either way every offset is the end of a read once.
#[derive(Clone, Copy)]
pub(crate) enum Cuts {
    /// In two, at each offset; and into single bytes.
    InTwo,
    /// Into pieces of this many bytes, in as many rounds: the first piece of round `k` has `k` of them. For conversations
    /// that are too long, or take too long, to be had once for each of their bytes.
    Pieces(usize),
}

/// For conversations of many requests: about as large as a small one.
pub(crate) const LONG: Cuts = Cuts::Pieces(509);

/// For those that are a megabyte, or whose scripts run for milliseconds.
pub(crate) const SLOW: Cuts = Cuts::Pieces(61);

impl Cuts {
    /// Decodes the bytes in one piece and then cut in every way: what comes of them is always the same.
    #[track_caller]
    pub(crate) fn check(
        self,
        bytes: &[u8],
        mut decode: impl FnMut(&mut dyn Iterator<Item = &[u8]>) -> Answers,
    ) -> Answers {
        match self {
            Cuts::InTwo => every_split(bytes, decode).unwrap(),
            Cuts::Pieces(size) => {
                let whole = decode(&mut std::iter::once(bytes));
                for first in 1..=size.min(bytes.len()) {
                    let (head, rest) = bytes.split_at(first);
                    let cut = decode(&mut std::iter::once(head).chain(rest.chunks(size)));
                    assert!(cut == whole, "cut into {size} bytes, of which the first piece has {first}");
                }
                whole
            }
        }
    }
}

/// A response: its header without what is in base64, and the blob.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) header: Value,
    pub(crate) blob: Vec<u8>,
}

impl Said {
    #[track_caller]
    pub(crate) fn result(&self) -> &Value {
        assert_eq!(self.header["ok"], json!(true), "{}", self.header);
        &self.header["result"]
    }

    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        assert_eq!(self.header["ok"], json!(false), "{}", self.header);
        assert!(self.header.get("result").is_none() && self.blob.is_empty());
        self.header["error"].as_str().expect("an error is a string")
    }

    /// The value of a step that is done.
    #[track_caller]
    pub(crate) fn value(&self) -> &Value {
        let step = &self.result()["step"];
        assert_eq!(step["type"], "completed", "{}", self.header);
        assert!(self.blob.is_empty() && self.result().get("snapshot_id").is_none());
        &step["value"]
    }

    /// Capability and arguments of a step that waits.
    #[track_caller]
    pub(crate) fn call(&self) -> (&str, &Value) {
        let step = &self.result()["step"];
        assert_eq!(step["type"], "suspended", "{}", self.header);
        (step["capability"].as_str().expect("a name"), &step["args"])
    }

    #[track_caller]
    pub(crate) fn id(&self, name: &str) -> String {
        self.result()[name].as_str().unwrap_or_else(|| panic!("{name} in {}", self.header)).to_owned()
    }
}

/// A conversation.
pub(crate) struct Talk {
    pub(crate) framing: Framing,
    pub(crate) sent: Vec<u8>,
    pub(crate) budgets: Budgets,
    /// How much time passes between two looks at the clock.
    pub(crate) tick: Duration,
    cuts: Cuts,
    next: u64,
}

impl Talk {
    pub(crate) fn new(framing: Framing, cuts: Cuts) -> Talk {
        Talk { framing, sent: Vec::new(), budgets: Budgets::USUAL, tick: Duration::ZERO, cuts, next: 1 }
    }

    /// A conversation with another sidecar.
    pub(crate) fn with_another(&self) -> Talk {
        Talk::new(self.framing, self.cuts)
    }

    /// Adds a request as it is; `version` and `id` are put in if they are not there.
    pub(crate) fn put(&mut self, request: &Value, blob: &[u8]) {
        let mut request = request.clone();
        let fields = request.as_object_mut().expect("a request is an object");
        fields.entry("protocol_version").or_insert(json!(2));
        fields.entry("id").or_insert(json!(self.next));
        self.next += 1;
        match self.framing {
            Framing::Binary => self.sent.extend(frame(request.to_string().as_bytes(), blob)),
            Framing::Lines => {
                if !blob.is_empty() {
                    let name =
                        if request["method"] == "start" { "program_base64" } else { "snapshot_base64" };
                    request[name] = json!(STANDARD.encode(blob));
                }
                self.sent.extend(request.to_string().as_bytes());
                self.sent.push(b'\n');
            }
        }
    }

    /// Adds a request in the host's own spelling.
    pub(crate) fn put_text(&mut self, request: &str) {
        match self.framing {
            Framing::Binary => self.sent.extend(frame(request.as_bytes(), b"")),
            Framing::Lines => self.sent.extend([request, "\n"].concat().as_bytes()),
        }
    }

    /// Sends a request and hears the answer.
    #[track_caller]
    pub(crate) fn say(&mut self, request: Value, blob: &[u8]) -> Said {
        self.put(&request, blob);
        let (all, end) = self.hear();
        assert_eq!(end, Ok(()), "after {request}");
        all.last().cloned().expect("an answer")
    }

    /// All that was answered so far.
    pub(crate) fn hear(&self) -> (Vec<Said>, Result<(), String>) {
        let (output, end) = self.answers(&mut std::iter::once(&self.sent[..]));
        (responses(&output, self.framing), end)
    }

    /// However the requests are cut, the answers and the end are the same, byte for byte.
    #[track_caller]
    pub(crate) fn check_cuts(&self) {
        drop(self.hear_cut());
    }

    /// All that was answered so far as bytes, which are the same however the requests are cut.
    #[track_caller]
    pub(crate) fn hear_cut(&self) -> Answers {
        self.cuts.check(&self.sent, |pieces| self.answers(pieces))
    }

    fn answers(&self, pieces: &mut dyn Iterator<Item = &[u8]>) -> Answers {
        let world = Still { tick: self.tick, elapsed: Duration::ZERO };
        answers_in(world, pieces, self.framing, self.budgets)
    }

    #[track_caller]
    pub(crate) fn compile(&mut self, source: &str) -> Said {
        let said = self.say(json!({"method": "compile", "source": source}), b"");
        assert_eq!(said.header["ok"], json!(true), "{}", said.header);
        said
    }

    /// Compiles and starts.
    #[track_caller]
    pub(crate) fn start(&mut self, source: &str, options: Value) -> Said {
        let program = self.compile(source).id("program_id");
        self.say(json!({"method": "start", "program_id": program, "options": options}), b"")
    }

    /// Starts with these capabilities.
    #[track_caller]
    pub(crate) fn run(&mut self, source: &str, capabilities: &[&str]) -> Said {
        self.start(source, json!({"capabilities": capabilities}))
    }

    /// Answers the first call of a suspended step by its cached ids.
    #[track_caller]
    pub(crate) fn resume(&mut self, step: &Said, payload: Value) -> Said {
        let request = self.cached(step, payload);
        self.say(request, b"")
    }

    /// A resume by cached ids.
    pub(crate) fn cached(&self, step: &Said, payload: Value) -> Value {
        let id = step.id("snapshot_id");
        json!({
            "method": "resume", "snapshot_id": id, "policy_id": step.id("policy_id"), "auth": auth(&id, b"key"),
            "payload": payload,
        })
    }
}

/// Key, digest and token for a snapshot.
pub(crate) fn auth(snapshot_id: &str, key: &[u8]) -> Value {
    let key = SnapshotKey::new(key.to_vec());
    let id = SnapshotId::parse(snapshot_id).expect("64 hex digits");
    json!({
        "snapshot_key_base64": STANDARD.encode(key.bytes()),
        "snapshot_key_digest": key.digest().to_string(),
        "snapshot_token": key.token(id).hex().as_str(),
    })
}

/// A policy in full.
pub(crate) fn policy(snapshot_id: &str, capabilities: &[&str]) -> Value {
    let mut policy = auth(snapshot_id, b"key");
    policy["snapshot_id"] = json!(snapshot_id);
    policy["capabilities"] = json!(capabilities);
    policy["limits"] = json!({});
    policy
}

/// An answer with a number.
pub(crate) fn number(n: f64) -> Value {
    json!({"type": "value", "value": {"Number": {"Finite": n}}})
}

pub(crate) fn frame(header: &[u8], blob: &[u8]) -> Vec<u8> {
    let lengths = [header.len(), blob.len()].map(|n| u32::try_from(n).unwrap().to_le_bytes());
    [&lengths[0][..], &lengths[1], header, blob].concat()
}

/// The responses in these bytes.
pub(crate) fn responses(mut output: &[u8], framing: Framing) -> Vec<Said> {
    let mut all = Vec::new();
    while !output.is_empty() {
        match framing {
            Framing::Binary => {
                let length = |at: usize| u32::from_le_bytes(output[at..at + 4].try_into().unwrap()) as usize;
                let (header, blob) = (8 + length(0), length(4));
                let value = serde_json::from_slice(&output[8..header]).unwrap();
                all.push(Said { header: value, blob: output[header..header + blob].to_vec() });
                output = &output[header + blob..];
            }
            Framing::Lines => {
                let end = output.iter().position(|b| *b == b'\n').expect("a whole line");
                let mut header: Value = serde_json::from_slice(&output[..end]).unwrap();
                let mut take = |pointer: &str, name: &str| {
                    let object = header.pointer_mut(pointer).and_then(Value::as_object_mut);
                    object.and_then(|object| object.remove(name))
                };
                let coded =
                    take("/result", "program_base64").or_else(|| take("/result/step", "snapshot_base64"));
                let blob = coded.map(|coded| STANDARD.decode(coded.as_str().unwrap()).unwrap());
                all.push(Said { header, blob: blob.unwrap_or_default() });
                output = &output[end + 1..];
            }
        }
    }
    all
}

/// Has the same conversation in both framings, and then with its requests cut in two at every offset.
pub(crate) fn both(conversation: impl FnMut(&mut Talk)) {
    both_cut(Cuts::InTwo, conversation);
}

/// Has the same conversation in both framings, and then with its requests cut.
pub(crate) fn both_cut(cuts: Cuts, mut conversation: impl FnMut(&mut Talk)) {
    for framing in [Framing::Binary, Framing::Lines] {
        let mut talk = Talk::new(framing, cuts);
        conversation(&mut talk);
        talk.check_cuts();
    }
}

impl Said {
    /// The same answer under another id.
    pub(crate) fn renumbered(mut self, id: u64) -> Said {
        self.header["id"] = json!(id);
        self
    }
}
