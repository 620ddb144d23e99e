//! The language's equalities, `typeof` and truthiness, case by case.

use super::Rig;
use num_bigint::BigInt;
use outrigger_vm::heap::{Flags, Pace};
use outrigger_vm::value::Value;

/// Two of each value that could be confused, made apart from each other.
fn pairs(rig: &mut Rig) -> Vec<(&'static str, Value, Value)> {
    let mut text = |s: &str| Value::string(rig.run(|heap| heap.new_string(s)));
    let short = (text("ab"), text("ab"));
    let wide = (text("日本"), text("日本"));
    let long = text("a text that is long enough to be boxed, and then some");
    let rope = rig.run(|heap| {
        let a = heap.new_string("a text that is long enough to be boxed,")?;
        let b = heap.new_string(" and then some")?;
        heap.concat(a, b).map(Value::string)
    });
    let mut big = |n: i64| Value::bigint(rig.run(|heap| heap.new_bigint(BigInt::from(n))));
    let bigs = (big(7), big(7));
    let objects = (Value::object(rig.object()), Value::object(rig.object()));
    vec![
        ("short", short.0, short.1),
        ("wide", wide.0, wide.1),
        ("long", long, rope),
        ("bigint", bigs.0, bigs.1),
        ("int", Value::int(7), Value::int(7)),
        ("unnormalised", Value::int(7), Value::double(7.0)),
        ("null", Value::NULL, Value::NULL),
        ("zero", Value::ZERO, Value::number(-0.0)),
        ("nan", Value::NAN, Value::NAN),
        ("objects", objects.0, objects.1),
        ("kinds", Value::int(7), bigs.0),
        ("nullish", Value::NULL, Value::UNDEFINED),
        ("texts", short.0, wide.0),
    ]
}

#[test]
fn the_three_equalities_differ_only_on_zero_and_nan() {
    let mut rig = Rig::new(Pace::Adaptive);
    for (name, a, b) in pairs(&mut rig) {
        let answers = (
            rig.run(|heap| heap.strict_equals(a, b)),
            rig.run(|heap| heap.same_value(a, b)),
            rig.run(|heap| heap.same_value_zero(a, b)),
        );
        let expected = match name {
            "zero" => (true, false, true),
            "nan" => (false, true, true),
            "objects" | "kinds" | "nullish" | "texts" => (false, false, false),
            _ => (true, true, true),
        };
        assert_eq!(answers, expected, "{name}");
    }
}

#[test]
fn typeof_and_truthiness_know_every_kind() {
    let mut rig = Rig::new(Pace::Adaptive);
    let plain = rig.object();
    let function = rig.object();
    rig.heap.add_flags(function, Flags::CALLABLE);
    let array = rig.array(&[]);
    let zero = rig.run(|heap| heap.new_bigint(BigInt::ZERO));
    let one = rig.run(|heap| heap.new_bigint(BigInt::from(1)));
    let text = rig.run(|heap| heap.new_string("0"));
    for (value, kind, truthy) in [
        (Value::UNDEFINED, "undefined", false),
        (Value::NULL, "object", false),
        (Value::TRUE, "boolean", true),
        (Value::FALSE, "boolean", false),
        (Value::ZERO, "number", false),
        (Value::number(-0.0), "number", false),
        (Value::NAN, "number", false),
        (Value::int(-1), "number", true),
        (Value::number(0.1), "number", true),
        (Value::string(outrigger_vm::heap::atoms::EMPTY), "string", false),
        (Value::string(text), "string", true),
        (Value::symbol(outrigger_vm::heap::symbols::ITERATOR), "symbol", true),
        (Value::bigint(zero), "bigint", false),
        (Value::bigint(one), "bigint", true),
        (Value::object(plain), "object", true),
        (Value::array(array), "object", true),
        (Value::object(function), "function", true),
    ] {
        assert!(rig.heap.str(rig.heap.type_of(value)).is_ascii(kind), "{value:?}");
        assert_eq!(rig.heap.truthy(value), truthy, "{value:?}");
    }
}
