//! Values on their way out.

use super::{INSTRUCTIONS, LIMITS, export, export_with, machine, nested, show, text};
use outrigger_vm::boundary::{BoundaryError, Plain};
use outrigger_vm::exec::{Limit, Limits, Step};
use outrigger_vm::heap::OverLimit;

/// Each script and its value, shown; or why it cannot cross.
fn check(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for &(source, expected) in cases {
        let found = match export(source) {
            Ok(plain) => show(&plain),
            Err(error) => error.to_string(),
        };
        if found != expected {
            wrong.push_str(&format!("{source}\n  expected {expected}\n  found    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn plain_data_crosses_as_it_is() {
    check(&[
        ("undefined", "undefined"),
        ("null", "null"),
        ("true", "true"),
        ("42", "42"),
        ("-0", "-0"),
        ("NaN", "NaN"),
        ("-Infinity", "-inf"),
        ("0.1", "0.1"),
        ("'häß→😀'", "\"häß→😀\""),
        (
            "'a'.repeat(30) + '\\ud83d' + '\\ude00'.repeat(1) + 'é'.repeat(3)",
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa😀ééé\"",
        ),
        ("[1, , 'x', undefined, [], {}]", "[1, -, \"x\", undefined, [], {}]"),
        ("const a = [1, 2]; a.length = 4; a", "[1, 2, -, -]"),
        ("({ b: 1, a: { c: [null] } })", "{b: 1, a: {c: [null]}}"),
        (
            "({ b: 1, 10: 2, a: 3, 9: 4, '-1': 5, 4294967296: 6 })",
            "{9: 4, 10: 2, b: 1, a: 3, -1: 5, 4294967296: 6}",
        ),
        ("({ ['__proto__']: 1 })", "{__proto__: 1}"),
        ("Object.create(null)", "{}"),
        ("const o = Object.create(null); o.x = 1; [o, { x: 2 }]", "[{x: 1}, {x: 2}]"),
        ("Object.freeze([1, Object.freeze({ a: 2 })])", "[1, {a: 2}]"),
        ("const a = [1]; a.extra = 2; a", "[1]"),
        ("'abc'.match(/b/)", "[\"b\"]"),
        ("({ [Symbol('s')]: 1, x: 2 })", "{x: 2}"),
        ("Object.defineProperty({ x: 1 }, 'y', { value: 2 })", "{x: 1}"),
        ("Object.defineProperty({ x: 1 }, 'y', { get() { throw 1 } })", "{x: 1}"),
        (
            "const o = {}; for (let i = 0; i < 300; i++) o['k' + i] = i; delete o.k1; Object.keys(o).length === 299 && [o.k0, o.k299]",
            "[0, 299]",
        ),
        ("JSON.parse('{\"__proto__\": [1]}')", "{__proto__: [1]}"),
    ]);
}

#[test]
fn a_large_object_crosses_with_all_its_keys_in_order() {
    let value = export("const o = {}; for (let i = 0; i < 2000; i++) o['k' + i] = i; delete o.k7; o")
        .expect("it is plain");
    let Plain::Object(members) = &value else { panic!("{value:?}") };
    assert_eq!(members.len(), 1999);
    let expected = (0..2000).filter(|&i| i != 7).map(|i| (format!("k{i}"), Plain::Number(f64::from(i))));
    assert!(members.iter().cloned().eq(expected));
}

#[test]
fn what_is_not_plain_is_refused_with_its_reason() {
    const FUNCTIONS: &str = "functions cannot cross the structured host boundary";
    const COLLECTIONS: &str = "Map and Set values cannot cross the structured host boundary";
    check(&[
        ("[1n]", "BigInt values cannot cross the structured host boundary"),
        ("[Symbol()]", "symbols cannot cross the structured host boundary"),
        ("new Map()", COLLECTIONS),
        ("({ s: new Set([1]) })", COLLECTIONS),
        ("new WeakMap()", COLLECTIONS),
        ("() => 1", FUNCTIONS),
        ("[class A {}]", FUNCTIONS),
        ("ask", FUNCTIONS),
        ("[Promise.resolve(1)]", FUNCTIONS),
        ("[1].values()", FUNCTIONS),
        ("(function* () {})()", FUNCTIONS),
        ("new Proxy(() => 1, {})", FUNCTIONS),
        (
            "new Date(0)",
            "Date values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "[/a/]",
            "RegExp values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "new Error('x')",
            "Error values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "new TypeError('x')",
            "Error values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "Object(1)",
            "Number object values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "globalThis",
            "globalThis values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "new Proxy({}, {})",
            "Proxy values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "new Proxy([], {})",
            "Proxy values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "new Uint8Array(2)",
            "typed array values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "(function () { return arguments })()",
            "arguments values cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "class Point { x = 1 } new Point()",
            "instances of Point cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "class List extends Array {} [new List()]",
            "instances of List cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "Object.create({})",
            "objects with a prototype of their own cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        (
            "Object.create(new Proxy({}, {}))",
            "objects with a prototype of their own cannot cross the structured host boundary; only plain objects and arrays can",
        ),
        ("'\\ud800'", "strings with a lone surrogate cannot cross the structured host boundary"),
        ("({ ['x\\udc00']: 1 })", "strings with a lone surrogate cannot cross the structured host boundary"),
        ("const o = {}; o.self = [o]; o", "cyclic values cannot cross the structured host boundary"),
        ("const o = {}; [o, { o }]", "shared references cannot cross the structured host boundary"),
        ("const s = 'shared text is no reference'; [s, s].length", "2"),
    ]);
}

#[test]
fn a_getter_is_refused_and_never_runs() {
    for source in [
        "({ a: 1, get x() { globalThis.ran = true; return 1 } })",
        "({ set x(v) {} })",
        "Object.defineProperty([1, 2], 1, { get() { globalThis.ran = true } })",
    ] {
        let mut vm = machine(LIMITS, source);
        let Step::Completed(value) = vm.run() else { panic!("{source}") };
        let error = vm.export(value).expect_err(source);
        assert!(matches!(error, BoundaryError::Accessor(_)), "{source}: {error}");
        assert!(error.to_string().contains("has a getter or setter"), "{error}");
        vm.load("globalThis.ran === undefined").expect("it loads");
        let Step::Completed(value) = vm.run() else { panic!("{source}") };
        assert_eq!(vm.export(value), Ok(Plain::Bool(true)), "{source}");
    }
}

#[test]
fn values_may_be_128_deep_and_no_deeper() {
    let source = |n| format!("let a = null; for (let i = 0; i < {n}; i++) a = [a]; a");
    assert_eq!(export(&source(128)), Ok(nested(128)));
    assert_eq!(export(&source(129)), Err(BoundaryError::Nesting));
    let deep = Limits {
        instructions: 100_000_000,
        heap: outrigger_vm::heap::Limits { bytes: 1 << 30, records: 8 << 20 },
        ..LIMITS
    };
    assert_eq!(export_with(deep, &source(1_000_000)), Err(BoundaryError::Nesting));
    let objects = "let o = null; for (let i = 0; i < 1000000; i++) o = { o }; o";
    assert_eq!(export_with(deep, objects), Err(BoundaryError::Nesting));
}

#[test]
fn every_node_and_every_256_bytes_of_text_cost_an_instruction() {
    for (source, cost) in [
        ("1", 1),
        ("'x'.repeat(255)", 1),
        ("'x'.repeat(256)", 2),
        ("'x'.repeat(25600)", 101),
        ("[1, 2, 3]", 4),
        ("const a = []; a.length = 100; a", 101),
        ("[[], [], 1]", 4),
    ] {
        let mut vm = machine(LIMITS, source);
        let Step::Completed(value) = vm.run() else { panic!("{source}") };
        let before = vm.instructions_used();
        vm.export(value).expect("it is plain");
        assert_eq!(vm.instructions_used() - before, cost, "{source}");

        // With exactly so much left it crosses, with one less it does not, and the run is over.
        let mut vm = machine(LIMITS, source);
        let Step::Completed(value) = vm.run() else { panic!("{source}") };
        let used = vm.instructions_used();
        vm.set_limits(Limits { instructions: used + cost, ..LIMITS }).expect("it fits");
        vm.export(value).expect("it is paid for");
        let mut vm = machine(LIMITS, source);
        let Step::Completed(value) = vm.run() else { panic!("{source}") };
        vm.set_limits(Limits { instructions: used + cost - 1, ..LIMITS }).expect("it fits");
        assert_eq!(vm.export(value), Err(INSTRUCTIONS), "{source}");
        assert_eq!(vm.run(), Step::Limit(Limit::Instructions));
    }
}

#[test]
fn an_array_of_four_billion_holes_is_refused_before_anything_is_made_of_it() {
    assert_eq!(
        export("const a = []; a.length = 4e9; a"),
        Err(BoundaryError::Limit(Limit::Heap(OverLimit::Bytes { limit: 8 << 20 })))
    );
    assert_eq!(export("const a = []; a.length = 2 ** 31 - 1; a"), Err(INSTRUCTIONS));
    let rich = Limits { instructions: u64::MAX / 2, ..LIMITS };
    let full = Err(BoundaryError::Limit(Limit::Heap(OverLimit::Bytes { limit: 8 << 20 })));
    assert_eq!(export_with(rich, "const a = []; a.length = 2 ** 31 - 1; a"), full);
    assert_eq!(export_with(rich, "const a = []; a[2 ** 30] = 1; a"), full);
    let Ok(Plain::Array(ref sparse)) = export("const a = []; a[100000] = 1; a") else {
        panic!("it is small enough")
    };
    assert_eq!(
        (sparse.len(), &sparse[99_999], &sparse[100_000]),
        (100_001, &Plain::Hole, &Plain::Number(1.0))
    );
}

#[test]
fn a_million_elements_cross_if_they_are_paid_for() {
    let limits = Limits {
        instructions: 50_000_000,
        heap: outrigger_vm::heap::Limits { bytes: 64 << 20, records: 1 << 20 },
        ..LIMITS
    };
    let source = "const a = []; for (let i = 0; i < 1000000; i++) a.push(i); a";
    let Ok(Plain::Array(ref wide)) = export_with(limits, source) else { panic!("it fits") };
    assert_eq!(wide.len(), 1_000_000);
    assert_eq!(wide.last(), Some(&Plain::Number(999_999.0)));
}

#[test]
fn text_may_not_become_much_more_than_the_heap_it_comes_from() {
    let rich = Limits { instructions: u64::MAX / 2, ..LIMITS };
    // A rope says a lot and takes little: 32 MiB is four times the heap, and one unit more is too much.
    let rope = |extra: &str| format!("let s = 'x'; for (let i = 0; i < 25; i++) s += s; s.slice(8){extra}");
    let full = Err(BoundaryError::Limit(Limit::Heap(OverLimit::Bytes { limit: 8 << 20 })));
    let big = "let s = 'x'; for (let i = 0; i < 24; i++) s += s; s";
    let Ok(Plain::String(ref s)) = export_with(rich, big) else { panic!("16 MiB are within four heaps") };
    assert_eq!(s.len(), 1 << 24);
    let shared =
        |n| format!("let s = 'x'.repeat(1 << 20); const a = []; for (let i = 0; i < {n}; i++) a.push(s); a");
    assert!(export_with(rich, &shared(31)).is_ok());
    assert_eq!(export_with(rich, &shared(32)), full);
    assert_eq!(export_with(rich, &rope(" + '12345678'").replace(".slice(8)", "")), full);
    // A name that a thousand objects share is written a thousand times.
    let named =
        "const k = 'k'.repeat(100000); const a = []; for (let i = 0; i < 1000; i++) a.push({ [k]: i }); a";
    assert_eq!(export_with(rich, named), full);
    assert_eq!(export("'é'.repeat(1000)"), Ok(text(&"é".repeat(1000))));
}
