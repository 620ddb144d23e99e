//! One row a keyword: the schema, the value, and what is said about it.

use serde_json::{Value, json};

use super::*;

fn told(schema: &Value, value: &Value) -> Vec<String> {
    match check_value(schema, value) {
        Ok(()) => Vec::new(),
        Err(misfits) => misfits.iter().map(ToString::to_string).collect(),
    }
}

fn fits(schema: Value, value: Value) {
    assert_eq!(told(&schema, &value), Vec::<String>::new(), "{schema} {value}");
}

fn fails(schema: Value, value: Value, problem: &str) {
    assert_eq!(told(&schema, &value), vec![problem.to_owned()], "{schema} {value}");
}

#[test]
fn types_are_judged_and_named() {
    fits(json!({"type": "string"}), json!("a"));
    fits(json!({"type": ["string", "null"]}), json!(null));
    fits(json!({"type": "integer"}), json!(3.0));
    fits(json!({"type": "number"}), json!(3));
    fits(json!(true), json!([]));
    fails(json!({"type": "string"}), json!(1), "it must be string, not number");
    fails(json!({"type": "integer"}), json!(1.5), "it must be integer, not number");
    fails(json!(false), json!(1), "it is not allowed");
}

#[test]
fn members_are_required_known_and_judged() {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "n": {"type": "integer", "minimum": 1, "maximum": 3}},
        "required": ["path"],
        "additionalProperties": false,
    });
    fits(schema.clone(), json!({"path": "x", "n": 3}));
    fails(schema.clone(), json!({}), "it must have `path`");
    fails(schema.clone(), json!({"path": "x", "n": 0}), "`/n` must be at least 1");
    fails(schema.clone(), json!({"path": "x", "n": 4}), "`/n` must be at most 3");
    fails(schema, json!({"path": "x", "a/b": 1}), "it has the unknown member `a/b`; there are: n, path");
    fails(
        json!({"additionalProperties": {"type": "string"}}),
        json!({"a/~b": 1}),
        "`/a~1~0b` must be string, not number",
    );
}

#[test]
fn lists_texts_and_numbers_have_bounds() {
    fits(json!({"minItems": 1, "maxItems": 2, "items": {"type": "string"}}), json!(["a", "b"]));
    fails(json!({"maxItems": 1}), json!([1, 2]), "it must have at most 1 item, not 2");
    fails(json!({"items": {"type": "string"}}), json!(["a", 1]), "`/1` must be string, not number");
    fails(
        json!({"prefixItems": [{"type": "string"}], "items": false}),
        json!(["a", 1]),
        "`/1` is not allowed",
    );
    fails(json!({"uniqueItems": true}), json!([1, 2, 1.0]), "it must not have 1.0 twice");
    fits(json!({"maxLength": 2}), json!("äö"));
    fails(json!({"maxLength": 2}), json!("äöü"), "it must have at most 2 characters, not 3");
    fails(json!({"minLength": 1}), json!(""), "it must have at least 1 character, not 0");
    fails(json!({"exclusiveMinimum": 1}), json!(1), "it must be more than 1");
    fails(json!({"exclusiveMaximum": 1}), json!(1), "it must be less than 1");
    fits(json!({"multipleOf": 0.1}), json!(0.3));
    fails(json!({"multipleOf": 2}), json!(3), "it must be a multiple of 2");
    fails(json!({"minProperties": 1}), json!({}), "it must have at least 1 member, not 0");
}

#[test]
fn choices_and_combinations_say_what_was_closest() {
    fits(json!({"enum": ["a", 1]}), json!(1.0));
    fails(json!({"enum": ["a", 1]}), json!("b"), r#"it must be one of "a", 1"#);
    fails(json!({"const": {"a": 1}}), json!({"a": 2}), r#"it must be {"a":1}"#);
    let either =
        json!({"anyOf": [{"type": "string"}, {"properties": {"a": {"type": "string"}}, "type": "object"}]});
    fits(either.clone(), json!("x"));
    assert_eq!(
        told(&either, &json!({"a": 1})),
        ["it fits none of 2 alternatives; of the closest:", "`/a` must be string, not number"],
    );
    fails(
        json!({"oneOf": [{"type": "number"}, {"minimum": 1}]}),
        json!(2),
        "it fits 2 of the alternatives, and must fit one",
    );
    fits(json!({"oneOf": [{"type": "number"}, {"type": "string"}]}), json!(2));
    fails(json!({"not": {"type": "null"}}), json!(null), "it is what its schema rules out");
    fails(
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
        json!({"a": 1}),
        "it must have `b`",
    );
    fails(json!({"allOf": [{"type": "number"}, {"minimum": 2}]}), json!(1), "it must be at least 2");
}

#[test]
fn references_lead_within_the_schema_and_nowhere_else() {
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    });
    fits(tree.clone(), json!({"next": {"next": {}}}));
    fails(tree, json!({"next": {"next": 1}}), "`/next/next` must be object, not number");
    fails(
        json!({"$ref": "http://example.org/x"}),
        json!(1),
        "it cannot be judged, because its schema refers to `http://example.org/x`, which is not in it",
    );
}

#[test]
fn a_schema_that_refers_to_itself_or_explodes_is_given_up() {
    let circle = told(&json!({"$ref": "#"}), &json!(1));
    assert_eq!(circle, ["it is too large or too deep to be judged by its schema"]);
    let mut bomb = json!({"type": "string"});
    for _ in 0..24 {
        bomb = json!({"oneOf": [bomb.clone(), bomb]});
        if bomb.to_string().len() > 2_000_000 {
            break;
        }
    }
    let started = std::time::Instant::now();
    assert!(!told(&bomb, &json!(1)).is_empty());
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
    let doubling = json!({
        "$ref": "#/$defs/0",
        "$defs": (0..40).map(|n| {
            let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
            (n.to_string(), json!({"anyOf": [next.clone(), next]}))
        }).collect::<serde_json::Map<_, _>>(),
    });
    assert!(!told(&doubling, &json!(1)).is_empty());
}

#[test]
fn complaints_are_few() {
    let schema = json!({"items": {"type": "string"}});
    let many: Vec<u32> = (0..100).collect();
    assert_eq!(told(&schema, &json!(many)).len(), MAX_MISFITS);
}
