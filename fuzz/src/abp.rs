//! The messages of abp: what is JSON is judged as another parser judges it, what is read can be written, hashed and read
//! again, and the canonical spelling of a text is that of its value.

use outrigger_abp::protocol::{AgentEvent, Envelope, Raw, ReceivedReceipt, WorkOrder, read};
use outrigger_abp::receipt::canonical;
use serde_json::Value;

/// Reads the input as a line, as an event, as an order and as a receipt.
pub fn abp(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let value = serde_json::from_str::<Value>(text);
    assert_eq!(Raw::new(text).is_ok(), value.is_ok(), "what is JSON for one is JSON for the other");
    spelling(text, value.ok().as_ref());
    if let Ok(envelope) = read(text) {
        let line = envelope.to_line();
        assert!(!line.contains('\n') || text.contains('\n'), "what we write is a line");
        let again =
            read(&line).unwrap_or_else(|error| panic!("what was written cannot be read: {error}: {line}"));
        assert_eq!(again.to_line(), line, "writing is settled after one turn");
        assert_eq!(again.t(), envelope.t());
        if let Envelope::Final { receipt, .. } = &envelope {
            let _ = receipt.trace_claim();
        }
        assert_eq!(envelope.clone().into_owned().to_line(), line);
    }
    if let Ok(event) = AgentEvent::read(text) {
        let _ = (event.raw_message().map(Raw::into_owned), event.ext_usage());
        let mut written = Vec::new();
        event.write(&mut written);
        let written = String::from_utf8(written).expect("it is text");
        assert!(AgentEvent::read(&written).is_ok(), "what was written cannot be read: {written}");
    }
    if let Ok(order) = WorkOrder::read(text) {
        let mut written = Vec::new();
        order.write(&mut written);
        let written = String::from_utf8(written).expect("it is text");
        assert_eq!(WorkOrder::read(&written).as_ref(), Ok(&order), "an order is read as it is written");
        let _ = order.config.vendor("abp", "mode");
    }
    if let Ok(receipt) = ReceivedReceipt::read(text) {
        let _ = receipt.trace_claim();
    }
}

/// The canonical spelling is the same by way of the text and by way of the value, and spelling it again changes nothing.
fn spelling(text: &str, value: Option<&Value>) {
    let Ok(spelled) = canonical(text) else {
        assert!(value.is_none(), "a value has no canonical spelling: {text}");
        return;
    };
    let value = value.expect("what was spelled is JSON");
    let by_value: Value = serde_json::from_str(&spelled).expect("a canonical spelling is JSON");
    assert_eq!(&by_value, value, "the spelling means something else");
    assert_eq!(canonical(&spelled).as_deref(), Ok(spelled.as_str()));
}
