//! How much an extension may use: the smallest of what it asks for, what its trust allows and what the platform has.

use std::time::Duration;

use super::finding::{Finding, code};
use super::model::Manifest;
use crate::config::{HostPolicy, LimitKey};
use crate::protocol::{Limits, Permission, Profile, TrustLevel};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// From the start to ready, on a phone.
const PHONE_STARTUP: Duration = Duration::from_secs(15);

/// The most that an extension of this trust may use, unless the operator says otherwise.
#[must_use]
pub fn ceilings(trust: TrustLevel) -> Limits {
    // The host's own deadlines do not depend on trust.
    let usual = Limits {
        max_frame_bytes: 4 * MIB,
        requests_per_second: 1000,
        concurrent_requests: 256,
        event_queue: 1024,
        event_queue_bytes: 4 * MIB,
        event_window: 32,
        startup: Duration::from_secs(120),
        memory_bytes: 2048 * MIB as u64,
        panels: 32,
        actions_per_panel: 16,
        toasts_per_minute: 60,
        toast_burst: 10,
        sends_per_minute: 120,
        send_burst: 20,
        log_files: 3,
        log_file_bytes: MIB as u64,
        crash_threshold: 5,
        request_timeout: Duration::from_secs(10),
        send_timeout: Duration::from_secs(15),
        event_ack: Duration::from_secs(10),
    };
    match trust {
        TrustLevel::FirstParty => usual,
        TrustLevel::TrustedThirdParty => Limits {
            max_frame_bytes: MIB,
            requests_per_second: 200,
            concurrent_requests: 64,
            event_queue: 256,
            event_queue_bytes: MIB,
            event_window: 16,
            startup: Duration::from_secs(60),
            memory_bytes: 1024 * MIB as u64,
            panels: 16,
            toasts_per_minute: 20,
            toast_burst: 5,
            sends_per_minute: 30,
            send_burst: 10,
            log_file_bytes: 512 * KIB as u64,
            ..usual
        },
        TrustLevel::UntrustedLocal => Limits {
            max_frame_bytes: 64 * KIB,
            requests_per_second: 20,
            concurrent_requests: 8,
            event_queue: 64,
            event_queue_bytes: 256 * KIB,
            event_window: 4,
            startup: Duration::from_secs(15),
            memory_bytes: 256 * MIB as u64,
            panels: 4,
            actions_per_panel: 8,
            toasts_per_minute: 5,
            toast_burst: 2,
            sends_per_minute: 0,
            send_burst: 0,
            log_files: 2,
            log_file_bytes: 256 * KIB as u64,
            crash_threshold: 3,
            ..usual
        },
    }
}

/// What somebody may allow an extension of this trust, and what of it needs a grant that names it; both sorted.
#[must_use]
pub fn grantable(trust: TrustLevel) -> (Vec<Permission>, Vec<Permission>) {
    match trust {
        TrustLevel::FirstParty | TrustLevel::TrustedThirdParty => (Permission::ALL.to_vec(), Vec::new()),
        TrustLevel::UntrustedLocal => {
            let never = Permission::MessagesSend;
            let all = Permission::ALL.iter().copied().filter(|permission| *permission != never).collect();
            (all, vec![Permission::MessagesRead, Permission::ContactsRead])
        }
    }
}

/// What a phone has at most; beyond this, trust does not count.
fn on_a_phone(manifest: &Manifest, limits: &mut Limits) {
    let android = manifest.android;
    let wanted_startup = android.and_then(|android| android.max_startup).unwrap_or(Duration::MAX);
    let wanted_mib = android.and_then(|android| android.max_memory_mb).unwrap_or(u32::MAX);
    limits.max_frame_bytes = limits.max_frame_bytes.min(256 * KIB);
    limits.requests_per_second = limits.requests_per_second.min(50);
    limits.concurrent_requests = limits.concurrent_requests.min(16);
    limits.event_queue = limits.event_queue.min(64);
    limits.event_queue_bytes = limits.event_queue_bytes.min(128 * KIB);
    limits.startup = limits.startup.min(PHONE_STARTUP).min(wanted_startup);
    limits.memory_bytes = limits.memory_bytes.min(u64::from(wanted_mib.min(256)) * MIB as u64);
    limits.event_ack = limits.event_ack.min(Duration::from_secs(5));
    limits.request_timeout = limits.request_timeout.min(Duration::from_secs(5));
    limits.send_timeout = limits.send_timeout.min(Duration::from_secs(5));
}

/// The effective limits, and a warning for each wish that cannot be met.
pub(super) fn effective(
    manifest: &Manifest,
    trust: TrustLevel,
    profile: Profile,
    policy: &HostPolicy,
) -> (Limits, Vec<Finding>) {
    let mut limits = ceilings(trust);
    for (key, value) in policy.limits.get(&trust).into_iter().flatten() {
        key.set(&mut limits, *value);
    }
    if profile == Profile::Android {
        on_a_phone(manifest, &mut limits);
    }
    let wishes = [
        (LimitKey::MaxRequestBytes, "/limits/maxRequestBytes", u64::from(manifest.limits.max_request_bytes)),
        (
            LimitKey::RequestsPerSecond,
            "/limits/maxRequestsPerSecond",
            u64::from(manifest.limits.max_requests_per_second),
        ),
        (
            LimitKey::ConcurrentRequests,
            "/limits/maxConcurrentRequests",
            u64::from(manifest.limits.max_concurrent_requests),
        ),
        (
            LimitKey::StartupMs,
            "/health/startupTimeoutMs",
            u64::try_from(manifest.health.startup.as_millis()).unwrap_or(u64::MAX),
        ),
    ];
    let mut findings = Vec::new();
    for (key, path, wanted) in wishes {
        let ceiling = key.of(&limits);
        if wanted > ceiling {
            let message = format!("{wanted} is wished for; {trust} on {profile} gets {ceiling}");
            findings.push(Finding::warning(code::LIMITS_CLAMPED, path, message));
        } else {
            key.set(&mut limits, wanted);
        }
    }
    if profile == Profile::Android {
        findings.extend(phone_wishes(manifest, &limits));
    }
    let panels = manifest.panels.len();
    if panels > limits.panels {
        let message = format!("{panels} panels are declared; {trust} gets the first {}", limits.panels);
        findings.push(Finding::warning(code::LIMITS_CLAMPED, "/ui/toolPanels", message));
    }
    (limits, findings)
}

/// What the part for phones wishes for and cannot get.
fn phone_wishes(manifest: &Manifest, limits: &Limits) -> Vec<Finding> {
    let Some(android) = manifest.android else { return Vec::new() };
    let mut findings = Vec::new();
    if let Some(wanted) = android.max_startup.filter(|wanted| *wanted > PHONE_STARTUP) {
        let message = format!("{wanted:?} is wished for; a phone gives at most {PHONE_STARTUP:?}");
        findings.push(Finding::warning(code::LIMITS_CLAMPED, "/android/maxStartupTimeMs", message));
    }
    let has = limits.memory_bytes / MIB as u64;
    if let Some(wanted) = android.max_memory_mb.filter(|wanted| u64::from(*wanted) > has) {
        let message = format!("{wanted} MiB are wished for; there are {has}");
        findings.push(Finding::warning(code::LIMITS_CLAMPED, "/android/maxMemoryMb", message));
    }
    findings
}
