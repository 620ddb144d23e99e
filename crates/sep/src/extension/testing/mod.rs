//! A host for tests: it runs an extension in the same process, says what the test wants said, and remembers what it was asked.
//!
//! ```
//! use outrigger_sep::extension::testing::MockHost;
//! use outrigger_sep::extension::{Event, Extension, HostClient, Trouble};
//! use outrigger_sep::protocol::{Toast, ToastLevel};
//! use serde_json::json;
//!
//! struct Greeter;
//!
//! impl Extension for Greeter {
//!     fn on_event(&self, host: &HostClient, event: &Event) -> Result<(), Trouble> {
//!         let message = format!("{} happened", event.topic);
//!         host.toast(&Toast { message, level: ToastLevel::Info, duration_ms: None, key: None })?;
//!         Ok(())
//!     }
//! }
//!
//! let session = MockHost::new().start(Greeter);
//! session.event("peer.offline", json!({"destinationHash": "00"})).unwrap();
//! let toast = &session.calls_of("host.notifications.toast")[0];
//! assert_eq!(toast["message"], "peer.offline happened");
//! session.shutdown();
//! ```

mod answers;
mod host;

pub use answers::Scripted;
pub use host::{Asked, MockError, MockSession};

use serde_json::{Value, json};

use super::client::{Contact, Message};
use super::{Extension, Link};
use crate::protocol::{Permission, V1_0, V1_1, Version};

/// A host that has not begun. It grants everything and speaks every version unless it is told otherwise.
pub struct MockHost {
    versions: Vec<Version>,
    permissions: Vec<Permission>,
    messages: Vec<Message>,
    contacts: Vec<Contact>,
    scripted: Vec<(String, Scripted)>,
    data_dir: String,
    max_frame_bytes: usize,
    max_calls: usize,
}

impl MockHost {
    /// A host that grants everything.
    #[must_use]
    pub fn new() -> Self {
        Self {
            versions: vec![V1_1, V1_0],
            permissions: Permission::ALL.to_vec(),
            messages: Vec::new(),
            contacts: Vec::new(),
            scripted: Vec::new(),
            data_dir: String::new(),
            max_frame_bytes: 1 << 20,
            max_calls: 64,
        }
    }

    /// Offers these versions, highest first.
    #[must_use]
    pub fn offering(mut self, versions: &[Version]) -> Self {
        self.versions = versions.to_vec();
        self
    }

    /// Grants only these permissions; other calls are denied as a real host denies them.
    #[must_use]
    pub fn granting(mut self, permissions: &[Permission]) -> Self {
        self.permissions = permissions.to_vec();
        self
    }

    /// Has these messages, newest first.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<Message>) -> Self {
        self.messages = messages;
        self
    }

    /// Has these contacts.
    #[must_use]
    pub fn with_contacts(mut self, contacts: Vec<Contact>) -> Self {
        self.contacts = contacts;
        self
    }

    /// Lets the extension write to this folder.
    #[must_use]
    pub fn with_data_dir(mut self, folder: &std::path::Path) -> Self {
        self.data_dir = folder.to_string_lossy().into_owned();
        self
    }

    /// Takes frames of at most so many bytes, and so many calls at the same time.
    #[must_use]
    pub fn taking(mut self, max_frame_bytes: usize, max_calls: usize) -> Self {
        (self.max_frame_bytes, self.max_calls) = (max_frame_bytes, max_calls);
        self
    }

    /// Answers a method in this way instead of the usual one.
    #[must_use]
    pub fn answering(mut self, method: &str, scripted: Scripted) -> Self {
        self.scripted.push((method.to_owned(), scripted));
        self
    }

    /// Starts the extension in this process and says hello to it.
    ///
    /// # Panics
    /// When there is no socket or no thread to be had.
    #[must_use]
    pub fn start(self, extension: impl Extension) -> MockSession {
        MockSession::start(self, extension)
    }

    fn initialize(&self) -> Value {
        json!({
            "protocolVersion": self.versions.first(),
            "supportedVersions": self.versions,
            "host": {"name": "mock", "version": env!("CARGO_PKG_VERSION")},
            "extension": {"id": "org.example.mocked", "version": "1.0.0", "dataDir": self.data_dir},
            "session": SESSION,
            "launchReason": "first",
            "trustLevel": "trusted_third_party",
            "permissions": self.permissions,
            "events": {"subscribed": [], "denied": [], "ignored": []},
            "limits": {
                "maxFrameBytes": self.max_frame_bytes, "maxRequestsPerSecond": 1000,
                "maxConcurrentRequests": self.max_calls, "eventQueue": 256, "eventWindow": 16,
                "maxPanels": 16, "toastsPerMinute": 60,
            },
            "platform": {"profile": "desktop", "state": "foreground"},
            "nowMs": 0,
        })
    }
}

impl Default for MockHost {
    fn default() -> Self {
        Self::new()
    }
}

/// The session that is spoken of.
const SESSION: &str = "00000000000000000000000000";

/// The token that has to be shown.
const TOKEN: &str = "mock";

/// Two ends of a channel.
fn pair() -> (Link, Link) {
    let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    (Link::Unix(one), Link::Unix(other))
}
