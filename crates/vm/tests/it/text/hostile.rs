//! Whatever a guest passes in: no panic, nothing larger than promised, and what is printed reads back.

use std::cmp::Ordering;

use outrigger_vm::text::bigint::{self, BigInt};
use outrigger_vm::text::json::{Event, Reader, Unit, quote};
use outrigger_vm::text::number::print::{Buffer, Radix, decimal, radix};
use outrigger_vm::text::number::{convert, digits, math, read};
use outrigger_vm::text::unicode::collate::{CaseFirst, Digits, Options, Punctuation, Sensitivity, compare};
use outrigger_vm::text::unicode::{self, Form};
use outrigger_vm::text::uri::{self, Scope};
use outrigger_vm::text::{Str, Text, date, intl};
use proptest::prelude::*;

/// Units that mean something somewhere, mixed with any others.
fn text() -> impl Strategy<Value = Text> {
    let telling: Vec<u16> =
        "0123456789abcxXoObBeEnN+-._:,;%u\"\\{}[]()TZ \t\u{a0}\u{130}\u{3a3}\u{301}\u{feff}JanpmGMT"
            .encode_utf16()
            .chain([0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xD83D, 0xDE00, 0xFFFF, 0])
            .collect();
    let unit = prop_oneof![4 => proptest::sample::select(telling), 1 => any::<u16>(), 1 => 0u16..256];
    proptest::collection::vec(unit, 0..40).prop_map(|units| {
        let mut text = Text::with_capacity(units.len());
        units.into_iter().for_each(|unit| text.push(unit));
        text
    })
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<u64>().prop_map(f64::from_bits), any::<i32>().prop_map(f64::from), (-1e6..1e6f64)]
}

fn collator() -> impl Strategy<Value = Options> {
    use Sensitivity::{Accent, Base, Case, Variant};
    (
        proptest::sample::select(vec![Base, Accent, Case, Variant]),
        proptest::sample::select(vec![Punctuation::Counts, Punctuation::Ignored]),
        proptest::sample::select(vec![Digits::Apart, Digits::Numeric]),
        proptest::sample::select(vec![CaseFirst::Lower, CaseFirst::Upper]),
    )
        .prop_map(|(sensitivity, punctuation, digits, case_first)| Options {
            sensitivity,
            punctuation,
            digits,
            case_first,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_printed_number_reads_back(value in number(), base in 2u32..=36) {
        let mut buffer = Buffer::new();
        let again = read::string_to_number(Str::Latin1(decimal(value, &mut buffer).as_bytes()));
        prop_assert!(again == value || value.is_nan());
        let spelled = radix(value, Radix::new(base).expect("in range"));
        prop_assert!(spelled.len() <= 1 + 1075 + 1 + 1100, "{}", spelled.len());
        if base.is_power_of_two() && value.is_finite() && value.trunc() == value {
            let again = read::parse_int(Str::Latin1(spelled.as_bytes()), base as i32);
            prop_assert_eq!(again, value);
        }
    }

    #[test]
    fn fixed_digits_are_the_nearest_and_halves_go_away_from_zero(value in -1e15..1e15f64, places in 0u32..12) {
        let printed = digits::to_fixed(value, f64::from(places)).expect("in range");
        // Exactly: value is m * 2^e, so |printed * 2^k - value * 2^k * 10^places| can be compared as integers.
        let shift = 1200u32;
        let ten = BigInt::from(10).pow(places);
        let exact = scaled(value.abs(), shift) * &ten;
        let unscaled: BigInt = printed.replace(['.', '-'], "").parse().expect("digits");
        let difference = (unscaled << shift) - exact;
        let half = BigInt::from(1) << (shift - 1);
        prop_assert!(difference <= half && difference > -half, "{} {}", value, printed);
    }

    #[test]
    fn significant_digits_are_the_nearest(value in -1e15..1e15f64, precision in 1u32..=21) {
        prop_assume!(value.abs() > 1e-300);
        let printed = digits::to_exponential(value, Some(f64::from(precision - 1))).expect("in range");
        let (mantissa, exponent) = printed.trim_start_matches('-').split_once('e').expect("an exponent");
        let unscaled: BigInt = mantissa.replace('.', "").parse().expect("digits");
        // The last digit stands for ten to this power; both sides are multiplied until they are integers.
        let last = exponent.parse::<i32>().expect("a number") - (precision as i32 - 1);
        let ten = |power: i32| BigInt::from(10).pow(power.max(0).unsigned_abs());
        let shift = 1200u32;
        let difference = ((unscaled * ten(last)) << shift) - scaled(value.abs(), shift) * ten(-last);
        let half = (BigInt::from(1) << (shift - 1)) * ten(last);
        prop_assert!(difference <= half && difference > -half, "{} {}", value, printed);
    }

    #[test]
    fn conversions_agree_with_arithmetic_modulo(value in -9e15..9e15f64) {
        let modulo = (value.trunc() as i64).rem_euclid(1 << 32) as u32;
        prop_assert_eq!(convert::to_uint32(value), modulo);
        prop_assert_eq!(math::remainder(value.trunc(), 7.0), (value.trunc() as i64 % 7) as f64);
    }

    #[test]
    fn readers_of_text_never_panic(text in text(), base in -1i32..40) {
        let text = text.as_str();
        read::string_to_number(text);
        read::parse_float(text);
        read::parse_int(text, base);
        if let Some(value) = bigint::read(text) {
            let again = bigint::read(Str::Latin1(bigint::print(&value, Radix::TEN).as_bytes()));
            prop_assert_eq!(again, Some(value));
        }
        let time = date::parse(text);
        if let Some(fields) = date::Fields::of(time) {
            let again = date::parse(Str::Latin1(date::print::iso(&fields).as_bytes()));
            prop_assert_eq!(again, time);
            let again = date::parse(Str::Latin1(date::print::utc(&fields).as_bytes()));
            prop_assert!(again == time - time.rem_euclid(1000.0) || fields.year < 100 || again.is_nan());
        }
    }

    #[test]
    fn json_is_accepted_or_refused_inside_the_text(text in text()) {
        let (source, outcome) = match text.as_str() {
            Str::Latin1(bytes) => (text.as_str(), drain(bytes)),
            Str::Wide(units) => (text.as_str(), drain(units)),
        };
        if let Err(error) = outcome {
            prop_assert!(error.position <= source.len());
            prop_assert!(error.message(source).len() < 128);
        }
    }

    #[test]
    fn a_quoted_string_reads_back(text in text()) {
        let mut quoted = Text::with_capacity(0);
        quote(text.as_str(), &mut quoted);
        let again = match quoted.as_str() {
            Str::Latin1(bytes) => content(bytes),
            Str::Wide(units) => content(units),
        };
        prop_assert_eq!(again, text);
    }

    #[test]
    fn what_is_encoded_decodes_and_is_no_longer_than_promised(text in text()) {
        let text = text.as_str();
        for scope in [Scope::Uri, Scope::Component] {
            let encoded = uri::encode(text, scope);
            prop_assert_eq!(encoded.is_ok(), unicode::is_well_formed(text));
            if let Ok(encoded) = encoded {
                prop_assert!(encoded.len() <= uri::MAX_GROWTH * text.len());
                let again = uri::decode(encoded.as_str(), scope).expect("what was encoded");
                prop_assert_eq!(again.as_str(), text);
            }
            let _ = uri::decode(text, scope);
        }
        let again = uri::unescape(uri::escape(text).as_str());
        prop_assert_eq!(again.as_str(), text);
        uri::unescape(text);
    }

    #[test]
    fn case_and_form_settle_and_grow_no_more_than_promised(text in text()) {
        let lower = unicode::to_lower_case(text.as_str());
        let upper = unicode::to_upper_case(text.as_str());
        prop_assert!(lower.len().max(upper.len()) <= unicode::MAX_CASE_GROWTH * text.len());
        prop_assert_eq!(unicode::to_upper_case(upper.as_str()), upper);
        for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
            if let Some(normal) = unicode::normalize(text.as_str(), form) {
                prop_assert!(normal.len() <= form.max_growth() * text.len());
                let again = unicode::normalize(normal.as_str(), form).unwrap_or(normal.clone());
                prop_assert_eq!(again, normal);
            }
        }
        let well = unicode::to_well_formed(text.as_str()).unwrap_or(text.clone());
        prop_assert!(unicode::is_well_formed(well.as_str()));
        prop_assert_eq!(well.len(), text.len());
    }

    #[test]
    fn the_order_of_text_is_an_order(a in text(), b in text(), c in text(), options in collator()) {
        let (a, b, c) = (a.as_str(), b.as_str(), c.as_str());
        prop_assert_eq!(compare(a, b, options), compare(b, a, options).reverse());
        if compare(a, b, options) != Ordering::Greater && compare(b, c, options) != Ordering::Greater {
            prop_assert_ne!(compare(a, c, options), Ordering::Greater);
        }
    }

    #[test]
    fn the_short_way_for_ascii_orders_like_the_long_way(a in "[ -~\t\x00]{0,6}", b in "[ -~\t\x00]{0,6}") {
        let short = compare(Str::Latin1(a.as_bytes()), Str::Latin1(b.as_bytes()), Options::ENGLISH);
        let wide = |text: &str| -> Vec<u16> { text.encode_utf16().collect() };
        prop_assert_eq!(short, compare(Str::Wide(&wide(&a)), Str::Wide(&wide(&b)), Options::ENGLISH));
    }

    #[test]
    fn every_number_and_time_is_formatted(value in number()) {
        let amount = intl::number::Amount::of_f64(value);
        let text = intl::join(&intl::number::format(&amount, &intl::number::NumberOptions::DECIMAL).parts);
        prop_assert!(text.len() < 500, "{}", text.len());
        if value.is_finite() {
            let again: f64 = text.replace(',', "").parse().expect("a number");
            // Half of the last digit, and what the two doubles themselves are off.
            prop_assert!((again - value).abs() <= 0.0005 + 2.0 * f64::EPSILON * value.abs());
        }
        let time = date::calendar::time_clip(value);
        let formatted = intl::datetime::format(time, &intl::datetime::DateTimeOptions::DATE_TIME);
        prop_assert_eq!(formatted.is_some(), !time.is_nan());
    }
}

/// `value * 2^shift`, exactly.
fn scaled(value: f64, shift: u32) -> BigInt {
    let bits = value.to_bits();
    let biased = (bits >> 52) as i64;
    let mantissa = (bits & ((1 << 52) - 1)) | if biased == 0 { 0 } else { 1 << 52 };
    BigInt::from(mantissa) << (biased.max(1) - 1075 + i64::from(shift))
}

fn drain<U: Unit>(source: &[U]) -> Result<(), outrigger_vm::text::json::JsonError> {
    let mut reader = Reader::new(source, 20);
    while reader.next_event()? != Event::End {}
    Ok(())
}

fn content<U: Unit>(source: &[U]) -> Text {
    let mut reader = Reader::new(source, 0);
    match reader.next_event() {
        Ok(Event::String(token)) => reader.decode(token),
        other => panic!("{other:?} is no string"),
    }
}
