//! The numbers as a scraper sees them.

use super::*;
use crate::protocol::HostMethod;

fn busy() -> MetricsBook {
    let book = MetricsBook::new();
    let metrics = book.of(&ExtensionId::new("org.example.notes").unwrap());
    metrics.started();
    metrics.started();
    metrics.restarted();
    metrics.exited(ExitKind::Crash);
    metrics.exited(ExitKind::Requested);
    metrics.set_state(State::Ready);
    metrics.rpc("host.messages.send", Duration::from_micros(50), None);
    metrics.rpc("host.messages.send", Duration::from_micros(51), Some(-32010));
    metrics.rpc("host.\"evil\"\n", Duration::from_secs(60), Some(-32601));
    metrics.rpc("sep.health", Duration::from_millis(1), Some(12345));
    metrics.denied("host.messages.send", Permission::MessagesSend);
    metrics.events(EventFate::Offered, "peer.online", 5);
    metrics.events(EventFate::Dropped, "peer.online", 2);
    metrics.events(EventFate::Coalesced, "no.such.topic", 1);
    metrics.events(EventFate::Delivered, "lifecycle.pausing", 1);
    for incident in [
        Incident::RateLimited,
        Incident::HealthMissed,
        Incident::FrameOversize,
        Incident::ProtocolViolation,
        Incident::AttachDenied,
        Incident::Reclaimed,
    ] {
        metrics.incident(incident);
    }
    metrics.log_dropped(7);
    metrics.entered();
    metrics.entered();
    metrics.left();
    metrics.set_queue(3, 300);
    metrics.set_rss(4096);
    book
}

#[test]
fn a_scrape_has_every_family_and_only_known_labels() {
    insta::assert_snapshot!(busy().to_text());
}

#[test]
fn json_says_the_same() {
    let families = busy().families();
    let named = |name: &str| families.iter().find(|family| family.name == name).unwrap();
    let denied = serde_json::to_value(named("sep_permission_denied_total")).unwrap();
    assert_eq!(
        denied,
        serde_json::json!({
            "name": "sep_permission_denied_total",
            "type": "counter",
            "help": "Calls denied for want of a permission.",
            "samples": [{
                "ext": "org.example.notes",
                "labels": [["method", "host.messages.send"], ["permission", "messages.send"]],
                "value": 1.0,
            }],
        })
    );
}

#[test]
fn an_extension_cannot_make_a_scrape_grow() {
    let book = busy();
    let metrics = book.of(&ExtensionId::new("org.example.notes").unwrap());
    let before = book.to_text().lines().count();
    for n in 0..10_000 {
        metrics.rpc(&format!("host.x{n}"), Duration::ZERO, Some(-32601));
        metrics.events(EventFate::Coalesced, &format!("a.b{n}"), 1);
    }
    assert_eq!(book.to_text().lines().count(), before);
}

#[test]
fn every_method_of_the_host_has_its_own_label() {
    for method in HostMethod::ALL {
        assert_eq!(METHODS[label::method(method.as_str())], method.as_str());
    }
}

#[test]
fn an_extension_that_is_gone_is_forgotten_and_one_that_stays_is_remembered() {
    let book = busy();
    let id = ExtensionId::new("org.example.notes").unwrap();
    assert_eq!(book.of(&id).starts(), 2);
    book.forget(&id);
    assert_eq!(book.of(&id).starts(), 0);
    assert_eq!(book.families()[0].samples.len(), 1);
}
