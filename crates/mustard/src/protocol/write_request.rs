//! Requests to JSON: what a host sends.

use super::feature::{Framing, VERSION};
use super::limits::Limits;
use super::request::{Answer, Claim, Method, Payload, Request};
use super::value::write_value;
use super::write::{Object, write_base64, write_string, write_whole};

impl Request<'_> {
    /// Appends the request as a whole frame or line.
    ///
    /// Whether it is within the limit of the sidecar is for the caller to see: the answer would be its end.
    pub fn encode(&self, framing: Framing, out: &mut Vec<u8>) {
        match framing {
            Framing::Lines => {
                self.write(Framing::Lines, out);
                out.push(b'\n');
            }
            Framing::Binary => {
                let from = out.len();
                out.extend_from_slice(&[0; 8]);
                self.write(Framing::Binary, out);
                patch_lengths(out, from, self.blob.len());
                out.extend_from_slice(&self.blob);
            }
        }
    }

    fn write(&self, framing: Framing, out: &mut Vec<u8>) {
        let mut header = Object::begin(out);
        header.whole("protocol_version", VERSION);
        header.whole("id", self.id);
        match &self.method {
            Method::Compile(compile) => {
                header.text("method", "compile");
                header.text("source", &compile.source);
                header.flag("lenient_return", compile.lenient_return);
            }
            Method::Start(start) => {
                header.text("method", "start");
                header.optional_text("program_id", start.program_id.as_deref());
                let mut options = header.object("options");
                write_inputs(&start.inputs, options.key("inputs"));
                options.texts("capabilities", &start.capabilities);
                write_limits(&start.limits, options.object("limits"));
                options.optional_whole("seed", start.seed);
                options.optional_number("now_ms", start.now_ms);
                options.end();
                header.flag("profile", start.profile);
                header.optional_whole("deadline_ms", start.deadline_ms);
            }
            Method::Resume(resume) => {
                header.text("method", "resume");
                write_claim(&resume.claim, &mut header);
                write_payload(&resume.payload, header.object("payload"));
                header.flag("profile", resume.profile);
                header.optional_whole("deadline_ms", resume.deadline_ms);
                header.optional_number("now_ms", resume.now_ms);
            }
            Method::Inspect(claim) => {
                header.text("method", "inspect");
                write_claim(claim, &mut header);
            }
            Method::Hello(hello) => {
                header.text("method", "hello");
                header.texts("features", &hello.features);
                header.optional_whole("max_frame_bytes", hello.max_frame_bytes);
            }
            Method::Release(release) => {
                header.text("method", "release");
                header.texts("programs", &release.programs);
                header.texts("snapshots", &release.snapshots);
                header.texts("policies", &release.policies);
            }
        }
        if framing == Framing::Lines && !self.blob.is_empty() {
            let name =
                if matches!(self.method, Method::Start(_)) { "program_base64" } else { "snapshot_base64" };
            write_base64(&self.blob, header.key(name));
        }
        header.end();
    }
}

/// Puts the two lengths before a header that begins 8 bytes after `from` and ends where `out` does.
pub(crate) fn patch_lengths(out: &mut [u8], from: usize, blob: usize) {
    // No message of ours comes near four gigabytes: the engine's own limits are below.
    let header = u32::try_from(out.len() - from - 8).unwrap_or(u32::MAX);
    let blob = u32::try_from(blob).unwrap_or(u32::MAX);
    out[from..from + 4].copy_from_slice(&header.to_le_bytes());
    out[from + 4..from + 8].copy_from_slice(&blob.to_le_bytes());
}

fn write_inputs(inputs: &[(String, outrigger_vm::boundary::Plain)], out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, (name, value)) in inputs.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

fn write_limits(limits: &Limits, mut object: Object<'_>) {
    for (name, limit) in limits.named() {
        object.optional_whole(name, limit);
    }
    object.end();
}

fn write_claim(claim: &Claim<'_>, header: &mut Object<'_>) {
    header.optional_text("snapshot_id", claim.snapshot_id.as_deref());
    if let Some(policy) = &claim.policy {
        let mut object = header.object("policy");
        object.texts("capabilities", &policy.capabilities);
        if let Some(limits) = &policy.limits {
            write_limits(limits, object.object("limits"));
        }
        object.optional_text("snapshot_id", policy.snapshot_id.as_deref());
        object.optional_text("snapshot_key_base64", policy.snapshot_key_base64.as_deref());
        object.optional_text("snapshot_key_digest", policy.snapshot_key_digest.as_deref());
        object.optional_text("snapshot_token", policy.snapshot_token.as_deref());
        object.end();
    }
    header.optional_text("policy_id", claim.policy_id.as_deref());
    if let Some(auth) = &claim.auth {
        let mut object = header.object("auth");
        object.text("snapshot_key_base64", &auth.snapshot_key_base64);
        object.text("snapshot_key_digest", &auth.snapshot_key_digest);
        object.text("snapshot_token", &auth.snapshot_token);
        object.end();
    }
}

fn write_payload(payload: &Payload, mut object: Object<'_>) {
    match payload {
        Payload::Answer(answer) => write_answer(answer, &mut object),
        Payload::Cancelled => object.text("type", "cancelled"),
        Payload::Answers(answers) => {
            object.text("type", "answers");
            object.objects("answers", answers, |(call_id, answer), object| {
                write_whole(*call_id, object.key("call_id"));
                let mut payload = object.object("payload");
                write_answer(answer, &mut payload);
                payload.end();
            });
        }
    }
    object.end();
}

fn write_answer(answer: &Answer, object: &mut Object<'_>) {
    match answer {
        Answer::Value(value) => {
            object.text("type", "value");
            object.value("value", value);
        }
        Answer::Error(error) => {
            object.text("type", "error");
            let mut inner = object.object("error");
            inner.text("name", &error.name);
            inner.text("message", &error.message);
            inner.optional_text("code", error.code.as_deref());
            inner.optional_value("details", error.details.as_ref());
            inner.end();
        }
    }
}
