//! What an extension is told when it asks what it may do. Made once, and again only when something has changed.

use std::sync::PoisonError;

use serde_json::value::RawValue;

use super::decide::decide;
use super::messages::raw;
use super::owner::GateParts;
use super::params::{Params, Text};
use super::serve::Shared;
use crate::protocol::{
    Capabilities, CapabilitiesExtension, CapabilitiesPlatform, EventList, Fault, HostMethod, LimitsJson,
    METHODS, Permission, SandboxJson, Slot, Version,
};

/// What it was told the last time, and what that depended on.
#[derive(Debug)]
pub(super) struct Told {
    epochs: (u64, u64),
    result: Box<RawValue>,
}

impl Shared {
    /// `host.get_capabilities`. It may name what it wants to know about; a name that means nothing is an error.
    pub(super) fn get_capabilities(
        &self,
        version: Version,
        mut params: Params<'_>,
    ) -> Result<Box<RawValue>, Fault> {
        let names = params.texts("names", 64, Text::line(1, 128)).unwrap_or_default();
        params.finish(Some(()))?;
        let services = &self.gate.parts.services;
        if let Some(name) = names.into_iter().find(|name| !self.is_capability(version, name)) {
            return Err(Fault::UnknownCapability { name });
        }
        // Read before the rest: a change that comes in between makes it be told anew the next time.
        let epochs = (self.gate.parts.grants.epoch(), services.subscription.epoch());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = told.as_ref().filter(|told| told.epochs == epochs) {
            return Ok(told.result.clone());
        }
        let result = raw(&self.capabilities(version))?;
        *told = Some(Told { epochs, result: result.clone() });
        Ok(result)
    }

    fn is_capability(&self, version: Version, name: &str) -> bool {
        let is_topic =
            || self.gate.parts.services.subscription.known(version).iter().any(|topic| topic == name);
        HostMethod::find(name).is_some() || Permission::parse(name).is_ok() || is_topic()
    }

    fn capabilities(&self, version: Version) -> Capabilities {
        let GateParts { extension, version: label, admission, grants, services, about, .. } =
            &self.gate.parts;
        let callable = |row: &&crate::protocol::Entry| {
            row.method != HostMethod::Attach && decide(METHODS, row.method, version, grants).is_allowed()
        };
        let mut methods: Vec<String> =
            METHODS.iter().filter(callable).map(|row| row.method.as_str().to_owned()).collect();
        methods.sort();
        let mut slots = Slot::ALL.to_vec();
        slots.sort_by_key(|slot| slot.as_str());
        Capabilities {
            protocol_version: version,
            host: about.host.clone(),
            platform: CapabilitiesPlatform {
                profile: admission.profile,
                os: about.os.clone(),
                arch: about.arch.clone(),
            },
            extension: CapabilitiesExtension { id: extension.clone(), version: label.clone() },
            trust_level: admission.trust,
            permissions: grants.list(),
            methods,
            events: EventList {
                known: services.subscription.known(version),
                subscribed: services.subscription.subscribed(version),
                denied: services.subscription.denied(version),
            },
            limits: LimitsJson::from(&admission.limits),
            slots,
            sandbox: SandboxJson { level: about.sandbox.clone() },
            features: about.features.clone(),
        }
    }
}
