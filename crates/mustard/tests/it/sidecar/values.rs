//! Structured values: every kind in and out, and what cannot cross.

use serde_json::{Value, json};

use super::kit::{LONG, both, both_cut, number};

#[test]
fn every_kind_of_value_goes_in_and_comes_out_the_same() {
    both(|talk| {
        let values = [
            json!("Undefined"),
            json!("Null"),
            json!({"Bool": true}),
            json!({"Bool": false}),
            json!({"String": ""}),
            json!({"String": "Zürich 💥 \"\\ \n\u{0}\u{2028}"}),
            json!({"Number": {"Finite": 0.0}}),
            json!({"Number": {"Finite": -1.5}}),
            json!({"Number": {"Finite": 1e300}}),
            json!({"Number": {"Finite": 5e-324}}),
            json!({"Number": {"Finite": 9_007_199_254_740_993.0_f64}}),
            json!({"Number": "NaN"}),
            json!({"Number": "Infinity"}),
            json!({"Number": "NegInfinity"}),
            json!({"Number": "NegZero"}),
            json!({"Array": []}),
            json!({"Array": ["Hole", {"Array": ["Null"]}, "Hole"]}),
            json!({"Object": {}}),
            json!({"Object": {"b": "Null", "__proto__": {"Bool": true}, "": {"Object": {}}}}),
        ];
        let inputs = json!({"x": {"Array": values}});
        let said = talk.start("x", json!({"inputs": inputs}));
        assert_eq!(said.value(), &json!({"Array": values}));
        let step = talk.start("ask(x)", json!({"inputs": inputs, "capabilities": ["ask"]}));
        assert_eq!(step.call().1, &json!([{"Array": values}]));
        let said = talk.resume(&step, json!({"type": "value", "value": {"Array": values}}));
        assert_eq!(said.value(), &json!({"Array": values}));
    });
}

#[test]
fn numbers_are_written_as_doubles_and_taken_as_integers() {
    both(|talk| {
        talk.start("x", json!({"inputs": {"x": {"Number": {"Finite": 7}}}})).value();
        let (output, _) = talk.hear_cut();
        let text = String::from_utf8_lossy(&output);
        assert!(text.contains(r#"{"type":"completed","value":{"Number":{"Finite":7.0}}}"#), "{text}");
    });
}

#[test]
fn units_may_be_spelled_as_objects_of_null() {
    both(|talk| {
        let inputs = json!({"a": {"Undefined": null}, "b": {"Null": null}, "c": {"Number": {"NaN": null}}});
        let said = talk.start("`${a} ${b} ${c}`", json!({"inputs": inputs}));
        assert_eq!(said.value(), &json!({"String": "undefined null NaN"}));
    });
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("Null"), |inner, _| json!({"Array": [inner]}))
}

#[test]
fn values_may_be_nested_as_deeply_as_the_engine_allows_and_deeper_ones_are_refused_by_name() {
    both(|talk| {
        for depth in [61, 62, 128] {
            let program = talk.compile("x").id("program_id");
            let mut deep = talk.with_another();
            deep.sent.clone_from(&talk.sent);
            deep.put(&json!({"method": "start", "program_id": program, "options": {"inputs": {"x": nested(depth)}}}), b"");
            // What comes back is deeper than serde_json reads by itself, so it is only looked at as text.
            let (output, end) = deep.hear_cut();
            let text = String::from_utf8_lossy(&output).into_owned();
            assert_eq!((end, text.matches("{\"Array\":[").count()), (Ok(()), depth));
        }
        let said = talk.start("x", json!({"inputs": {"x": nested(129)}}));
        assert_eq!(said.error(), "Runtime: structured host boundary nesting limit exceeded");
        let step = talk.run("ask()", &["ask"]);
        let said = talk.resume(&step, json!({"type": "value", "value": nested(129)}));
        assert_eq!(said.error(), "Runtime: structured host boundary nesting limit exceeded");
        let said = talk.run("let a = null; for (let i = 0; i < 129; i++) a = [a]; a", &[]);
        assert_eq!(said.error(), "Runtime: structured host boundary nesting limit exceeded");
    });
}

#[test]
fn a_hole_outside_of_an_array_is_an_error_of_the_run_and_not_of_the_session() {
    both(|talk| {
        let said = talk.start("x", json!({"inputs": {"x": "Hole"}}));
        assert!(said.error().starts_with("Runtime: ") && said.error().contains("hole"), "{}", said.error());
        talk.compile("1");
    });
}

const UNABLE: [(&str, &str); 12] = [
    ("10n", "BigInt"),
    ("new Map()", "Map and Set"),
    ("new Set()", "Map and Set"),
    ("new Date(0)", "Date"),
    ("() => 1", "functions cannot cross"),
    ("[][Symbol.iterator]()", "functions cannot cross"),
    ("new Error('x')", "Error"),
    ("/x/", "RegExp"),
    ("globalThis", "globalThis"),
    (
        "(() => { const o = {}; o.o = o; return o; })()",
        "cyclic values cannot cross the structured host boundary",
    ),
    (
        "(() => { const o = {}; return [o, o]; })()",
        "shared references cannot cross the structured host boundary",
    ),
    ("new (class Point {})()", "Point"),
];

#[test]
fn what_cannot_cross_ends_a_run_as_its_result() {
    both(|talk| {
        for (expression, words) in UNABLE {
            let said = talk.run(&format!("const value = {expression}; value"), &[]);
            assert!(
                said.error().starts_with("Runtime: ") && said.error().contains(words),
                "{}",
                said.error()
            );
            assert!(!said.error().contains('\n'), "without a traceback: {}", said.error());
        }
    });
}

#[test]
fn what_cannot_cross_is_a_guests_own_error_as_an_argument() {
    both_cut(LONG, |talk| {
        for (expression, words) in UNABLE {
            for call in ["ask(value)", "await (async () => ask(1, value))()"] {
                let source = format!(
                    "const value = {expression}; try {{ {call} }} catch (e) {{ `${{e.name}}: ${{e.message}}` }}"
                );
                let said = talk.run(&source, &["ask"]);
                let text = said.value()["String"].as_str().unwrap();
                assert!(text.starts_with("TypeError: ") && text.contains(words), "{text}");
            }
        }
    });
}

#[test]
fn different_arguments_of_a_call_may_share_and_a_queued_call_keeps_what_it_was_given() {
    both(|talk| {
        let step = talk.run("const o = { n: 1 }; ask(o, o)", &["ask"]);
        assert_eq!(
            step.call().1,
            &json!([{"Object": {"n": {"Number": {"Finite": 1.0}}}}, {"Object": {"n": {"Number": {"Finite": 1.0}}}}])
        );
        let source = "const f = async () => { const o = { n: 1 }; const p = ask(o); o.n = 2; return await p + await ask(o); }; f()";
        let step = talk.run(source, &["ask"]);
        assert_eq!(step.call().1, &json!([{"Object": {"n": {"Number": {"Finite": 1.0}}}}]));
        let step = talk.resume(&step, number(1.0));
        assert_eq!(step.call().1, &json!([{"Object": {"n": {"Number": {"Finite": 2.0}}}}]));
    });
}

#[test]
fn members_come_out_in_the_order_of_the_language() {
    both(|talk| {
        talk.run("({ b: 1, 2: 1, a: 1, 1: 1 })", &[]).value();
        let (output, _) = talk.hear_cut();
        let text = String::from_utf8_lossy(&output).into_owned();
        let places: Vec<usize> =
            ["\"1\":", "\"2\":", "\"b\":", "\"a\":"].iter().map(|key| text.find(key).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
    });
}

#[test]
fn a_member_that_comes_twice_in_a_value_has_its_last_value_in_its_first_place() {
    both(|talk| {
        let program = talk.compile("JSON.stringify(x)").id("program_id");
        let value =
            r#"{"Object":{"b":{"Bool":true},"a":"Null","b":{"Bool":false},"1":"Null","1":{"Bool":true}}}"#;
        talk.put_text(&format!(
            r#"{{"protocol_version":2,"id":2,"method":"start","program_id":"{program}","options":{{"inputs":{{"x":"Null","x":{value}}}}}}}"#
        ));
        let (all, end) = talk.hear();
        assert_eq!(end, Ok(()));
        assert_eq!(all[1].value(), &json!({"String": r#"{"1":true,"b":false,"a":null}"#}));
    });
}
