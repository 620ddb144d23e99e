//! The audit trail: what a tamperer can do to it, and what the check says.

use outrigger_policy::audit::{
    AppendError, Broken, Chain, Coalescer, Denial, Fault, Head, MAX_HELD_DENIALS, MAX_LINE_BYTES, Offer,
    Repeated, Scalar, Threshold, Verified, verify,
};
use outrigger_policy::{Digest, Millis, Reason, Subject};
use serde_json::{Map, Value, json};

fn record(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A trail of `count` lines, and its head.
fn trail(count: u64) -> (Vec<String>, Head) {
    let mut chain = Chain::after(Head::EMPTY);
    let line = |at: u64| {
        let record = record(json!({"ext": "org.example", "decision": "deny", "n": at * 7}));
        chain.append(Millis(1000 + at), &record).unwrap().text
    };
    let lines = (1..=count).map(line).collect();
    (lines, chain.head())
}

fn altered(line: usize, why: &'static str) -> Result<Verified, Broken> {
    Err(Broken { line, fault: Fault::Altered { why } })
}

const NEXT: &str = "its hash is not the one that the next line names";
const BEFORE: &str = "it does not name the hash of the line before it";

#[test]
fn a_line_is_canonical_and_names_the_hash_of_the_line_before_it() {
    let (lines, head) = trail(2);
    insta::assert_snapshot!(lines[0], @r#"{"decision":"deny","ext":"org.example","n":7,"prev":"0000000000000000000000000000000000000000000000000000000000000000","seq":1,"ts":1001}"#);
    let second: Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!(second["prev"], Digest::of(lines[0].as_bytes()).to_string());
    assert_eq!(head, Head { seq: 2, digest: Digest::of(lines[1].as_bytes()) });
}

#[test]
fn a_whole_trail_is_verified_from_its_beginning_and_from_any_line() {
    let (lines, head) = trail(5);
    for known in [None, Some(head)] {
        assert_eq!(verify(&lines, Head::EMPTY, known), Ok(Verified { head, lines: 5 }));
    }
    let middle = Head { seq: 3, digest: Digest::of(lines[2].as_bytes()) };
    assert_eq!(verify(&lines[3..], middle, Some(head)), Ok(Verified { head, lines: 2 }));
    assert_eq!(verify(&lines, Head::EMPTY, Some(middle)), Ok(Verified { head, lines: 5 }), "it grew since");
    assert_eq!(verify::<&str>([], Head::EMPTY, None), Ok(Verified { head: Head::EMPTY, lines: 0 }));
}

#[test]
fn an_altered_line_is_pinpointed() {
    let (lines, head) = trail(5);
    for at in 0..5 {
        let mut forged = lines.clone();
        forged[at] = forged[at].replace("deny", "allow");
        let why = if at == 4 { "its hash is not that of the known head" } else { NEXT };
        assert_eq!(verify(&forged, Head::EMPTY, Some(head)), altered(at + 1, why), "line {}", at + 1);
    }
}

#[test]
fn an_altered_link_or_number_is_pinpointed() {
    let (lines, head) = trail(5);
    for at in 0..5 {
        let mut forged = lines.clone();
        let value: Value = serde_json::from_str(&forged[at]).unwrap();
        forged[at] = forged[at].replace(value["prev"].as_str().unwrap(), &Digest::of(b"x").to_string());
        assert_eq!(verify(&forged, Head::EMPTY, Some(head)), altered(at + 1, BEFORE), "line {}", at + 1);

        let mut forged = lines.clone();
        forged[at] = forged[at].replace(&format!("\"seq\":{}", at + 1), "\"seq\":77");
        let why = "its sequence number is wrong";
        assert_eq!(verify(&forged, Head::EMPTY, Some(head)), altered(at + 1, why), "line {}", at + 1);
    }
}

#[test]
fn a_line_that_is_no_record_is_pinpointed() {
    let (lines, head) = trail(3);
    let padded = format!("{} ", lines[1]);
    let doubled = lines[1].replace("\"n\":14", "\"n\":13,\"n\":14");
    let long = format!("\"{}\"", "x".repeat(MAX_LINE_BYTES));
    let cases = [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        (padded.as_str(), "it is not in canonical form"),
        (doubled.as_str(), "it is not in canonical form"),
        ("[]", "it has no sequence number"),
        ("{\"seq\":2}", "it names no previous hash"),
        (long.as_str(), "the line is longer than any record"),
    ];
    for (line, why) in cases {
        let forged = [lines[0].as_str(), line, lines[2].as_str()];
        assert_eq!(verify(forged, Head::EMPTY, Some(head)), altered(2, why), "{line:.40}");
    }
    let forged: [&[u8]; 1] = [b"\xff"];
    assert_eq!(verify(forged, Head::EMPTY, None), altered(1, "it is not UTF-8"));
}

#[test]
fn removed_lines_are_named() {
    let (lines, head) = trail(6);
    let removed = |range: std::ops::Range<usize>| {
        let mut left = lines.clone();
        left.drain(range);
        verify(&left, Head::EMPTY, Some(head))
    };
    let broken = |line, first, last| Err(Broken { line, fault: Fault::Removed { first, last } });
    assert_eq!(removed(0..1), broken(1, 1, 1));
    assert_eq!(removed(2..3), broken(3, 3, 3));
    assert_eq!(removed(2..5), broken(3, 3, 5));
}

#[test]
fn reordered_and_repeated_lines_are_found() {
    let (lines, head) = trail(5);
    let mut swapped = lines.clone();
    swapped.swap(1, 3);
    let fault = Fault::Reordered { expected: 2, found: 4 };
    assert_eq!(verify(&swapped, Head::EMPTY, Some(head)), Err(Broken { line: 2, fault }));
    let mut repeated = lines.clone();
    repeated.insert(3, lines[1].clone());
    let fault = Fault::Reordered { expected: 4, found: 2 };
    assert_eq!(verify(&repeated, Head::EMPTY, Some(head)), Err(Broken { line: 4, fault }));
}

#[test]
fn a_trail_that_was_cut_is_found_when_its_head_is_known() {
    let (lines, head) = trail(5);
    let cut = &lines[..3];
    let fault = Fault::Truncated { last: 3, head: 5 };
    assert_eq!(verify(cut, Head::EMPTY, Some(head)), Err(Broken { line: 4, fault }));
    assert_eq!(verify(cut, Head::EMPTY, None).map(|verified| verified.lines), Ok(3), "and only then");
    let fault = Fault::Truncated { last: 0, head: 5 };
    assert_eq!(verify::<&str>([], Head::EMPTY, Some(head)), Err(Broken { line: 1, fault }));
}

#[test]
fn a_trail_that_was_written_anew_is_found_when_its_head_is_known() {
    let (_, head) = trail(3);
    let mut chain = Chain::after(Head::EMPTY);
    let forged: Vec<String> =
        (0..4).map(|at| chain.append(Millis(at), &record(json!({"ok": true}))).unwrap().text).collect();
    let why = "its hash is not that of the known head";
    assert_eq!(verify(&forged, Head::EMPTY, Some(head)), altered(3, why));
}

#[test]
fn a_fault_is_one_sentence() {
    let broken = Broken { line: 3, fault: Fault::Removed { first: 3, last: 5 } };
    assert_eq!(broken.to_string(), "line 3: the records 3 to 5 were removed");
}

#[test]
fn a_record_that_cannot_be_written_leaves_the_chain_as_it_was() {
    let mut chain = Chain::after(Head::EMPTY);
    for name in ["seq", "ts", "prev"] {
        let error = chain.append(Millis(0), &record(json!({name: 1}))).unwrap_err();
        assert_eq!(error, AppendError::Reserved { name });
    }
    assert!(matches!(
        chain.append(Millis(0), &record(json!({"n": u64::MAX}))),
        Err(AppendError::Canonical(_))
    ));
    let frame = chain.next(Millis(0), &record(json!({"s": ""}))).unwrap().text.len();
    let filled = |length| record(json!({"s": "x".repeat(length)}));
    let error = chain.append(Millis(0), &filled(MAX_LINE_BYTES - frame + 1)).unwrap_err();
    assert_eq!(error, AppendError::TooLong { length: MAX_LINE_BYTES + 1 });
    assert_eq!(chain.head(), Head::EMPTY);
    assert_eq!(chain.append(Millis(0), &filled(MAX_LINE_BYTES - frame)).unwrap().text.len(), MAX_LINE_BYTES);
}

#[test]
fn a_line_that_was_not_written_leaves_no_gap() {
    let mut chain = Chain::after(Head::EMPTY);
    let lost = chain.next(Millis(0), &record(json!({"lost": true}))).unwrap();
    let kept = chain.next(Millis(1), &record(json!({"lost": false}))).unwrap();
    assert_eq!((lost.head.seq, kept.head.seq), (1, 1));
    chain.commit(&kept);
    assert_eq!(
        verify([&kept.text], Head::EMPTY, Some(chain.head())),
        Ok(Verified { head: kept.head, lines: 1 })
    );
}

const THRESHOLD: Threshold = Threshold { written: 2, window_millis: 100 };

fn denial(object: &str) -> Denial {
    Denial { subject: Subject::new("org.example"), object: object.into(), reason: Reason::NotGranted }
}

#[test]
fn repeated_denials_become_one_record_with_a_count() {
    let mut coalescer = Coalescer::new(THRESHOLD);
    let offers: Vec<Offer> = (0..5).map(|at| coalescer.offer(Millis(at * 10), &denial("send"))).collect();
    assert_eq!(offers, [Offer::Write, Offer::Write, Offer::Held, Offer::Held, Offer::Held]);
    assert_eq!(
        coalescer.offer(Millis(50), &denial("list")),
        Offer::Write,
        "another denial is another matter"
    );
    assert_eq!(coalescer.next_due(), Some(Millis(100)));
    assert_eq!(coalescer.due(Millis(99)), []);
    let expected = Repeated { denial: denial("send"), repeat: 3, first: Millis(20), last: Millis(40) };
    assert_eq!(coalescer.due(Millis(100)), [expected]);
    assert_eq!(coalescer.due(Millis(100)), [], "it was due once");
    assert_eq!(coalescer.offer(Millis(101), &denial("send")), Offer::Write, "a new window begins");
}

#[test]
fn a_window_that_is_over_begins_anew() {
    let mut coalescer = Coalescer::new(THRESHOLD);
    let offers: Vec<Offer> = (0..6).map(|at| coalescer.offer(Millis(at * 60), &denial("send"))).collect();
    assert_eq!(offers, [Offer::Write; 6], "three a window would be too many, two are not");
}

#[test]
fn nothing_held_is_lost_when_the_caller_is_late_or_the_program_ends() {
    let mut coalescer = Coalescer::new(THRESHOLD);
    for at in [0, 1, 2, 500, 501] {
        coalescer.offer(Millis(at), &denial("send"));
    }
    let expected = Repeated { denial: denial("send"), repeat: 3, first: Millis(2), last: Millis(501) };
    assert_eq!(coalescer.finish(), [expected]);
    assert_eq!((coalescer.finish(), coalescer.next_due()), (vec![], None));
}

#[test]
fn a_threshold_of_zero_only_counts() {
    let mut coalescer = Coalescer::new(Threshold { written: 0, window_millis: 100 });
    assert_eq!(coalescer.offer(Millis(0), &denial("a")), Offer::Held);
    assert_eq!(coalescer.offer(Millis(1), &denial("a")), Offer::Held);
    assert_eq!(coalescer.due(Millis(100))[0].repeat, 2);
}

#[test]
fn a_flood_of_different_denials_is_written_and_not_remembered() {
    let mut coalescer = Coalescer::new(THRESHOLD);
    for at in 0..MAX_HELD_DENIALS {
        coalescer.offer(Millis(0), &denial(&at.to_string()));
    }
    let beyond = [0; 3].map(|_| coalescer.offer(Millis(0), &denial("one more")));
    assert_eq!(beyond, [Offer::Write; 3], "one too many is not counted");
    coalescer.due(Millis(100));
    let fresh = [0; 3].map(|_| coalescer.offer(Millis(100), &denial("one more")));
    assert_eq!(fresh, [Offer::Write, Offer::Write, Offer::Held], "there is room again");
}

#[test]
fn a_quick_record_that_cannot_be_written_leaves_nothing_behind() {
    let chain = Chain::after(Head::EMPTY);
    let mut out = String::new();
    let mut next = |members: &[(&str, Scalar<'_>)]| chain.next_flat(Millis(1), members, &mut out);
    let one = Scalar::Count(1);
    assert_eq!(next(&[("b", one), ("a", one)]), Err(AppendError::Disorder { name: "a".into() }));
    assert_eq!(next(&[("a", one), ("a", one)]), Err(AppendError::Disorder { name: "a".into() }));
    assert_eq!(next(&[("é", one)]), Err(AppendError::Disorder { name: "é".into() }));
    assert_eq!(next(&[("seq", one)]), Err(AppendError::Reserved { name: "seq" }));
    assert!(matches!(next(&[("a", Scalar::Count((1 << 53) + 1))]), Err(AppendError::Canonical(_))));
    let long = "x".repeat(MAX_LINE_BYTES);
    assert!(matches!(next(&[("a", Scalar::Text(&long))]), Err(AppendError::TooLong { .. })));
    assert_eq!(out, "");
}
