//! What the host says when a session begins, and which version of the protocol is agreed on.

use std::path::PathBuf;

use serde_json::Value;

use super::api::About;
use crate::protocol::{LaunchReason, Permission, Profile, Program, TrustLevel, V1_0, V1_1, Version};

/// What the host says when a session begins. Words that this kit does not know are left out, never an error: a newer host may
/// say more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that was agreed on.
    pub version: Version,
    /// Who the host is.
    pub host: Program,
    /// The id of this extension.
    pub id: String,
    /// The folder it may write to.
    pub data_dir: PathBuf,
    /// Which session.
    pub session: String,
    /// Why it was started.
    pub launch_reason: Option<LaunchReason>,
    /// How far it is trusted.
    pub trust_level: Option<TrustLevel>,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// What it hears about.
    pub topics: Vec<String>,
    /// The longest frame, in bytes.
    pub max_frame_bytes: usize,
    /// Its calls at the same time.
    pub max_calls: usize,
    /// Where it runs.
    pub profile: Profile,
    /// The time of the host, since the epoch.
    pub now_ms: u64,
}

/// No common version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host offers {offered}, this extension works with {lowest} to {highest}")]
pub struct NoCommonVersion {
    /// What the host offers.
    pub offered: String,
    /// The lowest that works.
    pub lowest: Version,
    /// The highest that works.
    pub highest: Version,
}

/// All versions that this kit speaks, highest first.
pub(super) const SPOKEN: [Version; 2] = [V1_1, V1_0];

/// The highest version that the host offers and the extension can work with.
pub(super) fn negotiate(params: &Value, about: &About) -> Result<Version, NoCommonVersion> {
    let read = |value: &Value| value.as_str().and_then(|text| Version::parse(text).ok());
    let listed = params["supportedVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut offered: Vec<Version> = listed.iter().filter_map(read).collect();
    offered.extend(read(&params["protocolVersion"]));
    let works = |version: &&Version| {
        // The last number never matters, so the host's own spelling of a version is what is agreed on.
        let spoken =
            SPOKEN.iter().any(|spoken| (spoken.major, spoken.minor) == (version.major, version.minor));
        spoken && version.serves(about.lowest) && version.minor <= about.highest.minor
    };
    offered.iter().filter(works).max().copied().ok_or_else(|| {
        let offered: Vec<String> = offered.iter().map(Version::to_string).collect();
        NoCommonVersion { offered: offered.join(", "), lowest: about.lowest, highest: about.highest }
    })
}

impl Welcome {
    /// Reads the params of `sep.initialize`.
    pub(super) fn read(params: &Value, version: Version) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let words = |value: &Value| -> Vec<String> {
            let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let number = |value: &Value, otherwise: usize| {
            value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(otherwise)
        };
        let limits = &params["limits"];
        Self {
            version,
            host: Program { name: text(&params["host"]["name"]), version: text(&params["host"]["version"]) },
            id: text(&params["extension"]["id"]),
            data_dir: text(&params["extension"]["dataDir"]).into(),
            session: text(&params["session"]),
            launch_reason: LaunchReason::parse(&text(&params["launchReason"])).ok(),
            trust_level: TrustLevel::parse(&text(&params["trustLevel"])).ok(),
            permissions: words(&params["permissions"])
                .iter()
                .filter_map(|word| Permission::parse(word).ok())
                .collect(),
            topics: words(&params["events"]["subscribed"]),
            // What every host grants, if this one does not say.
            max_frame_bytes: number(&limits["maxFrameBytes"], 1024),
            max_calls: number(&limits["maxConcurrentRequests"], 1),
            profile: Profile::parse(&text(&params["platform"]["profile"])).unwrap_or(Profile::Desktop),
            now_ms: params["nowMs"].as_u64().unwrap_or_default(),
        }
    }

    /// Whether this may be done.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(&permission)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(offered: &[&str], lowest: &str, highest: &str, agreed: Option<&str>) {
        let version = |text: &str| Version::parse(text).expect("a version");
        let about = About { lowest: version(lowest), highest: version(highest), ..About::default() };
        let params = json!({"protocolVersion": offered.first(), "supportedVersions": offered});
        let found = negotiate(&params, &about).ok().map(|version| version.to_string());
        assert_eq!(found.as_deref(), agreed, "{offered:?} {lowest} {highest}");
    }

    #[test]
    fn the_highest_common_version_is_agreed_on() {
        check(&["1.1.0", "1.0.0"], "1.0.0", "1.1.0", Some("1.1.0"));
        check(&["1.1.0", "1.0.0"], "1.0.0", "1.0.0", Some("1.0.0"));
        check(&["1.0.0"], "1.0.0", "1.1.0", Some("1.0.0"));
        check(&["1.7.0", "1.1.2", "1.0.0"], "1.0.0", "1.1.0", Some("1.1.2"));
        check(&["1.0.0"], "1.1.0", "1.1.0", None);
        check(&["2.0.0"], "1.0.0", "1.1.0", None);
        check(&["banana"], "1.0.0", "1.1.0", None);
        check(&[], "1.0.0", "1.1.0", None);
    }

    #[test]
    fn a_newer_host_may_say_words_that_nobody_knows() {
        let welcome = Welcome::read(
            &json!({"permissions": ["messages.read", "teleport"], "launchReason": "boredom", "trustLevel": 7,
                "limits": {"maxFrameBytes": 65536, "maxConcurrentRequests": 8}, "new": []}),
            V1_1,
        );
        assert_eq!(welcome.permissions, [Permission::MessagesRead]);
        assert!(welcome.may(Permission::MessagesRead) && !welcome.may(Permission::MessagesSend));
        assert_eq!((welcome.launch_reason, welcome.max_frame_bytes, welcome.max_calls), (None, 65536, 8));
    }
}
