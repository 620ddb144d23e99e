//! What holds for every input, tried on many.

use outrigger_policy::audit::{AppendError, Chain, Head, Scalar, read, verify};
use outrigger_policy::canonical::{Spelling, canonical, ecmascript};
use outrigger_policy::{
    Bucket, Budgets, Capability, Glob, Grants, Host, InsidePath, Layer, LayerLists, Millis, Rate, Reading,
    Resource, Subject, Verdict, Voice,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Few letters, so that patterns and names meet.
const NAME: &str = "[ab]{1,3}(\\.[ab]{1,2})?";
const ENTRY: &str = "[ab*?.]{1,4}";

fn lists() -> impl Strategy<Value = LayerLists> {
    let list = || vec(ENTRY, 0..4);
    (list(), list(), list()).prop_map(|(allow, ask, deny)| LayerLists { allow, ask, deny })
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let voice = prop::sample::select(vec![Voice::Declared, Voice::Operator, Voice::Ceiling, Voice::Profile]);
    let layer = (voice, prop::option::weighted(0.9, lists()));
    vec(layer, 0..5).prop_map(|layers| {
        let layer = |(voice, lists): (Voice, Option<LayerLists>)| match lists {
            Some(lists) => Layer::new(voice, &lists).unwrap(),
            None => Layer::unreadable(voice, "torn"),
        };
        layers.into_iter().map(layer).collect()
    })
}

/// The obvious matcher, which is slow and short.
fn slow_match(pattern: &[char], text: &[char]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some('*'), _) => {
            slow_match(&pattern[1..], text) || (!text.is_empty() && slow_match(pattern, &text[1..]))
        }
        (Some('?'), Some(_)) => slow_match(&pattern[1..], &text[1..]),
        (Some(one), Some(other)) if one == other => slow_match(&pattern[1..], &text[1..]),
        (Some(_), _) | (None, Some(_)) => false,
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>()
            .prop_filter_map("finite", |number| serde_json::Number::from_f64(number).map(Value::Number)),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn one_more_layer_never_makes_a_decision_milder(layers in layers(), more in layers(), name in NAME) {
        let capability = Capability::new(name).unwrap();
        let verdict = |layers: Vec<Layer>| Grants::new(Subject::new("x"), layers).decide(&capability).verdict;
        let (before, together) = (verdict(layers.clone()), verdict([layers.clone(), more].concat()));
        // Without any layer everything is denied; the first layer is the only one that can grant.
        prop_assert!(layers.is_empty() || together >= before, "{before:?} became {together:?}");
    }

    #[test]
    fn revoking_never_makes_a_decision_milder(layers in layers(), name in NAME) {
        let capability = Capability::new(name).unwrap();
        let mut grants = Grants::new(Subject::new("x"), layers);
        grants.revoke(capability.clone());
        prop_assert_eq!(grants.decide(&capability).verdict, Verdict::Deny);
    }

    #[test]
    fn a_glob_agrees_with_the_obvious_matcher(pattern in "[ab*?/]{1,8}", text in "[ab/]{0,8}") {
        let glob = Glob::new(&pattern, Reading::Name).unwrap();
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(glob.matches(&text), slow_match(&chars(&pattern), &chars(&text)));
    }

    #[test]
    fn a_loose_path_covers_whatever_a_path_covers(pattern in "[ab*?/{},\\[\\]!\\\\]{1,10}", text in "[ab/]{0,6}") {
        if let Ok(glob) = Glob::new(&pattern, Reading::Path) {
            let loose = Glob::new(&pattern, Reading::LoosePath).unwrap();
            prop_assert!(!glob.matches(&text) || loose.matches(&text), "{} {}", pattern, text);
        }
    }

    #[test]
    fn compiling_and_matching_anything_ends(pattern in "\\PC{0,40}", text in "\\PC{0,40}") {
        for reading in [Reading::Name, Reading::Path, Reading::LoosePath] {
            let _ = Glob::new(&pattern, reading).map(|glob| glob.matches(&text));
        }
    }

    #[test]
    fn a_path_that_is_taken_has_no_way_out(path in "[a./\\\\~:]{0,12}") {
        if let Ok(inside) = InsidePath::parse(&path) {
            prop_assert!(!inside.as_str().starts_with('/'));
            prop_assert!(inside.as_str().split(['/', '\\']).all(|part| part != ".."));
            prop_assert_eq!(InsidePath::parse(inside.as_str()).unwrap(), inside);
        }
    }

    #[test]
    fn a_host_that_is_spelled_is_read_back_the_same(text in "[0-9a-fx.:\\[\\]A-C]{1,20}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()).unwrap(), host);
        }
    }

    #[test]
    fn a_budget_is_never_exceeded_by_work_that_keeps_to_its_reservation(
        limit in 0u64..1000,
        work in vec((0u64..400, 0.0f64..=1.0, any::<bool>()), 0..40),
    ) {
        let mut budgets = Budgets::new([(Resource::Money, limit)]);
        let mut open = Vec::new();
        for (asked, part, settle_first) in work {
            if settle_first && let Some((reservation, actual)) = open.pop() {
                let settled = budgets.settle(reservation, &[(Resource::Money, actual)]);
                prop_assert_eq!(settled.overdrawn, vec![]);
            }
            if let Ok(reservation) = budgets.reserve(&[(Resource::Money, asked)]) {
                open.push((reservation, (asked as f64 * part) as u64));
            }
            let balance = budgets.balance(Resource::Money);
            prop_assert_eq!(Some(limit), balance.remaining.map(|left| balance.spent + balance.reserved + left));
        }
    }

    #[test]
    fn a_bucket_never_gives_more_than_burst_and_rate(
        tokens in 1u32..20, period_millis in 1u32..50, burst in 1u32..10,
        asks in vec((0u64..30, 1u32..4), 1..60),
    ) {
        let mut bucket = Bucket::new(Rate { tokens, period_millis, burst });
        let (mut now, mut taken) = (0, 0u64);
        for (pause, count) in asks {
            now += pause;
            if bucket.take(Millis(now), count).is_ok() {
                taken += u64::from(count);
            }
            let most = u64::from(burst) + now * u64::from(tokens) / u64::from(period_millis);
            prop_assert!(taken <= most, "{taken} of {most} after {now} ms");
        }
    }

    #[test]
    fn a_number_is_read_back_as_it_was(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        if let Some(text) = ecmascript(number) {
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
        }
    }

    #[test]
    fn canonical_text_means_the_same_and_is_its_own_canonical_text(value in json_value()) {
        for spelling in [Spelling::Rfc8785, Spelling::ByteOrder] {
            let text = canonical(&value, spelling).unwrap();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical(&read, spelling).unwrap(), text);
        }
    }

    #[test]
    fn the_quick_way_to_write_a_record_gives_the_same_bytes(
        texts in prop::collection::btree_map("[a-z]{1,6}", any::<String>(), 0..6),
        counts in prop::collection::btree_map("[A-Z]{1,6}", 0u64..=1 << 53, 0..4),
        ts in 0u64..=1 << 53,
    ) {
        let mut members: Vec<(&str, Scalar<'_>)> =
            texts.iter().map(|(name, text)| (name.as_str(), Scalar::Text(text))).collect();
        members.extend(counts.iter().map(|(name, count)| (name.as_str(), Scalar::Count(*count))));
        members.sort_by_key(|(name, _)| *name);
        let mut record = Map::new();
        record.extend(texts.iter().map(|(name, text)| (name.clone(), json!(text))));
        record.extend(counts.iter().map(|(name, count)| (name.clone(), json!(count))));

        let chain = Chain::after(Head { seq: 7, digest: outrigger_policy::Digest::of(b"x") });
        let mut out = "kept".to_owned();
        match chain.next(Millis(ts), &record) {
            Ok(line) => {
                let head = chain.next_flat(Millis(ts), &members, &mut out).unwrap();
                prop_assert_eq!(head, line.head);
                prop_assert_eq!(&out, &format!("kept{}", line.text));
                prop_assert_eq!(read(line.text.as_bytes()).unwrap().seq, 8);
            }
            Err(AppendError::Reserved { name }) => {
                prop_assert_eq!(chain.next_flat(Millis(ts), &members, &mut out), Err(AppendError::Reserved { name }));
                prop_assert_eq!(&out, "kept");
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn any_single_byte_edit_of_a_trail_is_pinpointed(count in 1usize..8, at in any::<prop::sample::Index>(), byte: u8) {
        let mut chain = Chain::after(Head::EMPTY);
        let mut text = Vec::new();
        for n in 0..count {
            let record = json!({"ext": "org.example", "n": n * 10, "ok": n % 2 == 0, "to": ["é", null]});
            let line = chain.append(Millis(1_700_000_000_000), record.as_object().unwrap()).unwrap();
            text.extend_from_slice(line.text.as_bytes());
            text.push(b'\n');
        }
        let at = at.index(text.len());
        let edited_line = 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
        prop_assume!(text[at] != byte);
        text[at] = byte;

        let lines: Vec<&[u8]> = text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n').collect();
        let broken = verify(lines, Head::EMPTY, Some(chain.head())).unwrap_err();
        prop_assert_eq!(broken.line, edited_line, "{}", broken);
    }
}
