//! The text room against tables recorded from node; `tables/record.mjs` says how they were made.

mod bigints;
mod dates;
mod hostile;
mod intl;
mod json;
mod numbers;
mod unicode;
mod uri;

use outrigger_vm::text::{Str, Text};

/// One recorded call.
pub(crate) struct Row<'a> {
    pub(crate) function: &'a str,
    pub(crate) arguments: Vec<&'a str>,
}

impl Row<'_> {
    pub(crate) fn number(&self, index: usize) -> f64 {
        number(self.arguments[index])
    }

    pub(crate) fn units(&self, index: usize) -> Text {
        unspell(self.arguments[index])
    }
}

/// Compares every row of a table with what `answer` says; a `None` means that the function is unknown.
pub(crate) fn check(table: &str, least_rows: usize, answer: impl Fn(&Row<'_>) -> Option<String>) {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in table.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (Some((function, rest)), true) = (fields.split_first(), fields.len() >= 2) else {
            panic!("a row has at least two fields: {line:?}")
        };
        let (expected, arguments) = rest.split_last().expect("at least two fields");
        let row = Row { function, arguments: arguments.to_vec() };
        let actual = answer(&row).unwrap_or_else(|| panic!("no function answers {line:?}"));
        rows += 1;
        if actual != *expected {
            wrong.push(format!("{line}\n    but got {actual}"));
        }
    }
    assert!(rows >= least_rows, "the table has {rows} rows only");
    assert!(
        wrong.is_empty(),
        "{} of {rows} rows differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

/// A number as the tables spell it.
pub(crate) fn number(text: &str) -> f64 {
    match text {
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => text.parse().unwrap_or_else(|_| panic!("{text:?} is no number")),
    }
}

/// How the tables spell a number.
pub(crate) fn spell_number(value: f64) -> String {
    if value == 0.0 && value.is_sign_negative() {
        return "-0".to_owned();
    }
    outrigger_vm::text::number::print::decimal(value, &mut outrigger_vm::text::number::print::Buffer::new())
        .to_owned()
}

/// How the tables spell text.
pub(crate) fn spell(text: Str<'_>) -> String {
    let mut out = String::new();
    for unit in text.units() {
        match u8::try_from(unit) {
            Ok(byte @ (0x20..=0x5B | 0x5D..=0x7E)) => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

/// Text from its spelling in the tables.
pub(crate) fn unspell(text: &str) -> Text {
    let mut out = Text::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u") {
        out.push_str(before);
        out.push(u16::from_str_radix(&after[..4], 16).expect("four hexadecimal digits"));
        rest = &after[4..];
    }
    out.push_str(rest);
    out
}
