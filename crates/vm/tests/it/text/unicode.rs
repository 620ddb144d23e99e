//! Case, normalization, identifiers and the order of text, as recorded.

use std::cmp::Ordering;

use outrigger_vm::text::unicode::collate::{CaseFirst, Digits, Options, Punctuation, Sensitivity, compare};
use outrigger_vm::text::unicode::{self, Form};
use outrigger_vm::text::{Str, Text};

use super::{Row, check, spell, unspell};

#[test]
fn text_changes_case_and_form_and_is_ordered_as_in_node() {
    let table = include_str!("tables/unicode.tsv");
    let list =
        table.lines().find_map(|line| line.strip_prefix("compare-list\t")).expect("the list is recorded");
    // The last field is the recorded result, which is empty for the list.
    let list = list.strip_suffix('\t').expect("an empty result");
    let list: Vec<Text> = list.split('\t').map(unspell).collect();
    check(table, 1000, |row| answer(row, &list));
}

fn answer(row: &Row<'_>, list: &[Text]) -> Option<String> {
    if row.function == "compare-list" {
        return Some(String::new());
    }
    if row.function == "block" {
        return Some(block(row.number(0) as u32));
    }
    let text = row.units(0);
    let text = text.as_str();
    if let Some(name) = row.function.strip_prefix("compare-") {
        return Some(list.iter().map(|other| sign(compare(text, other.as_str(), options(name)))).collect());
    }
    let normal =
        |form| unicode::normalize(text, form).map_or_else(|| spell(text), |text| spell(text.as_str()));
    Some(match row.function {
        "lower" => spell(unicode::to_lower_case(text).as_str()),
        "upper" => spell(unicode::to_upper_case(text).as_str()),
        "NFC" => normal(Form::Nfc),
        "NFD" => normal(Form::Nfd),
        "NFKC" => normal(Form::Nfkc),
        "NFKD" => normal(Form::Nfkd),
        "isWellFormed" => unicode::is_well_formed(text).to_string(),
        "toWellFormed" => {
            unicode::to_well_formed(text).map_or_else(|| spell(text), |text| spell(text.as_str()))
        }
        "trim" => spell(unicode::trim(text)),
        _ => return None,
    })
}

fn options(name: &str) -> Options {
    let plain = Options::ENGLISH;
    match name {
        "plain" => plain,
        "base" => Options { sensitivity: Sensitivity::Base, ..plain },
        "accent" => Options { sensitivity: Sensitivity::Accent, ..plain },
        "case" => Options { sensitivity: Sensitivity::Case, ..plain },
        "numeric" => Options { digits: Digits::Numeric, ..plain },
        "punct" => Options { punctuation: Punctuation::Ignored, ..plain },
        "upper" => Options { case_first: CaseFirst::Upper, ..plain },
        _ => panic!("{name} is no collator"),
    }
}

fn sign(order: Ordering) -> char {
    match order {
        Ordering::Less => '<',
        Ordering::Equal => '=',
        Ordering::Greater => '>',
    }
}

/// The sums that the generator makes for 256 code points.
fn block(start: u32) -> String {
    let sum =
        |text: Str<'_>| text.code_points().fold(0u64, |sum, point| (sum * 31 + u64::from(point)) % 1000003);
    let mut sums = [0u64; 4];
    for point in (start..start + 256).filter(|point| !(0xD800..0xE000).contains(point)) {
        let mut text = Text::with_capacity(2);
        text.push_code_point(point);
        sums[0] = (sums[0] * 31 + sum(unicode::to_lower_case(text.as_str()).as_str())) % 1000003;
        sums[1] = (sums[1] * 31 + sum(unicode::to_upper_case(text.as_str()).as_str())) % 1000003;
        sums[2] = (sums[2] * 2 + u64::from(unicode::is_id_start(point))) % 1000003;
        sums[3] = (sums[3] * 2 + u64::from(unicode::is_id_continue(point))) % 1000003;
    }
    sums.map(|sum| sum.to_string()).join(" ")
}
