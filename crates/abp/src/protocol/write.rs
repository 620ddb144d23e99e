//! Messages as text: strict, every member of the contract, in its order.

use serde::Serialize;

use super::envelope::Envelope;
use super::event::{AgentEvent, EventKind};
use super::received::ReceivedReceipt;
use super::text::write_string;
use super::usage::{Counts, UsageReport};

impl Envelope<'_> {
    /// Appends the line, without a newline.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => tagged(out, "hello", hello),
            Self::Ask(ask) => tagged(out, "ask", ask),
            Self::Answer(answer) => tagged(out, "answer", answer),
            Self::Run(run) => {
                out.extend_from_slice(b"{\"t\":\"run\"");
                text(out, "id", run.id.as_str());
                name(out, "work_order");
                run.order.write(out);
                if let Some(offer) = &run.outrigger {
                    name(out, "outrigger");
                    serialised(out, offer);
                }
                out.push(b'}');
            }
            Self::Event { ref_id, event } => {
                out.extend_from_slice(b"{\"t\":\"event\"");
                text(out, "ref_id", ref_id);
                name(out, "event");
                event.write(out);
                out.push(b'}');
            }
            Self::Final { ref_id, receipt } => {
                out.extend_from_slice(b"{\"t\":\"final\"");
                text(out, "ref_id", ref_id);
                name(out, "receipt");
                receipt.write(out);
                out.push(b'}');
            }
            Self::Fatal { ref_id, error, error_code } => {
                out.extend_from_slice(b"{\"t\":\"fatal\"");
                optional(out, "ref_id", ref_id.as_deref());
                text(out, "error", error);
                if let Some(code) = error_code {
                    text(out, "error_code", code.as_str());
                }
                out.push(b'}');
            }
            Self::Cancel { ref_id, reason } => {
                out.extend_from_slice(b"{\"t\":\"cancel\"");
                text(out, "ref_id", ref_id);
                optional(out, "reason", reason.as_deref());
                out.push(b'}');
            }
            Self::Steer { ref_id, text: said } => {
                out.extend_from_slice(b"{\"t\":\"steer\"");
                text(out, "ref_id", ref_id);
                text(out, "text", said);
                out.push(b'}');
            }
            Self::Ping { seq } | Self::Pong { seq } => {
                out.extend_from_slice(format!("{{\"t\":\"{}\",\"seq\":{seq}}}", self.t()).as_bytes());
            }
            Self::Other { t } => {
                out.extend_from_slice(b"{\"t\":");
                write_string(out, t);
                out.push(b'}');
            }
        }
    }

    /// The line, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
}

impl AgentEvent<'_> {
    /// Appends the event: `ts`, `type`, its members, `ext`. One whose type we do not know is written as it came.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let EventKind::Other { members, .. } = &self.kind {
            out.extend_from_slice(members.as_str().as_bytes());
            return;
        }
        out.extend_from_slice(b"{\"ts\":\"");
        self.ts.write(out);
        out.push(b'"');
        text(out, "type", self.kind.name());
        match &self.kind {
            EventKind::RunStarted { message }
            | EventKind::RunCompleted { message }
            | EventKind::Warning { message } => text(out, "message", message),
            EventKind::AssistantDelta { text: part } | EventKind::AssistantMessage { text: part } => {
                text(out, "text", part);
            }
            EventKind::ToolCall { tool_name, tool_use_id, parent_tool_use_id, input } => {
                text(out, "tool_name", tool_name);
                optional(out, "tool_use_id", tool_use_id.as_deref());
                optional(out, "parent_tool_use_id", parent_tool_use_id.as_deref());
                verbatim(out, "input", input.as_str());
            }
            EventKind::ToolResult { tool_name, tool_use_id, output, is_error } => {
                text(out, "tool_name", tool_name);
                optional(out, "tool_use_id", tool_use_id.as_deref());
                verbatim(out, "output", output.as_str());
                verbatim(out, "is_error", if *is_error { "true" } else { "false" });
            }
            EventKind::FileChanged { path, summary } => {
                text(out, "path", path);
                text(out, "summary", summary);
            }
            EventKind::CommandExecuted { command, exit_code, output_preview } => {
                text(out, "command", command);
                match exit_code {
                    Some(code) => verbatim(out, "exit_code", &code.to_string()),
                    None => verbatim(out, "exit_code", "null"),
                }
                optional(out, "output_preview", output_preview.as_deref());
            }
            EventKind::Error { message, error_code } => {
                text(out, "message", message);
                if let Some(code) = error_code {
                    text(out, "error_code", code.as_str());
                }
            }
            EventKind::Usage(report) => report.write(out),
            EventKind::Other { .. } => {}
        }
        if let Some(ext) = &self.ext {
            verbatim(out, "ext", ext.as_str());
        }
        out.push(b'}');
    }
}

impl UsageReport {
    /// The counts that there are.
    fn write(&self, out: &mut Vec<u8>) {
        let usage = &self.usage;
        let counts = [
            ("input_tokens", usage.input_tokens),
            ("output_tokens", usage.output_tokens),
            ("cache_read_tokens", usage.cache_read_tokens),
            ("cache_write_tokens", usage.cache_write_tokens),
            ("request_units", usage.request_units),
            ("turns", self.turns),
        ];
        for (member, count) in counts {
            if let Some(count) = count {
                verbatim(out, member, &count.to_string());
            }
        }
        if let Some(cost) = usage.estimated_cost_usd {
            name(out, "estimated_cost_usd");
            serialised(out, &cost);
        }
        match self.counts {
            Counts::Totals => verbatim(out, "total", "true"),
            Counts::Increments => {}
        }
    }
}

impl ReceivedReceipt<'_> {
    /// Appends the receipt. What was never said is null, or empty where the contract wants a list or an object.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"meta\":");
        let meta = Meta {
            run_id: self.run_id.as_ref().map(|id| id.as_str()),
            work_order_id: self.work_order_id.as_ref().map(|id| id.as_str()),
            contract_version: self.contract_version.as_ref().map(|version| version.as_str()),
            started_at: self.started_at,
            finished_at: self.finished_at,
            duration_ms: self.duration_ms,
        };
        serialised(out, &meta);
        name(out, "backend");
        serialised(out, &self.backend);
        name(out, "capabilities");
        match &self.capabilities {
            Some(manifest) => serialised(out, manifest),
            None => out.extend_from_slice(b"{}"),
        }
        optional(out, "mode", Some(self.mode.as_ref().map_or("mapped", |mode| mode.as_str())));
        verbatim(out, "usage_raw", self.usage_raw.as_ref().map_or("null", |raw| raw.as_str()));
        name(out, "usage");
        serialised(out, &self.usage);
        verbatim(out, "trace", self.trace.as_ref().map_or("[]", |raw| raw.as_str()));
        name(out, "artifacts");
        serialised(out, &self.artifacts);
        name(out, "verification");
        serialised(out, &self.verification);
        optional(out, "outcome", self.outcome.as_ref().map(|outcome| outcome.as_str()));
        optional(out, "receipt_sha256", self.receipt_sha256.as_deref());
        out.push(b'}');
    }
}

#[derive(Serialize)]
struct Meta<'m> {
    run_id: Option<&'m str>,
    work_order_id: Option<&'m str>,
    contract_version: Option<&'m str>,
    started_at: Option<super::time::Timestamp>,
    finished_at: Option<super::time::Timestamp>,
    duration_ms: Option<u64>,
}

/// `{"t":…` and the members of a value that serialises as an object.
fn tagged(out: &mut Vec<u8>, t: &str, value: &impl Serialize) {
    out.extend_from_slice(b"{\"t\":");
    write_string(out, t);
    let comma = out.len();
    serialised(out, value);
    // The bracket that opens the value becomes the comma before its first member.
    out[comma] = b',';
}

/// Our own types are maps with string keys and numbers that JSON has, so nothing in them can fail to be written.
pub(crate) fn serialised(out: &mut Vec<u8>, value: &impl Serialize) {
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.extend_from_slice(b"null");
    }
}

fn name(out: &mut Vec<u8>, member: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(b"\":");
}

fn text(out: &mut Vec<u8>, member: &str, value: &str) {
    name(out, member);
    write_string(out, value);
}

fn optional(out: &mut Vec<u8>, member: &str, value: Option<&str>) {
    match value {
        Some(value) => text(out, member, value),
        None => verbatim(out, member, "null"),
    }
}

fn verbatim(out: &mut Vec<u8>, member: &str, value: &str) {
    name(out, member);
    out.extend_from_slice(value.as_bytes());
}
