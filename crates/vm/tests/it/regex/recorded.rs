//! Answers that node gave, one a line; `record.mjs` makes the file.

use super::groups;
use outrigger_vm::heap::Str;
use outrigger_vm::regex::{Flags, compile};

#[test]
fn patterns_answer_as_they_do_in_node() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for line in include_str!("recorded.tsv").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [flags, pattern, text, start, expected] = columns[..] else { panic!("five columns: {line}") };
        let flags = Flags::parse(flags.encode_utf16()).expect("flags");
        let start = start.parse().expect("a position");
        let answer = match compile(Str::Wide(&unquote(pattern)), flags) {
            Err(_) => "syntax".to_owned(),
            Ok(program) => match groups(&program, &unquote(text), start) {
                Err(error) => error.to_string(),
                Ok(None) => "none".to_owned(),
                Ok(Some(groups)) => {
                    let spelled = groups.iter().map(|group| match group {
                        Some(range) => format!("{}-{}", range.start, range.end),
                        None => "?".to_owned(),
                    });
                    spelled.collect::<Vec<_>>().join(" ")
                }
            },
        };
        seen += 1;
        if answer != expected {
            wrong.push(format!("{line}\n    we say {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen > 1_000, "the table is there");
}

/// An ASCII JSON string, as units.
fn unquote(json: &str) -> Vec<u16> {
    let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("quotes");
    let mut units = Vec::new();
    let mut bytes = inner.bytes();
    while let Some(byte) = bytes.next() {
        units.push(match byte {
            b'\\' => match bytes.next().expect("an escape") {
                b'n' => 0x0a,
                b'r' => 0x0d,
                b't' => 0x09,
                b'b' => 0x08,
                b'f' => 0x0c,
                b'u' => {
                    let digits: String = bytes.by_ref().take(4).map(char::from).collect();
                    u16::from_str_radix(&digits, 16).expect("four hex digits")
                }
                other => u16::from(other),
            },
            other => u16::from(other),
        });
    }
    units
}
