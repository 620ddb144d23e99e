//! What an agent says and what the host hears, line by line.

use proptest::prelude::*;
use serde_json::value::to_raw_value;

use super::*;

fn said(update: &Value) -> Heard {
    hear("acp", &to_raw_value(update).unwrap(), &mut Tools::default())
}

fn passed(heard: Heard) -> Vec<Value> {
    match heard {
        Heard::Pass(objects) => objects.iter().map(|object| serde_json::from_str(object).unwrap()).collect(),
        other => panic!("not passed on: {other:?}"),
    }
}

#[test]
fn words_and_thoughts_are_passed_on_as_they_come() {
    let text =
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a\n\"b\"" } });
    assert_eq!(
        passed(said(&text)),
        [
            json!({ "type": "acp/assistant", "message": { "role": "assistant", "content": [{ "type": "text", "text": "a\n\"b\"" }] } })
        ]
    );
    let thought =
        json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } });
    assert_eq!(passed(said(&thought)), [json!({ "type": "acp/thinking", "text": "hm" })]);
    let echo =
        json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "mine" } });
    assert_eq!(said(&echo), Heard::Nothing);
}

#[test]
fn an_update_that_is_spread_over_lines_is_passed_on_one_line() {
    let text =
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\n\"type\":\"text\",\r\n\"text\":\"a\"}}";
    let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
    let Heard::Pass(objects) = hear("cursor", &raw, &mut Tools::default()) else { panic!() };
    assert!(objects[0].starts_with(r#"{"type":"cursor/assistant""#) && !objects[0].contains(['\n', '\r']));
}

#[test]
fn the_end_of_a_tool_remembers_how_it_began() {
    let mut tools = Tools::default();
    let mut say =
        |update: Value| passed(hear("cursor", &to_raw_value(&update).unwrap(), &mut tools)).remove(0);
    let start =
        say(json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls -la", "kind": "execute",
        "status": "pending", "rawInput": { "command": "ls -la" } }));
    assert_eq!(
        start,
        json!({ "type": "cursor/tool_call_start", "call_id": "t1", "name": "execute", "status": "pending",
            "args": { "command": "ls -la" }, "title": "ls -la" })
    );
    let running =
        say(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "in_progress" }));
    assert_eq!(running["type"], "cursor/tool_call_start");
    let end = say(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed",
        "rawOutput": { "exit": 0 }, "content": [] }));
    assert_eq!(
        end,
        json!({ "type": "cursor/tool_call_end", "call_id": "t1", "name": "execute", "status": "completed",
            "args": { "command": "ls -la" }, "title": "ls -la", "result": { "exit": 0 } })
    );
    assert!(tools.open.is_empty());
}

#[test]
fn a_tool_is_called_by_its_name_and_else_by_its_kind_and_else_by_its_title() {
    let name = |extra: Value| {
        let mut update = json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "the title" });
        update.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        passed(said(&update)).remove(0)["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(name(json!({ "kind": "read", "name": "Read" })), "Read");
    assert_eq!(name(json!({ "kind": "read", "_meta": { "claudeCode": { "toolName": "Bash" } } })), "Bash");
    assert_eq!(name(json!({ "kind": "read" })), "read");
    assert_eq!(name(json!({ "kind": "other" })), "the title");
    assert_eq!(name(json!({ "kind": "other", "title": null })), "tool");
}

#[test]
fn no_more_than_1024_open_tools_are_remembered() {
    let mut tools = Tools::default();
    for number in 0..=OPEN_TOOLS {
        let update = json!({ "sessionUpdate": "tool_call", "toolCallId": number.to_string(), "title": "x" });
        hear("acp", &to_raw_value(&update).unwrap(), &mut tools);
        assert!(tools.open.len() <= OPEN_TOOLS);
    }
    assert_eq!(tools.open.len(), 1);
}

#[test]
fn how_full_the_window_is_counts_only_with_both_figures() {
    let usage = |used: Value, size: Value| {
        said(&json!({ "sessionUpdate": "usage_update", "used": used, "size": size }))
    };
    assert_eq!(usage(json!(53000), json!(200000)), Heard::Usage { used: 53000, size: 200_000 });
    assert_eq!(usage(json!(5.0), json!(10.0)), Heard::Usage { used: 5, size: 10 });
    assert_eq!(usage(json!(5), json!(0)), Heard::Nothing);
    assert_eq!(usage(json!(-5), json!(10)), Heard::Nothing);
    assert_eq!(usage(json!(5), json!(null)), Heard::Nothing);
    let meta: Value = serde_json::from_str(&usage_meta(Some("m"), 1, 3)).unwrap();
    assert_eq!(meta, json!({ "modelId": "m", "usedTokens": 1, "maxTokens": 3, "percentage": 33.33 }));
    let full: Value = serde_json::from_str(&usage_meta(None, 9, 3)).unwrap();
    assert_eq!(full, json!({ "modelId": "", "usedTokens": 3, "maxTokens": 3, "percentage": 100.0 }));
}

#[test]
fn what_an_agent_can_do_for_a_slash_is_listed_once() {
    let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": [
        { "name": "web", "description": "Search", "input": { "hint": "query" } }, { "name": "/web" }, { "name": 7 }, { "name": "test" }] });
    let command = |name: &str, description: &str, hint: Option<&str>| SlashCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        argument_hint: hint.map(ToOwned::to_owned),
        source: "builtin",
    };
    assert_eq!(
        said(&update),
        Heard::Commands(vec![command("web", "Search", Some("query")), command("test", "", None)])
    );
}

#[test]
fn what_is_new_to_us_is_passed_on_under_its_name_and_what_is_broken_is_not() {
    let notice = json!({ "sessionUpdate": "notice", "level": "warn", "type": "x" });
    assert_eq!(passed(said(&notice)), [json!({ "type": "acp/notice", "level": "warn" })]);
    for broken in [
        json!(7),
        json!({}),
        json!({ "sessionUpdate": 7 }),
        json!({ "sessionUpdate": "tool_call" }),
        json!({ "sessionUpdate": "agent_message_chunk" }),
    ] {
        assert_eq!(said(&broken), Heard::Nothing, "{broken}");
    }
    assert_eq!(
        said(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" })),
        Heard::Mode("plan".into())
    );
}

/// Any JSON, but not much of it.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(Value::from("completed\n\u{2028}")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(prop_oneof!["text", "type", "name", "_meta"], inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_an_agent_says_the_host_gets_objects_of_one_line_with_a_type_of_ours(
        kind in prop_oneof!["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
            "available_commands_update", "current_mode_update", "config_option_update", "usage_update", "\\PC{0,12}"],
        members in prop::collection::hash_map(prop_oneof!["content", "toolCallId", "title", "name", "kind", "status", "rawInput",
            "rawOutput", "locations", "entries", "availableCommands", "currentModeId", "configOptions", "used", "size", "type", "_meta"],
            anything(), 0..8),
    ) {
        let mut update: serde_json::Map<String, Value> = members.into_iter().collect();
        update.insert("sessionUpdate".to_owned(), Value::from(kind));
        let raw: Box<RawValue> = serde_json::from_str(&serde_json::to_string_pretty(&update).unwrap()).unwrap();
        if let Heard::Pass(objects) = hear("acp", &raw, &mut Tools::default()) {
            for object in objects {
                prop_assert!(!object.contains(['\n', '\r']), "{}", object);
                let read: Value = serde_json::from_str(&object).unwrap();
                prop_assert!(read["type"].as_str().is_some_and(|kind| kind.starts_with("acp/")), "{}", object);
            }
        }
    }
}
