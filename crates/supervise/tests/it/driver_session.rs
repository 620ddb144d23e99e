//! The conversation with a child: the pipes change hands without losing a byte, heartbeats are watched, faults are told.

use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_supervise::driver::{Opened, Request, Session};
use outrigger_supervise::launch::Status;
use outrigger_supervise::ready::{Before, Gate, LineMatch, StdoutGate};
use outrigger_supervise::spec::{Spec, Spoken, Stream, Tee};
use outrigger_supervise::state::{
    Ask, Cause, Counted, Fault, Final, Heartbeat, Incarnation, Ladder, Phase, Restart,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::driver_kit::{LADDER, retry, secs, shell, shell_that_says_up, story, supervisor, when};
use crate::launch_kit::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("the_session_gets_every_byte_after_the_ready_line", bytes_after_the_ready_line),
        trial("a_ready_line_that_comes_in_pieces_is_recognised", ready_line_in_pieces),
        trial("a_marker_on_stderr_makes_a_child_ready", stderr_marker),
        trial("a_child_is_ready_when_its_session_says_that_it_is_attached", attach),
        trial("a_child_that_says_something_else_first_breaks_its_protocol", wrong_first_line),
        trial("a_ready_line_may_be_as_long_as_the_limit_and_no_longer", ready_line_limit),
        trial("a_child_that_closes_stdout_before_it_is_ready_is_not_waited_for", closes_stdout),
        trial("a_child_that_says_ready_and_leaves_at_once_was_ready", ready_and_gone),
        trial("a_session_asks_its_child_to_leave_and_no_signal_is_needed", asked_to_leave),
        trial("a_child_that_nobody_speaks_with_gets_sigterm_at_once", nobody_to_ask),
        trial("a_child_whose_pings_are_answered_lives_and_dies_when_they_are_not", pings),
        trial("a_child_that_beats_lives_and_one_that_falls_silent_dies", beats),
        trial("a_fault_that_the_session_finds_is_in_the_report", fault),
        trial("what_the_session_of_an_earlier_process_says_is_ignored", stale_session),
        trial("extra_descriptors_are_made_afresh_for_every_process", extra_descriptors),
        trial("a_child_that_ended_for_good_gives_no_more_sessions", no_more_sessions),
        trial("the_report_shows_the_last_frames_that_the_session_kept", kept_frames),
        trial("a_tee_gets_every_byte_of_both_streams_however_slowly_it_reads", slow_tee),
        trial("a_tee_that_nobody_reads_makes_the_child_wait_but_not_a_kill", unread_tee),
    ]
}

fn json_ready(before: Before, max_line_bytes: usize) -> Gate {
    Gate::Stdout(StdoutGate { line: LineMatch::json("/type", "ready"), before, max_line_bytes })
}

async fn say(session: &mut Session, text: &str) {
    session.stdin.as_mut().expect("a pipe").write_all(text.as_bytes()).await.expect("the child reads");
}

async fn hear(session: &mut Session, count: usize) -> String {
    let mut bytes = vec![0; count];
    session.stdout.as_mut().expect("a pipe").read_exact(&mut bytes).await.expect("the child writes");
    String::from_utf8(bytes).expect("UTF-8")
}

async fn bytes_after_the_ready_line() {
    let script = r#"printf '\n{"type":"ready","version":1}\r\nfirst\nsec'; cat"#;
    let spec = Spec { ready: when(json_ready(Before::Refuse, 1000), secs(20)), ..shell(script) }.spoken_to();
    let child = supervisor().start(spec).expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    assert_eq!(session.ready().await, Some(Opened::Line(br#"{"type":"ready","version":1}"#.to_vec())));
    say(&mut session, "ond\n").await;
    assert_eq!(hear(&mut session, 13).await, "first\nsecond\n");
    drop(session.stdin.take());
    let mut rest = String::new();
    session.stdout.take().expect("a pipe").read_to_string(&mut rest).await.expect("the child writes");
    assert_eq!(rest, "");
    assert_eq!(child.wait().await.why, Final::Voluntary);
}

async fn ready_line_in_pieces() {
    let script = r#"printf 'noise\n{"type":'; read line; printf '"ready"}\nafter'; sleep 1000"#;
    let mut spec =
        Spec { ready: when(json_ready(Before::Skip, 1000), secs(20)), ..shell(script) }.spoken_to();
    // The script waits for a line, but the session comes only when it is ready: so it gets one from elsewhere.
    spec.program.args[1] = format!("printf 'go\\n' | ({script})").into();
    let child = supervisor().start(spec).expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    assert_eq!(session.ready().await, Some(Opened::Line(br#"{"type":"ready"}"#.to_vec())));
    assert_eq!(hear(&mut session, 5).await, "after");
    assert_eq!(child.stdout_tail()[0].text, "noise");
}

async fn stderr_marker() {
    let script = r#"echo 'loading' >&2; read line; echo '__READY__:{"status":"ok"}' >&2; sleep 1000"#;
    let gate = Gate::Stderr(LineMatch::Prefix("__READY__:".into()));
    let child = supervisor()
        .start(Spec { ready: when(gate, secs(20)), ..shell(script) }.spoken_to())
        .expect("a good spec");
    let mut session = child.next_session().await.expect("the session comes with the process");
    assert_eq!(child.status().phase, Phase::Starting);
    session.handle().attached().await;
    say(&mut session, "go\n").await;
    assert_eq!(session.ready().await, Some(Opened::Line(br#"__READY__:{"status":"ok"}"#.to_vec())));
    let lines: Vec<_> = child.stderr_tail().into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["loading", r#"__READY__:{"status":"ok"}"#]);
}

async fn attach() {
    let child = supervisor()
        .start(Spec { ready: when(Gate::Attach, secs(20)), ..shell("sleep 1000") }.spoken_to())
        .expect("a good spec");
    let mut session = child.next_session().await.expect("the session comes with the process");
    assert_eq!(child.status().phase, Phase::Starting);
    session.handle().attached().await;
    assert_eq!(session.ready().await, Some(Opened::Attached));
    assert_eq!(child.status().phase, Phase::Ready);
}

async fn wrong_first_line() {
    let spec = Spec {
        ready: when(json_ready(Before::Refuse, 1000), secs(20)),
        ..shell("echo Welcome!; sleep 1000")
    };
    for spec in [spec.clone(), spec.spoken_to()] {
        let child = supervisor().start(spec).expect("a good spec");
        let outcome = child.wait().await;
        assert_eq!(outcome.why, Final::NotRestarted(Cause::ProtocolViolation));
        let report = outcome.report.expect("it ran");
        assert_eq!(
            report.detail.as_deref(),
            Some(
                "it waits for a JSON message with /type = \"ready\" on stdout, but its first line was \"Welcome!\""
            )
        );
        assert_eq!(report.stdout[0].text, "Welcome!");
        assert!(child.next_session().await.is_none_or(|session| session.stdout.is_none()));
    }
}

async fn ready_line_limit() {
    let life = async |max_line_bytes| {
        let spec = Spec {
            ready: when(json_ready(Before::Skip, max_line_bytes), secs(20)),
            ..shell(r#"echo '{"type":"ready"}'"#)
        };
        supervisor().start(spec.spoken_to()).expect("a good spec").wait().await
    };
    assert_eq!(life(16).await.why, Final::Voluntary);
    let outcome = life(15).await;
    let detail = outcome.report.and_then(|report| report.detail.clone()).expect("a detail");
    assert!(detail.contains("exceeds maximum size of 15 bytes"), "{detail}");
}

async fn closes_stdout() {
    let spec =
        Spec { ready: when(json_ready(Before::Skip, 100), secs(1000)), ..shell("exec >&-; sleep 1000") };
    let outcome = supervisor().start(spec.spoken_to()).expect("a good spec").wait().await;
    assert_eq!(outcome.why, Final::NotRestarted(Cause::ChannelLost));
    let report = outcome.report.expect("it ran");
    assert_eq!(report.detail.as_deref(), Some("it closed stdout before it was ready"));
}

async fn ready_and_gone() {
    for _ in 0..20 {
        let child =
            supervisor().start(shell_that_says_up("echo up; exit 0").spoken_to()).expect("a good spec");
        assert_eq!(child.wait().await.why, Final::Voluntary);
        let mut session = child.next_session().await.expect("its session is still there");
        assert_eq!(session.ready().await, Some(Opened::Line(b"up".to_vec())));
        assert_eq!(story(&child).await, "starting ready (voluntary) exited");
    }
}

async fn asked_to_leave() {
    let child = supervisor()
        .start(shell_that_says_up("trap '' TERM; echo up; read line; exit 0").spoken_to())
        .expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    session.ready().await.expect("it says up");
    let dialect = async {
        let request = session.requests.recv().await;
        assert_eq!(request, Some(Request::Leave { within: secs(1000) }));
        drop(session.stdin.take());
    };
    let (outcome, ()) = tokio::join!(child.stop(Ladder { ask: secs(1000), term: secs(1000) }), dialect);
    assert_eq!(outcome.report.expect("it ran").status, Some(Status::Code(0)));
    assert_eq!(story(&child).await, "starting ready stopping_ask (requested) exited");
}

async fn nobody_to_ask() {
    let patient = Ladder { ask: secs(1000), term: secs(1000) };
    let untaken =
        supervisor().start(shell_that_says_up("echo up; sleep 1000").spoken_to()).expect("a good spec");
    untaken.watch().wait_for(|status| status.phase == Phase::Ready).await.expect("it says up");
    untaken.stop(patient).await;
    let expected = "starting ready stopping_ask stopping_term (requested) exited";
    assert_eq!(story(&untaken).await, expected, "a session that nobody took cannot ask");

    let dropped =
        supervisor().start(shell_that_says_up("echo up; sleep 1000").spoken_to()).expect("a good spec");
    drop(dropped.next_session().await.expect("a session").requests);
    dropped.stop(patient).await;
    assert_eq!(story(&dropped).await, expected, "nor one that was dropped");

    let unable =
        supervisor().start(shell_that_says_up("echo up; sleep 1000").spoken_to()).expect("a good spec");
    let mut session = unable.next_session().await.expect("a session");
    let handle = session.handle();
    let (_, ()) = tokio::join!(unable.stop(patient), async {
        session.requests.recv().await.expect("the request");
        handle.cannot_ask().await;
    });
    assert_eq!(story(&unable).await, expected, "nor one that says so");
}

async fn pings() {
    let missed = NonZeroU32::new(2).expect("not zero");
    let heartbeat = Heartbeat::WePing { every: Duration::from_millis(300), missed };
    let spec = Spec { heartbeat, ..shell("sleep 1000") };
    let child = supervisor().start(spec.spoken_to()).expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    for number in 1..=5 {
        let Some(Request::Ping(seq)) = session.requests.recv().await else { panic!("a ping was due") };
        assert_eq!(seq.0, number);
        session.handle().pong(seq).await;
    }
    let outcome = child.wait().await;
    assert_eq!(outcome.why, Final::NotRestarted(Cause::Unhealthy));
    assert_eq!(story(&child).await, "starting ready unresponsive stopping_kill (unhealthy) exited");
}

async fn beats() {
    let heartbeat = Heartbeat::TheyBeat { silence: secs(1), counted: Counted::WhileStreaming };
    let child = supervisor()
        .start(Spec { heartbeat, ..shell("while :; do echo beat; sleep 0.05; done") }.spoken_to())
        .expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    let handle = session.handle();
    handle.stream_began().await;
    let begin = std::time::Instant::now();
    while begin.elapsed() < secs(2) {
        assert_eq!(hear(&mut session, 5).await, "beat\n");
        handle.beat();
    }
    assert_eq!(child.status().phase, Phase::Ready, "it beat for longer than the silence limit");
    handle.stream_ended().await;
    handle.stream_began().await;
    assert_eq!(child.wait().await.why, Final::NotRestarted(Cause::Unhealthy));
}

async fn fault() {
    let child = supervisor().start(shell("sleep 1000").spoken_to()).expect("a good spec");
    let session = child.next_session().await.expect("a session");
    session.handle().fault(Fault::ProtocolViolation, "line 7 is not JSON: \"{oops\"").await;
    let report = child.wait().await.report.expect("it ran");
    assert_eq!(report.cause, Cause::ProtocolViolation);
    assert_eq!(report.detail.as_deref(), Some("line 7 is not JSON: \"{oops\""));
}

async fn stale_session() {
    let child =
        supervisor().start(shell_that_says_up("echo up; sleep 1000").spoken_to()).expect("a good spec");
    let first = child.next_session().await.expect("a session");
    child.restart(Ladder { ask: Duration::ZERO, ..LADDER }).await;
    let mut second = child.next_session().await.expect("another session");
    second.ready().await.expect("it says up again");
    first.handle().fault(Fault::ProtocolViolation, "about the first").await;
    // Whatever comes after it in the same queue proves that it was heard.
    second.handle().fault(Fault::Unhealthy, "about the second").await;
    let report = child.wait().await.report.expect("it ran");
    assert_eq!((report.cause, report.detail.as_deref()), (Cause::Unhealthy, Some("about the second")));
}

async fn extra_descriptors() {
    let (ends_sender, ends) = std::sync::mpsc::channel();
    let spec = Spec {
        restart: Restart::OnFailure(retry()),
        ask: Ask::Skip,
        ..shell("read line <&3; echo \"got $line\" >&3; exit 1")
    };
    let spec = spec.extra(move |incarnation| {
        let (ours, theirs) = UnixStream::pair()?;
        ends_sender.send((incarnation, ours)).map_err(std::io::Error::other)?;
        Ok(vec![OwnedFd::from(theirs)])
    });
    let child = supervisor().start(spec).expect("a good spec");
    for number in 1..=3 {
        let session = child.next_session().await.expect("a session");
        assert_eq!(session.incarnation, Incarnation(number));
        let (incarnation, mut ours) = ends.try_recv().expect("made before the process");
        assert_eq!(incarnation, Incarnation(number));
        let answer = tokio::task::spawn_blocking(move || {
            ours.write_all(b"hello\n").expect("the child reads");
            let mut answer = String::new();
            ours.read_to_string(&mut answer).expect("the child writes, and nobody else holds its end");
            answer
        });
        assert_eq!(answer.await.expect("an answer"), "got hello\n");
    }
    assert_eq!(child.wait().await.why, Final::CrashLoop(Cause::Crash));
}

async fn no_more_sessions() {
    let child = supervisor().start(shell("echo done").spoken_to()).expect("a good spec");
    child.wait().await;
    let mut session = child.next_session().await.expect("what it said can still be read");
    let mut said = String::new();
    session.stdout.take().expect("a pipe").read_to_string(&mut said).await.expect("the pipe is whole");
    assert_eq!(said, "done\n");
    assert!(child.next_session().await.is_none());
    assert!(child.next_session().await.is_none());
}

async fn slow_tee() {
    let (tee, mut spoken) = tokio::sync::mpsc::channel(1);
    // More than the pipe, the tee and a turn of reading hold together, so that the child is gone before the end is read.
    let script = "head -c 1500000 /dev/zero; head -c 1500000 /dev/zero >&2";
    let child = supervisor().start(Spec { tee: Some(Tee::new(tee)), ..shell(script) }).expect("a good spec");
    let (mut stdout, mut stderr) = (0, 0);
    while let Some(Spoken { stream, bytes, .. }) = spoken.recv().await {
        match stream {
            Stream::Stdout => stdout += bytes.len(),
            Stream::Stderr => stderr += bytes.len(),
        }
        tokio::task::yield_now().await;
    }
    assert_eq!((stdout, stderr), (1_500_000, 1_500_000));
    assert_eq!(child.wait().await.why, Final::Voluntary);
}

async fn unread_tee() {
    let (tee, mut spoken) = tokio::sync::mpsc::channel(1);
    let script = "while :; do echo words; done";
    let child = supervisor().start(Spec { tee: Some(Tee::new(tee)), ..shell(script) }).expect("a good spec");
    assert!(spoken.recv().await.is_some());
    assert_eq!(child.kill().await.why, Final::Requested);
    drop(spoken);
}

async fn kept_frames() {
    let child = supervisor().start(shell("echo up; read line; exit 3").spoken_to()).expect("a good spec");
    let mut session = child.next_session().await.expect("a session");
    let handle = session.handle();
    let mut stdout = session.stdout.take().expect("the session has stdout");
    let mut said = [0; 3];
    stdout.read_exact(&mut said).await.expect("it says up");
    for number in 0..10 {
        handle.keep_frame(format!("frame {number}").as_bytes());
    }
    handle.keep_frame(&[b'x'; 1500]);
    drop(session.stdin.take());
    let report = child.wait().await.report.expect("it had a process");
    let shown: Vec<_> = report.stdout.iter().map(|line| (line.text.len(), line.cut_bytes)).collect();
    assert_eq!(shown, [(7, 0), (7, 0), (7, 0), (7, 0), (1000, 500)], "the last five, the longest cut");
    assert_eq!(report.stdout[0].text, "frame 6");
    handle.keep_frame(b"too late, but harmless");
}
