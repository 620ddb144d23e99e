//! Canonical JSON against the vectors of RFC 8785, and what other programs hash.

use outrigger_policy::Digest;
use outrigger_policy::canonical::{CanonicalError, MAX_DEPTH, Spelling, canonical, ecmascript, hash};
use serde_json::{Value, json};

fn jcs(text: &str) -> String {
    canonical(&serde_json::from_str(text).unwrap(), Spelling::Rfc8785).unwrap()
}

#[test]
fn numbers_are_spelled_as_in_appendix_b_of_the_rfc() {
    let vectors: &[(u64, &str)] = &[
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0xc340000000000000, "-9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef4e, "999999999999999700000"),
        (0x444b1ae4d6e2ef4f, "999999999999999900000"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ];
    for (bits, expected) in vectors {
        assert_eq!(ecmascript(f64::from_bits(*bits)).as_deref(), Some(*expected), "{bits:016x}");
    }
    for bits in [0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000] {
        assert_eq!(ecmascript(f64::from_bits(bits)), None, "{bits:016x}");
    }
}

#[test]
fn numbers_change_their_layout_where_ecmascript_does() {
    let cases = [
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (123.456, "123.456"),
        (1e20, "100000000000000000000"),
        (1.2e20, "120000000000000000000"),
        (1e21, "1e+21"),
        (1.5e21, "1.5e+21"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (1e100, "1e+100"),
    ];
    for (number, expected) in cases {
        assert_eq!(ecmascript(number).as_deref(), Some(expected));
    }
}

#[test]
fn the_example_of_section_3_2_2_comes_out_byte_for_byte() {
    let input = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    assert_eq!(jcs(input), expected);
}

#[test]
fn keys_are_sorted_by_utf16_as_in_section_3_2_3() {
    let input = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
        "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let value: Value = serde_json::from_str(&jcs(input)).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 7);
    let text = jcs(input);
    let names = ["Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"];
    let places: Vec<usize> = names.iter().map(|name| text.find(name).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    // By bytes the emoji comes last.
    let bytes = canonical(&serde_json::from_str(input).unwrap(), Spelling::ByteOrder).unwrap();
    assert!(bytes.find("Hebrew") < bytes.find("Emoji"), "{bytes}");
}

#[test]
fn strings_have_one_escape_for_each_character_that_needs_one() {
    let all: String = (0..0x21).map(char::from).chain(['"', '\\', '/', '\u{7f}', '\u{2028}', '😀']).collect();
    let expected = "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\
        \\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f \
        \\\"\\\\/\u{7f}\u{2028}😀\"";
    for spelling in [Spelling::Rfc8785, Spelling::ByteOrder] {
        assert_eq!(canonical(&json!(all), spelling).unwrap(), expected);
    }
}

#[test]
fn an_integer_that_does_not_come_out_digit_for_digit_is_refused() {
    assert_eq!(jcs("9007199254740992"), "9007199254740992");
    assert_eq!(jcs("-9007199254740992"), "-9007199254740992");
    assert_eq!(jcs("9223372036854776000"), "9223372036854776000");
    assert_eq!(jcs("9223372036854775808.0"), "9223372036854776000");
    let refused = ["9007199254740993", "-9007199254740993", "18446744073709551615", "9223372036854775808"];
    for number in refused {
        let value: Value = serde_json::from_str(number).unwrap();
        let error = canonical(&value, Spelling::Rfc8785).unwrap_err();
        assert_eq!(error, CanonicalError::InexactInteger { number: number.into() });
        assert_eq!(canonical(&value, Spelling::ByteOrder).unwrap(), number);
    }
}

#[test]
fn in_byte_order_numbers_keep_their_kind() {
    let text = |text: &str| canonical(&serde_json::from_str(text).unwrap(), Spelling::ByteOrder).unwrap();
    assert_eq!(text("[1, 1.0, -0.0, 1e3, 0.10]"), "[1,1.0,-0.0,1000.0,0.1]");
    assert_eq!(text(r#"{"b": {"z": 1, "a": null}, "a": []}"#), r#"{"a":[],"b":{"a":null,"z":1}}"#);
}

#[test]
fn a_receipt_of_the_reference_control_plane_hashes_to_what_it_says() {
    let mut receipt: Value = serde_json::from_str(include_str!("../testdata/abp-receipt.json")).unwrap();
    let named: Digest = receipt["receipt_sha256"].as_str().unwrap().parse().unwrap();
    receipt["receipt_sha256"] = Value::Null;
    assert_eq!(hash(&receipt, Spelling::ByteOrder).unwrap(), named);
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
    assert!(canonical(&nested(MAX_DEPTH), Spelling::Rfc8785).is_ok());
    assert_eq!(canonical(&nested(MAX_DEPTH + 1), Spelling::Rfc8785), Err(CanonicalError::TooDeep));
}

#[test]
fn a_hash_is_that_of_the_canonical_bytes() {
    // printf '{"a":1,"b":"x"}' | sha256sum
    let digest = hash(&json!({"b": "x", "a": 1.0}), Spelling::Rfc8785).unwrap();
    assert_eq!(digest, Digest::of(br#"{"a":1,"b":"x"}"#));
    assert_eq!(
        Digest::of(b"abc").to_string(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn a_digest_has_one_spelling() {
    let text = Digest::of(b"abc").to_string();
    assert_eq!(text.parse(), Ok(Digest::of(b"abc")));
    for bad in [&text[1..], &format!("{text}0"), &text.to_uppercase(), &text.replace('b', "g"), "", "é"] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
    }
    let json = serde_json::to_string(&Digest::of(b"abc")).unwrap();
    assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), Digest::of(b"abc"));
}
