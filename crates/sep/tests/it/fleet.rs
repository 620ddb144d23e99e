//! Whole hosts with real processes: how extensions live, and what the host does about those that misbehave.

use libtest_mimic::Trial;
use outrigger_sep::protocol::{ExitKind, State};
use outrigger_sep::reference::fault::Step;
use outrigger_sep::reference::Draft;
use serde_json::json;

use crate::fleet_kit::{Host, Site, first_party, put};

/// A trial that runs in a runtime of its own.
fn trial<F: Future<Output = ()> + 'static>(name: &'static str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(test());
        Ok(())
    })
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an_extension_is_found_started_and_stopped_in_good_order", a_good_life),
        trial("an_extension_that_crashes_comes_back_and_then_is_disabled", a_crash_loop),
    ]
}

fn steps(script: serde_json::Value) -> Vec<Step> {
    serde_json::from_value(script).expect("a script")
}

const ID: &str = "org.example.fault";

async fn a_good_life() {
    let site = Site::new();
    put(&first_party(Draft::autoreply()), &site.builtin(), "autoreply");
    let host = site.start().await;
    let id = "org.outrigger.autoreply";
    host.until(id, State::Ready).await;
    let detail = host.fleet.show(id).await.expect("there");
    let session = detail.session.expect("a session");
    assert_eq!(session.transport, "unix");
    assert_eq!(session.protocol_version.map(|version| version.to_string()).as_deref(), Some("1.1.0"));
    assert_eq!(detail.permissions.expect("permissions").granted.len(), 6);

    let mut happenings = host.fleet.listen();
    host.fleet.stop_one(id).await.expect("stopped");
    let seen = Host::transitions(&mut happenings, id, State::Stopped).await;
    assert_eq!(seen.len(), 2, "{seen:?}");
    let detail = host.fleet.show(id).await.expect("there");
    let last = detail.exits.back().expect("an exit");
    assert_eq!((last.kind, last.code, last.counted), (ExitKind::Requested, Some(0), false));
    host.fleet.shutdown().await;
}

async fn a_crash_loop() {
    let site = Site::new();
    site.fault(ID, &steps(json!([{"do":"attach"},{"do":"serve","until":"sep.initialize"},{"do":"exit","code":3}])));
    let host = site.start().await;
    host.until(ID, State::Disabled).await;
    let detail = host.fleet.show(ID).await.expect("there");
    assert_eq!(detail.exits.len(), 5, "{:#?}", detail.exits);
    assert!(detail.exits.iter().all(|exit| exit.code == Some(3) && exit.counted));
    host.fleet.shutdown().await;
}
