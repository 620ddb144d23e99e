//! The whole way: a host writes lines to a sidecar, and the real programs answer through it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sidecar_ends::{Sidecar, sleeps, wait_for};
use crate::sidecar_kit::assert_one_end;
use crate::{claude_kit, codex_kit};

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    trials![
        real_agents_answer_side_by_side_through_one_sidecar,
        a_real_claude_asks_through_the_sidecar_and_is_allowed_once,
        titles_models_and_windows_of_real_agents_come_through_the_sidecar,
        a_recording_of_a_real_agent_has_both_wires_and_can_be_played,
        a_tool_of_a_real_agent_survives_nothing_that_ends_its_turn,
    ]
}

/// The programs that are installed, each with a home, a model on loopback and a folder to work in.
struct Agents {
    claude: Option<claude_kit::World>,
    codex: Option<codex_kit::Bench>,
}

impl Agents {
    fn found() -> Self {
        Self { claude: claude_kit::World::real(""), codex: codex_kit::Bench::real() }
    }

    fn args(&self) -> Vec<String> {
        let mut args = vec!["--log-level".to_owned(), "error".to_owned()];
        for (name, program) in [("claude", self.folder("claude")), ("codex", self.folder("codex"))] {
            if let Some(folder) = program {
                args.extend([format!("--{name}"), folder.join(name).display().to_string()]);
            }
        }
        args
    }

    fn folder(&self, name: &str) -> Option<PathBuf> {
        match name {
            "claude" => self.claude.as_ref().map(|world| world.folder.path().to_owned()),
            _ => self.codex.as_ref().map(|bench| bench.folder.path().to_owned()),
        }
    }

    /// The names and folders of those that are there.
    fn all(&self) -> Vec<(&'static str, PathBuf)> {
        let work = |name| self.folder(name).map(|folder| (name, folder.join("work")));
        ["claude", "codex"].into_iter().filter_map(work).collect()
    }
}

fn turn(provider: &str, session: &str, work: &Path, prompt: &str) -> Value {
    json!({ "sessionId": session, "provider": provider, "cwd": work, "prompt": prompt })
}

/// What an agent said, whichever it is.
fn said(events: &[Value], id: &str) -> String {
    let of_it = events.iter().filter(|event| event["id"] == id);
    let texts = of_it.filter_map(|event| match event["type"].as_str()? {
        "assistant" => event["message"]["content"][0]["text"].as_str(),
        "item/completed" => event["item"]["text"].as_str(),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("")
}

fn real_agents_answer_side_by_side_through_one_sidecar() {
    let agents = Agents::found();
    let mut sidecar = Sidecar::start(&agents.args());
    let turns: Vec<(String, Value)> = agents
        .all()
        .iter()
        .flat_map(|(name, work)| {
            ["s1", "s2"].map(|session| {
                let id = format!("{name}-{session}");
                let prompt = format!("{{{{say {id}}}}}");
                (id, turn(name, session, work, &prompt))
            })
        })
        .collect();
    // One after the other first: a home that two Codexes move into at once is too small for both.
    for (id, params) in &turns {
        sidecar.say(id, "sendMessage", params.clone());
        sidecar.until(id, "end");
    }
    for (id, params) in &turns {
        sidecar.say(id, "sendMessage", params.clone());
    }
    let mut events = Vec::new();
    let mut ended = 0;
    while ended < turns.len() {
        let event = sidecar.next();
        ended += usize::from(event["type"] == "end");
        assert!(event["type"] != "error", "{event}");
        events.push(event);
    }
    assert_one_end(&events);
    for (id, _) in &turns {
        assert!(said(&events, id).contains(id.as_str()), "{id}: {events:#?}");
        let own = |event: &&Value| event["id"] == id.as_str() && event["type"] == "contextUsageUpdated";
        assert!(events.iter().any(|event| own(&event)), "{id}");
    }
    sidecar.say("q", "shutdown", json!({}));
    let rest = sidecar.rest();
    assert_eq!(rest.last(), Some(&json!({"id":"q","type":"pong"})));
    assert_eq!(sidecar.exit(), Some(0));
}

fn a_real_claude_asks_through_the_sidecar_and_is_allowed_once() {
    let agents = Agents::found();
    let Some(world) = &agents.claude else { return };
    let mut sidecar = Sidecar::start(&agents.args());
    let file = world.work().join("made.txt");
    let input = json!({ "file_path": file, "content": "hello" });
    let mut params = turn("claude", "s", &world.work(), &format!("{{{{use Write {input}}}}}"));
    params["permissionMode"] = json!("default");
    for (id, verdict) in [("no", "deny"), ("yes", "allow")] {
        sidecar.say(id, "sendMessage", params.clone());
        let asked = sidecar.until(id, "permissionRequest").pop().unwrap();
        assert_eq!(asked["toolName"], "Write");
        let answer = json!({ "permissionId": asked["permissionId"], "behavior": verdict });
        sidecar.say(&format!("answer {id}"), "permissionResponse", answer);
        sidecar.until(id, "end");
        assert_eq!(file.exists(), verdict == "allow");
    }
}

fn titles_models_and_windows_of_real_agents_come_through_the_sidecar() {
    let agents = Agents::found();
    let mut sidecar = Sidecar::start(&agents.args());
    for (name, work) in agents.all() {
        sidecar.say("m", "listModels", json!({ "provider": name }));
        let models = sidecar.until("m", "modelsListed").pop().unwrap();
        assert!(!models["models"].as_array().unwrap().is_empty(), "{models}");
        assert_eq!(models["provider"], name);
        sidecar.say("c", "listSlashCommands", json!({ "provider": name, "cwd": work }));
        sidecar.until("c", "slashCommandsListed");
        let task = "{{say title: Made by a model}}";
        let params = json!({ "userMessage": task, "provider": name, "generateBranch": false });
        sidecar.say("t", "generateTitle", params);
        let title = sidecar.until("t", "titleGenerated").pop().unwrap();
        assert_eq!(title, json!({"id":"t","type":"titleGenerated","title":"Made by a model"}));
    }
    if let Some(world) = &agents.claude {
        sidecar.say("a", "sendMessage", turn("claude", "s", &world.work(), "{{say x}}"));
        sidecar.until("a", "end");
        sidecar.say("u", "getContextUsage", json!({ "sessionId": "s", "model": "default" }));
        let usage = sidecar.until("u", "contextUsageResult").pop().unwrap();
        let meta: Value = serde_json::from_str(usage["meta"].as_str().unwrap()).unwrap();
        assert!(meta["maxTokens"].as_u64().is_some_and(|max| max > 0), "{meta}");
    }
}

fn a_recording_of_a_real_agent_has_both_wires_and_can_be_played() {
    let agents = Agents::found();
    let folder = tempfile::tempdir().unwrap();
    for (name, work) in agents.all() {
        let tape = folder.path().join(name).display().to_string();
        let mut args = agents.args();
        args.extend(["--record".to_owned(), tape.clone()]);
        let mut sidecar = Sidecar::start(&args);
        sidecar.say("a", "sendMessage", turn(name, "s", &work, "{{say recorded}}"));
        let recorded = sidecar.until("a", "end");
        sidecar.say("q", "shutdown", json!({}));
        sidecar.rest();
        let text = std::fs::read_to_string(&tape).unwrap();
        let with = format!(r#""with":"{name}:s""#);
        assert!(text.lines().any(|line| line.contains(&with)), "the agent's wire of {name} is missing");

        let mut sidecar = Sidecar::start(&["--replay".to_owned(), tape]);
        sidecar.say("b", "sendMessage", turn(name, "other", &work, "whatever"));
        let mut played = sidecar.until("b", "end");
        played.iter_mut().for_each(|event| event["id"] = json!("a"));
        assert_eq!(played, recorded);
    }
}

fn a_tool_of_a_real_agent_survives_nothing_that_ends_its_turn() {
    let agents = Agents::found();
    for (at, (name, work)) in agents.all().into_iter().enumerate() {
        for (way, end) in ["stop", "shutdown", "eof", "kill"].into_iter().enumerate() {
            let nap = format!("{}.{at}{way}", 200_000 + std::process::id());
            // In a shell of its own, because Claude Code does not sleep when told so plainly.
            let command = format!("sh -c 'sleep {nap}; touch survived'");
            let prompt = match name {
                "claude" => {
                    format!("{{{{use Bash {}}}}}", json!({ "command": command, "description": "sleeps" }))
                }
                _ => format!("{{{{run {command}}}}}"),
            };
            let mut sidecar = Sidecar::start(&agents.args());
            sidecar.say("a", "sendMessage", turn(name, "s", &work, &prompt));
            wait_for(|| sleeps(&nap).then_some(()));
            let started = Instant::now();
            match end {
                "stop" => {
                    sidecar.say("x", "stopSession", json!({ "sessionId": "s", "provider": name }));
                    let events = sidecar.until("x", "stopped");
                    assert_eq!(assert_one_end(&events)["a"], "aborted");
                }
                "shutdown" => {
                    sidecar.say("x", "shutdown", json!({}));
                    assert_eq!(sidecar.rest().last(), Some(&json!({"id":"x","type":"pong"})));
                }
                "eof" => sidecar.hang_up(),
                _ => sidecar.kill(),
            }
            wait_for(|| (!sleeps(&nap)).then_some(()));
            if end == "eof" {
                assert!(started.elapsed() < Duration::from_secs(2), "{name}: {:?}", started.elapsed());
            }
            assert!(!work.join("survived").exists(), "{name} after {end}");
        }
    }
}
