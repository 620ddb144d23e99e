//! What secrets look like inside a text. Each shape begins with a few letters that are rare, so a text is scanned for the first
//! of them, one look a byte; only there the shape is tried.

use std::ops::Range;

/// The first secret at or after `from`.
pub(super) fn find(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        // A table look-up is all that most bytes cost.
        if !STARTS[usize::from(bytes[at])] {
            at += 1;
            continue;
        }
        if let Some(found) = secret_at(bytes, at) {
            return Some(found);
        }
        at += 1;
    }
    None
}

/// The bytes that a shape can begin with.
const STARTS: [bool; 256] = {
    let mut starts = [false; 256];
    let first = b"Bbsgx-Aa";
    let mut index = 0;
    while index < first.len() {
        starts[first[index] as usize] = true;
        index += 1;
    }
    starts
};

/// A key that is a prefix and so many characters of a kind.
struct Key {
    prefix: &'static str,
    takes: fn(u8) -> bool,
    least: usize,
    has: Has,
}

/// What a key has for certain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// A digit: a text of nothing but letters and dashes is a name, not a key.
    Digit,
    /// Nothing; its prefix says enough.
    Prefix,
}

const KEYS: [Key; 22] = [
    key("sk-", dashed, 12, Has::Digit),
    key("xai-", dashed, 20, Has::Digit),
    key("ghp_", alnum, 20, Has::Prefix),
    key("gho_", alnum, 20, Has::Prefix),
    key("ghu_", alnum, 20, Has::Prefix),
    key("ghs_", alnum, 20, Has::Prefix),
    key("ghr_", alnum, 20, Has::Prefix),
    key("github_pat_", dashed, 20, Has::Prefix),
    key("glpat-", dashed, 16, Has::Prefix),
    key("gldt-", dashed, 16, Has::Digit),
    key("glrt-", dashed, 16, Has::Digit),
    key("glcbt-", dashed, 16, Has::Digit),
    key("glptt-", dashed, 16, Has::Digit),
    key("glsoat-", dashed, 16, Has::Digit),
    key("xoxb-", dashed, 10, Has::Digit),
    key("xoxp-", dashed, 10, Has::Digit),
    key("xoxa-", dashed, 10, Has::Digit),
    key("xoxr-", dashed, 10, Has::Digit),
    key("xoxs-", dashed, 10, Has::Digit),
    key("xoxe-", dashed, 10, Has::Digit),
    key("xapp-", dashed, 10, Has::Digit),
    key("AIza", dashed, 30, Has::Prefix),
];

const fn key(prefix: &'static str, takes: fn(u8) -> bool, least: usize, has: Has) -> Key {
    Key { prefix, takes, least, has }
}

fn secret_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if bytes[at] == b'-' {
        return pem(bytes, at);
    }
    // In the middle of a word nothing begins: `task-…` is no `sk-…`.
    if at > 0 && (alnum(bytes[at - 1]) || bytes[at - 1] == b'_') {
        return None;
    }
    let rest = &bytes[at..];
    match bytes[at] {
        b'B' | b'b' => bearer(bytes, at),
        _ => {
            let key = aws_id(rest).or_else(|| KEYS.iter().find_map(|key| key.at(rest)));
            key.map(|length| at..at + length).or_else(|| aws_secret(bytes, at))
        }
    }
}

impl Key {
    fn at(&self, rest: &[u8]) -> Option<usize> {
        let body = rest.strip_prefix(self.prefix.as_bytes())?;
        let length = run(body, self.takes);
        let is_key = length >= self.least
            && (self.has == Has::Prefix || body[..length].iter().any(u8::is_ascii_digit));
        is_key.then_some(self.prefix.len() + length)
    }
}

/// `AKIA` or `ASIA` and sixteen capitals and digits, alone.
fn aws_id(rest: &[u8]) -> Option<usize> {
    if !rest.starts_with(b"AKIA") && !rest.starts_with(b"ASIA") {
        return None;
    }
    let length = run(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (length == 20 && !rest.get(20).is_some_and(|byte| alnum(*byte) || *byte == b'_')).then_some(20)
}

/// What is assigned to `aws_secret_access_key`, which has no shape of its own.
fn aws_secret(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let name = b"aws_secret_access_key";
    let mut start = at + name.len();
    if !bytes.get(at..start)?.eq_ignore_ascii_case(name) {
        return None;
    }
    start += run(&bytes[start..], |byte| matches!(byte, b' ' | b'=' | b':' | b'"' | b'\'' | b'\\'));
    let length = run(&bytes[start..], |byte| alnum(byte) || matches!(byte, b'+' | b'/' | b'='));
    (length >= 16).then(|| start..start + length)
}

/// `Bearer` and a token. The word stays, so that a reader sees what was there.
fn bearer(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let word = b"bearer";
    let mut start = at + word.len();
    if !bytes.get(at..start)?.eq_ignore_ascii_case(word) {
        return None;
    }
    let blanks = run(&bytes[start..], |byte| byte == b' ' || byte == b'\t');
    start += blanks;
    let mut length = run(&bytes[start..], |byte| alnum(byte) || b"-._~+/=".contains(&byte));
    // The end of a sentence is no part of a token.
    while length > 0 && bytes[start + length - 1] == b'.' {
        length -= 1;
    }
    let token = &bytes[start..start + length];
    // "Bearer authentication" is prose; a token has more than small letters in it.
    let is_token = blanks > 0 && length >= 8 && !token[1..].iter().all(u8::is_ascii_lowercase);
    is_token.then(|| start..start + length)
}

/// A PEM block up to its end, or to the end of the text if that is missing.
fn pem(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let begin = b"-----BEGIN ";
    let label = bytes.get(at..)?.strip_prefix(begin)?;
    let length = run(label, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    if length == 0 || !label[length..].starts_with(b"-----") {
        return None;
    }
    let body = at + begin.len() + length + 5;
    let rest = &bytes[body..];
    let Some(end) = memchr::memmem::find(rest, b"-----END ") else { return Some(at..bytes.len()) };
    let tail = &rest[end + 9..];
    let close = run(tail, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let dashes = run(&tail[close..], |byte| byte == b'-').min(5);
    Some(at..body + end + 9 + close + dashes)
}

fn run(bytes: &[u8], takes: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !takes(*byte)).unwrap_or(bytes.len())
}

fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn dashed(byte: u8) -> bool {
    alnum(byte) || byte == b'-' || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::super::text;

    #[test]
    fn secrets_are_masked() {
        for (from, to) in [
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
            ("bearer  AbCdEfGh", "bearer  ***"),
            ("Bearer secret-token-value.", "Bearer ***."),
            ("key=sk-ant-api03-AAAAbbbb_cccc", "key=***"),
            ("\"sk-test-1234567890\"", "\"***\""),
            ("https://x:ghp_0123456789abcdefghijABCDEFGHIJ456789@github.com", "https://x:***@github.com"),
            ("github_pat_11AAAAAAA0abcdefghijkl_mnop", "***"),
            ("glpat-abcdefghijklmnopqrst", "***"),
            ("xoxb-123456789012-abcdef", "***"),
            ("(ASIAIOSFODNN7EXAMPLE)", "(***)"),
            ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=***"),
            ("aws_secret_access_key = \"wJalrXUtnFEMI/K7MDENG/bPx\"", "aws_secret_access_key = \"***\""),
            ("AIzaSyA0123456789abcdefghijklmnopqrstuv", "***"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n***\nb"),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "***"),
            ("-----BEGIN EC KEY-----\n-----END EC KEY-----", "***"),
        ] {
            assert_eq!(text(from), to, "{from}");
        }
    }

    #[test]
    fn what_only_looks_like_a_secret_stays() {
        for kept in [
            "",
            "Bearer",
            "Bearer ",
            "bearer authentication",
            "The bearer of this letter",
            "Bearer Authentication.",
            "Bearer tokens are nice",
            "forbearer x1234567",
            "sk-",
            "sk-learn",
            "sk-some-kebab-case-class-name",
            "task-management-1234567890",
            "desk-0123456789abcdef",
            "ghp_short",
            "ghp_",
            "glpat-",
            "gldt-no-digits-here-at-all",
            "xoxb-",
            "xoxo-kisses-123456789",
            "AKIA",
            "AKIAIOSFODNN7EXAMPLEX",
            "AKIAIOSFODNN7EXAMPL",
            "MAKIAIOSFODNN7EXAMPLE",
            "AIza",
            "----",
            "-----BEGIN",
            "-----BEGIN a joke-----",
            "----------",
            "aws_secret_access_key",
            "aws_secret_access_key is not set",
            "é-----é",
            "skßsk-",
        ] {
            assert_eq!(text(kept), kept);
        }
    }

    #[test]
    fn any_text_survives() {
        // Every shape, cut at every byte, with a letter of two bytes after it.
        let all = "Bearer abc.def-123 sk-test-1234567890 ghp_0123456789abcdefghijABCD -----BEGIN X-----\n-----END X----- AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7 AKIAIOSFODNN7EXAMPLE";
        for end in 0..=all.len() {
            let cut = format!("{}é", &all[..end]);
            let safe = text(&cut);
            assert!(safe.ends_with('é') || safe.ends_with("***"), "{cut}");
            assert_eq!(text(&safe), safe, "{cut}");
        }
    }

    proptest::proptest! {
        #[test]
        fn pieces_of_secrets_in_any_order_are_masked_once_and_for_all(pieces in pieces()) {
            let all = pieces.concat();
            let safe = text(&all).into_owned();
            proptest::prop_assert_eq!(text(&safe), safe.as_str());
        }
    }

    fn pieces() -> impl proptest::strategy::Strategy<Value = Vec<&'static str>> {
        let pieces = [
            "Bearer ",
            "bearer\t",
            "abc.def-123",
            "sk-",
            "sk-test-1234567890",
            "ghp_",
            "0123456789abcdefghijABCD",
            "AKIA",
            "IOSFODNN7EXAMPLE",
            "AIza",
            "aws_secret_access_key",
            "AWS_SECRET_ACCESS_KEY",
            " = ",
            "\"",
            "-----BEGIN ",
            "PRIVATE KEY",
            "-----",
            "-----END ",
            "\n",
            " ",
            "é",
            "\u{1f600}",
            "-",
            "_",
            ".",
            "xoxb-",
            "glpat-",
            "x",
            "9",
            "***",
        ];
        proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..14)
    }
}
