//! What has to be true before a process is started, every time: the files are still those that were admitted.

use std::path::PathBuf;

use super::examine::examine;
use super::finding::{Finding, Severity, code};
use super::found::{Found, HostFacts, Standing};
use super::tree::TreeDigest;
use crate::config::HostPolicy;

/// Everything the start of a process needs from the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program, absolute.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// The variables of the manifest, and only those.
    pub env: Vec<(String, String)>,
    /// What `PATH` must be, unless the manifest of a first party sets it.
    pub runtime_path: String,
    /// What the files are.
    pub digest: TreeDigest,
    /// What it must be able to read: its own folder, and its program where that is somewhere else.
    pub readable: Vec<PathBuf>,
}

/// Why an extension is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// Its files are not those that were approved or signed.
    #[error("its files were changed: {}", finding.message)]
    Tampered {
        /// How that is known.
        finding: Finding,
    },
    /// Its manifest is another one than when it was found. Finding it again decides anew.
    #[error("its manifest was changed since it was found")]
    Changed,
    /// Something is in the way now that was not when it was found.
    #[error("{}", .0.message)]
    Blocked(Finding),
    /// It was not admitted when it was found.
    #[error("it is {standing}")]
    NotAdmitted {
        /// What it is.
        standing: Standing,
    },
}

/// Looks at an admitted extension once more and says what to start. Call it before every start.
///
/// # Errors
/// When it is not to be started.
pub fn prepare(found: &Found, policy: &HostPolicy, facts: &HostFacts) -> Result<Launch, LaunchError> {
    let Some(admitted) = found.admission.as_ref().filter(|_| found.standing == Standing::Admitted) else {
        return Err(LaunchError::NotAdmitted { standing: found.standing });
    };
    let now = examine(&found.dir, found.home, policy, facts);
    let trust = now.admission.as_ref().map(|admission| admission.trust);
    let distrusted = |finding: &Finding| matches!(finding.code, code::TRUST_CLAMPED | code::UNTRUSTED);
    let fell = trust.is_some_and(|trust| trust < admitted.trust) || now.findings.iter().any(distrusted);
    if fell && !found.findings.iter().any(distrusted) {
        // Other files without their proof are an attempt; the same files under another policy are not.
        return Err(match now.digest == found.digest {
            true => LaunchError::Changed,
            false => {
                LaunchError::Tampered { finding: tampered("what proved its trust does not hold any more") }
            }
        });
    }
    if let Some(finding) = worst(&now.findings) {
        return Err(match finding.code {
            code::TAMPERED | code::SIGN_INVALID => LaunchError::Tampered { finding },
            _ => LaunchError::Blocked(finding),
        });
    }
    if now.manifest_digest != found.manifest_digest || trust != Some(admitted.trust) {
        return Err(LaunchError::Changed);
    }
    // Admitted means that all of these are there.
    let (Some(manifest), Some(resolved), Some(digest)) = (now.manifest, now.resolved, now.digest) else {
        return Err(LaunchError::Changed);
    };
    let own = found.dir.canonicalize().unwrap_or_else(|_| found.dir.clone());
    let mut readable = vec![own.clone()];
    if !resolved.program.starts_with(&own) {
        readable.push(resolved.program.clone());
    }
    Ok(Launch {
        program: resolved.program,
        args: manifest.entrypoint.args.clone(),
        cwd: resolved.cwd,
        env: manifest.entrypoint.environment.clone().into_iter().collect(),
        runtime_path: policy.runtime_path.clone(),
        digest,
        readable,
    })
}

/// What keeps it from running; what is about its files goes first.
fn worst(findings: &[Finding]) -> Option<Finding> {
    let mut stops: Vec<&Finding> =
        findings.iter().filter(|finding| finding.severity != Severity::Warning).collect();
    stops.sort_by_key(|finding| !matches!(finding.code, code::TAMPERED | code::SIGN_INVALID));
    stops.first().map(|finding| (*finding).clone())
}

fn tampered(why: &str) -> Finding {
    Finding::block(code::TAMPERED, "", why)
}
