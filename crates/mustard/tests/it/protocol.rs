//! Messages as types: what one end writes the other reads, whatever it is, in both framings.

use outrigger_mustard::protocol::feature::{Features, Framing};
use outrigger_mustard::protocol::ids::{Digest, PolicyId, ProgramId, SnapshotId};
use outrigger_mustard::protocol::limits::Limits;
use outrigger_mustard::protocol::request::{
    Answer, Auth, Claim, Compile, Hello, HostError, Method, Payload, Policy, Release, Request, Resume, Start,
};
use outrigger_mustard::protocol::response::{
    Call, Code, Detail, Failure, Greeting, Inspection, Kind, Place, Profile, Released, Reply, Response,
    SidecarLimits, Suspended,
};
use outrigger_vm::boundary::Plain;

fn value() -> Plain {
    let list = vec![Plain::Hole, Plain::Number(-0.0), Plain::Number(f64::INFINITY), Plain::Number(0.1)];
    Plain::Object(vec![
        ("a\"\n".into(), Plain::Array(list)),
        ("b".into(), Plain::String("ü💥\u{0}".into())),
        ("c".into(), Plain::Null),
        ("d".into(), Plain::Undefined),
        ("e".into(), Plain::Bool(true)),
    ])
}

fn claims() -> [Claim<'static>; 2] {
    let policy = Policy {
        capabilities: vec!["a".into(), "b".into()],
        limits: Some(Limits { heap_limit_bytes: Some(u64::MAX), ..Limits::DEFAULTS }),
        snapshot_id: Some("s".into()),
        snapshot_key_base64: Some("k".into()),
        snapshot_key_digest: Some("d".into()),
        snapshot_token: Some("t".into()),
    };
    let auth =
        Auth { snapshot_key_base64: "k".into(), snapshot_key_digest: "d".into(), snapshot_token: "t".into() };
    [
        Claim { snapshot_id: None, policy: Some(policy), policy_id: None, auth: None },
        Claim { snapshot_id: Some("s".into()), policy: None, policy_id: Some("p".into()), auth: Some(auth) },
    ]
}

fn requests() -> Vec<Request<'static>> {
    let [in_full, by_id] = claims();
    let error =
        HostError { name: "E".into(), message: "m".into(), code: Some("C".into()), details: Some(value()) };
    let plain_error = HostError { name: String::new(), message: String::new(), code: None, details: None };
    let resume = |claim: &Claim<'static>, payload| {
        let claim = claim.clone();
        Method::Resume(Resume { claim, payload, profile: true, deadline_ms: Some(7), now_ms: Some(1.5) })
    };
    let start = Start {
        program_id: Some("p".into()),
        inputs: vec![("x".into(), value())],
        capabilities: vec!["ask".into()],
        limits: Limits { instruction_budget: Some(0), ..Limits::DEFAULTS },
        profile: false,
        deadline_ms: None,
        seed: Some(u64::MAX),
        now_ms: Some(-1e12),
    };
    let methods = vec![
        Method::Compile(Compile { source: "a\n\"b\"".into(), lenient_return: true }),
        Method::Compile(Compile { source: "".into(), lenient_return: false }),
        Method::Start(start),
        resume(&in_full, Payload::Answer(Answer::Value(value()))),
        resume(&by_id, Payload::Answer(Answer::Error(error.clone()))),
        resume(&by_id, Payload::Cancelled),
        resume(
            &by_id,
            Payload::Answers(vec![(2, Answer::Error(plain_error)), (u64::MAX, Answer::Value(value()))]),
        ),
        Method::Inspect(in_full),
        Method::Inspect(by_id),
        Method::Hello(Hello::asking(Features::all(), Some(5))),
        Method::Release(Release {
            programs: vec!["x".into()],
            snapshots: vec![],
            policies: vec!["y".into()],
        }),
    ];
    let with_blob =
        |method: &Method<'_>| matches!(method, Method::Start(_) | Method::Resume(_) | Method::Inspect(_));
    let request = |method| {
        let blob = if with_blob(&method) { vec![0, 255, 10, 13] } else { Vec::new() };
        Request { id: u64::MAX, method, blob: blob.into() }
    };
    methods.into_iter().map(request).collect()
}

#[test]
fn a_sidecar_reads_every_request_that_a_host_writes() {
    for request in requests() {
        let mut frame = Vec::new();
        request.encode(Framing::Binary, &mut frame);
        let length = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
        let (header, blob) = frame[8..].split_at(length(0));
        assert_eq!(blob.len(), length(4));
        let header = std::str::from_utf8(header).unwrap();
        assert_eq!(Request::decode(header, blob, Features::all()).as_ref(), Ok(&request));
        let mut line = Vec::new();
        request.encode(Framing::Lines, &mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        assert_eq!(Request::decode_line(line.trim_end(), Features::all()).as_ref(), Ok(&request));
    }
}

fn responses() -> Vec<Response> {
    let digest = Digest::of(b"x");
    let place = || Place { function: "f".into(), line: 1, column: u64::MAX };
    let call = |call_id| Call { call_id, capability: "ask".into(), args: vec![value(), Plain::Null] };
    let suspended = |calls| {
        Reply::Suspended(Suspended { snapshot_id: SnapshotId(digest), policy_id: PolicyId(digest), calls })
    };
    let limits = SidecarLimits {
        max_frame_bytes: 1,
        max_frame_bytes_ceiling: 2,
        program_cache_bytes: 3,
        snapshot_cache_bytes: 4,
        policy_cache_entries: 5,
    };
    let greeting = Greeting {
        name: "n".into(),
        version: "v".into(),
        protocol_versions: vec![2, 3],
        engine: "e".into(),
        features: vec!["f".into()],
        enabled: vec![],
        limits,
        landlock: "l".into(),
        seccomp: "s".into(),
    };
    let inspection = Inspection {
        snapshot_id: SnapshotId(digest),
        bytes: 1,
        calls: vec![call(Some(4))],
        capabilities: vec!["ask".into()],
        instructions_used: 2,
        heap_bytes: 3,
        heap_records: 4,
        frames: vec![place()],
    };
    let detail = Detail {
        kind: Kind::RUNTIME,
        code: Code::from("a_code_of_the_future".to_owned()),
        message: "m".into(),
        name: Some("N".into()),
        line: Some(1),
        column: Some(2),
        source_line: Some("\tx".into()),
        frames: vec![place(), place()],
        error_code: Some("C".into()),
        details: Some(value()),
    };
    let outcomes = vec![
        Ok(Reply::Program(ProgramId(digest))),
        Ok(Reply::Completed(value())),
        Ok(suspended(vec![call(None)])),
        Ok(suspended(vec![call(Some(1)), call(Some(u64::MAX))])),
        Ok(Reply::Hello(greeting)),
        Ok(Reply::Released(Released { programs: 1, snapshots: 2, policies: 3 })),
        Ok(Reply::Inspection(inspection)),
        Err(Failure { error: "e\n  at f [1..2]".into(), detail: None }),
        Err(Failure { error: String::new(), detail: Some(Box::new(detail)) }),
    ];
    let profile = |outcome: &Result<Reply, Failure>| {
        outcome.is_ok().then_some(Profile { execution_ns: 1, response_prepare_ns: u64::MAX })
    };
    let response = |outcome| Response { id: 9, profile: profile(&outcome), outcome };
    outcomes.into_iter().map(response).collect()
}

#[test]
fn a_host_reads_every_response_that_a_sidecar_writes() {
    for response in responses() {
        let blob: &[u8] = match &response.outcome {
            Ok(Reply::Program(_) | Reply::Suspended(_)) => &[0, 255, 10, 13],
            _ => &[],
        };
        let mut frame = Vec::new();
        response.encode(blob.len(), &mut frame);
        let length = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((8 + length(0), length(4)), (frame.len(), blob.len()));
        let header = std::str::from_utf8(&frame[8..]).unwrap();
        assert_eq!(Response::decode(header).as_ref(), Ok(&response));
        let mut line = Vec::new();
        response.encode_line(blob, &mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        assert_eq!(Response::decode_line(line.trim_end()), Ok((response, blob.to_vec())));
    }
}

#[test]
fn a_host_passes_over_members_it_does_not_know_and_names_what_it_misses() {
    let text = r#"{"protocol_version":2,"new":[1],"id":1,"ok":true,"result":{"kind":"step","new":{},"step":{"type":"completed","value":"Null","new":0}}}"#;
    assert_eq!(Response::decode(text).unwrap().outcome, Ok(Reply::Completed(Plain::Null)));
    for (text, words) in [
        ("", "the text ends"),
        ("[]", "must be a JSON object"),
        (r#"{"ok":true}"#, "`id` is missing"),
        (r#"{"id":1,"ok":true}"#, "`result` is missing"),
        (r#"{"id":1,"ok":true,"result":{"kind":"else"}}"#, "unknown kind of result `else`"),
        (r#"{"id":1,"ok":true,"result":{"kind":"program","program_id":"x"}}"#, "64 lower-case hex digits"),
        (r#"{"id":1,"ok":false}"#, "`error` is missing"),
    ] {
        let error = Response::decode(text).unwrap_err().to_string();
        assert!(error.starts_with("invalid response: ") && error.contains(words), "{error}");
    }
}
