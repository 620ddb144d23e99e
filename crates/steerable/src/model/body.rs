//! The body of a request: members in our order, of which the host's own options win.

use serde::Serialize;
use serde_json::{Map, Value};

use super::failure::{Failure, FailureKind};

/// A JSON object that is being put together.
#[derive(Debug, Default)]
pub(super) struct Body {
    members: Vec<(String, String)>,
}

impl Body {
    /// Sets a member.
    pub(super) fn set(&mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
        let json = serde_json::to_string(value).map_err(|error| {
            Failure::new(FailureKind::InvalidRequest, format!("`{key}` cannot be written as JSON: {error}"))
        })?;
        match self.members.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = json,
            None => self.members.push((key.to_owned(), json)),
        }
        Ok(())
    }

    /// Sets a member if there is a value for it.
    pub(super) fn set_some(
        &mut self,
        key: &str,
        value: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Failure> {
        value.map_or(Ok(()), |value| self.set(key, value))
    }

    /// The finished object; the host's options replace what has their name.
    pub(super) fn finish(mut self, options: Option<&Map<String, Value>>) -> Result<Vec<u8>, Failure> {
        for (key, value) in options.into_iter().flatten() {
            self.set(key, value)?;
        }
        let mut json = vec![b'{'];
        for (at, (key, value)) in self.members.iter().enumerate() {
            if at > 0 {
                json.push(b',');
            }
            json.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
            json.push(b':');
            json.extend_from_slice(value.as_bytes());
        }
        json.push(b'}');
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_replace_members_where_they_stand_and_add_others() {
        let mut body = Body::default();
        body.set("model", "m").unwrap();
        body.set_some("temperature", Some(&0.5)).unwrap();
        body.set_some("max_tokens", None::<&u64>).unwrap();
        let options = json!({"model": "other", "top_k": null});
        let json = body.finish(options.as_object()).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), r#"{"model":"other","temperature":0.5,"top_k":null}"#);
    }
}
