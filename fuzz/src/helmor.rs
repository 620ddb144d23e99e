//! The lines of helmor: every line of a host has an answer, every event is judged as another parser judges it, and parameters
//! that can be read are written so that they are read again.

use outrigger_helmor::protocol::{
    Event, GenerateTitle, GetContextUsage, Incoming, ListModels, ListSlashCommands, MutateGoal,
    PermissionResponse, SendMessage, SteerSession, StopSession, UpdateConfig, UserInputResponse,
    request_line,
};
use serde_json::Value;
use serde_json::value::to_raw_value;

/// Reads the input as a line of a host and as a line of a sidecar.
pub fn helmor(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let value = serde_json::from_str::<Value>(text).ok();
    event(text, value.as_ref());
    match Incoming::read(text) {
        Incoming::Request { id, method, params } => {
            let line = request_line(&id, &method, &serde_json::from_str(params.get()).unwrap_or_default());
            assert!(!line.contains('\n'), "what we write is a line");
            parameters(params);
        }
        Incoming::HostResponse { .. } => {}
        Incoming::Bad { why, .. } => assert!(!why.is_empty(), "a line that is refused is told why"),
    }
}

/// An event has the id and the type that any other parser finds in it.
fn event(text: &str, value: Option<&Value>) {
    let (Ok(event), Some(value)) = (Event::read(text), value) else { return };
    assert_eq!(Some(&*event.kind), value["type"].as_str());
    assert_eq!(event.id.as_deref(), value["id"].as_str());
    let _ = event.said();
}

/// What can be read can be written, and is read as what it was.
fn parameters(params: &serde_json::value::RawValue) {
    macro_rules! again {
        ($($type:ty),*) => {$(
            if let Ok(read) = <$type>::read(params) {
                let written = to_raw_value(&read.to_params()).expect("it is JSON");
                assert_eq!(<$type>::read(&written).as_ref(), Ok(&read), "{written}");
            }
        )*};
    }
    again!(
        SendMessage,
        GenerateTitle,
        ListModels,
        ListSlashCommands,
        GetContextUsage,
        StopSession,
        SteerSession
    );
    again!(UpdateConfig, MutateGoal, PermissionResponse, UserInputResponse);
}
