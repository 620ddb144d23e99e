//! What extensions get to see of events: frozen, and never longer than a frame may be.

use proptest::prelude::*;

use super::*;
use crate::mesh::{Attachment, AttachmentKind, Direction, Method};
use crate::protocol::{Dropped, EventCall};

fn message(content: &str, title: &str) -> Message {
    Message {
        hash: MessageHash([1; 32]),
        source: Address([2; 16]),
        destination: Address([3; 16]),
        direction: Direction::Incoming,
        state: DeliveryState::Delivered,
        method: Method::Direct,
        title: title.into(),
        content: content.into(),
        lossy: false,
        attachments: Vec::new(),
        reply_to: None,
        timestamp_ms: 1_700_000_000_000,
        rssi: Some(-71.5),
        snr: None,
        quality: None,
    }
}

fn seen(event: &MeshEvent, names: Names, max_frame_bytes: usize) -> String {
    let data = Telling::new(event, 0).data(View::new(names, max_frame_bytes));
    data.expect("every event can be written").get().to_owned()
}

#[test]
fn the_data_of_every_topic_is_frozen() {
    let online = |name: Option<&str>| MeshEvent::Online {
        address: Address([7; 16]),
        hops: Some(2),
        name: name.map(Into::into),
    };
    let all = [
        MeshEvent::Received(message("hello", "hi")),
        MeshEvent::Sent(message("hello", "")),
        MeshEvent::State {
            hash: MessageHash([1; 32]),
            state: DeliveryState::Delivered,
            previous: DeliveryState::Sent,
        },
        online(Some("Ada")),
        online(None),
        MeshEvent::Offline { address: Address([7; 16]) },
        MeshEvent::Contact { id: 5, change: Change::Updated },
    ];
    let lines: Vec<String> = all
        .iter()
        .map(|event| format!("{} {}", Topic::of(event), seen(event, Names::Shown, 65_536)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_name_is_shown_only_to_those_who_may_read_contacts() {
    let event = MeshEvent::Online { address: Address([7; 16]), hops: None, name: Some("Ada".into()) };
    let hash = "07".repeat(16);
    assert_eq!(
        seen(&event, Names::Shown, 1024),
        format!(r#"{{"destinationHash":"{hash}","hops":null,"displayName":"Ada"}}"#)
    );
    assert_eq!(seen(&event, Names::Hidden, 1024), format!(r#"{{"destinationHash":"{hash}","hops":null}}"#));
    let long = MeshEvent::Online { address: Address([7; 16]), hops: None, name: Some("é".repeat(1000)) };
    assert!(seen(&long, Names::Shown, 1024).contains(&format!("\"{}\"", "é".repeat(MAX_NAME))));
}

#[test]
fn a_text_is_whole_at_the_limit_and_cut_and_flagged_one_past_it() {
    let whole =
        seen(&MeshEvent::Received(message(&"x".repeat(MAX_CONTENT_BYTES), "")), Names::Hidden, 1 << 16);
    assert!(whole.contains(&"x".repeat(MAX_CONTENT_BYTES)) && whole.contains(r#""contentTruncated":false"#));
    let cut =
        seen(&MeshEvent::Received(message(&"x".repeat(MAX_CONTENT_BYTES + 1), "")), Names::Hidden, 1 << 16);
    assert!(cut.contains(r#""contentTruncated":true"#) && !cut.contains(&"x".repeat(MAX_CONTENT_BYTES + 1)));
    let half = format!("{}é", "x".repeat(MAX_CONTENT_BYTES - 1));
    let cut = seen(&MeshEvent::Received(message(&half, "")), Names::Hidden, 1 << 16);
    assert!(cut.contains(r#""contentTruncated":true"#) && !cut.contains('é'), "no half characters");
}

#[test]
fn an_event_is_written_once_for_all_who_see_the_same() {
    let event = MeshEvent::Received(message("hello", ""));
    let mut telling = Telling::new(&event, 0);
    let mut data = |names, frame| telling.data(View::new(names, frame)).expect("it can be written");
    let first = data(Names::Hidden, 4096);
    for (names, frame) in [(Names::Shown, 1024), (Names::Hidden, 1 << 22), (Names::Shown, 65_536)] {
        assert!(Arc::ptr_eq(&first, &data(names, frame)), "{names:?} {frame}");
    }
    let event = MeshEvent::Online { address: Address([7; 16]), hops: None, name: Some("Ada".into()) };
    let mut telling = Telling::new(&event, 0);
    let mut data = |names| telling.data(View::new(names, 1024)).expect("it can be written");
    let (shown, hidden) = (data(Names::Shown), data(Names::Hidden));
    assert!(!Arc::ptr_eq(&shown, &hidden) && Arc::ptr_eq(&shown, &data(Names::Shown)));
    assert_eq!(telling.written.len(), 2);
}

#[test]
fn the_envelope_has_room_for_the_largest_numbers() {
    let data = RawValue::from_string("{}".into()).expect("it is JSON");
    let call = EventCall {
        seq: u64::MAX,
        topic: Cow::Borrowed("message.received"),
        time_ms: u64::MAX,
        data: Cow::Borrowed(&*data),
        dropped: Some(Dropped { count: u64::MAX, from_seq: u64::MAX, to_seq: u64::MAX }),
    };
    let params = to_raw_value(&call).expect("it can be written");
    let mut line = Vec::new();
    let id = outrigger_wire::rpc::Id::from(u64::MAX);
    outrigger_wire::rpc::encode_request(&mut line, &id, "sep.event", Some(&params));
    assert!(line.len() - "{}".len() <= ENVELOPE_BYTES, "{}", line.len());
}

proptest! {
    /// Whatever is in a message, the event fits into the smallest frame that a manifest can ask for.
    #[test]
    fn no_event_is_longer_than_its_frame(
        content in "\\PC{0,300}|[\\x00-\\x1f\"\\\\é𝄞a]{0,2000}", title in "[\\x00\"é a]{0,400}",
        attachments in 0usize..20, frame in 1024usize..6000,
    ) {
        let mut message = message(&content, &title);
        message.state = DeliveryState::Generating;
        message.method = Method::Opportunistic;
        message.reply_to = Some(MessageHash([9; 32]));
        message.timestamp_ms = u64::MAX;
        (message.rssi, message.snr, message.quality) = (Some(-1.234_567_890_123_45e-300), Some(-1.5e-300), Some(-0.1e-300));
        let one = Attachment { kind: AttachmentKind::Telemetry, name: Some("a name".into()), size: u64::MAX };
        message.attachments = vec![one; attachments];
        let event = MeshEvent::Received(message);
        let data = seen(&event, Names::Shown, frame);
        prop_assert!(data.len() <= frame - ENVELOPE_BYTES, "{} in {frame}", data.len());
        let value: serde_json::Value = serde_json::from_str(&data).expect("it is JSON");
        let shown = value["message"]["content"].as_str().expect("there is a text");
        prop_assert!(content.starts_with(shown));
        prop_assert_eq!(value["message"]["contentTruncated"].as_bool(), Some(shown.len() < content.len()));
    }
}
