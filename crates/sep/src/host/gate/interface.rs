//! Panels, notices and topics: what an extension puts before people, and what it hears about.

use std::time::Duration;

use serde_json::value::RawValue;

use super::messages::raw;
use super::params::{Params, Text};
use super::serve::{Shared, empty};
use crate::host::record::wall_clock;
use crate::host::ui::{
    Action, Flaw, MAX_ACTIONS, MAX_NODES, MAX_ORDER, Node, PanelDraft, PanelPatch, RegisterError, ToastDraft,
    ToastLevel, USUAL_DURATION, UpdateError,
};
use crate::protocol::{
    BadParam, Component, Fault, PanelRegistered, Quota, Slot, Thing, ToastResult, TopicsResult, Version,
};

/// Longer than anything that is right, so that the room that draws panels says what is wrong with the rest.
const ANY: Text = Text::free(0, 4096);

const SLOTS: &[(&str, Slot)] = &[
    ("tools.page.primary", Slot::Primary),
    ("tools.page.secondary", Slot::Secondary),
    ("tools.page.advanced", Slot::Advanced),
];

const LEVELS: &[(&str, ToastLevel)] = &[
    ("info", ToastLevel::Info),
    ("success", ToastLevel::Success),
    ("warning", ToastLevel::Warning),
    ("error", ToastLevel::Error),
];

impl Shared {
    /// `host.ui.register_tool_panel`.
    pub(super) fn register_panel(&self, mut params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let id = params.text("id", ANY);
        let id = params.required("id", id);
        let title = params.text("title", ANY);
        let title = params.required("title", title);
        let slot = params.word("slot", SLOTS);
        let slot = params.required("slot", slot);
        let description = params.text("description", ANY);
        let icon = params.text("icon", ANY);
        let order =
            params.number("order", 0, u64::from(MAX_ORDER)).and_then(|order| u32::try_from(order).ok());
        let actions = params.things::<Action>("actions", MAX_ACTIONS);
        let draft = id.zip(title).zip(slot).map(|((id, title), slot)| PanelDraft {
            id,
            title,
            slot,
            description,
            icon,
            order,
            actions,
        });
        let draft = params.finish(draft)?;
        let parts = &self.gate.parts;
        match parts.services.panels.register(&parts.extension, draft) {
            Ok(key) => raw(&PanelRegistered { panel_key: key.to_string() }),
            Err(RegisterError::Invalid(flaws)) => Err(bad(flaws)),
            Err(RegisterError::Conflict { .. }) => Err(Fault::Conflict(Thing::Panel)),
            Err(RegisterError::Quota { quota, limit }) => {
                let quota = if quota == "panels" { Quota::Panels } else { Quota::ActionsPerPanel };
                Err(Fault::QuotaExceeded { quota, limit: limit as u64 })
            }
            Err(RegisterError::NoOwner) => Err(Fault::Unavailable(Component::Ui)),
        }
    }

    /// `host.ui.update_tool_panel`.
    pub(super) fn update_panel(&self, mut params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let id = params.text("id", ANY);
        let id = params.required("id", id);
        let patch = PanelPatch {
            title: params.text("title", ANY),
            description: params.text("description", ANY),
            actions: params.things::<Action>("actions", MAX_ACTIONS),
            content: params.things::<Node>("content", MAX_NODES),
        };
        let id = params.finish(id)?;
        let parts = &self.gate.parts;
        changed(parts.services.panels.update(&parts.extension, &id, patch))
    }

    /// `host.ui.unregister_tool_panel`.
    pub(super) fn unregister_panel(&self, mut params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let id = params.text("id", ANY);
        let id = params.required("id", id);
        let id = params.finish(id)?;
        let parts = &self.gate.parts;
        changed(parts.services.panels.unregister(&parts.extension, &id))
    }

    /// `host.notifications.toast`.
    pub(super) fn toast(&self, mut params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let message = params.text("message", ANY);
        let message = params.required("message", message);
        let level = params.word("level", LEVELS);
        let level = params.required("level", level);
        let duration =
            params.number("durationMs", 1000, 15_000).map_or(USUAL_DURATION, Duration::from_millis);
        let key = params.text("key", ANY);
        let draft = message.zip(level).map(|(message, level)| ToastDraft { message, level, duration, key });
        let draft = params.finish(draft)?;
        // Before the quota: what is wrong must not cost anything.
        draft.check().map_err(bad)?;
        self.gate.take_toast()?;
        let parts = &self.gate.parts;
        let shown =
            parts.services.notices.show(wall_clock(), &parts.extension, &parts.name, draft).map_err(bad)?;
        raw(&ToastResult { shown: shown.shown, reason: shown.reason })
    }

    /// `host.events.subscribe`.
    pub(super) fn subscribe(&self, version: Version, params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let topics = topics(params)?;
        let subscription = &self.gate.parts.services.subscription;
        let mut denied = subscription.subscribe(version, &topics);
        denied.sort();
        raw(&TopicsResult { subscribed: subscription.subscribed(version), denied })
    }

    /// `host.events.unsubscribe`.
    pub(super) fn unsubscribe(&self, version: Version, params: Params<'_>) -> Result<Box<RawValue>, Fault> {
        let topics = topics(params)?;
        let subscription = &self.gate.parts.services.subscription;
        subscription.unsubscribe(&topics);
        raw(&TopicsResult { subscribed: subscription.subscribed(version), denied: Vec::new() })
    }
}

fn topics(mut params: Params<'_>) -> Result<Vec<String>, Fault> {
    let topics = params.texts("topics", 64, Text::line(1, 128));
    let topics = params.required("topics", topics);
    params.finish(topics)
}

fn changed(outcome: Result<(), UpdateError>) -> Result<Box<RawValue>, Fault> {
    match outcome {
        Ok(()) => Ok(empty()),
        Err(UpdateError::NotFound { .. }) => Err(Fault::NotFound(Thing::Panel)),
        Err(UpdateError::Invalid(flaws)) => Err(bad(flaws)),
        Err(UpdateError::Quota { limit }) => {
            Err(Fault::QuotaExceeded { quota: Quota::ActionsPerPanel, limit: limit as u64 })
        }
    }
}

fn bad(flaws: Vec<Flaw>) -> Fault {
    Fault::Params(flaws.into_iter().map(|Flaw { path, reason }| BadParam { path, reason }).collect())
}
