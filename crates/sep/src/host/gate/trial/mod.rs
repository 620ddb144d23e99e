//! Any bytes at all, put before a gate whose services watch what it does. For fuzzing, and for the tests of this room.
//!
//! The first bytes of an input choose what is granted, which version is spoken, how small the limits are and how the network
//! behaves; the rest is what the extension sends.

mod services;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    CancelWire, Crowded, DuplicateIds, End, IncomingLimits, OutboxLimits, Peer, PeerConfig, Wiring,
};
use outrigger_wire::rpc::{EnvelopePolicy, Incoming, Message, Shape, parse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(super) use services::{Behaviour, Ears, Mesh, Numbers, Pages, Witness};

use super::cursor::CursorKey;
use super::desk::Desk;
use super::grants::{GrantLayers, GrantSet, OperatorGrant, Reason};
use super::memory::SendMemory;
use super::owner::{About, Gate, GateParts};
use super::ports::Services;
use crate::host::ui::{Notices, Owner, Panels, Waking};
use crate::manifest::{Admission, EventPlan, SandboxLevel, ceilings};
use crate::mesh::Refused;
use crate::protocol::{
    CANCEL, ExtensionId, Limits, Permission, Profile, Program, SessionId, TrustLevel, V1_0, V1_1,
};

/// Puts any bytes before a gate.
///
/// # Panics
/// When a promise is broken: something was done without a permission or before it was recorded, a request was answered twice
/// or not at all, or an answer was longer than a frame may be.
pub fn fuzz(bytes: &[u8]) {
    let [choice, limits, mesh, stream @ ..] = bytes else { return };
    let granted: Vec<Permission> =
        Permission::ALL.iter().copied().filter(|permission| choice >> (*permission as u8) & 1 == 1).collect();
    let version = if choice & 0x40 == 0 { V1_0 } else { V1_1 };
    let mut allowed = ceilings(TrustLevel::TrustedThirdParty);
    allowed.max_frame_bytes = 1024 << (limits & 3);
    allowed.concurrent_requests = [1, 4, 64, 256][usize::from(limits >> 2 & 3)];
    allowed.requests_per_second = [5, 50, 10_000, 10_000][usize::from(limits >> 4 & 3)];
    // A network that never answers must not keep anybody waiting here.
    allowed.send_timeout = Duration::from_millis(1);
    allowed.request_timeout = Duration::from_millis(1);
    let stage = Stage::new(allowed, GrantLayers::all_of(granted));
    stage.mesh.behave(match mesh & 3 {
        0 => Behaviour::Take,
        1 => Behaviour::Refuse(Refused::NoPath),
        2 => Behaviour::Fail,
        _ => Behaviour::Never,
    });
    let desk = stage.gate.desk(SessionId::from_text("trial"));
    if mesh & 4 == 0 {
        desk.opened(version);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without I/O can always be made");
    let (answers, end) = runtime.block_on(converse(desk, &allowed, stream));
    stage.check_untouched();
    check_answers(&answers, &end, stream, &allowed);
}

/// Sends `stream` and the end of the stream, and collects all answers.
async fn converse(desk: Arc<Desk>, limits: &Limits, stream: &[u8]) -> (Vec<u8>, End) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(near);
    let peer = Peer::start(Wiring::new(input, output), desk, config(limits));
    let (mut answers, mut requests) = tokio::io::split(far);
    let mut sent = stream.to_vec();
    sent.push(b'\n');
    let send = async move {
        // The other side may have had enough before everything is sent.
        let _ = requests.write_all(&sent).await;
        let _ = requests.shutdown().await;
    };
    let mut all = Vec::new();
    let ((), read) = tokio::join!(send, answers.read_to_end(&mut all));
    read.expect("a pipe in memory does not fail");
    (all, peer.ended().await)
}

/// How the channel of an extension with these limits is set up.
pub(super) fn config(limits: &Limits) -> PeerConfig {
    let frame = limits.max_frame_bytes;
    let room = 2 * frame + (64 << 10);
    PeerConfig {
        lines: dialect::sep(frame),
        envelope: EnvelopePolicy::SEP,
        max_line_out: frame,
        max_calls: 64,
        incoming: IncomingLimits {
            running: limits.concurrent_requests,
            waiting: 0,
            notifications: 64,
            crowded: Crowded::Refuse,
        },
        outbox: OutboxLimits { bytes: room, reply_bytes: room, events: 1, event_bytes: 1 },
        write_stall: Duration::from_secs(10),
        drain: Duration::from_secs(5),
        cancel: CancelWire::Notify(CANCEL),
        duplicate_ids: DuplicateIds::Refuse,
    }
}

fn check_answers(answers: &[u8], end: &End, stream: &[u8], limits: &Limits) {
    let mut asked: HashMap<String, usize> = HashMap::new();
    let mut due = 0;
    for line in stream.split(|byte| *byte == b'\n') {
        let fits = line.len() <= limits.max_frame_bytes;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if fits && line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let text = Some(line).filter(|_| fits).and_then(|line| std::str::from_utf8(line).ok());
        match text.map(|text| parse(text, &EnvelopePolicy::SEP)) {
            Some(Ok(Incoming::One(Message::Request { id, .. }))) => {
                *asked.entry(id.as_json().into_owned()).or_default() += 1;
                due += 1;
            }
            Some(Err(refusal)) if refusal.shape == Shape::Reply => {}
            // What is too long, not text or not a message is told so, under its id where one could be read.
            Some(Err(refusal)) => {
                if let Some(id) = refusal.id {
                    *asked.entry(id.as_json().into_owned()).or_default() += 1;
                }
                due += 1;
            }
            None => due += 1,
            Some(Ok(_)) => {}
        }
    }
    let mut told = 0;
    let mut answered: HashMap<String, usize> = HashMap::new();
    for line in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(line.len() <= limits.max_frame_bytes, "an answer of {} bytes", line.len());
        let text = std::str::from_utf8(line).expect("answers are text");
        let id = match parse(
            text,
            &EnvelopePolicy { ids: outrigger_wire::rpc::Ids::Any, ..EnvelopePolicy::SEP },
        ) {
            Ok(Incoming::One(Message::Response { id, .. } | Message::Error { id: Some(id), .. })) => id,
            other => panic!("{text:?} is no answer: {other:?}"),
        };
        told += 1;
        if id.as_json() != "null" {
            *answered.entry(id.as_json().into_owned()).or_default() += 1;
        }
    }
    for (id, times) in &answered {
        let asked = asked.get(id).copied().unwrap_or(0);
        assert!(*times <= asked, "{id} was asked {asked} times and answered {times} times");
    }
    assert!(told <= due, "{told} answers to {due} frames");
    if *end == End::RemoteClosed {
        assert_eq!(told, due, "everything is answered when nobody is shown the door");
    }
}

impl GrantLayers {
    /// All that is granted, declared and possible are these permissions.
    pub(super) fn all_of(granted: Vec<Permission>) -> Self {
        let all = || Permission::ALL.to_vec();
        Self {
            declared: all(),
            operator: OperatorGrant::These(granted),
            revoked: Vec::new(),
            ceiling: all(),
            profile: all(),
        }
    }
}

/// A gate and the services that watch it.
pub(super) struct Stage {
    pub(super) gate: Arc<Gate>,
    pub(super) grants: Arc<GrantSet>,
    pub(super) mesh: Arc<Mesh>,
    pub(super) panels: Arc<Panels>,
    pub(super) notices: Arc<Notices>,
}

impl Stage {
    pub(super) fn new(limits: Limits, layers: GrantLayers) -> Self {
        let witness = Arc::new(Witness::default());
        Self::with(limits, layers, &witness, Arc::default(), Arc::default())
    }

    pub(super) fn with(
        limits: Limits,
        layers: GrantLayers,
        witness: &Arc<Witness>,
        numbers: Arc<Numbers>,
        pages: Arc<Pages>,
    ) -> Self {
        let extension = ExtensionId::new("org.example.trial").expect("an id");
        let grants = Arc::new(GrantSet::new(&extension, layers));
        let mesh = Arc::new(Mesh::new(Arc::clone(&grants), Arc::clone(witness)));
        let (panels, notices) = (Arc::new(Panels::new()), Arc::new(Notices::new()));
        panels.admit(&Owner {
            id: &extension,
            name: "Trial",
            trust: TrustLevel::TrustedThirdParty,
            claims: &[],
            limits: &limits,
            waking: Waking::Never,
        });
        panels.activate(&extension);
        let services = Services {
            messaging: Arc::clone(&mesh) as _,
            panels: Arc::clone(&panels),
            notices: Arc::clone(&notices),
            audit: Arc::clone(witness) as _,
            metrics: numbers,
            logs: pages,
            subscription: Arc::new(Ears::new(Arc::clone(&grants))),
            dedup: Arc::new(SendMemory::new()),
            cursor_key: CursorKey::new([7; 32]),
        };
        let admission = Admission {
            trust: TrustLevel::TrustedThirdParty,
            clamped: None,
            limits,
            profile: Profile::Desktop,
            grantable: Permission::ALL.to_vec(),
            explicit_only: Vec::new(),
            sandbox: SandboxLevel::Auto,
            events: EventPlan::default(),
        };
        let about = About {
            host: Program { name: "outrigger".into(), version: "0.1.0".into() },
            os: "linux".into(),
            arch: "x64".into(),
            sandbox: "basic".into(),
            features: Vec::new(),
        };
        let gate = Gate::new(GateParts {
            extension,
            name: "Trial".into(),
            version: "1.2.3".into(),
            admission,
            grants: Arc::clone(&grants),
            services,
            about,
        });
        Self { gate, grants, mesh, panels, notices }
    }

    /// What needs a permission that is not granted was not touched. (The network checks that itself, at every call.)
    fn check_untouched(&self) {
        let may = |permission| self.grants.decide(permission) == Reason::Granted;
        let slots = serde_json::to_string(&self.panels.snapshot().slots).expect("panels are JSON");
        assert!(may(Permission::ToolsRegister) || !slots.contains("panelKey"), "{slots}");
        assert!(may(Permission::NotificationsCreate) || self.notices.after(0).is_empty());
    }
}
