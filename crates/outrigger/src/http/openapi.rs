//! The OpenAPI document, made from the table of routes.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::routes::{Content, Entry, Route};
use super::schemas::Problem;

/// What can be asked, as OpenAPI 3.1.
pub(super) fn document(routes: &[Route]) -> Value {
    // OpenAPI 3.1 speaks JSON Schema of 2020-12, and keeps its definitions elsewhere.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(verbs) = path {
            verbs.insert(route.verb.word().to_owned(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Outrigger",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs, approvals, receipts, backends, sidecars and extensions of an Outrigger daemon.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The token from the daemon's token file." },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "outrigger", "description": "What a browser gets from a one-time link." },
            },
        },
        "security": [{ "token": [] }, { "cookie": [] }],
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".to_owned(), route.name.into());
    operation.insert("summary".to_owned(), route.about.into());
    operation.insert("tags".to_owned(), json!([tag(route.path)]));
    let of_path = names(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let of_query = route.query.iter().map(|param| {
        json!({ "name": param.name, "in": "query", "description": param.about, "schema": { "type": param.kind } })
    });
    let parameters: Vec<Value> = of_path.chain(of_query).collect();
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(shape) = route.body {
        let content = json!({ "application/json": { "schema": shape(generator) } });
        operation.insert("requestBody".to_owned(), json!({ "content": content }));
    }
    operation.insert("responses".to_owned(), Value::Object(responses(route, generator)));
    if route.entry == Entry::Open {
        operation.insert("security".to_owned(), json!([]));
    }
    Value::Object(operation)
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut responses = Map::new();
    for given in &route.answers {
        let response = responses
            .entry(given.status.to_string())
            .or_insert_with(|| json!({ "description": given.about, "content": {} }));
        // The same status may come in more than one form.
        response["description"] = given.about.into();
        match &given.content {
            Content::Json(shape) => {
                response["content"]["application/json"] = json!({ "schema": shape(generator) });
            }
            Content::Text(media) => {
                response["content"][*media] = json!({ "schema": { "type": "string" } });
            }
            Content::Nothing => {}
        }
    }
    let problem = generator.subschema_for::<Problem>();
    let content = json!({ "application/json": { "schema": problem } });
    responses.insert("default".to_owned(), json!({ "description": "What went wrong.", "content": content }));
    responses
}

/// The names in braces of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// The room that a path is in.
fn tag(path: &str) -> &str {
    let mut parts = path.trim_start_matches('/').split('/');
    match (parts.next(), parts.next()) {
        (Some("v1"), Some("version" | "openapi.json")) => "daemon",
        (Some("v1"), Some(room)) => room,
        (_, _) => "daemon",
    }
}

#[cfg(test)]
mod tests {
    use super::super::routes::routes;
    use super::*;

    fn refs<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(target) if name == "$ref" => found.push(target),
                        _ => refs(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| refs(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_route_is_in_the_document_and_nothing_else_is() {
        let table = routes();
        let document = document(&table);
        let mut documented: Vec<String> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, verbs)| {
                verbs.as_object().unwrap().keys().map(move |verb| format!("{verb} {path}"))
            })
            .collect();
        let mut served: Vec<String> =
            table.iter().map(|route| format!("{} {}", route.verb.word(), route.path)).collect();
        documented.sort();
        served.sort();
        assert_eq!(documented, served);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document(&routes());
        let mut found = Vec::new();
        refs(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for target in found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
        }
    }

    #[test]
    fn every_name_in_a_path_is_a_parameter_and_every_operation_has_a_name_of_its_own() {
        let document = document(&routes());
        let mut ids = std::collections::BTreeSet::new();
        for (path, verbs) in document["paths"].as_object().unwrap() {
            for (verb, operation) in verbs.as_object().unwrap() {
                let none = Vec::new();
                let parameters = operation["parameters"].as_array().unwrap_or(&none);
                let declared: Vec<&str> = parameters
                    .iter()
                    .filter(|parameter| parameter["in"] == "path")
                    .filter_map(|parameter| parameter["name"].as_str())
                    .collect();
                assert_eq!(declared, names(path).collect::<Vec<_>>(), "{verb} {path}");
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{id} is there twice");
                assert!(!operation["summary"].as_str().unwrap().is_empty(), "{verb} {path}");
                assert!(operation["responses"].as_object().unwrap().len() > 1, "{verb} {path}");
            }
        }
    }

    #[test]
    fn the_members_of_an_order_are_documented() {
        let document = document(&routes());
        let order = &document["components"]["schemas"]["NewRun"];
        assert!(order["properties"]["script"]["description"].is_string(), "{order}");
        assert_eq!(order["additionalProperties"], false);
    }
}
