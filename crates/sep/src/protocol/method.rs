//! Every method of the contract in one table: since when it exists, which permission it needs, in which form it may come.

use super::words::words;
use super::{Permission, V1_0, V1_1, Version};

words! {
    /// What an extension may call.
    HostMethod ("method of the host") {
        /// Shows the token. Only as the first frame of a connection.
        Attach = "host.attach",
        /// Asks what it may do.
        GetCapabilities = "host.get_capabilities",
        /// Sends a message.
        MessagesSend = "host.messages.send",
        /// Reads messages.
        MessagesList = "host.messages.list",
        /// Reads contacts.
        ContactsList = "host.contacts.list",
        /// Puts a panel into the tools page.
        RegisterPanel = "host.ui.register_tool_panel",
        /// Changes a panel.
        UpdatePanel = "host.ui.update_tool_panel",
        /// Takes a panel away.
        UnregisterPanel = "host.ui.unregister_tool_panel",
        /// Shows a short notice.
        Toast = "host.notifications.toast",
        /// Wants to hear about topics.
        Subscribe = "host.events.subscribe",
        /// Does not want to hear about topics any more.
        Unsubscribe = "host.events.unsubscribe",
        /// Writes to its own log.
        Log = "host.log",
    }
}

words! {
    /// What a host calls.
    ExtensionMethod ("method of an extension") {
        /// Agrees on a version and says what there is.
        Initialize = "sep.initialize",
        /// Tells what happened. The answer says that there is room for more.
        Event = "sep.event",
        /// Asks whether it lives.
        Health = "sep.health",
        /// Invokes an action of a panel.
        Action = "sep.action",
        /// Asks it to leave.
        Shutdown = "sep.shutdown",
    }
}

/// The notification by which either side gives up a call, with params `{"id": …}`.
pub const CANCEL: &str = "$/cancel";

/// The form in which a method may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A request, as the first frame of a connection and never again.
    FirstFrame,
    /// A request. What is privileged is never done without an answer.
    Request,
    /// A notification, never answered.
    Notification,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which method.
    pub method: HostMethod,
    /// The first protocol that has it.
    pub since: Version,
    /// What it needs; none for what every extension may do.
    pub permission: Option<Permission>,
    /// How it may come.
    pub form: Form,
}

/// The table. A method that is not in it is denied.
pub const METHODS: &[Entry] = &[
    row(HostMethod::Attach, V1_0, None, Form::FirstFrame),
    row(HostMethod::GetCapabilities, V1_0, None, Form::Request),
    row(HostMethod::MessagesSend, V1_0, Some(Permission::MessagesSend), Form::Request),
    row(HostMethod::MessagesList, V1_0, Some(Permission::MessagesRead), Form::Request),
    row(HostMethod::ContactsList, V1_0, Some(Permission::ContactsRead), Form::Request),
    row(HostMethod::RegisterPanel, V1_0, Some(Permission::ToolsRegister), Form::Request),
    row(HostMethod::Toast, V1_0, Some(Permission::NotificationsCreate), Form::Request),
    row(HostMethod::UpdatePanel, V1_1, Some(Permission::ToolsRegister), Form::Request),
    row(HostMethod::UnregisterPanel, V1_1, Some(Permission::ToolsRegister), Form::Request),
    row(HostMethod::Subscribe, V1_1, Some(Permission::EventsSubscribe), Form::Request),
    row(HostMethod::Unsubscribe, V1_1, Some(Permission::EventsSubscribe), Form::Request),
    row(HostMethod::Log, V1_1, None, Form::Notification),
];

const fn row(method: HostMethod, since: Version, permission: Option<Permission>, form: Form) -> Entry {
    Entry { method, since, permission, form }
}

impl HostMethod {
    /// The method of this name. Costs nothing when there is none: names come from extensions.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_exactly_one_row() {
        for method in HostMethod::ALL {
            assert_eq!(METHODS.iter().filter(|row| row.method == *method).count(), 1, "{method}");
            assert_eq!(HostMethod::find(method.as_str()), Some(*method));
        }
        assert_eq!(METHODS.len(), HostMethod::ALL.len());
        assert_eq!(HostMethod::find("host.messages.delete"), None);
    }

    #[test]
    fn the_table_is_what_was_agreed_on() {
        let rows: Vec<String> = METHODS
            .iter()
            .map(|row| {
                let permission = row.permission.map_or("-", Permission::as_str);
                format!("{} {} {permission} {:?}", row.method, row.since, row.form)
            })
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        host.attach 1.0.0 - FirstFrame
        host.get_capabilities 1.0.0 - Request
        host.messages.send 1.0.0 messages.send Request
        host.messages.list 1.0.0 messages.read Request
        host.contacts.list 1.0.0 contacts.read Request
        host.ui.register_tool_panel 1.0.0 tools.register Request
        host.notifications.toast 1.0.0 notifications.create Request
        host.ui.update_tool_panel 1.1.0 tools.register Request
        host.ui.unregister_tool_panel 1.1.0 tools.register Request
        host.events.subscribe 1.1.0 events.subscribe Request
        host.events.unsubscribe 1.1.0 events.subscribe Request
        host.log 1.1.0 - Notification
        ");
    }
}
