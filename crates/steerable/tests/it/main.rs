//! The integration tests of this crate, one binary, which is also its own launcher and its own children.

/// Functions as trials, each under its own name.
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })),*]
    };
}

mod agent;
mod agent_compact;
mod agent_consent;
mod agent_cut;
mod agent_kit;
mod agent_limits;
mod check;
mod host;
mod host_fake;
mod host_fake_stream;
mod host_kit;
mod host_orphans;
mod host_own;
mod host_streams;
mod mcp;
mod mcp_child;
mod mcp_http;
mod model;
mod model_dialects;
mod model_kit;
mod model_proxy;
mod model_retry;
mod model_scripted;
mod server;
mod server_dialects;
mod server_scenarios;
mod sidecar;
mod sidecar_kit;
mod sidecar_lines;
mod sidecar_methods;
mod sidecar_streams;
mod sidecar_turns;
mod store;
mod store_file;
mod store_kit;
mod store_otlp;
mod store_trace;
mod tools;
mod tools_kit;
mod tools_reach;
mod tools_script;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match args.get(1).map(String::as_str) {
        Some("__sidecar") => return sidecar_kit::child(&args[2..]),
        Some("__checked_sidecar") => return check::child(&args[2..]),
        Some("__host") => return host_orphans::host(),
        Some("__fake_sidecar") => return host_fake::child(&args[2..]),
        Some("__store") => return store_file::child(&args[2..]),
        Some("__mcp") => return mcp_child::child(&args[2..]),
        Some("__mustard") => return tools_script::child(&args[2..]),
        Some(_) | None => {}
    }
    let rooms = [
        agent::trials(),
        agent_compact::trials(),
        agent_consent::trials(),
        agent_cut::trials(),
        agent_limits::trials(),
        check::trials(),
        host::trials(),
        host_orphans::trials(),
        host_own::trials(),
        host_streams::trials(),
        mcp::trials(),
        model::trials(),
        model_dialects::trials(),
        model_proxy::trials(),
        model_retry::trials(),
        model_scripted::trials(),
        sidecar::trials(),
        sidecar_lines::trials(),
        sidecar_methods::trials(),
        sidecar_streams::trials(),
        sidecar_turns::trials(),
        store::trials(),
        store_file::trials(),
        store_otlp::trials(),
        store_trace::trials(),
        tools::trials(),
        tools_reach::trials(),
        tools_script::trials(),
    ];
    let trials: Vec<Trial> = rooms.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
