//! The events that a manifest may name, and what each needs.

use super::admission::{DeniedTopic, EventPlan};
use super::model::Manifest;
use crate::host::events::Topic;
use crate::protocol::Permission;

/// All topics that can be subscribed to.
pub(super) fn known() -> impl Iterator<Item = &'static str> {
    Topic::ALL.iter().map(|topic| topic.as_str())
}

/// The permission that a topic needs beside that for events; none if there is no such topic.
pub(super) fn find(topic: &str) -> Option<Option<Permission>> {
    Topic::parse(topic).ok().map(Topic::permission)
}

/// Sorts the topics of a manifest: heard, not allowed, not there.
pub(super) fn plan(manifest: &Manifest, grantable: &[Permission]) -> EventPlan {
    let mut plan = EventPlan::default();
    for topic in &manifest.events {
        let Some(content) = find(topic) else {
            plan.ignored.push(topic.clone());
            continue;
        };
        let needed = [Some(Permission::EventsSubscribe), content];
        let missing = needed.into_iter().flatten().find_map(|permission| {
            let declared = manifest.permissions.contains(&permission);
            match (declared, grantable.contains(&permission)) {
                (false, _) => Some((permission, "not_declared")),
                (true, false) => Some((permission, "trust_ceiling")),
                (true, true) => None,
            }
        });
        match missing {
            Some((permission, reason)) => {
                plan.denied.push(DeniedTopic { topic: topic.clone(), permission, reason });
            }
            None => plan.subscribed.push(topic.clone()),
        }
    }
    plan
}
