//! An agent that says much and does nothing: Claude Code's protocol, with a turn of many small events ready to be written.

use std::io::{BufRead, Write};

use anyhow::Result;
use serde_json::Value;

/// The variable that makes this program an agent.
pub(crate) const VARIABLE: &str = "OUTRIGGER_BENCH_AGENT";

/// Events of a turn.
pub(super) const EVENTS: u32 = 20_000;

/// Answers until its standard input ends.
pub(crate) fn serve() -> Result<()> {
    let turn = turn();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let frame: Value = serde_json::from_str(&line?)?;
        match frame["type"].as_str() {
            Some("control_request") => {
                let id = &frame["request_id"];
                let answer = r#"{"commands":[],"agents":[],"models":[],"account":{}}"#;
                writeln!(
                    output,
                    r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{answer}}}}}"#
                )?;
            }
            Some("user") => output.write_all(&turn)?,
            _ => {}
        }
        output.flush()?;
    }
    Ok(())
}

/// Everything that is said in a turn.
fn turn() -> Vec<u8> {
    let mut lines = vec![
        r#"{"type":"system","subtype":"init","cwd":"/","session_id":"5f0c2b1e-0000-4000-8000-000000000000","tools":[],"mcp_servers":[],"model":"bench","permissionMode":"default","apiKeySource":"none","uuid":"u"}"#.to_owned(),
    ];
    lines.extend((0..EVENTS).map(event));
    lines.push(r#"{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"bench","content":[{"type":"text","text":"all of it"}]},"parent_tool_use_id":null,"session_id":"5f0c2b1e-0000-4000-8000-000000000000","uuid":"v"}"#.to_owned());
    lines.push(r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"all of it","session_id":"5f0c2b1e-0000-4000-8000-000000000000","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1},"modelUsage":{},"permission_denials":[],"uuid":"w"}"#.to_owned());
    lines.push(r#"{"type":"system","subtype":"session_state_changed","state":"idle","session_id":"5f0c2b1e-0000-4000-8000-000000000000","uuid":"x"}"#.to_owned());
    lines.iter().flat_map(|line| line.bytes().chain([b'\n'])).collect()
}

/// A word of the model, as Claude Code passes it on.
fn event(number: u32) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{number:06} "}}}},"session_id":"5f0c2b1e-0000-4000-8000-000000000000","parent_tool_use_id":null,"uuid":"{number:032x}"}}"#
    )
}
