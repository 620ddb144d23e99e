//! What a host of the original says, spelled by hand, and what it reads out of the replies.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::child::{Child, Reply};

/// Every run of the bench is signed with this key, and this is how the key is written in base64.
const KEY: &[u8; 12] = b"not a secret";
const KEY_BASE64: &str = "bm90IGEgc2VjcmV0";

/// The one host function of the bench's scripts.
pub(super) const CAPABILITY: &str = "fetch_data";

/// A budget that no run of the bench uses up: budgets count over all the hops of a run.
pub(super) const ENDLESS: u64 = 1 << 50;

/// One child, and how far the ids of its requests have come.
pub(super) struct Talk {
    pub(super) child: Child,
    id: u64,
    header: String,
    key_digest: String,
}

/// Where a run waits: everything that is needed to go on, in any process.
#[derive(Clone, Default)]
pub(super) struct Waiting {
    pub(super) snapshot_id: String,
    pub(super) policy_id: String,
    pub(super) snapshot: Vec<u8>,
}

/// How a run is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the ids of the snapshot and of the policy.
    Cached,
    /// The snapshot's bytes, the policy by its id.
    Bytes,
    /// The snapshot's bytes and the policy in full: what a process needs that never saw either.
    BytesAndPolicy,
}

/// What a step ended with.
pub(super) enum Step<'a> {
    Suspended(Reply<'a>),
    Completed(Reply<'a>),
}

impl Talk {
    pub(super) fn with(child: Child) -> Self {
        Self { child, id: 0, header: String::new(), key_digest: hex(&Sha256::digest(KEY)) }
    }

    pub(super) fn hello(&mut self, features: &[&str]) -> Result<Reply<'_>> {
        self.begin("hello");
        write!(self.header, ",\"features\":{features:?}}}")?;
        self.ask(&[])
    }

    /// The id of the program; its bytes are the blob of the reply.
    pub(super) fn compile(&mut self, source: &str) -> Result<Reply<'_>> {
        self.begin("compile");
        write!(self.header, ",\"source\":{}}}", serde_json::to_string(source)?)?;
        self.ask(&[])
    }

    /// Compiles and keeps the id.
    pub(super) fn program(&mut self, source: &str) -> Result<String> {
        let reply = self.compile(source)?;
        Ok(text_of(reply.header, "program_id")?.to_owned())
    }

    pub(super) fn start(&mut self, program_id: &str, budget: u64) -> Result<Step<'_>> {
        self.begin("start");
        write!(self.header, ",\"program_id\":\"{program_id}\"")?;
        self.options(budget)?;
        self.ask(&[]).and_then(Step::of)
    }

    pub(super) fn start_bytes(&mut self, program: &[u8], budget: u64) -> Result<Step<'_>> {
        self.begin("start");
        self.options(budget)?;
        self.ask(program).and_then(Step::of)
    }

    /// Answers the call with a number.
    pub(super) fn resume(
        &mut self,
        way: Way,
        waiting: &Waiting,
        budget: u64,
        answer: u32,
    ) -> Result<Step<'_>> {
        self.claim(way, waiting, budget)?;
        write!(self.header, ",\"payload\":{}}}", value(answer))?;
        self.ask(blob(way, waiting)).and_then(Step::of)
    }

    /// Answers all of these calls, by their ids.
    pub(super) fn resume_batch(
        &mut self,
        way: Way,
        waiting: &Waiting,
        budget: u64,
        answers: &[(u64, u32)],
    ) -> Result<Step<'_>> {
        self.claim(way, waiting, budget)?;
        self.header.push_str(",\"payload\":{\"type\":\"answers\",\"answers\":[");
        for (at, (call, answer)) in answers.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(self.header, "{comma}{{\"call_id\":{call},\"payload\":{}}}", value(*answer))?;
        }
        self.header.push_str("]}}");
        self.ask(blob(way, waiting)).and_then(Step::of)
    }

    fn begin(&mut self, method: &str) {
        self.id += 1;
        self.header.clear();
        self.header.push_str("{\"protocol_version\":2,\"method\":\"");
        self.header.push_str(method);
        self.header.push_str("\",\"id\":");
        self.header.push_str(&self.id.to_string());
    }

    fn options(&mut self, budget: u64) -> Result<()> {
        let limits = format!("{{\"instruction_budget\":{budget}}}");
        write!(
            self.header,
            ",\"options\":{{\"inputs\":{{}},\"capabilities\":[\"{CAPABILITY}\"],\"limits\":{limits}}}}}"
        )?;
        Ok(())
    }

    fn claim(&mut self, way: Way, waiting: &Waiting, budget: u64) -> Result<()> {
        self.begin("resume");
        let Waiting { snapshot_id, policy_id, .. } = waiting;
        let auth = format!(
            "\"snapshot_key_base64\":\"{KEY_BASE64}\",\"snapshot_key_digest\":\"{}\",\"snapshot_token\":\"{}\"",
            self.key_digest,
            token(snapshot_id)
        );
        match way {
            Way::Cached | Way::Bytes => write!(
                self.header,
                ",\"snapshot_id\":\"{snapshot_id}\",\"policy_id\":\"{policy_id}\",\"auth\":{{{auth}}}"
            )?,
            Way::BytesAndPolicy => write!(
                self.header,
                ",\"policy\":{{\"capabilities\":[\"{CAPABILITY}\"],\"limits\":{{\"instruction_budget\":{budget}}},\
                 \"snapshot_id\":\"{snapshot_id}\",{auth}}}"
            )?,
        }
        Ok(())
    }

    fn ask(&mut self, blob: &[u8]) -> Result<Reply<'_>> {
        let reply = self.child.ask(&self.header, blob)?;
        ensure!(reply.header.contains("\"ok\":true"), "{} to {}", reply.header, self.header);
        Ok(reply)
    }
}

impl<'a> Step<'a> {
    fn of(reply: Reply<'a>) -> Result<Self> {
        let step = reply.header.find("\"step\":{\"type\":\"").context("the reply has no step")?;
        Ok(match reply.header.as_bytes().get(step + 16) {
            Some(b's') => Self::Suspended(reply),
            _ => Self::Completed(reply),
        })
    }

    /// Keeps where the run waits.
    pub(super) fn keep(self, waiting: &mut Waiting) -> Result<Reply<'a>> {
        let Self::Suspended(reply) = self else { anyhow::bail!("the script ended instead of calling") };
        let put = |to: &mut String, name| -> Result<()> {
            to.clear();
            to.push_str(text_of(reply.header, name)?);
            Ok(())
        };
        put(&mut waiting.snapshot_id, "snapshot_id")?;
        put(&mut waiting.policy_id, "policy_id")?;
        waiting.snapshot.clear();
        waiting.snapshot.extend_from_slice(reply.blob);
        Ok(reply)
    }

    /// The script's number.
    pub(super) fn number(self) -> Result<f64> {
        let Self::Completed(reply) = self else { anyhow::bail!("the script calls instead of ending") };
        let (_, number) =
            reply.header.split_once("{\"Number\":{\"Finite\":").context("the script's value is no number")?;
        Ok(number.split('}').next().unwrap_or_default().parse()?)
    }
}

fn blob(way: Way, waiting: &Waiting) -> &[u8] {
    match way {
        Way::Cached => &[],
        Way::Bytes | Way::BytesAndPolicy => &waiting.snapshot,
    }
}

fn value(number: u32) -> String {
    format!("{{\"type\":\"value\",\"value\":{{\"Number\":{{\"Finite\":{number}}}}}}}")
}

/// The text of a member that has no escapes, such as an id.
fn text_of<'a>(header: &'a str, name: &str) -> Result<&'a str> {
    let start = format!("\"{name}\":\"");
    let at = header.find(&start).with_context(|| format!("the reply has no {name}"))?;
    header[at + start.len()..].split('"').next().context("the text has no end")
}

fn token(snapshot_id: &str) -> String {
    // A key of any length is a key.
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).expect("a key of any length will do");
    mac.update(snapshot_id.as_bytes());
    hex(&mac.finalize().into_bytes())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}
