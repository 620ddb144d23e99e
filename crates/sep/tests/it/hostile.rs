//! Extensions that nobody should trust, in whole hosts: each attempt fails and is seen, and the host goes on.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use libtest_mimic::Trial;
use outrigger_sep::config::{LimitKey, UntrustedLocal};
use outrigger_sep::host::AskError;
use outrigger_sep::manifest::ceilings;
use outrigger_sep::mesh::{MessageQuery, Messaging as _};
use outrigger_sep::protocol::{ExitKind, LimitsJson, Permission, Slot, State, TrustLevel};
use outrigger_sep::reference::Draft;
use serde_json::{Value, json};

use crate::fleet_kit::{Host, Site, first_party, put, serving, steps, trial};
use crate::hostile_kit::{alive_in, assert_nobody_in, counted, said};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("an_untrusted_extension_tries_everything_and_gets_nowhere", tries_everything),
        trial("an_untrusted_extension_is_not_started_unless_the_policy_allows_it", not_allowed),
        trial("no_grant_lets_an_untrusted_extension_send_messages", never_sends),
        trial("whoever_finds_the_socket_of_a_session_that_is_not_theirs_is_refused", guessed_socket),
        trial("a_token_is_good_for_one_attach", replayed),
        trial("a_tree_of_processes_that_eats_more_than_its_limit_is_ended", eats),
    ]
}

const EVIL: &str = "org.example.evil";
const GOOD: &str = "org.example.good";
const WAITING: &str = "org.example.waiting";

/// A script that registers a panel with one action and serves.
fn with_panel() -> Draft {
    let panel =
        json!({"id":"p","title":"P","slot":"tools.page.primary","actions":[{"id":"go","label":"Go"}]});
    let script = steps(json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"},
        {"do":"call","method":"host.ui.register_tool_panel","params":panel}, {"do":"serve"}
    ]));
    let panels = vec![("p".to_owned(), "P".to_owned(), Slot::Primary)];
    first_party(Draft { panels, ..Draft::fault(GOOD, &script) })
}

/// That the one which behaves has not noticed anything.
async fn good_is_well(host: &Host) {
    let key = format!("{GOOD}/p");
    let invoked = host.fleet.call(&key, "go", None).await.expect("it answers");
    assert_eq!(serde_json::to_value(&invoked).expect("JSON")["outcome"], "ok");
    let summary = host.fleet.show(GOOD).await.expect("there").summary;
    assert_eq!((summary.state, summary.starts), (State::Ready, 1));
}

/// The socket of the session that waits for its extension.
async fn waiting_socket(host: &Host) -> PathBuf {
    host.log_says(WAITING, "endpoint").await;
    let found = said(host, WAITING);
    let endpoint = found[0]["endpoint"].as_str().expect("a text");
    let socket = PathBuf::from(endpoint.strip_prefix("unix:").expect("a socket"));
    assert!(socket.exists(), "{endpoint}");
    socket
}

/// An extension that never takes up its session.
fn waiting() -> Draft {
    let draft = Draft::fault(WAITING, &steps(json!([{"do":"where"},{"do":"hang"}])));
    first_party(Draft { startup_ms: 120_000, ..draft })
}

async fn tries_everything() {
    let site = Site::new();
    put(&with_panel(), &site.builtin(), "fault");
    put(&waiting(), &site.builtin(), "fault");
    let host = site.start().await;
    host.until(GOOD, State::Ready).await;
    host.log_says(GOOD, "panelKey").await;

    let place = host.place.path();
    let listening = place.join("socket");
    let _listener = UnixListener::bind(&listening).expect("a socket");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    udp.set_nonblocking(true).expect("a socket");
    let secret = host.policy.state_dir.join("ext").join(GOOD).join("data/secret");
    std::fs::write(&secret, "secret").expect("room");
    let message = json!({"destinationHash":"ab".repeat(16),"content":"spam"});
    let own = host.policy.state_dir.join("ext").join(EVIL).join("data/mine");
    let script = json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"},
        {"do":"first","times":1,"steps":[
            {"do":"open","path":"/etc/shadow"},
            {"do":"open","path":host.policy.state_dir.join("state.json")},
            {"do":"open","path":host.policy.state_dir.join("audit/audit.log")},
            {"do":"open","path":host.builtin().join(GOOD).join("sep_manifest.json")},
            {"do":"open","path":secret},
            {"do":"create","path":place.join("new")},
            {"do":"create","path":host.extensions().join(EVIL).join("new")},
            {"do":"create","path":own},
            {"do":"tcp","to":tcp.local_addr().expect("an address").to_string()},
            {"do":"udp","to":udp.local_addr().expect("an address").to_string()},
            {"do":"unix","path":listening},
            {"do":"unix","path":waiting_socket(&host).await},
            {"do":"signal","pid":std::process::id(),"signal":9},
            {"do":"bomb","most":100},
            {"do":"replay_token"},
            {"do":"call","method":"host.messages.send","params":message},
            {"do":"eat","bytes":1_u64 << 30},
        ]},
        {"do":"serve"}
    ]);
    let draft = Draft::fault(EVIL, &steps(script));
    let greedy = (4 << 20, 10_000, 1024);
    put(&Draft { trust: TrustLevel::UntrustedLocal, limits: greedy, ..draft }, &host.extensions(), "fault");
    host.fleet.rescan().await;
    assert_eq!(host.state(EVIL).await, State::NeedsConsent);
    let never = host.fleet.grant(EVIL, &[Permission::MessagesSend]).await.expect_err("never");
    assert!(matches!(never, AskError::Permission { permission: Permission::MessagesSend, .. }), "{never}");
    let granted = host.fleet.grant(EVIL, &[]).await.expect("granted");
    assert!(!granted.contains(&Permission::MessagesSend), "{granted:?}");

    // It dies of what it ate, is started again, and is good from then on.
    host.until_detail(EVIL, |detail| detail.summary.starts == 2 && detail.summary.state == State::Ready)
        .await;
    let found = said(&host, EVIL);
    let found: Vec<&Value> = found.iter().skip_while(|line| line["do"] != "open").collect();
    let outcome =
        |line: &&Value| format!("{} {} {}", line["do"].as_str().expect("a word"), line["ok"], line["os"]);
    let wanted = [
        "open false 13",
        "open false 13",
        "open false 13",
        "open false 13",
        "open false 13",
        "create false 13",
        "create false 13",
        "create true null",
        "tcp false 1",
        "udp false 1",
        "unix false 1",
        "unix false 1",
    ];
    assert_eq!(found.iter().take(12).map(outcome).collect::<Vec<_>>(), wanted, "{found:#?}");
    assert_eq!((&found[12]["do"], &found[12]["ok"]), (&json!("signal"), &json!(false)), "{found:#?}");
    assert_eq!(found[13]["found"]["started"], 0, "{found:#?}");
    assert_eq!(found[14]["error"]["code"], -32003, "{found:#?}");
    assert_eq!(found[15]["error"]["data"]["reason"], "not_granted", "{found:#?}");
    assert_ne!(found[16]["do"], "eat", "it could eat: {found:#?}");
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram came out");
    assert!(!place.join("new").exists() && !host.extensions().join(EVIL).join("new").exists());

    let detail = host.fleet.show(EVIL).await.expect("there");
    assert_eq!((detail.exits.len(), detail.exits[0].kind), (1, ExitKind::Crash), "{:?}", detail.exits);
    assert!(!detail.permissions.expect("some").granted.contains(&Permission::MessagesSend));
    let session = detail.session.expect("a session");
    assert_eq!(session.transport, "fd");
    assert_eq!((&session.sandbox["level"], &session.sandbox["processes"]), (&json!("strict"), &json!("one")));
    let ceiling =
        serde_json::to_value(LimitsJson::from(&ceilings(TrustLevel::UntrustedLocal))).expect("JSON");
    assert_eq!(serde_json::to_value(detail.limits).expect("JSON"), ceiling);
    let audit = host.audit();
    let denied = |method: &str, reason: &str| {
        let line = |line: &&Value| {
            line["ext"] == EVIL
                && line["method"] == method
                && line["decision"] == "deny"
                && line["reason"] == reason
        };
        audit.iter().filter(line).count()
    };
    assert_eq!(denied("host.attach", "session_state"), 1, "{audit:#?}");
    assert_eq!(denied("host.messages.send", "not_granted"), 1, "{audit:#?}");
    good_is_well(&host).await;
    let place = place.to_owned();
    assert!(!alive_in(&place).is_empty());
    let _site = host.end().await;
    assert_nobody_in(&place);
}

async fn not_allowed() {
    let mut site = Site::new();
    site.policy.untrusted_local = UntrustedLocal::Deny;
    let draft = Draft { trust: TrustLevel::UntrustedLocal, ..Draft::fault(EVIL, &serving()) };
    put(&draft, &site.extensions(), "fault");
    let host = site.start().await;
    assert_eq!(host.state(EVIL).await, State::Blocked);
    // Somebody who agrees to it does not change what the policy says.
    let _ = host.fleet.grant(EVIL, &[]).await;
    let refused = host.fleet.start_one(EVIL).await.expect_err("the policy does not allow it");
    assert!(matches!(refused, AskError::State { state: State::Blocked, .. }), "{refused}");
    let summary = host.fleet.show(EVIL).await.expect("there").summary;
    assert_eq!((summary.state, summary.starts, summary.pid), (State::Blocked, 0, None));
    assert_nobody_in(host.place.path());
    host.end().await;
}

async fn never_sends() {
    let mut site = Site::new();
    let message = json!({"destinationHash":"ab".repeat(16),"content":"spam"});
    let script = json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"},
        {"do":"call","method":"host.messages.send","params":message}, {"do":"serve"}
    ]);
    let draft = Draft { trust: TrustLevel::UntrustedLocal, ..Draft::fault(EVIL, &steps(script)) };
    put(&draft, &site.extensions(), "fault");
    // Not even the operator who wrote the policy can do that.
    site.policy.grants.insert(draft.id.clone(), Permission::ALL.to_vec());
    let host = site.start().await;
    host.log_says(EVIL, "trust_ceiling").await;
    let query =
        MessageQuery { peer: None, direction: None, since_ms: None, until_ms: None, after: None, limit: 10 };
    assert_eq!(host.mesh.messages(query).await.expect("a list"), []);
    let denied = counted(&host, "sep_permission_denied_total", &[EVIL, "messages.send"]);
    assert_eq!(denied, 1);
    host.end().await;
}

async fn guessed_socket() {
    let site = Site::new();
    put(&with_panel(), &site.builtin(), "fault");
    put(&waiting(), &site.builtin(), "fault");
    let host = site.start().await;
    host.until(GOOD, State::Ready).await;
    host.log_says(GOOD, "panelKey").await;
    let socket = waiting_socket(&host).await;
    for n in 0..10 {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let params = json!({"token": format!("{n:064x}"), "session": "01J00000000000000000000000"});
        let attach = json!({"jsonrpc":"2.0","id":1,"method":"host.attach","params":params});
        // The door may be shut before anything is said.
        let _ = stream.write_all(format!("{attach}\n").as_bytes());
        let mut answer = Vec::new();
        // Closed politely or not, there is never a word.
        let _ = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{}", String::from_utf8_lossy(&answer));
    }
    let label = format!("ext=\"{WAITING}\"");
    host.until_so("ten were refused", async || counted(&host, "sep_attach_denied_total", &[&label]) == 10)
        .await;
    host.log_says(WAITING, &format!("refused a connection (process {})", std::process::id())).await;
    let denied =
        |line: &&Value| line["ext"] == WAITING && line["kind"] == "attach" && line["decision"] == "deny";
    assert_eq!(host.audit().iter().filter(denied).count(), 10, "{:#?}", host.audit());
    let summary = host.fleet.show(WAITING).await.expect("there").summary;
    assert_eq!((summary.state, summary.phase, summary.starts), (State::Starting, Some("attaching"), 1));
    good_is_well(&host).await;
    let place = host.place.path().to_owned();
    let _site = host.end().await;
    assert_nobody_in(&place);
}

async fn replayed() {
    let site = Site::new();
    let script = json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"}, {"do":"replay_token"},
        {"do":"call","method":"host.get_capabilities"}, {"do":"print","text":"done"}, {"do":"serve"}
    ]);
    site.fault(EVIL, &steps(script));
    let host = site.start().await;
    host.log_says(EVIL, "done").await;
    let found = said(&host, EVIL);
    // The place of the first attach is gone, so the second finds nobody; and the first session goes on.
    let replay = found.iter().find(|line| line["do"] == "replay_token").expect("an attempt");
    assert_eq!(replay["ok"], false, "{found:#?}");
    let call = found.iter().find(|line| line["do"] == "call").expect("an answer");
    assert_eq!(call["ok"], true, "{found:#?}");
    let summary = host.fleet.show(EVIL).await.expect("there").summary;
    assert_eq!((summary.state, summary.starts), (State::Ready, 1));
    host.end().await;
}

async fn eats() {
    const MIB: u64 = 1 << 20;
    let mut site = Site::new();
    let limit = BTreeMap::from([(LimitKey::MemoryBytes, 128 * MIB)]);
    site.policy.limits.insert(TrustLevel::TrustedThirdParty, limit);
    // Each of them alone is well within the limit.
    let eater = json!([{"do":"eat","bytes":60 * MIB},{"do":"hang"}]);
    let script = json!([
        {"do":"attach"}, {"do":"serve","until":"sep.initialize"},
        {"do":"first","times":1,"steps":[{"do":"start","script":eater,"times":4}]}, {"do":"serve"}
    ]);
    put(&Draft::fault(EVIL, &steps(script)), &site.extensions(), "fault");
    site.trust(EVIL);
    put(&with_panel(), &site.builtin(), "fault");
    let host = site.start().await;
    host.fleet.grant(EVIL, &[]).await.expect("granted");
    host.until_detail(EVIL, |detail| detail.summary.starts == 2 && detail.summary.state == State::Ready)
        .await;
    let exits = host.fleet.show(EVIL).await.expect("there").exits;
    assert_eq!((exits.len(), exits[0].kind, exits[0].counted), (1, ExitKind::Memory, true), "{exits:?}");
    let why = exits[0].detail.as_deref().expect("a reason");
    assert!(why.contains("and may use 128 MiB"), "{why}");
    assert_eq!(alive_in(&host.extensions()).len(), 1, "the eaters are gone with it");
    host.log_says(GOOD, "panelKey").await;
    good_is_well(&host).await;
    let place = host.place.path().to_owned();
    let _site = host.end().await;
    assert_nobody_in(&place);
}
