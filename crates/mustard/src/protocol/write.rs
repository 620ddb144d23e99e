//! JSON objects and arrays, written straight into a buffer that is used again and again.

use outrigger_vm::boundary::Plain;

use super::json::{write_double, write_string, write_whole};
use super::value::write_value;

/// An object that is being written.
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    pub(crate) fn begin(out: &'o mut Vec<u8>) -> Object<'o> {
        out.push(b'{');
        Object { out, first: true }
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }

    /// Writes a key of ours; what belongs to it is written next, by the caller.
    pub(crate) fn key(&mut self, name: &'static str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(crate) fn object(&mut self, name: &'static str) -> Object<'_> {
        Object::begin(self.key(name))
    }

    pub(crate) fn text(&mut self, name: &'static str, text: &str) {
        write_string(text, self.key(name));
    }

    pub(crate) fn optional_text(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    pub(crate) fn whole(&mut self, name: &'static str, n: u64) {
        write_whole(n, self.key(name));
    }

    pub(crate) fn optional_whole(&mut self, name: &'static str, n: Option<u64>) {
        if let Some(n) = n {
            self.whole(name, n);
        }
    }

    pub(crate) fn optional_number(&mut self, name: &'static str, n: Option<f64>) {
        if let Some(n) = n.filter(|n| n.is_finite()) {
            write_double(n, self.key(name));
        }
    }

    /// Only written if it is so.
    pub(crate) fn flag(&mut self, name: &'static str, set: bool) {
        if set {
            self.key(name).extend_from_slice(b"true");
        }
    }

    pub(crate) fn value(&mut self, name: &'static str, value: &Plain) {
        write_value(value, self.key(name));
    }

    pub(crate) fn optional_value(&mut self, name: &'static str, value: Option<&Plain>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    pub(crate) fn values(&mut self, name: &'static str, values: &[Plain]) {
        array(self.key(name), values, write_value);
    }

    pub(crate) fn texts<S: AsRef<str>>(&mut self, name: &'static str, texts: &[S]) {
        array(self.key(name), texts, |text, out| write_string(text.as_ref(), out));
    }

    pub(crate) fn objects<T>(
        &mut self,
        name: &'static str,
        items: &[T],
        write: impl Fn(&T, &mut Object<'_>),
    ) {
        array(self.key(name), items, |item, out| {
            let mut object = Object::begin(out);
            write(item, &mut object);
            object.end();
        });
    }
}

/// Appends an array.
pub(crate) fn array<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Appends bytes as a string of base64.
pub(crate) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    use base64::Engine as _;
    let coded = base64::engine::general_purpose::STANDARD.encode(bytes);
    out.push(b'"');
    out.extend_from_slice(coded.as_bytes());
    out.push(b'"');
}
