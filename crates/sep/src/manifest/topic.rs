//! The events that a manifest may name, and what each needs.

use super::admission::{DeniedTopic, EventPlan};
use super::model::Manifest;
use crate::protocol::Permission;

/// All topics that can be subscribed to, with the permission that their content needs beside that for events.
pub(super) const TOPICS: &[(&str, Option<Permission>)] = &[
    ("contact.changed", Some(Permission::ContactsRead)),
    ("message.received", Some(Permission::MessagesRead)),
    ("message.sent", Some(Permission::MessagesRead)),
    ("message.state", Some(Permission::MessagesRead)),
    ("peer.offline", None),
    ("peer.online", None),
];

/// The further permission a topic needs; none if there is no such topic.
pub(super) fn find(topic: &str) -> Option<Option<Permission>> {
    TOPICS.iter().find(|(name, _)| *name == topic).map(|(_, permission)| *permission)
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
