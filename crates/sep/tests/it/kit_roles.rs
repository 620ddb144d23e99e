//! The extensions that this binary can be: `__extension autoreply|fault|stubborn …`.

use std::process::ExitCode;
use std::thread;

use outrigger_sep::config::PACKAGED_RUNTIME;
use outrigger_sep::extension::{
    self, ActionReply, Event, Extension, HostClient, HostError, Shutdown, Trouble, Welcome,
};
use outrigger_sep::protocol::{ActionCall, ListMessages, ToastLevel};
use outrigger_sep::reference::{autoreply, fault};

/// Is the extension that the arguments name, if they name one.
pub(crate) fn intercept() -> Option<ExitCode> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if is_packaged_runtime() && args.first().is_none_or(|first| first != "__extension") {
        args.insert(0, "__extension".to_owned());
    }
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["__extension", "autoreply", ..] => Some(autoreply::run(&args[2..])),
        ["__extension", "fault", ..] => Some(fault::run_with(&args[2..], fault::Hands { start })),
        ["__extension", "stubborn", ..] => Some(extension::run(Stubborn)),
        _ => None,
    }
}

/// On a phone the command is the name of the runtime, and its first argument a module.
fn is_packaged_runtime() -> bool {
    let own = std::env::current_exe().unwrap_or_default();
    own.file_name().is_some_and(|name| name == PACKAGED_RUNTIME)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a misbehaving extension starts processes that nobody supervises"
)]
fn start(args: &[String]) -> std::io::Result<u32> {
    let program = std::env::current_exe()?;
    let child = std::process::Command::new(program).args(["__extension", "fault"]).args(args).spawn()?;
    Ok(child.id())
}

/// An extension whose handlers never return, on top of a kit that does.
struct Stubborn;

impl Extension for Stubborn {
    fn on_initialize(&self, _: &HostClient, welcome: &Welcome) -> Result<(), Trouble> {
        match welcome.host.name.as_str() {
            "unbearable" => Err("this host is unbearable".into()),
            _ => Ok(()),
        }
    }

    fn on_event(&self, _: &HostClient, event: &Event) -> Result<(), Trouble> {
        match event.topic.as_str() {
            "peer.offline" => Ok(()),
            _ => for_ever(),
        }
    }

    fn on_action(&self, host: &HostClient, action: &ActionCall) -> Result<ActionReply, Trouble> {
        match (action.action_id.as_str(), host.messages_list(&ListMessages::default())) {
            ("ask", Err(HostError::Cancelled { .. })) => {
                host.detached().log(outrigger_sep::protocol::LogLevel::Info, "given up")?;
                Ok(ActionReply::ok())
            }
            _ => Ok(ActionReply::ok().say(ToastLevel::Info, "answered")),
        }
    }

    fn on_shutdown(&self, _: &Shutdown) {
        for_ever()
    }
}

fn for_ever() -> ! {
    loop {
        thread::park();
    }
}
