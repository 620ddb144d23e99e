//! Resource limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::launch::LaunchError;
use crate::sandbox::Limits;

/// Sets the limits of this process, which what it starts inherits. Answers with what is in force: a value above our own
/// hard limit is cut to it, because raising that one is a privilege.
pub(super) fn apply(wanted: Limits, host_open_files: Option<u64>) -> Result<Limits, LaunchError> {
    if let (None, Some(soft)) = (wanted.open_files, host_open_files) {
        // The host has raised its own; programs that use `select` must not see that.
        let hard = getrlimit(Resource::Nofile).maximum;
        let soft = hard.map_or(soft, |hard| soft.min(hard));
        set("open_files", Resource::Nofile, Rlimit { current: Some(soft), maximum: hard })?;
    }
    Ok(Limits {
        file_size_bytes: lower("file_size_bytes", Resource::Fsize, wanted.file_size_bytes)?,
        cpu_seconds: lower("cpu_seconds", Resource::Cpu, wanted.cpu_seconds)?,
        core_bytes: lower("core_bytes", Resource::Core, wanted.core_bytes)?,
        processes: lower("processes", Resource::Nproc, wanted.processes)?,
        address_space_bytes: lower("address_space_bytes", Resource::As, wanted.address_space_bytes)?,
        open_files: lower("open_files", Resource::Nofile, wanted.open_files)?,
    })
}

fn lower(name: &str, resource: Resource, wanted: Option<u64>) -> Result<Option<u64>, LaunchError> {
    let Some(wanted) = wanted else { return Ok(None) };
    let value = getrlimit(resource).maximum.map_or(wanted, |hard| wanted.min(hard));
    set(name, resource, Rlimit { current: Some(value), maximum: Some(value) })?;
    Ok(Some(value))
}

fn set(name: &str, resource: Resource, limit: Rlimit) -> Result<(), LaunchError> {
    setrlimit(resource, limit)
        .map_err(|errno| LaunchError::Sandbox { missing: format!("limit {name}"), reason: errno.to_string() })
}
