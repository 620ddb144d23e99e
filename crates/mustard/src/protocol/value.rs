//! Structured values on the wire: `{"Number":{"Finite":1.5}}`, `"Undefined"`, `{"Array":[…]}`.
//!
//! Read and written in one pass, without a tree of JSON in between. A value may be nested 128 levels deep; the text around
//! it may be deeper.

use std::borrow::Cow;

use outrigger_vm::boundary::Plain;

use super::json::{Cursor, HalfPair, Malformed, Raw};
use super::write::{write_double, write_string};

/// The deepest value that may cross: the same as the engine's own limit.
pub const DEEPEST: usize = 128;

/// Why JSON is not a structured value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It is nested more deeply than any value may be.
    #[error("structured host boundary nesting limit exceeded")]
    TooDeep,
    /// It has no tag, more than one, or one that does not exist.
    #[error(
        "a structured value must be `\"Undefined\"`, `\"Null\"`, `\"Hole\"` or an object with exactly one of the tags Bool, String, Number, Array and Object"
    )]
    Tag,
    /// What is behind the tag is something else.
    #[error("`{tag}` must hold {wanted}")]
    Content {
        /// The tag.
        tag: &'static str,
        /// What it must hold.
        wanted: &'static str,
    },
    /// A hole that is not directly in an array.
    #[error("array holes cannot cross the structured host boundary outside of arrays")]
    Hole,
    /// A string that text cannot hold.
    #[error(transparent)]
    HalfPair(#[from] HalfPair),
}

/// Reads a value from JSON text that may come from anywhere.
///
/// # Errors
/// When the text is not JSON, or is JSON and not a value.
pub fn parse_value(text: &str) -> Result<Result<Plain, ValueError>, Malformed> {
    Raw::document(text).map(read)
}

/// Appends a value as JSON.
pub fn write_value(value: &Plain, out: &mut Vec<u8>) {
    match value {
        Plain::Undefined => out.extend_from_slice(b"\"Undefined\""),
        Plain::Null => out.extend_from_slice(b"\"Null\""),
        Plain::Hole => out.extend_from_slice(b"\"Hole\""),
        Plain::Bool(true) => out.extend_from_slice(b"{\"Bool\":true}"),
        Plain::Bool(false) => out.extend_from_slice(b"{\"Bool\":false}"),
        Plain::Number(n) => write_number(*n, out),
        Plain::String(text) => {
            out.extend_from_slice(b"{\"String\":");
            write_string(text, out);
            out.push(b'}');
        }
        // A value that could be made at all is at most so deep that this recursion is harmless.
        Plain::Array(elements) => {
            out.extend_from_slice(b"{\"Array\":[");
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(element, out);
            }
            out.extend_from_slice(b"]}");
        }
        Plain::Object(members) => {
            out.extend_from_slice(b"{\"Object\":{");
            for (i, (key, member)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write_value(member, out);
            }
            out.extend_from_slice(b"}}");
        }
    }
}

fn write_number(n: f64, out: &mut Vec<u8>) {
    let special: &[u8] = if n.is_nan() {
        b"{\"Number\":\"NaN\"}"
    } else if n == f64::INFINITY {
        b"{\"Number\":\"Infinity\"}"
    } else if n == f64::NEG_INFINITY {
        b"{\"Number\":\"NegInfinity\"}"
    } else if n == 0.0 && n.is_sign_negative() {
        b"{\"Number\":\"NegZero\"}"
    } else {
        out.extend_from_slice(b"{\"Number\":{\"Finite\":");
        write_double(n, out);
        out.extend_from_slice(b"}}");
        return;
    };
    out.extend_from_slice(special);
}

/// Reads a value from JSON that was found to be well-formed. A hole is none here: it must be inside an array.
pub(crate) fn read(raw: Raw<'_>) -> Result<Plain, ValueError> {
    match (Reader { cursor: Cursor::new(raw.text()) }).value(DEEPEST)? {
        Plain::Hole => Err(ValueError::Hole),
        value => Ok(value),
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
}

/// The text was proved before, so that a flaw can only mean that another kind of value is here.
fn content<T>(found: Result<T, Malformed>, tag: &'static str, wanted: &'static str) -> Result<T, ValueError> {
    found.map_err(|_| ValueError::Content { tag, wanted })
}

impl<'a> Reader<'a> {
    /// `levels` is how many more this value may have.
    fn value(&mut self, levels: usize) -> Result<Plain, ValueError> {
        self.cursor.space();
        if self.cursor.peek() == Some(b'"') {
            return self.unit();
        }
        if !self.cursor.take(b'{') {
            return Err(ValueError::Tag);
        }
        let tag = self.cursor.string().map_err(|_| ValueError::Tag)??;
        self.cursor.take(b':');
        let value = match &*tag {
            "Bool" => {
                let raw = content(self.cursor.value(), "Bool", "true or false")?;
                Plain::Bool(
                    raw.boolean().ok_or(ValueError::Content { tag: "Bool", wanted: "true or false" })?,
                )
            }
            "String" => Plain::String(self.text("String")?.into_owned()),
            "Number" => Plain::Number(self.number()?),
            "Array" => self.array(levels)?,
            "Object" => self.object(levels)?,
            "Undefined" => self.nothing("Undefined", Plain::Undefined)?,
            "Null" => self.nothing("Null", Plain::Null)?,
            "Hole" => self.nothing("Hole", Plain::Hole)?,
            _ => return Err(ValueError::Tag),
        };
        if self.cursor.take(b'}') { Ok(value) } else { Err(ValueError::Tag) }
    }

    fn text(&mut self, tag: &'static str) -> Result<Cow<'a, str>, ValueError> {
        Ok(content(self.cursor.string(), tag, "a string")??)
    }

    fn unit(&mut self) -> Result<Plain, ValueError> {
        match &*self.cursor.string().map_err(|_| ValueError::Tag)?? {
            "Undefined" => Ok(Plain::Undefined),
            "Null" => Ok(Plain::Null),
            "Hole" => Ok(Plain::Hole),
            _ => Err(ValueError::Tag),
        }
    }

    fn nothing(&mut self, tag: &'static str, value: Plain) -> Result<Plain, ValueError> {
        let raw = content(self.cursor.value(), tag, "null")?;
        if raw.is_null() { Ok(value) } else { Err(ValueError::Content { tag, wanted: "null" }) }
    }

    fn number(&mut self) -> Result<f64, ValueError> {
        const WANTED: &str =
            "`\"NaN\"`, `\"Infinity\"`, `\"NegInfinity\"`, `\"NegZero\"` or `{\"Finite\":n}`";
        let wrong = || ValueError::Content { tag: "Number", wanted: WANTED };
        self.cursor.space();
        if self.cursor.peek() == Some(b'"') {
            return special(&self.text("Number")?).ok_or_else(wrong);
        }
        if !self.cursor.take(b'{') {
            return Err(wrong());
        }
        let tag = self.text("Number").map_err(|_| wrong())?;
        self.cursor.take(b':');
        let n = if tag == "Finite" {
            content(self.cursor.number(), "Finite", "a number within the range of a double")?
        } else {
            let raw = self.cursor.value().map_err(|_| wrong())?;
            special(&tag).filter(|_| raw.is_null()).ok_or_else(wrong)?
        };
        if self.cursor.take(b'}') { Ok(n) } else { Err(wrong()) }
    }

    fn array(&mut self, levels: usize) -> Result<Plain, ValueError> {
        let deeper = levels.checked_sub(1).ok_or(ValueError::TooDeep)?;
        if !self.cursor.take(b'[') {
            return Err(ValueError::Content { tag: "Array", wanted: "an array" });
        }
        let mut elements = Vec::new();
        if self.cursor.take(b']') {
            return Ok(Plain::Array(elements));
        }
        loop {
            elements.push(self.value(deeper)?);
            if !self.cursor.take(b',') {
                self.cursor.take(b']');
                return Ok(Plain::Array(elements));
            }
        }
    }

    fn object(&mut self, levels: usize) -> Result<Plain, ValueError> {
        let deeper = levels.checked_sub(1).ok_or(ValueError::TooDeep)?;
        if !self.cursor.take(b'{') {
            return Err(ValueError::Content { tag: "Object", wanted: "an object" });
        }
        let mut members = Vec::new();
        if self.cursor.take(b'}') {
            return Ok(Plain::Object(members));
        }
        loop {
            let key = self.text("Object")?.into_owned();
            self.cursor.take(b':');
            match self.value(deeper)? {
                Plain::Hole => return Err(ValueError::Hole),
                value => members.push((key, value)),
            }
            if !self.cursor.take(b',') {
                self.cursor.take(b'}');
                return Ok(Plain::Object(members));
            }
        }
    }
}

fn special(name: &str) -> Option<f64> {
    match name {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "NegInfinity" => Some(f64::NEG_INFINITY),
        "NegZero" => Some(-0.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, value: Result<Plain, ValueError>) {
        let got = parse_value(text).unwrap();
        // NaN is equal to nothing, so what is shown is compared.
        assert_eq!(format!("{got:?}"), format!("{value:?}"), "{text}");
        if let Ok(value) = got {
            let mut out = Vec::new();
            write_value(&value, &mut out);
            let again = parse_value(std::str::from_utf8(&out).unwrap()).unwrap();
            assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, ValueError>(value)), "{text}");
        }
    }

    #[test]
    fn every_value_has_its_spelling_and_goes_both_ways() {
        check(r#""Undefined""#, Ok(Plain::Undefined));
        check(r#"{"Undefined":null}"#, Ok(Plain::Undefined));
        check(r#""Null""#, Ok(Plain::Null));
        check(r#"{"Null":null}"#, Ok(Plain::Null));
        check(r#"{"Bool":true}"#, Ok(Plain::Bool(true)));
        check(r#" { "Bool" : false } "#, Ok(Plain::Bool(false)));
        check(r#"{"String":"a\n\"ü"}"#, Ok(Plain::String("a\n\"ü".into())));
        check(r#"{"Number":{"Finite":1.5}}"#, Ok(Plain::Number(1.5)));
        check(r#"{"Number":{"Finite":7}}"#, Ok(Plain::Number(7.0)));
        check(r#"{"Number":"NaN"}"#, Ok(Plain::Number(f64::NAN)));
        check(r#"{"Number":{"NaN":null}}"#, Ok(Plain::Number(f64::NAN)));
        check(r#"{"Number":"Infinity"}"#, Ok(Plain::Number(f64::INFINITY)));
        check(r#"{"Number":"NegInfinity"}"#, Ok(Plain::Number(f64::NEG_INFINITY)));
        check(r#"{"Number":"NegZero"}"#, Ok(Plain::Number(-0.0)));
        check(r#"{"Array":[]}"#, Ok(Plain::Array(vec![])));
        check(r#"{"Array":["Hole","Null"]}"#, Ok(Plain::Array(vec![Plain::Hole, Plain::Null])));
        let object = vec![("b".into(), Plain::Null), ("__proto__".into(), Plain::Undefined)];
        check(r#"{"Object":{"b":"Null","__proto__":"Undefined"}}"#, Ok(Plain::Object(object)));
    }

    #[test]
    fn what_has_no_tag_or_two_is_no_value() {
        for text in [
            "null",
            "1",
            "true",
            "[]",
            "{}",
            r#""undefined""#,
            r#"{"Bool":true,"Null":null}"#,
            r#"{"Nope":1}"#,
        ] {
            check(text, Err(ValueError::Tag));
        }
        for (text, tag) in [
            (r#"{"Bool":1}"#, "Bool"),
            (r#"{"String":1}"#, "String"),
            (r#"{"Number":1}"#, "Number"),
            (r#"{"Number":"nan"}"#, "Number"),
            (r#"{"Number":{"Finite":1,"NaN":null}}"#, "Number"),
            (r#"{"Number":{"Finite":"1"}}"#, "Finite"),
            (r#"{"Number":{"Finite":1e999}}"#, "Finite"),
            (r#"{"Number":{}}"#, "Number"),
            (r#"{"Array":{}}"#, "Array"),
            (r#"{"Object":[]}"#, "Object"),
            (r#"{"Undefined":1}"#, "Undefined"),
        ] {
            let got = parse_value(text).unwrap();
            assert!(matches!(&got, Err(ValueError::Content { tag: t, .. }) if *t == tag), "{text}: {got:?}");
        }
        check(r#""Hole""#, Err(ValueError::Hole));
        check(r#"{"Object":{"a":"Hole"}}"#, Err(ValueError::Hole));
        check(r#"{"String":"\ud800"}"#, Err(ValueError::HalfPair(HalfPair)));
    }

    #[test]
    fn a_value_may_have_as_many_levels_as_the_engine_allows_and_not_one_more() {
        let nested = |depth: usize| "{\"Array\":[".repeat(depth) + "\"Null\"" + &"]}".repeat(depth);
        assert!(parse_value(&nested(DEEPEST)).unwrap().is_ok());
        assert_eq!(parse_value(&nested(DEEPEST + 1)).unwrap(), Err(ValueError::TooDeep));
        assert_eq!(parse_value(&nested(50_000)).unwrap(), Err(ValueError::TooDeep));
    }
}
