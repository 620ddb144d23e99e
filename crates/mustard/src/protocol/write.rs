//! JSON objects and arrays, written straight into a buffer that is used again and again.

use outrigger_vm::boundary::Plain;

use super::json::plain_bytes;
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

/// Appends `text` as a JSON string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = plain_bytes(bytes);
    out.extend_from_slice(&bytes[..done]);
    for (at, &byte) in bytes.iter().enumerate().skip(done) {
        let short = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..0x20 => {
                out.extend_from_slice(&bytes[done..at]);
                done = at + 1;
                let hex = |n: u8| b"0123456789abcdef"[usize::from(n & 15)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte)]);
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(short);
        done = at + 1;
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

/// Appends a whole number.
pub(crate) fn write_whole(n: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut left = n;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a finite number the way a double is written: always with a point or an exponent, and exactly.
pub(crate) fn write_double(n: f64, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Counting is what most numbers are for.
    if n.fract() == 0.0 && n.abs() < 1e15 && n.to_bits() != (-0.0f64).to_bits() {
        if n < 0.0 {
            out.push(b'-');
        }
        write_whole(n.abs() as u64, out);
        out.extend_from_slice(b".0");
        return;
    }
    // Writing to memory cannot fail.
    let _ = write!(out, "{n:?}");
}

#[cfg(test)]
mod tests {
    use super::super::json::{HalfPair, Raw};
    use super::*;

    #[test]
    fn strings_come_back_as_they_went() {
        let around: Vec<String> = (0..20)
            .map(|n| format!("{}\"{}\\{}\u{1f}é", "x".repeat(n), "y".repeat(9), "ü".repeat(7)))
            .collect();
        for text in around.iter().map(String::as_str).chain([
            "",
            "plain",
            "q\"b\\n\n\r\t\u{0}\u{1f}\u{8}\u{7f}",
            "ü💥\u{2028}",
            "\\u0041",
        ]) {
            let mut out = Vec::new();
            write_string(text, &mut out);
            let written = std::str::from_utf8(&out).unwrap();
            assert_eq!(serde_json::from_str::<String>(written).unwrap(), text);
            let raw = Raw::document(written).unwrap();
            assert_eq!(raw.string().unwrap().unwrap(), text);
        }
        let escaped = Raw::document(r#""\ud83d\udca5\/\b\f\u00e9x""#).unwrap();
        assert_eq!(escaped.string().unwrap().unwrap(), "💥/\u{8}\u{c}éx");
        for half in [r#""\ud83d""#, r#""\udca5""#, r#""\ud83dx""#, r#""\ud83d\u0041""#, r#""\ud83d\ud83d""#] {
            assert_eq!(Raw::document(half).unwrap().string(), Some(Err(HalfPair)), "{half}");
        }
    }

    #[test]
    fn numbers_are_written_as_doubles_and_come_back_exactly() {
        let written = |n| {
            let mut out = Vec::new();
            write_double(n, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(1.0), "1.0");
        assert_eq!(written(-3.0), "-3.0");
        assert_eq!(written(0.0), "0.0");
        assert_eq!(written(1.5), "1.5");
        for n in [
            0.1,
            1e21,
            1e-7,
            123_456_789_012_345_680.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            999_999_999_999_999.0,
            1e15,
        ] {
            let text = written(n);
            assert!(text.contains(['.', 'e']), "{text}");
            assert_eq!(Raw::document(&text).unwrap().number(), Some(n), "{text}");
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap(), n, "{text}");
        }
        assert_eq!(Raw::document("1e999").unwrap().number(), None);
    }
}
