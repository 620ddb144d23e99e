//! Values of a script as ordinary JSON, for people and commands: in their order, and what JSON cannot say becomes `null` or
//! is left out.

use std::fmt;

use outrigger_mustard::host::Plain;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value as JSON. `undefined` is left out of objects and `null` elsewhere; so are holes, NaN and the infinities.
#[derive(Clone, Copy)]
pub(crate) struct Json<'a>(pub(crate) &'a Plain);

/// JSON as a value.
pub(crate) struct FromJson(pub(crate) Plain);

/// The largest whole number up to which all are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Plain::Undefined | Plain::Null | Plain::Hole => serializer.serialize_unit(),
            Plain::Bool(truth) => serializer.serialize_bool(*truth),
            // Whole numbers are written without a fraction, as everybody but floats expects.
            Plain::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
                serializer.serialize_i64(*number as i64)
            }
            Plain::Number(number) => serializer.serialize_f64(*number),
            Plain::String(text) => serializer.serialize_str(text),
            Plain::Array(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    list.serialize_element(&Json(element))?;
                }
                list.end()
            }
            Plain::Object(members) => {
                let mut map = serializer.serialize_map(None)?;
                for (key, member) in members.iter().filter(|(_, member)| !matches!(member, Plain::Undefined))
                {
                    map.serialize_entry(key, &Json(member))?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for FromJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(FromJson)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Plain, E> {
        Ok(Plain::Null)
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Plain, E> {
        Ok(Plain::Bool(truth))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Plain, E> {
        Ok(Plain::Number(number as f64))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Plain, E> {
        Ok(Plain::Number(number as f64))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Plain, E> {
        Ok(Plain::Number(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Plain, E> {
        Ok(Plain::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Plain, A::Error> {
        let mut elements = Vec::new();
        while let Some(FromJson(element)) = list.next_element()? {
            elements.push(element);
        }
        Ok(Plain::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain, A::Error> {
        let mut members: Vec<(String, Plain)> = Vec::new();
        while let Some((key, FromJson(member))) = map.next_entry()? {
            members.push((key, member));
        }
        Ok(Plain::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(text: &str) -> String {
        let FromJson(plain) = serde_json::from_str(text).expect("JSON");
        Json(&plain).to_string()
    }

    #[test]
    fn numbers_are_written_as_people_write_them() {
        let written = |number| Json(&Plain::Number(number)).to_string();
        assert_eq!(written(3.0), "3");
        assert_eq!(written(-0.0), "0");
        assert_eq!(written(0.1), "0.1");
        assert_eq!(written(1e300), "1e+300");
        assert_eq!(written(f64::NAN), "null");
    }

    #[test]
    fn what_json_cannot_say_is_null_or_left_out() {
        let plain = Plain::Object(vec![
            ("a".into(), Plain::Undefined),
            ("b".into(), Plain::Array(vec![Plain::Undefined, Plain::Hole, Plain::Bool(true)])),
        ]);
        assert_eq!(Json(&plain).to_string(), r#"{"b":[null,null,true]}"#);
    }

    #[test]
    fn json_comes_back_as_it_went_in_its_order() {
        let text = r#"{"z":[1,2.5,"three",null,{"b":false,"a":true}],"a":{}}"#;
        assert_eq!(there_and_back(text), text);
    }
}
