//! Responses to JSON: what a sidecar sends.

use super::feature::VERSION;
use super::response::{Call, Detail, Failure, Greeting, Inspection, Place, Reply, Response, Suspended};
use super::write::{Object, write_base64};
use super::write_request::patch_lengths;

impl Response {
    /// Appends the two lengths and the header of a binary frame, to which a blob of `blob` bytes belongs.
    pub fn encode(&self, blob: usize, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&[0; 8]);
        self.write(None, out);
        patch_lengths(out, from, blob);
    }

    /// Appends the response as a line.
    pub fn encode_line(&self, blob: &[u8], out: &mut Vec<u8>) {
        self.write(Some(blob), out);
        out.push(b'\n');
    }

    fn write(&self, inline: Option<&[u8]>, out: &mut Vec<u8>) {
        let mut header = Object::begin(out);
        header.whole("protocol_version", VERSION);
        header.whole("id", self.id);
        match &self.outcome {
            Ok(reply) => {
                header.flag("ok", true);
                let mut result = header.object("result");
                write_reply(reply, inline, &mut result);
                result.end();
                if let Some(profile) = self.profile {
                    let mut object = header.object("profile");
                    object.whole("execution_ns", profile.execution_ns);
                    object.whole("response_prepare_ns", profile.response_prepare_ns);
                    object.end();
                }
            }
            Err(Failure { error, detail }) => {
                header.key("ok").extend_from_slice(b"false");
                header.text("error", error);
                if let Some(detail) = detail {
                    write_detail(detail, header.object("error_detail"));
                }
            }
        }
        header.end();
    }
}

fn write_reply(reply: &Reply, inline: Option<&[u8]>, result: &mut Object<'_>) {
    match reply {
        Reply::Program(id) => {
            result.text("kind", "program");
            result.text("program_id", id.hex().as_str());
            if let Some(blob) = inline {
                write_base64(blob, result.key("program_base64"));
            }
        }
        Reply::Completed(value) => {
            result.text("kind", "step");
            let mut step = result.object("step");
            step.text("type", "completed");
            step.value("value", value);
            step.end();
        }
        Reply::Suspended(suspended) => write_suspended(suspended, inline, result),
        Reply::Hello(greeting) => write_greeting(greeting, result),
        Reply::Released(released) => {
            result.text("kind", "released");
            result.whole("programs", released.programs);
            result.whole("snapshots", released.snapshots);
            result.whole("policies", released.policies);
        }
        Reply::Inspection(inspection) => write_inspection(inspection, result),
    }
}

fn write_suspended(suspended: &Suspended, inline: Option<&[u8]>, result: &mut Object<'_>) {
    let Suspended { snapshot_id, policy_id, calls } = suspended;
    result.text("kind", "step");
    let mut step = result.object("step");
    step.text("type", "suspended");
    if let Some(first) = calls.first() {
        step.text("capability", &first.capability);
        step.values("args", &first.args);
        if let Some(blob) = inline {
            write_base64(blob, step.key("snapshot_base64"));
        }
        if first.call_id.is_some() {
            step.objects("calls", calls, write_call);
        }
    }
    step.end();
    result.text("snapshot_id", snapshot_id.hex().as_str());
    result.text("policy_id", policy_id.hex().as_str());
}

fn write_call(call: &Call, object: &mut Object<'_>) {
    object.optional_whole("call_id", call.call_id);
    object.text("capability", &call.capability);
    object.values("args", &call.args);
}

fn write_place(place: &Place, object: &mut Object<'_>) {
    object.text("function", &place.function);
    object.whole("line", place.line);
    object.whole("column", place.column);
}

fn write_greeting(greeting: &Greeting, result: &mut Object<'_>) {
    result.text("kind", "hello");
    result.text("name", &greeting.name);
    result.text("version", &greeting.version);
    super::write::array(result.key("protocol_versions"), &greeting.protocol_versions, |n, out| {
        super::write::write_whole(*n, out);
    });
    result.text("engine", &greeting.engine);
    result.texts("features", &greeting.features);
    result.texts("enabled", &greeting.enabled);
    let mut limits = result.object("limits");
    limits.whole("max_frame_bytes", greeting.limits.max_frame_bytes);
    limits.whole("max_frame_bytes_ceiling", greeting.limits.max_frame_bytes_ceiling);
    limits.whole("program_cache_bytes", greeting.limits.program_cache_bytes);
    limits.whole("snapshot_cache_bytes", greeting.limits.snapshot_cache_bytes);
    limits.whole("policy_cache_entries", greeting.limits.policy_cache_entries);
    limits.end();
    let mut sandbox = result.object("sandbox");
    sandbox.text("landlock", &greeting.landlock);
    sandbox.text("seccomp", &greeting.seccomp);
    sandbox.end();
}

fn write_inspection(inspection: &Inspection, result: &mut Object<'_>) {
    result.text("kind", "inspection");
    result.text("snapshot_id", inspection.snapshot_id.hex().as_str());
    result.whole("bytes", inspection.bytes);
    result.objects("calls", &inspection.calls, write_call);
    result.texts("capabilities", &inspection.capabilities);
    result.whole("instructions_used", inspection.instructions_used);
    result.whole("heap_bytes", inspection.heap_bytes);
    result.whole("heap_records", inspection.heap_records);
    result.objects("frames", &inspection.frames, write_place);
}

fn write_detail(detail: &Detail, mut object: Object<'_>) {
    object.text("kind", detail.kind.as_str());
    object.text("code", detail.code.as_str());
    object.text("message", &detail.message);
    object.optional_text("name", detail.name.as_deref());
    object.optional_whole("line", detail.line);
    object.optional_whole("column", detail.column);
    object.optional_text("source_line", detail.source_line.as_deref());
    if !detail.frames.is_empty() {
        object.objects("frames", &detail.frames, write_place);
    }
    object.optional_text("error_code", detail.error_code.as_deref());
    object.optional_value("details", detail.details.as_ref());
    object.end();
}
