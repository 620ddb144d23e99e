//! Tools as scripts meet them: found by name, called, bounded.

use std::num::NonZeroUsize;

use outrigger_supervise::driver::Settings;
use outrigger_supervise::launch::Launcher;
use serde_json::json;

use super::*;

fn supervisor() -> Supervisor {
    Supervisor::new(Settings { launcher: Launcher::current_exe(), starting_at_once: NonZeroUsize::MIN })
}

fn value_tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        about: String::new(),
        kind: ToolKind::Value(json!({"a": [1, 2.5, "x", null]})),
        approval: ApprovalRule::Never,
        repeat: Repeat::Safe,
        within: USUAL_WITHIN,
    }
}

fn tools(specs: Vec<ToolSpec>) -> Tools {
    Tools::new(specs, &supervisor()).unwrap()
}

#[tokio::test]
async fn what_is_printed_is_text_as_it_is_and_json_for_the_rest() {
    let args = vec![Plain::String("hello".into()), plain(&json!({"n": 1})), Plain::Undefined];
    let said = tools(Vec::new()).call("print", args).await;
    assert_eq!(said, Said { result: Ok(Plain::Null), aloud: Some("hello {\"n\":1} null".into()) });
}

#[tokio::test]
async fn a_script_waits_up_to_a_minute_and_not_longer() {
    let tools = tools(Vec::new());
    let began = std::time::Instant::now();
    assert_eq!(tools.call("wait", vec![Plain::Number(30.0)]).await, Said::value(Plain::Null));
    assert!(began.elapsed() >= Duration::from_millis(30));
    for wrong in [Plain::Number(60_000.5), Plain::Number(-1.0), Plain::Number(f64::NAN), Plain::Null] {
        let said = tools.call("wait", vec![wrong]).await;
        assert_eq!(said.result.unwrap_err().name, "RangeError");
    }
    assert_eq!(tools.call("wait", Vec::new()).await.result.unwrap_err().code.as_deref(), Some("range"));
}

#[tokio::test]
async fn a_tool_of_the_configuration_is_listed_and_called_by_its_name() {
    let tools = tools(vec![value_tool("rates")]);
    let names: Vec<String> = tools.list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["now", "print", "rates", "wait"]);
    assert_eq!(tools.find("rates").unwrap().about, r#"always {"a":[1,2.5,"x",null]}"#);
    assert_eq!(tools.near("rats"), Some("rates"));
    let said = tools.call("rates", Vec::new()).await;
    assert_eq!(said.result.map(|value| Json(&value).to_string()), Ok(r#"{"a":[1,2.5,"x",null]}"#.to_owned()));
    let gone = tools.call("rats", Vec::new()).await.result.unwrap_err();
    assert_eq!(gone.code.as_deref(), Some("no_such_tool"));
}

#[tokio::test]
async fn a_name_is_given_once_and_those_of_built_in_tools_not_at_all() {
    let refused = |specs| Tools::new(specs, &supervisor()).unwrap_err().to_string();
    assert_eq!(refused(vec![value_tool("now")]), "the tool `now` is built in; give yours another name");
    assert_eq!(refused(vec![value_tool("x"), value_tool("x")]), "there are two tools `x`");
}

#[tokio::test]
async fn tools_with_the_same_command_in_the_same_folder_share_a_server() {
    let mut servers = Servers::new(&supervisor());
    let mut tool = |command: &str, cwd: &str| servers.tool(command.into(), cwd.into(), "t".into());
    let (one, same, elsewhere) = (tool("serve", "/a"), tool("serve", "/a"), tool("serve", "/b"));
    assert!(one.is_on_the_server_of(&same) && !one.is_on_the_server_of(&elsewhere));
}
