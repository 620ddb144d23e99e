//! The closed sets of words that the contract names.

use super::words::words;

words! {
    /// How far an extension is trusted. A manifest claims it, the host's policy decides it. Lowest first.
    TrustLevel ("trust level") {
        /// A local experiment: few permissions, small limits, a strict box.
        UntrustedLocal = "untrusted_local",
        /// Approved by the operator.
        TrustedThirdParty = "trusted_third_party",
        /// Shipped with the host.
        FirstParty = "first_party",
    }
}

words! {
    /// What an extension may be allowed to do.
    Permission ("permission") {
        /// Read messages.
        MessagesRead = "messages.read",
        /// Send messages.
        MessagesSend = "messages.send",
        /// Read contacts.
        ContactsRead = "contacts.read",
        /// Receive events.
        EventsSubscribe = "events.subscribe",
        /// Put panels into the host's tools page.
        ToolsRegister = "tools.register",
        /// Show short notices.
        NotificationsCreate = "notifications.create",
    }
}

words! {
    /// The kind of machine the host runs on.
    Profile ("platform profile") {
        /// Linux, macOS, Windows: programs may be started.
        Desktop = "desktop",
        /// A phone: packaged runtimes only, paused and reclaimed at will.
        Android = "android",
    }
}

words! {
    /// A place in the host's interface for panels.
    Slot ("slot") {
        /// The main column of the tools page.
        Primary = "tools.page.primary",
        /// The side column.
        Secondary = "tools.page.secondary",
        /// Behind "advanced".
        Advanced = "tools.page.advanced",
    }
}

words! {
    /// Where an extension is in its life.
    State ("state") {
        /// Its manifest cannot be used.
        Invalid = "invalid",
        /// Its manifest is right, but it may not run here.
        Blocked = "blocked",
        /// It wants permissions that nobody has agreed to.
        NeedsConsent = "needs_consent",
        /// It is switched off.
        Disabled = "disabled",
        /// The platform has nothing to run it with.
        Unavailable = "unavailable",
        /// It could run and does not.
        Stopped = "stopped",
        /// Its process is being made, has to attach, and to initialize.
        Starting = "starting",
        /// It serves.
        Ready = "ready",
        /// It runs and does not answer.
        Unresponsive = "unresponsive",
        /// It was told that it will be suspended.
        Pausing = "pausing",
        /// It may not do anything.
        Suspended = "suspended",
        /// It was told to go on and has to show that it lives.
        Resuming = "resuming",
        /// The platform took its process; it comes back with the foreground.
        Reclaimed = "reclaimed",
        /// It was asked to leave.
        Stopping = "stopping",
        /// It crashed and will be started again.
        Backoff = "backoff",
        /// Starting it again cannot help.
        Failed = "failed",
        /// Its folder is gone.
        Removed = "removed",
    }
}

words! {
    /// Why an extension is switched off.
    DisabledReason ("reason to be disabled") {
        /// Somebody switched it off.
        Operator = "operator",
        /// It crashed too often.
        CrashLoop = "crash_loop",
        /// It broke the rules.
        PolicyViolation = "policy_violation",
        /// Its files are not those that were approved.
        Tampered = "tampered",
    }
}

words! {
    /// Why starting an extension again cannot help.
    FailedReason ("reason to have failed") {
        /// No common version of the protocol.
        Incompatible = "incompatible",
        /// It said that its configuration is wrong.
        Config = "config",
        /// The box that it must have cannot be built here.
        Sandbox = "sandbox",
        /// Its files could not be verified.
        Integrity = "integrity",
    }
}

words! {
    /// How a process of an extension ended.
    ExitKind ("kind of exit") {
        /// It was asked to.
        Requested = "requested",
        /// It left by itself with code 0.
        Voluntary = "voluntary",
        /// It left before it was ready.
        ExitBeforeReady = "exit_before_ready",
        /// It was not ready in time.
        StartupTimeout = "startup_timeout",
        /// It left with a code or by a signal.
        Crash = "crash",
        /// It stopped answering.
        Unhealthy = "unhealthy",
        /// It stopped reading.
        WriteStall = "write_stall",
        /// It closed its channel and stayed.
        ChannelLost = "channel_lost",
        /// It broke the protocol too often.
        ProtocolViolation = "protocol_violation",
        /// It sent far more than a frame may have.
        FrameOverrun = "frame_overrun",
        /// It used more memory than it may.
        Memory = "memory",
        /// The platform took it.
        Reclaimed = "reclaimed",
        /// It speaks no version that the host speaks.
        Incompatible = "incompatible",
        /// Its box could not be built.
        Sandbox = "sandbox",
        /// The host could not start it for lack of something.
        HostResource = "host_resource",
        /// Its program could not be started.
        SpawnFailed = "spawn_failed",
    }
}

words! {
    /// Why an extension was started.
    LaunchReason ("launch reason") {
        /// For the first time in this host.
        First = "first",
        /// After a crash.
        Restart = "restart",
        /// After the platform had taken its process.
        ResumeAfterReclaim = "resume_after_reclaim",
        /// Because somebody asked.
        Manual = "manual",
        /// Because of an event it waits for.
        LazyEvent = "lazy_event",
        /// Because of an action of one of its panels.
        LazyAction = "lazy_action",
    }
}

words! {
    /// Why an extension is asked to leave.
    ShutdownReason ("shutdown reason") {
        /// Somebody stopped it.
        Stop = "stop",
        /// Somebody switched it off.
        Disable = "disable",
        /// The host leaves.
        HostExit = "host_exit",
        /// There is a newer one.
        Update = "update",
        /// No common version.
        VersionUnsupported = "version_unsupported",
        /// The policy says so.
        Policy = "policy",
        /// It does not answer.
        Unhealthy = "unhealthy",
        /// Its permissions were taken back.
        Revoked = "revoked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.as_str()), Ok(*permission));
            let json = serde_json::to_string(permission).expect("a word is a string");
            assert_eq!(json, format!("\"{permission}\""));
        }
        let error = TrustLevel::parse("root").expect_err("no such level");
        assert!(error.to_string().contains("untrusted_local, trusted_third_party, first_party"));
        assert!(TrustLevel::UntrustedLocal < TrustLevel::FirstParty);
    }
}
