//! The keywords of a schema, each a few lines.

use serde_json::{Map, Number, Value};

use super::Judge;

/// Values in complaints are cut after this many characters.
const SHOWN: usize = 80;

impl<'a> Judge<'a> {
    pub(super) fn keywords(&mut self, schema: &'a Map<String, Value>, value: &Value) {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            self.reference(reference, value);
        }
        if let Some(kinds) = schema.get("type") {
            self.kind(kinds, value);
        }
        if let Some(expected) = schema.get("const")
            && !equal(expected, value)
        {
            self.complain(format!("must be {}", shown(expected)));
        }
        if let Some(Value::Array(choices)) = schema.get("enum") {
            self.steps += choices.len();
            if !choices.iter().any(|choice| equal(choice, value)) {
                let choices: Vec<String> = choices.iter().take(20).map(shown).collect();
                self.complain(format!("must be one of {}", choices.join(", ")));
            }
        }
        match value {
            Value::Object(members) => self.object(schema, members),
            Value::Array(items) => self.array(schema, items),
            Value::String(text) => self.string(schema, text),
            Value::Number(number) => self.number(schema, number),
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(schema, value);
    }

    fn reference(&mut self, reference: &str, value: &Value) {
        let target = match reference.strip_prefix('#') {
            Some("") => Some(self.root),
            Some(pointer) => self.root.pointer(pointer),
            None => None,
        };
        match target {
            Some(schema) => self.judge(schema, value),
            None => self.complain(format!(
                "cannot be judged, because its schema refers to `{reference}`, which is not in it"
            )),
        }
    }

    fn kind(&mut self, kinds: &Value, value: &Value) {
        let named: Vec<&str> = match kinds {
            Value::String(kind) => vec![kind.as_str()],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        if !named.iter().any(|kind| is_kind(kind, value)) {
            self.complain(format!("must be {}, not {}", named.join(" or "), kind_of(value)));
        }
    }

    fn object(&mut self, schema: &'a Map<String, Value>, members: &Map<String, Value>) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str()
                && !members.contains_key(name)
            {
                self.complain(format!("must have `{name}`"));
            }
        }
        self.count(schema, ("minProperties", "maxProperties"), members.len(), "member");
        let known = schema.get("properties").and_then(Value::as_object);
        let additional = schema.get("additionalProperties");
        // Members that a pattern may cover cannot be told from others, as patterns are not read.
        let has_patterns = schema.contains_key("patternProperties");
        for (name, member) in members {
            match (known.and_then(|known| known.get(name)), additional) {
                (Some(schema), _) => self.judge_at(name, schema, member),
                (None, _) if has_patterns => {}
                (None, Some(Value::Bool(false))) => {
                    let names: Vec<&str> =
                        known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    self.complain(format!("has the unknown member `{name}`; there are: {names}"));
                }
                (None, Some(schema)) => self.judge_at(name, schema, member),
                (None, None) => {}
            }
        }
    }

    fn array(&mut self, schema: &'a Map<String, Value>, items: &[Value]) {
        self.count(schema, ("minItems", "maxItems"), items.len(), "item");
        let mut first = 0;
        if let Some(Value::Array(schemas)) = schema.get("prefixItems") {
            first = schemas.len();
            for (index, (schema, item)) in schemas.iter().zip(items).enumerate() {
                self.judge_at(&index.to_string(), schema, item);
            }
        }
        if let Some(schema) = schema.get("items") {
            for (index, item) in items.iter().enumerate().skip(first) {
                self.judge_at(&index.to_string(), schema, item);
            }
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.unique(items);
        }
    }

    fn unique(&mut self, items: &[Value]) {
        for (index, item) in items.iter().enumerate() {
            // Comparing all with all costs the square of their number, which the steps bound.
            self.steps = self.steps.saturating_add(index);
            if self.steps > super::MAX_STEPS {
                self.complain("has too many items to tell whether they differ");
                return;
            }
            if items[..index].iter().any(|earlier| equal(earlier, item)) {
                self.complain(format!("must not have {} twice", shown(item)));
                return;
            }
        }
    }

    fn string(&mut self, schema: &'a Map<String, Value>, text: &str) {
        if schema.contains_key("minLength") || schema.contains_key("maxLength") {
            self.count(schema, ("minLength", "maxLength"), text.chars().count(), "character");
        }
    }

    fn count(&mut self, schema: &Map<String, Value>, (min, max): (&str, &str), count: usize, what: &str) {
        let count = count as u64;
        let limit = |name| schema.get(name).and_then(Value::as_u64);
        if let Some(min) = limit(min)
            && count < min
        {
            self.complain(format!("must have at least {min} {what}{}, not {count}", plural(min)));
        }
        if let Some(max) = limit(max)
            && count > max
        {
            self.complain(format!("must have at most {max} {what}{}, not {count}", plural(max)));
        }
    }

    fn number(&mut self, schema: &'a Map<String, Value>, number: &Number) {
        let Some(value) = number.as_f64() else { return };
        let limit = |name| schema.get(name).and_then(Value::as_f64).map(|limit: f64| (limit, &schema[name]));
        if let Some((limit, written)) = limit("minimum")
            && value < limit
        {
            self.complain(format!("must be at least {written}"));
        }
        if let Some((limit, written)) = limit("maximum")
            && value > limit
        {
            self.complain(format!("must be at most {written}"));
        }
        if let Some((limit, written)) = limit("exclusiveMinimum")
            && value <= limit
        {
            self.complain(format!("must be more than {written}"));
        }
        if let Some((limit, written)) = limit("exclusiveMaximum")
            && value >= limit
        {
            self.complain(format!("must be less than {written}"));
        }
        if let Some((step, written)) = limit("multipleOf")
            && step > 0.0
        {
            let times = value / step;
            if (times - times.round()).abs() > 1e-9 * times.abs().max(1.0) {
                self.complain(format!("must be a multiple of {written}"));
            }
        }
    }

    fn combined(&mut self, schema: &'a Map<String, Value>, value: &Value) {
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.judge(part, value);
        }
        if let Some(Value::Array(parts)) = schema.get("anyOf") {
            self.any_of(parts, value);
        }
        if let Some(Value::Array(parts)) = schema.get("oneOf") {
            let fitting = parts.iter().filter(|part| self.trial(part, value).is_empty()).count();
            match fitting {
                0 => self.any_of(parts, value),
                1 => {}
                several => self.complain(format!("fits {several} of the alternatives, and must fit one")),
            }
        }
        if let Some(part) = schema.get("not")
            && self.trial(part, value).is_empty()
        {
            self.complain("is what its schema rules out");
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.trial(condition, value).is_empty() { "then" } else { "else" };
            if let Some(part) = schema.get(branch) {
                self.judge(part, value);
            }
        }
    }

    /// Complains with the complaints of the alternative that is closest: that one was probably meant.
    fn any_of(&mut self, parts: &'a [Value], value: &Value) {
        let mut closest: Option<Vec<super::Misfit>> = None;
        for part in parts {
            let misfits = self.trial(part, value);
            if misfits.is_empty() {
                return;
            }
            // An alternative that fails further inside is closer than one that fails at once.
            let rank = |misfits: &[super::Misfit]| {
                let depth = misfits.iter().map(|misfit| misfit.path.matches('/').count()).max();
                (std::cmp::Reverse(depth), misfits.len())
            };
            if closest.as_ref().is_none_or(|best| rank(&misfits) < rank(best)) {
                closest = Some(misfits);
            }
        }
        match closest {
            Some(misfits) => {
                self.complain(format!("fits none of {} alternatives; of the closest:", parts.len()));
                let room = super::MAX_MISFITS.saturating_sub(self.misfits.len());
                self.misfits.extend(misfits.into_iter().take(room));
            }
            None => self.complain("has no alternative that it could fit"),
        }
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "integer" => match value {
            Value::Number(number) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => false,
        },
        "number" => value.is_number(),
        kind => kind == kind_of(value),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Equal as JSON Schema has it: `1` is `1.0`.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| equal(left, right)))
        }
        (left, right) => left == right,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
