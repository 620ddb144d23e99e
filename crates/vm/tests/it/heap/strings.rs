//! Strings against vectors of code units.

use super::Rig;
use outrigger_vm::heap::{AllocError, MAX_LENGTH, Pace, Str, StrId};
use outrigger_vm::value::Value;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    New(Vec<u16>),
    Concat(usize, usize),
    Substring(usize, u32, u32),
    Flatten(usize),
    Intern(usize),
    Compare(usize, usize),
}

fn units() -> impl Strategy<Value = Vec<u16>> {
    let narrow = proptest::collection::vec(0..256u16, 0..60);
    let wide = proptest::collection::vec(prop_oneof![8 => 0..256u16, 1 => any::<u16>()], 0..60);
    prop_oneof![3 => narrow, 1 => wide]
}

fn op() -> impl Strategy<Value = Op> {
    let n = any::<usize>;
    prop_oneof![
        2 => units().prop_map(Op::New),
        8 => (n(), n()).prop_map(|(a, b)| Op::Concat(a, b)),
        4 => (n(), 0..200u32, 0..200u32).prop_map(|(a, s, e)| Op::Substring(a, s, e)),
        2 => n().prop_map(Op::Flatten),
        1 => n().prop_map(Op::Intern),
        2 => (n(), n()).prop_map(|(a, b)| Op::Compare(a, b)),
    ]
}

fn replay(pace: Pace, ops: &[Op]) {
    let mut rig = Rig::new(pace);
    let mut all: Vec<(StrId, Vec<u16>)> = vec![(outrigger_vm::heap::atoms::EMPTY, Vec::new())];
    for op in ops {
        let pick = |n: usize| all[n % all.len()].clone();
        match op {
            Op::New(units) => {
                let id = rig.run(|heap| heap.new_utf16(units));
                all.push((id, units.clone()));
            }
            Op::Concat(a, b) => {
                let ((a, text), (b, more)) = (pick(*a), pick(*b));
                // The model copies; keep doubling in check.
                if text.len() + more.len() < 20_000 {
                    let id = rig.run(|heap| heap.concat(a, b));
                    all.push((id, [text, more].concat()));
                }
            }
            Op::Substring(a, start, end) => {
                let (id, text) = pick(*a);
                let part = rig.run(|heap| heap.substring(id, *start, *end));
                let end = (*end as usize).min(text.len());
                all.push((part, text[(*start as usize).min(end)..end].to_vec()));
            }
            Op::Flatten(a) => rig.run(|heap| heap.flatten(pick(*a).0)),
            Op::Intern(a) => {
                let (id, text) = pick(*a);
                let atom = rig.run(|heap| heap.intern(id));
                rig.roots.push(Value::string(atom));
                let copy = rig.run(|heap| heap.new_utf16(&text));
                assert_eq!(rig.run(|heap| heap.intern(copy)), atom, "equal texts are one atom");
                all.push((atom, text));
            }
            Op::Compare(a, b) => {
                let ((a, text), (b, other)) = (pick(*a), pick(*b));
                assert_eq!(rig.run(|heap| heap.compare_strings(a, b)), text.cmp(&other));
                assert_eq!(rig.run(|heap| heap.equal_strings(a, b)), text == other);
            }
        }
        rig.roots = all.iter().map(|&(id, _)| Value::string(id)).collect();
        let (id, text) = all.last().expect("the empty string").clone();
        let mut parts = Vec::new();
        rig.heap.each_part(id, |part| parts.extend(part.units()));
        assert_eq!(parts, text);
        assert_eq!(rig.heap.string_length(id) as usize, text.len());
        rig.check_accounts();
    }
    for (id, text) in all {
        rig.run(|heap| heap.flatten(id));
        let flat = rig.heap.str(id);
        assert_eq!(flat.to_utf16(), text);
        assert_eq!(
            matches!(flat, Str::Latin1(_)),
            text.iter().all(|&u| u < 256),
            "narrow exactly when possible"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strings_behave_like_vectors_of_code_units(ops in proptest::collection::vec(op(), 0..60)) {
        replay(Pace::Adaptive, &ops);
    }

    #[test]
    fn strings_survive_a_collection_before_every_allocation(ops in proptest::collection::vec(op(), 0..25)) {
        replay(Pace::Torture, &ops);
    }
}

#[test]
fn a_rope_of_200000_pieces_flattens_without_recursion_from_either_side() {
    for prepend in [false, true] {
        let mut rig = Rig::new(Pace::Adaptive);
        let piece = rig.run(|heap| heap.new_latin1(&[b'x'; 300]));
        rig.roots.push(Value::string(piece));
        let mut rope = piece;
        for _ in 0..200_000 {
            rig.roots[0] = Value::string(rope);
            rope = rig.run(|heap| if prepend { heap.concat(piece, rope) } else { heap.concat(rope, piece) });
            rig.roots = vec![Value::string(rope), Value::string(piece)];
        }
        rig.run(|heap| heap.flatten(rope));
        assert_eq!(rig.heap.str(rope).len(), 300 * 200_001);
        rig.check_accounts();
    }
}

#[test]
fn doubling_ends_at_the_longest_string_and_not_in_memory() {
    let mut rig = Rig::new(Pace::Adaptive);
    let mut id = rig.run(|heap| heap.new_latin1(b"0123456789abcdef"));
    rig.roots.push(Value::string(id));
    let before = rig.heap.bytes();
    let error = loop {
        match rig.heap.concat(id, id) {
            Ok(longer) => id = longer,
            Err(error) => break error,
        }
    };
    assert_eq!(error, AllocError::TooLong);
    assert!(rig.heap.string_length(id) as usize * 2 > MAX_LENGTH);
    // Half a gigabyte of text: a few kilobytes are copied at the start, from there on ropes share their halves.
    assert!(rig.heap.bytes() < before + 32_000, "{}", rig.heap.bytes() - before);
}

#[test]
fn text_survives_the_way_in_and_out() {
    let mut rig = Rig::new(Pace::Adaptive);
    for text in ["", "a", "ascii only, and long enough not to fit", "é", "naïve café", "日本語", "🦀 crab"]
    {
        let id = rig.run(|heap| heap.new_string(text));
        assert_eq!(rig.heap.str(id).to_string_lossy(), text);
    }
    let lone = rig.run(|heap| heap.new_utf16(&[0x61, 0xD800]));
    assert_eq!(rig.heap.str(lone).to_string_lossy(), "a\u{FFFD}");
    assert_eq!(rig.heap.str(lone).to_utf16(), [0x61, 0xD800]);
}
