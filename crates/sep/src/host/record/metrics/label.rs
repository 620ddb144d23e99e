//! The closed sets that labels are taken from, so that no extension can make a scrape grow.

/// What any other method, topic or code is called.
pub(super) const UNKNOWN: &str = "unknown";

/// The methods of both directions; the last one stands for all others.
pub(super) const METHODS: [&str; 18] = [
    "host.attach",
    "host.contacts.list",
    "host.events.subscribe",
    "host.events.unsubscribe",
    "host.get_capabilities",
    "host.log",
    "host.messages.list",
    "host.messages.send",
    "host.notifications.toast",
    "host.ui.register_tool_panel",
    "host.ui.unregister_tool_panel",
    "host.ui.update_tool_panel",
    "sep.action",
    "sep.event",
    "sep.health",
    "sep.initialize",
    "sep.shutdown",
    UNKNOWN,
];

/// The codes of the frozen table of errors; the last one stands for all others.
pub(super) const CODES: [i64; 28] = [
    -32700, -32603, -32602, -32601, -32600, -32052, -32051, -32050, -32041, -32040, -32035, -32033, -32032,
    -32031, -32030, -32023, -32022, -32021, -32020, -32011, -32010, -32006, -32005, -32004, -32003, -32002,
    -32001, 0,
];

/// The topics of events; the last one stands for all others.
pub(super) const TOPICS: [&str; 8] = [
    "contact.changed",
    "lifecycle",
    "message.received",
    "message.sent",
    "message.state",
    "peer.offline",
    "peer.online",
    UNKNOWN,
];

/// Where a method is counted.
pub(super) fn method(name: &str) -> usize {
    METHODS.binary_search(&name).unwrap_or(METHODS.len() - 1)
}

/// Where a code is counted.
pub(super) fn code(code: i64) -> usize {
    CODES.binary_search(&code).unwrap_or(CODES.len() - 1)
}

/// Where a topic is counted; all of `lifecycle.*` together.
pub(super) fn topic(name: &str) -> usize {
    let name = if name.starts_with("lifecycle.") { "lifecycle" } else { name };
    TOPICS.binary_search(&name).unwrap_or(TOPICS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_found_where_it_is_and_strangers_share_the_last_place() {
        assert!(METHODS.is_sorted() && TOPICS.is_sorted() && CODES.is_sorted());
        for (index, name) in METHODS.iter().enumerate() {
            assert_eq!(method(name), index);
        }
        assert_eq!(METHODS[method("host.evil")], UNKNOWN);
        assert_eq!(CODES[code(-32033)], -32033);
        assert_eq!(code(-1), CODES.len() - 1);
        assert_eq!(TOPICS[topic("lifecycle.pausing")], "lifecycle");
        assert_eq!(TOPICS[topic("x.y")], UNKNOWN);
    }
}
