//! Hosts and bytes that mean harm: no panic, no hang, nothing resumed that was not allowed.

use outrigger_mustard::protocol::feature::Framing;
use outrigger_mustard::protocol::ids::SnapshotId;
use outrigger_mustard::sidecar::{Budgets, World};
use serde_json::{Value, json};
use std::time::Duration;

use super::kit::{Cuts, NOW, Talk, answers, answers_in, frame, number, policy, responses};

/// Thousands of requests each, so small pieces and few rounds.
const CUTS: Cuts = Cuts::Pieces(11);

/// A generator whose numbers depend on nothing but the seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// A conversation with everything in it, as one message each.
fn conversation(framing: Framing) -> Vec<Vec<u8>> {
    let mut talk = Talk::new(framing, CUTS);
    let mut cuts = vec![0];
    let mut mark = |talk: &Talk| cuts.push(talk.sent.len());
    let all = json!(["batch", "release", "inspect", "deadline", "world", "error_detail", "return"]);
    talk.say(json!({"method": "hello", "features": all}), b"");
    mark(&talk);
    let program = talk.compile("const f = async () => (await Promise.all([ask(1, x), ask(2)])).join(); f()");
    mark(&talk);
    let options = json!({
        "inputs": {"x": {"Object": {"a": {"Array": [{"Number": "NaN"}, "Hole", {"String": "ü"}]}}}},
        "capabilities": ["ask"], "limits": {"instruction_budget": 50_000, "heap_limit_bytes": 1_000_000}, "seed": 3, "now_ms": 5,
    });
    let step = talk.say(json!({"method": "start", "options": options, "deadline_ms": 1000}), &program.blob);
    mark(&talk);
    let id = step.id("snapshot_id");
    let mut inspect = talk.cached(&step, json!(null));
    inspect["method"] = json!("inspect");
    talk.say(inspect, b"");
    mark(&talk);
    let two = json!({"call_id": 2, "payload": {"type": "error", "error": {"name": "E", "message": "m", "details": "Null"}}});
    talk.resume(&step, json!({"type": "answers", "answers": [two]}));
    mark(&talk);
    let mut in_full = policy(&id, &["ask"]);
    in_full["limits"] = json!({"instruction_budget": 50_000});
    talk.say(json!({"method": "resume", "policy": in_full, "payload": number(4.0)}), &step.blob);
    mark(&talk);
    talk.say(json!({"method": "release", "snapshots": [id]}), b"");
    mark(&talk);
    cuts.windows(2).map(|cut| talk.sent[cut[0]..cut[1]].to_vec()).collect()
}

/// Replaces something inside a JSON value by something else.
fn mutate_json(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(members) if !members.is_empty() && dice.roll(4) > 0 => {
            let at = dice.roll(members.len());
            let key = members.keys().nth(at).unwrap().clone();
            match dice.roll(8) {
                0 => drop(members.remove(&key)),
                1 => {
                    let moved = members.remove(&key).unwrap();
                    members.insert(format!("{key}x"), moved);
                }
                _ => mutate_json(members.get_mut(&key).unwrap(), dice),
            }
        }
        Value::Array(elements) if !elements.is_empty() && dice.roll(4) > 0 => {
            let at = dice.roll(elements.len());
            match dice.roll(4) {
                0 => drop(elements.remove(at)),
                1 => elements.push(elements[at].clone()),
                _ => mutate_json(&mut elements[at], dice),
            }
        }
        Value::String(text) if !text.is_empty() && dice.roll(2) > 0 => {
            let at = dice.roll(text.len());
            let flipped: Vec<u8> =
                text.bytes().enumerate().map(|(i, b)| if i == at { b ^ 1 } else { b }).collect();
            *text = String::from_utf8_lossy(&flipped).into_owned();
        }
        other => {
            *other = match dice.roll(12) {
                0 => Value::Null,
                1 => json!(true),
                2 => json!(0),
                3 => json!(-1),
                4 => json!(u64::MAX),
                5 => json!(1e308),
                6 => json!(""),
                7 => json!([]),
                8 => json!({}),
                9 => json!({"Array": [{"Object": {"constructor": "Undefined"}}]}),
                10 => json!("x".repeat(1000)),
                _ => json!([[[[[[[[1]]]]]]]]),
            };
        }
    }
}

/// Header and blob of a frame, or the JSON of a line.
fn mutate_fields(message: &[u8], framing: Framing, dice: &mut Dice) -> Vec<u8> {
    let (text, blob) = match framing {
        Framing::Binary => {
            let header = 8 + u32::from_le_bytes(message[..4].try_into().unwrap()) as usize;
            (&message[8..header], &message[header..])
        }
        Framing::Lines => (message, &b""[..]),
    };
    let mut value: Value = serde_json::from_slice(text).unwrap();
    for _ in 0..=dice.roll(3) {
        mutate_json(&mut value, dice);
    }
    match framing {
        Framing::Binary => frame(value.to_string().as_bytes(), blob),
        Framing::Lines => [value.to_string().as_bytes(), b"\n"].concat(),
    }
}

fn mutate_bytes(message: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.roll(4) {
        if message.is_empty() {
            return;
        }
        let at = dice.roll(message.len());
        match dice.roll(6) {
            0 => drop(message.remove(at)),
            1 => message.insert(at, dice.roll(256) as u8),
            2 => message.truncate(at),
            3 => message[at] = b"{}[]\",:0\\"[dice.roll(9)],
            _ => message[at] ^= 1 << dice.roll(8),
        }
    }
}

#[test]
fn ten_thousand_mutated_messages_end_in_an_answer_or_a_reason() {
    for (framing, seed) in [(Framing::Binary, 0x5eed_0001), (Framing::Lines, 0x5eed_0002)] {
        let messages = conversation(framing);
        let mut dice = Dice(seed);
        let (mut fatal, mut answered) = (0, 0);
        for round in 0..5000 {
            let mut mutated = messages.clone();
            let at = dice.roll(mutated.len());
            if dice.roll(2) == 0 {
                mutate_bytes(&mut mutated[at], &mut dice);
            } else {
                mutated[at] = mutate_fields(&messages[at], framing, &mut dice);
            }
            let bytes = mutated.concat();
            // That this comes back at all is the point; what comes back is whole responses.
            let (output, end) = answers(std::iter::once(&bytes[..]), framing, Budgets::USUAL);
            let cut = answers(bytes.chunks(1 + dice.roll(300)), framing, Budgets::USUAL);
            assert!(cut == (output.clone(), end.clone()), "round {round}: it depends on how it is cut");
            let said = responses(&output, framing);
            for said in &said {
                if said.header["ok"] == json!(false) {
                    let error = said.header["error"].as_str().unwrap();
                    assert!(!error.contains("internal error"), "round {round}: {error}");
                }
            }
            answered += said.len();
            fatal += usize::from(end.is_err());
            if end.is_ok() && framing == Framing::Lines {
                assert!(said.len() <= messages.len() + 4, "round {round}");
            }
        }
        // Both ends of the story are reached often, or the mutations would prove little.
        assert!(fatal > 500 && answered > 10_000, "{framing:?}: {fatal} fatal, {answered} answered");
    }
}

/// A host without the key changes what it sends: whatever it changes, the snapshot is not resumed.
#[test]
fn no_mutation_of_a_token_or_snapshot_resumes_anything() {
    let mut talk = Talk::new(Framing::Binary, CUTS);
    let step = talk.run("const secret = ask(1); secret * 2", &["ask"]);
    let good = json!({"method": "resume", "policy": policy(&step.id("snapshot_id"), &["ask"]), "payload": number(21.0)});
    assert_eq!(talk.say(good.clone(), &step.blob).value(), &json!({"Number": {"Finite": 42.0}}));
    let mut stream = Vec::new();
    let mut sent = 0;
    let mut push = |request: &Value, blob: &[u8]| {
        let mut request = request.clone();
        request["protocol_version"] = json!(2);
        request["id"] = json!(1);
        stream.extend(frame(request.to_string().as_bytes(), blob));
        sent += 1;
    };
    for at in 0..step.blob.len() {
        let mut blob = step.blob.clone();
        blob[at] ^= 1 << (at % 8);
        push(&good, &blob);
    }
    for member in ["snapshot_token", "snapshot_id", "snapshot_key_digest"] {
        for at in 0..64 {
            let mut request = good.clone();
            let text = request["policy"][member].as_str().unwrap().to_owned();
            let other = if &text[at..=at] == "0" { "1" } else { "0" };
            request["policy"][member] = json!(format!("{}{other}{}", &text[..at], &text[at + 1..]));
            push(&request, &step.blob);
        }
    }
    let (output, end) = CUTS.check(&stream, |pieces| answers(pieces, Framing::Binary, Budgets::USUAL));
    let said = responses(&output, Framing::Binary);
    assert_eq!((end, said.len()), (Ok(()), sent));
    assert!(said.iter().all(|said| said.error().starts_with("raw snapshot restore rejected ")));
}

/// A host that has a key can sign anything: what it signs is refused, or is a machine that runs within its limits.
#[test]
fn a_snapshot_that_was_changed_and_signed_again_is_refused_or_runs_safely() {
    let mut talk = Talk::new(Framing::Binary, CUTS);
    let step =
        talk.run("const o = { a: [1, 2.5, 'x'] }; const f = () => ask(o.a.length); f() + f()", &["ask"]);
    let (mut stream, mut sent) = (Vec::new(), 0);
    for at in 26..step.blob.len() {
        for bit in [0, 3, 7] {
            let mut blob = step.blob.clone();
            blob[at] ^= 1 << bit;
            outrigger_vm::snapshot::reseal(&mut blob);
            let id = SnapshotId::of(&blob).to_string();
            let mut policy = policy(&id, &["ask"]);
            policy["limits"] = json!({"instruction_budget": 20_000, "heap_limit_bytes": 1_000_000});
            let request = json!({"protocol_version": 2, "id": at, "method": "resume", "policy": policy, "payload": number(1.0)});
            stream.extend(frame(request.to_string().as_bytes(), &blob));
            sent += 1;
        }
    }
    let (output, end) = CUTS.check(&stream, |pieces| answers(pieces, Framing::Binary, Budgets::USUAL));
    let said = responses(&output, Framing::Binary);
    assert_eq!((end, said.len()), (Ok(()), sent));
    let refused = said.iter().filter(|said| said.header["ok"] == json!(false));
    let mut unreadable = 0;
    for said in refused {
        assert!(!said.error().contains("internal error"), "{}", said.header);
        unreadable += usize::from(said.error().starts_with("Serialization: "));
    }
    assert!(unreadable > sent / 10, "{unreadable} of {sent} were refused as snapshots");
    for said in said.iter().filter(|said| said.header["result"]["step"]["type"] == "suspended") {
        assert_eq!(said.call().0, "ask", "no capability appears that the policy does not name");
    }
}

/// The same for programs, which anybody may send.
#[test]
fn a_program_that_was_changed_is_refused_or_runs_safely() {
    let mut talk = Talk::new(Framing::Binary, CUTS);
    let program = talk.compile("let t = 0; for (const x of [1, 2, 3]) { t += ask(x); } `${t}`").blob;
    let (mut stream, mut sent) = (Vec::new(), 0);
    for at in 26..program.len() {
        for bit in 0..8 {
            let mut blob = program.clone();
            blob[at] ^= 1 << bit;
            outrigger_vm::snapshot::reseal(&mut blob);
            let options = json!({"capabilities": ["ask"], "limits": {"instruction_budget": 20_000, "heap_limit_bytes": 1_000_000}});
            let request = json!({"protocol_version": 2, "id": at, "method": "start", "options": options});
            stream.extend(frame(request.to_string().as_bytes(), &blob));
            sent += 1;
        }
    }
    let (output, end) = CUTS.check(&stream, |pieces| answers(pieces, Framing::Binary, Budgets::USUAL));
    let said = responses(&output, Framing::Binary);
    assert_eq!((end, said.len()), (Ok(()), sent));
    let internal = said
        .iter()
        .filter(|said| said.header["error"].as_str().is_some_and(|e| e.contains("internal error")));
    assert_eq!(internal.count(), 0);
}

/// What a session keeps is bounded, so that its memory does not grow with the runs it has seen.
#[test]
fn five_thousand_runs_keep_no_more_than_the_budgets() {
    let mut talk = Talk::new(Framing::Binary, CUTS);
    let program = talk.compile("const kept = { n: [1, 2, 3] }; ask(kept.n.length)");
    let id = program.id("program_id");
    let mut stream = talk.sent.clone();
    for run in 0..5000u64 {
        // Another policy each time.
        let options = json!({"capabilities": ["ask"], "limits": {"instruction_budget": 100_000 + run}});
        let request = json!({"protocol_version": 2, "id": run, "method": "start", "program_id": id, "options": options});
        stream.extend(frame(request.to_string().as_bytes(), b""));
    }
    let small = Budgets { snapshot_bytes: 1 << 20, policies: 10, machines: 4, ..Budgets::USUAL };
    let before = resident();
    let (output, end) = answers(std::iter::once(&stream[..]), Framing::Binary, small);
    let said = responses(&output, Framing::Binary);
    assert_eq!((end, said.len()), (Ok(()), 5001));
    let outputs: usize = output.len() + said.iter().map(|said| said.blob.len()).sum::<usize>();
    // Tests of other threads allocate as well: the room is wide, a leak of machines would be hundreds of megabytes.
    let grown = resident().saturating_sub(before);
    assert!(grown < outputs * 4 + (160 << 20), "{grown} bytes more, {outputs} of them answers");
}

/// A world that fails at its second seed, as an engine with a fault would.
struct Failing {
    seeds: u32,
}

impl World for Failing {
    fn now_ms(&mut self) -> f64 {
        NOW
    }

    fn elapsed(&mut self) -> Duration {
        Duration::ZERO
    }

    fn entropy(&mut self) -> u64 {
        self.seeds += 1;
        assert_ne!(self.seeds, 2, "this test panics here");
        7
    }
}

#[test]
fn a_fault_of_the_engine_costs_one_run_and_is_answered() {
    let mut talk = Talk::new(Framing::Binary, CUTS);
    let suspended = talk.run("ask(1) + 1", &["ask"]);
    talk.put(&json!({"method": "start", "program_id": program_of(&talk), "options": {}}), b"");
    talk.put(&talk.cached(&suspended, number(41.0)), b"");
    let serve = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        answers_in(Failing { seeds: 0 }, pieces, Framing::Binary, Budgets::USUAL)
    };
    let (output, end) = CUTS.check(&talk.sent, serve);
    assert_eq!(end, Ok(()));
    let said = responses(&output, Framing::Binary);
    let [.., failed, resumed] = &said[..] else { panic!("two answers at least") };
    assert!(failed.error().starts_with("Runtime: internal error"), "{}", failed.error());
    assert_eq!(resumed.value(), &json!({"Number": {"Finite": 42.0}}), "the run beside it goes on");
}

fn program_of(talk: &Talk) -> String {
    talk.hear().0[0].id("program_id")
}

/// Bytes of this process in memory.
fn resident() -> usize {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
