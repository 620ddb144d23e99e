//! The choices an operator has, each a closed set of words.

use crate::protocol::ExtensionId;
use crate::protocol::words::words;

words! {
    /// Whether extensions that nobody vouches for run.
    UntrustedLocal ("choice for untrusted extensions") {
        /// They do not.
        Deny = "deny",
        /// They do, in a strict box and with few permissions.
        Allow = "allow",
    }
}

words! {
    /// What signatures are good for. One that is wrong blocks the extension, whatever is chosen here.
    SignaturePolicy ("signature policy") {
        /// They prove nothing.
        Off = "off",
        /// One that is there and right proves who made it.
        VerifyIfPresent = "verify_if_present",
        /// Nothing runs without a right one.
        Require = "require",
    }
}

words! {
    /// How extensions are boxed. Untrusted ones are always boxed strictly.
    SandboxPolicy ("sandbox policy") {
        /// Strictly, or they do not run.
        Required = "required",
        /// As tightly as this machine can.
        Auto = "auto",
        /// Not beyond what every child process gets.
        Off = "off",
    }
}

words! {
    /// How extensions connect to the host.
    TransportPolicy ("transport") {
        /// The safest that works.
        Auto = "auto",
        /// A socket in a private folder.
        Unix = "unix",
        /// An inherited socket.
        Fd = "fd",
        /// The loopback address.
        Tcp = "tcp",
    }
}

words! {
    /// When extensions are started.
    Activation ("activation") {
        /// With the host.
        Eager = "eager",
        /// When somebody uses them.
        Lazy = "lazy",
    }
}

words! {
    /// Whether frames are kept for people who look for mistakes.
    TracePolicy ("trace policy") {
        /// They are not.
        Off = "off",
        /// They are, without what people wrote.
        Redacted = "redacted",
        /// They are, as they were.
        Unredacted = "unredacted",
    }
}

words! {
    /// The words for [`Background`] in a file.
    BackgroundChoice ("choice for the background") {
        /// Nobody.
        Deny = "deny",
        /// Whoever asks for it.
        Allow = "allow",
        /// Those that are listed.
        Allowlist = "allowlist",
    }
}

/// Who may run in the background on a phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Background {
    /// Nobody.
    Deny,
    /// Whoever asks for it.
    Allow,
    /// Those that are listed and ask for it.
    Only(Vec<ExtensionId>),
}

impl Background {
    /// Whether `id` may, if it wants to.
    #[must_use]
    pub fn allows(&self, id: &ExtensionId) -> bool {
        match self {
            Self::Deny => false,
            Self::Allow => true,
            Self::Only(listed) => listed.contains(id),
        }
    }
}
