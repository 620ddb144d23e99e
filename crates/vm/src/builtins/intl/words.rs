//! Words: relative times, lists, the order of texts, names of locales.

use super::numbers::width;
use super::{answer, word};
use crate::builtins::Args;
use crate::code::ErrorKind;
use crate::exec::state::{Res, State};
use crate::exec::{Window, text};
use crate::text::intl::join;
use crate::text::intl::list::{self, ListType, Width};
use crate::text::intl::relative::{self, Numeric, Unit};
use crate::text::unicode::collate::{self, CaseFirst, Digits, Options, Punctuation, Sensitivity};
use crate::value::Value;
use std::cmp::Ordering;

/// `%FormatRelative(asParts, value, unit, style, numeric)`.
pub(super) fn format_relative(st: &mut State, w: &mut Window, args: Args) -> Res {
    let value = st.primitive_to_number(args.get(w, 1))?;
    let (unit, style, numeric) = (word(st, w, args, 2), word(st, w, args, 3), word(st, w, args, 4));
    let unit = match unit.strip_suffix('s').unwrap_or(&unit) {
        "second" => Unit::Second,
        "minute" => Unit::Minute,
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "quarter" => Unit::Quarter,
        "year" => Unit::Year,
        _ => {
            let message = format!("Invalid unit argument for format() '{unit}'");
            return Err(st.throw(ErrorKind::Range, &message));
        }
    };
    let numeric = if numeric == "auto" { Numeric::Auto } else { Numeric::Always };
    match relative::parts(value, unit, width(&style, Width::Long), numeric) {
        Some(parts) => answer(st, w, args, &parts, || join(&parts)),
        None => Err(st.throw(ErrorKind::Range, "The number is not finite")),
    }
}

/// `%FormatList(asParts, list of strings, type, style)`.
pub(super) fn format_list(st: &mut State, w: &mut Window, args: Args) -> Res {
    let items = args.get(w, 1).as_array().and_then(|a| st.heap.packed(a)).unwrap_or_default().to_vec();
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        let Some(s) = item.as_string() else { continue };
        st.burn(1 + u64::from(st.heap.string_length(s)) / 16)?;
        texts.push(st.string_text(s));
    }
    let (kind, style) = (word(st, w, args, 2), word(st, w, args, 3));
    let kind = match kind.as_str() {
        "disjunction" => ListType::Disjunction,
        "unit" => ListType::Unit,
        _ => ListType::Conjunction,
    };
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let parts = list::parts(&borrowed, kind, width(&style, Width::Long));
    answer(st, w, args, &parts, || join(&parts))
}

/// `%CompareText(a, b, sensitivity, ignorePunctuation, numeric, caseFirst)`: -1, 0 or 1.
pub(super) fn compare(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (Some(a), Some(b)) = (args.get(w, 0).as_string(), args.get(w, 1).as_string()) else {
        return super::super::slow();
    };
    let (sensitivity, case_first) = (word(st, w, args, 2), word(st, w, args, 5));
    let options = Options {
        sensitivity: match sensitivity.as_str() {
            "base" => Sensitivity::Base,
            "accent" => Sensitivity::Accent,
            "case" => Sensitivity::Case,
            _ => Sensitivity::Variant,
        },
        punctuation: if args.get(w, 3) == Value::TRUE { Punctuation::Ignored } else { Punctuation::Counts },
        digits: if args.get(w, 4) == Value::TRUE { Digits::Numeric } else { Digits::Apart },
        case_first: if case_first == "upper" { CaseFirst::Upper } else { CaseFirst::Lower },
    };
    st.heap.flatten(a)?;
    st.heap.flatten(b)?;
    let cost = collate::cost(text(st.heap.str(a)), text(st.heap.str(b)), options);
    st.burn(cost)?;
    Ok(Value::int(match collate::compare(text(st.heap.str(a)), text(st.heap.str(b)), options) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// `%IsLocale(tag)`: whether a language tag is well formed.
pub(super) fn is_locale(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(s) = args.get(w, 0).as_string() else { return Ok(Value::FALSE) };
    if st.heap.string_length(s) > 255 {
        return Ok(Value::FALSE);
    }
    let tag = st.string_text(s);
    let mut subtags = tag.split('-');
    let language = subtags.next().unwrap_or_default();
    let letters = language.bytes().all(|b| b.is_ascii_alphabetic());
    let right = letters && matches!(language.len(), 2 | 3 | 5..=8);
    let rest = subtags.all(|t| (1..=8).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_alphanumeric()));
    Ok(Value::bool(right && rest && !tag.ends_with("-x") && !tag.ends_with("-u")))
}
