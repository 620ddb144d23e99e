//! Writes messages, members always in the same order: `jsonrpc`, `id`, `method`, `params` or `result` or `error`.

use memchr::memchr2;
use serde_json::value::RawValue;

use super::id::Id;
use super::message::ErrorObject;

/// Appends a request to `out`, without a newline.
pub fn encode_request(out: &mut Vec<u8>, id: &Id, method: &str, params: Option<&RawValue>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.extend_from_slice(br#","method":"#);
    write_call(out, method, params);
}

/// Appends a notification to `out`, without a newline.
pub fn encode_notification(out: &mut Vec<u8>, method: &str, params: Option<&RawValue>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_call(out, method, params);
}

/// Appends a success to `out`, without a newline.
pub fn encode_result(out: &mut Vec<u8>, id: &Id, result: &RawValue) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.extend_from_slice(br#","result":"#);
    write_raw(out, result);
    out.push(b'}');
}

/// Appends a failure to `out`, without a newline. Members of the error beyond `data` follow it in their own order.
pub fn encode_error(out: &mut Vec<u8>, id: &Id, error: &ErrorObject) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.extend_from_slice(br#","error":{"code":"#);
    out.extend_from_slice(error.code.0.to_string().as_bytes());
    out.extend_from_slice(br#","message":"#);
    write_string(out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(br#","data":"#);
        write_raw(out, data);
    }
    for (name, value) in &error.extra {
        out.push(b',');
        write_string(out, name);
        out.push(b':');
        write_raw(out, value);
    }
    out.extend_from_slice(b"}}");
}

fn write_call(out: &mut Vec<u8>, method: &str, params: Option<&RawValue>) {
    write_string(out, method);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        write_raw(out, params);
    }
    out.push(b'}');
}

/// Copies a raw value. A line break in it can only be white space between tokens, so a blank says the same and keeps
/// the message on its line.
fn write_raw(out: &mut Vec<u8>, raw: &RawValue) {
    let start = out.len();
    out.extend_from_slice(raw.get().as_bytes());
    if memchr2(b'\n', b'\r', &out[start..]).is_some() {
        for byte in &mut out[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    let plain = text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // A string serialises and a vector takes every byte, so this cannot fail.
        let _ = serde_json::to_writer(out, text);
    }
}
