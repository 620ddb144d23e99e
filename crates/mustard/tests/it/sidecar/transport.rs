//! Frames, lines, their limits, and the ways in which a stream can end.

use outrigger_mustard::protocol::feature::Framing;
use outrigger_mustard::sidecar::Budgets;
use serde_json::json;

use super::kit::{Cuts, SLOW, Talk, answers, both, frame, responses};

const MIB: usize = 1_048_576;

/// How many answers a stream of bytes gets and how it ends, however it is cut.
fn end_of(bytes: &[u8], framing: Framing) -> (usize, Result<(), String>) {
    end_of_cut(Cuts::InTwo, bytes, framing)
}

fn end_of_cut(cuts: Cuts, bytes: &[u8], framing: Framing) -> (usize, Result<(), String>) {
    let (output, end) = cuts.check(bytes, |pieces| answers(pieces, framing, Budgets::USUAL));
    (responses(&output, framing).len(), end)
}

fn compile(padding: usize) -> Vec<u8> {
    let padding = " ".repeat(padding);
    format!(r#"{{"protocol_version":2,"id":1,"method":"compile","source":"1"{padding}}}"#).into_bytes()
}

#[test]
fn a_frame_is_two_little_endian_lengths_a_json_header_and_the_raw_payload_both_ways() {
    let request = frame(&compile(0), b"");
    let (output, end) =
        Cuts::InTwo.check(&request, |pieces| answers(pieces, Framing::Binary, Budgets::USUAL));
    assert_eq!(end, Ok(()));
    let length = |at: usize| u32::from_le_bytes(output[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(output.len(), 8 + length(0) + length(4));
    let header: serde_json::Value = serde_json::from_slice(&output[8..8 + length(0)]).unwrap();
    assert_eq!(header["result"]["kind"], "program");
    assert!(header["result"].get("program_base64").is_none(), "bytes travel in the payload");
    assert!(length(4) > 0);
}

#[test]
fn lines_carry_the_same_messages_with_their_bytes_in_base64() {
    let mut line = compile(0);
    line.push(b'\n');
    let (output, _) = Cuts::InTwo.check(&line, |pieces| answers(pieces, Framing::Lines, Budgets::USUAL));
    let text = String::from_utf8(output).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
    assert!(header["result"]["program_base64"].is_string());
    let mut talk = Talk::new(Framing::Lines, Cuts::InTwo);
    let step = talk.run("ask()", &["ask"]);
    assert!(!step.blob.is_empty(), "a suspended step has snapshot_base64 inside of `step`");
    talk.check_cuts();
}

#[test]
fn a_stream_may_end_between_requests_and_nowhere_else() {
    let one = frame(&compile(0), b"");
    assert_eq!(end_of(b"", Framing::Binary), (0, Ok(())));
    assert_eq!(end_of(b"", Framing::Lines), (0, Ok(())));
    assert_eq!(end_of(&one, Framing::Binary), (1, Ok(())));
    let cut = |at: usize| [&one[..], &one[..at]].concat();
    for (at, part) in
        [(1, "frame length"), (3, "frame length"), (4, "blob length"), (7, "blob length"), (8, "header")]
    {
        let (answered, end) = end_of(&cut(at), Framing::Binary);
        assert_eq!(answered, 1, "what came before is answered");
        assert!(end.unwrap_err().contains(&format!("unexpected EOF while reading {part}")), "{at}");
    }
    let with_blob = frame(br#"{"protocol_version":2,"id":1,"method":"start","options":{}}"#, b"blob");
    let (_, end) = end_of(&with_blob[..with_blob.len() - 1], Framing::Binary);
    assert!(end.unwrap_err().contains("unexpected EOF while reading blob"));
}

#[test]
fn the_last_line_needs_no_newline_and_a_carriage_return_is_no_part_of_a_line() {
    let line = compile(0);
    assert_eq!(end_of(&line, Framing::Lines), (1, Ok(())));
    assert_eq!(end_of(&[&line[..], b"\r\n", &line[..], b"\n"].concat(), Framing::Lines), (2, Ok(())));
}

#[test]
fn frames_and_lines_that_say_nothing_are_skipped() {
    let one = frame(&compile(0), b"");
    let nothing = [&[0; 8][..], &frame(b" \r\n\t ", b""), &one, &[0; 8]].concat();
    assert_eq!(end_of(&nothing, Framing::Binary), (1, Ok(())));
    let (_, end) = end_of(&frame(b"  ", b"x"), Framing::Binary);
    assert!(end.unwrap_err().contains("invalid request header"));
    assert_eq!(end_of(&[b"\n \r\n\t\n", &compile(0)[..], b"\n\n"].concat(), Framing::Lines), (1, Ok(())));
}

#[test]
fn a_frame_of_a_mebibyte_is_answered_and_one_byte_more_is_fatal_before_it_is_parsed() {
    let base = compile(0).len();
    let at = frame(&compile(MIB - base), b"");
    assert_eq!(end_of_cut(SLOW, &at, Framing::Binary), (1, Ok(())));
    let past = frame(&compile(MIB - base + 1), b"");
    let (answered, end) = end_of_cut(SLOW, &past, Framing::Binary);
    assert_eq!(answered, 0);
    assert!(end.unwrap_err().contains("request frame exceeds maximum size"));
    // The lengths alone are enough, whatever would have followed, and blob and header count together.
    for lengths in [[MIB as u32 + 1, 0], [0, MIB as u32 + 1], [1, MIB as u32], [u32::MAX, u32::MAX]] {
        let bytes = lengths.map(u32::to_le_bytes).concat();
        let (_, end) = end_of(&bytes, Framing::Binary);
        assert!(end.unwrap_err().contains("request frame exceeds maximum size"));
    }
}

#[test]
fn a_line_of_a_mebibyte_is_answered_and_one_byte_more_is_fatal_before_it_is_parsed() {
    let base = compile(0).len();
    let at = [compile(MIB - base), b"\n".to_vec()].concat();
    assert_eq!(end_of_cut(SLOW, &at, Framing::Lines), (1, Ok(())));
    assert_eq!(
        end_of_cut(SLOW, &compile(MIB + 1 - base), Framing::Lines),
        (1, Ok(())),
        "no newline, one byte more"
    );
    let past = [compile(MIB + 1 - base), b"\n".to_vec()].concat();
    for past in [past, compile(MIB + 2 - base), vec![b'x'; 2 * MIB]] {
        let (answered, end) = end_of_cut(SLOW, &past, Framing::Lines);
        assert_eq!(answered, 0);
        assert!(end.unwrap_err().contains("request line exceeds maximum size"));
    }
}

#[test]
fn a_response_may_be_larger_than_any_request() {
    both(|talk| {
        let said = talk.start(
            "'x'.repeat(3000000)",
            json!({"limits": {"heap_limit_bytes": 64_000_000, "instruction_budget": 100_000_000}}),
        );
        assert_eq!(said.value()["String"].as_str().unwrap().len(), 3_000_000);
    });
}

#[test]
fn what_is_not_text_or_not_a_request_ends_the_session_with_a_reason() {
    for bad in [
        &b"\xff\xfe"[..],
        b"nonsense",
        b"{",
        b"[]",
        b"null",
        b"{}",
        br#"{"id":1}x"#,
        br#"{"protocol_version":2,"id":1}"#,
        br#"{"protocol_version":2,"id":1,"method":"nope"}"#,
        br#"{"protocol_version":2,"id":1,"method":null}"#,
        br#"{"protocol_version":2,"id":1,"method":"release"}"#,
        br#"{"protocol_version":2,"id":1,"method":"inspect"}"#,
        br#"{"protocol_version":2,"method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":null,"method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":-1,"method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":1.0,"method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":"1","method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":18446744073709551616,"method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":1,"id":1,"method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":1,"method":"compile","method":"compile","source":""}"#,
        br#"{"protocol_version":2,"id":1,"method":"compile","source":"","source":""}"#,
        br#"{"protocol_version":2,"id":1,"method":"start","options":{"limits":{},"limits":{}}}"#,
    ] {
        let shown = String::from_utf8_lossy(bad);
        let good = compile(0);
        let frames = [frame(&good, b""), frame(bad, b""), frame(&good, b"")].concat();
        let (answered, end) = end_of(&frames, Framing::Binary);
        assert_eq!(answered, 1, "what came before is answered, what comes after is not: {shown}");
        assert!(end.unwrap_err().contains("invalid request header"), "{shown}");
        let lines = [&good[..], b"\n", bad, b"\n", &good, b"\n"].concat();
        let (answered, end) = end_of(&lines, Framing::Lines);
        assert_eq!(answered, 1, "{shown}");
        assert!(end.unwrap_err().contains("invalid request"), "{shown}");
    }
    let (_, end) = end_of(&frame(&compile(0), b"blob"), Framing::Binary);
    assert!(end.unwrap_err().contains("invalid request header"), "compile takes no blob");
}

#[test]
fn requests_are_answered_one_by_one_in_order_and_nothing_else_is_said() {
    both(|talk| {
        for id in [5u64, 5, 0, u64::MAX] {
            talk.put(&json!({"id": id, "method": "compile", "source": "1"}), b"");
        }
        let (all, end) = talk.hear();
        assert_eq!(end, Ok(()));
        let ids: Vec<u64> = all.iter().map(|said| said.header["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [5, 5, 0, u64::MAX]);
    });
}
