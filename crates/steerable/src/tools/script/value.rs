//! Values on their way into a script and out of it: JSON on our side, tagged on the other.

use serde_json::{Map, Value, json};

/// A value of JSON as the sidecar writes it.
pub(super) fn to_tagged(value: &Value) -> Value {
    match value {
        Value::Null => "Null".into(),
        Value::Bool(truth) => json!({"Bool": truth}),
        Value::String(text) => json!({"String": text}),
        Value::Number(number) => match number.as_f64() {
            Some(zero) if zero == 0.0 && zero.is_sign_negative() => json!({"Number": "NegZero"}),
            Some(number) => json!({"Number": {"Finite": number}}),
            None => json!({"Number": "NaN"}),
        },
        Value::Array(items) => json!({"Array": items.iter().map(to_tagged).collect::<Vec<_>>()}),
        Value::Object(members) => {
            let members: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), to_tagged(value))).collect();
            json!({"Object": members})
        }
    }
}

/// A tagged value as JSON. What JSON does not have becomes what `JSON.stringify` makes of it.
pub(super) fn from_tagged(value: &Value) -> Value {
    let Value::Object(tagged) = value else {
        // "Undefined", "Null", "Hole".
        return Value::Null;
    };
    match tagged.iter().next().map(|(tag, content)| (tag.as_str(), content)) {
        Some(("Bool" | "String", content)) => content.clone(),
        Some(("Number", Value::Object(number))) => {
            number.get("Finite").and_then(Value::as_f64).map_or(Value::Null, plain_number)
        }
        Some(("Number", Value::String(special))) if special == "NegZero" => 0.into(),
        Some(("Array", Value::Array(items))) => items.iter().map(from_tagged).collect(),
        Some(("Object", Value::Object(members))) => {
            let members = members.iter().filter(|(_, value)| **value != "Undefined");
            let members: Map<String, Value> =
                members.map(|(name, value)| (name.clone(), from_tagged(value))).collect();
            Value::Object(members)
        }
        Some(_) | None => Value::Null,
    }
}

/// A number as a person writes it: `1`, not `1.0`.
fn plain_number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole, and within what a float can count exactly"
        )]
        return Value::from(number as i64);
    }
    Value::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_survives_the_way_in_and_out() {
        let value = json!({"a": [1, 2.5, -3, null, true, "x"], "b": {}, "c": [], "d": 1e300});
        assert_eq!(from_tagged(&to_tagged(&value)), value);
    }

    #[test]
    fn what_json_does_not_have_becomes_what_stringify_makes_of_it() {
        assert_eq!(from_tagged(&json!("Undefined")), json!(null));
        assert_eq!(from_tagged(&json!({"Number": "NaN"})), json!(null));
        assert_eq!(from_tagged(&json!({"Number": "NegZero"})), json!(0));
        assert_eq!(from_tagged(&json!({"Array": ["Hole", "Null"]})), json!([null, null]));
        assert_eq!(
            from_tagged(&json!({"Object": {"a": "Undefined", "b": {"Bool": false}}})),
            json!({"b": false})
        );
        assert_eq!(to_tagged(&json!(-0.0)), json!({"Number": "NegZero"}));
        assert_eq!(from_tagged(&json!({"Strange": 1})), json!(null));
    }
}
