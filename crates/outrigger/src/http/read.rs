//! What is read of a request: the names in its path, its query, its JSON. Whatever is wrong is said with its place.

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::problem::Problem;
use crate::config::nearest;
use crate::runs::RunId;

/// The run that a path names.
pub(super) struct OfRun(pub(super) RunId);

impl<S: Send + Sync> FromRequestParts<S> for OfRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Named(names) = Named::from_request_parts(parts, state).await?;
        let name = names.first().map(String::as_str).unwrap_or_default();
        let id = RunId::parse(name)
            .map_err(|error| Problem::not_found("no_such_run", format!("there is no such run: {error}")))?;
        Ok(Self(id))
    }
}

/// The names in a path, in their order.
pub(super) struct Named(pub(super) Vec<String>);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Path(named) = named.map_err(|_| Problem::bad("bad_path", "the path is not UTF-8"))?;
        Ok(Self(named.into_iter().map(|(_, value)| value).collect()))
    }
}

/// A query, of which every name is known.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads it; a name that nobody knows is a slip.
    pub(super) fn of(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let read = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri);
        let axum::extract::Query(pairs) =
            read.map_err(|_| Problem::bad("bad_query", "the query cannot be read"))?;
        if let Some((stranger, _)) = pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let hint = match nearest(stranger, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "there is nothing to say here".to_owned(),
                None => format!("there may be: {}", known.join(", ")),
            };
            let shown: String = stranger.chars().take(60).collect();
            return Err(Problem::bad("bad_query", format!("unknown name `{shown}` in the query"))
                .at(shown)
                .hint(hint));
        }
        Ok(Self(pairs))
    }

    /// The last value of a name.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Every value of a name, where values may be joined with commas.
    pub(super) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.iter().filter(move |(known, _)| known == name);
        values.flat_map(|(_, value)| value.split(',')).filter(|word| !word.is_empty())
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            Problem::bad("bad_query", format!("`{name}` is a whole number, and not this")).at(name)
        })?;
        Ok(Some(number))
    }

    /// How many are wanted: 1 to `most`.
    pub(super) fn limit(&self, usual: usize, most: usize) -> Result<usize, Problem> {
        let Some(number) = self.number("limit")? else { return Ok(usual) };
        let limit = usize::try_from(number).unwrap_or(usize::MAX);
        if (1..=most).contains(&limit) {
            return Ok(limit);
        }
        Err(Problem::bad("bad_query", format!("`limit` may be 1 to {most}")).at("limit"))
    }
}

/// Reads a body as JSON. No body at all is an empty object.
pub(super) fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    if body.is_empty() {
        return parsed(b"{}");
    }
    expect_json(headers)?;
    parsed(body)
}

/// Refuses a body that does not say that it is JSON: a form of another page could not say so.
pub(super) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    let content = headers.get(CONTENT_TYPE).and_then(|content| content.to_str().ok()).unwrap_or_default();
    let essence = content.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let right =
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    match right {
        true => Ok(()),
        false => {
            let message = "the body must be JSON";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message)
                .hint("send it with `Content-Type: application/json`"))
        }
    }
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => Problem::unfit("", format!("the body cannot be used: {error}")),
        Category::Syntax | Category::Eof | Category::Io => {
            Problem::bad("bad_json", format!("the body is not JSON: {error}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wish {
        #[serde(default)]
        text: String,
    }

    fn said(content: &str, body: &'static str) -> Result<Wish, (u16, &'static str)> {
        let mut headers = HeaderMap::new();
        if !content.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(content).unwrap());
        }
        let read = json(&headers, &Bytes::from_static(body.as_bytes()));
        read.map_err(|problem| (problem.status.as_u16(), problem.code))
    }

    #[test]
    fn a_body_is_json_and_says_so() {
        let hi = || Ok(Wish { text: "hi".into() });
        assert_eq!(said("application/json", r#"{"text":"hi"}"#), hi());
        assert_eq!(said("Application/JSON; charset=utf-8", r#"{"text":"hi"}"#), hi());
        assert_eq!(said("application/merge-patch+json", r#"{"text":"hi"}"#), hi());
        assert_eq!(said("", ""), Ok(Wish { text: String::new() }));
        assert_eq!(said("text/plain", r#"{"text":"hi"}"#), Err((415, "not_json")));
        assert_eq!(said("text/x+json", r#"{"text":"hi"}"#), Err((415, "not_json")));
        assert_eq!(said("", r#"{"text":"hi"}"#), Err((415, "not_json")));
        assert_eq!(said("application/json", "{"), Err((400, "bad_json")));
        assert_eq!(said("application/json", "\u{0}"), Err((400, "bad_json")));
        assert_eq!(said("application/json", r#"{"text":1}"#), Err((422, "bad_request")));
        assert_eq!(said("application/json", r#"{"txet":"hi"}"#), Err((422, "bad_request")));
    }

    #[test]
    fn a_body_that_is_deeper_than_any_stack_is_only_refused() {
        let deep = "[".repeat(100_000);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let problem = json::<serde_json::Value>(&headers, &Bytes::from(deep)).unwrap_err();
        assert_eq!(problem.code, "bad_json");
    }

    #[test]
    fn a_slip_in_a_query_is_told_with_what_was_meant() {
        let uri = Uri::from_static("/v1/runs?limt=5");
        let problem = Query::of(&uri, &["phase", "limit"]).err().unwrap();
        assert_eq!((problem.status.as_u16(), problem.hint.as_deref()), (400, Some("did you mean `limit`?")));
    }

    #[test]
    fn a_limit_is_a_number_within_its_bounds() {
        let check = |query: &str, expected: Result<usize, &str>| {
            let uri: Uri = format!("/x?{query}").parse().unwrap();
            let limit = Query::of(&uri, &["limit"]).and_then(|query| query.limit(50, 200));
            assert_eq!(limit.map_err(|problem| problem.message), expected.map_err(str::to_owned), "{query}");
        };
        check("", Ok(50));
        check("limit=1", Ok(1));
        check("limit=200", Ok(200));
        check("limit=1&limit=7", Ok(7));
        check("limit=0", Err("`limit` may be 1 to 200"));
        check("limit=201", Err("`limit` may be 1 to 200"));
        check("limit=99999999999999999999999", Err("`limit` is a whole number, and not this"));
        check("limit=-1", Err("`limit` is a whole number, and not this"));
        check("limit=", Err("`limit` is a whole number, and not this"));
    }
}
