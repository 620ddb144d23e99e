//! What authors and careful operators need: a first extension, the truth about a manifest, keys, and a word for what one has read.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use outrigger_sep::manifest::{
    self, AuthorKey, FILE_NAME, Finding, Home, KeyId, Severity, Standing, examine, sign as sign_folder,
};
use outrigger_sep::protocol::ExtensionId;
use outrigger_sep::reference::{Draft, Program};
use serde_json::json;

use super::args::{Language, NewArgs, Place, SignArgs, ValidateArgs};
use super::place::facts;
use super::show;
use crate::say::{self, Format};

/// The kit and the extension that `ext new` begins with.
const PYTHON_KIT: &str = include_str!("../../../../sdk/python/outrigger_sep.py");
const PYTHON_MAIN: &str = include_str!("../../../../sdk/python/examples/sep_autoreply/main.py");

/// Says everything that is wrong; fails if one could not run.
pub(crate) fn validate(args: &ValidateArgs, format: Format) -> anyhow::Result<ExitCode> {
    let site = args.place.site()?;
    let mut worst = ExitCode::SUCCESS;
    for path in &args.paths {
        let (findings, standing) = look(path, &site.policy)?;
        show::findings(path, &findings, standing, format);
        if standing != Standing::Admitted {
            worst = ExitCode::FAILURE;
        }
    }
    Ok(worst)
}

fn look(path: &Path, policy: &outrigger_sep::config::HostPolicy) -> anyhow::Result<(Vec<Finding>, Standing)> {
    let path = std::path::absolute(path).with_context(|| format!("{} is not a path", path.display()))?;
    let folder = match path.file_name() {
        Some(name) if name == FILE_NAME => path.parent().map(Path::to_path_buf),
        _ if path.is_dir() => Some(path.clone()),
        _ => None,
    };
    if let Some(folder) = folder {
        let found = examine(&folder, Home::Configured, policy, &facts());
        return Ok((found.findings, found.standing));
    }
    // Some other file: a manifest on its own, without a folder around it.
    let checked = manifest::check_file(&path);
    let standing = match checked.findings.iter().map(|finding| finding.severity).min() {
        Some(Severity::Error) => Standing::Invalid,
        Some(Severity::Block) => Standing::Blocked,
        Some(Severity::Warning) | None => Standing::Admitted,
    };
    Ok((checked.findings, standing))
}

/// Writes a complete extension.
pub(crate) fn new(args: &NewArgs, format: Format) -> anyhow::Result<()> {
    let id = ExtensionId::new(&args.id)?;
    let site = args.place.site()?;
    let root = match &args.into {
        Some(root) => root.clone(),
        None => site
            .policy
            .extensions_dirs
            .first()
            .cloned()
            .context("the policy names no folder of extensions")?,
    };
    std::fs::create_dir_all(&root).with_context(|| format!("{} cannot be made", root.display()))?;
    let draft = Draft { id: id.clone(), name: args.id.clone(), ..Draft::autoreply() };
    let folder = match args.language {
        Language::Python => {
            let folder =
                draft.install(&root, Program::Command { command: "python3", args: &["-B", "main.py"] })?;
            write(&folder.join("main.py"), PYTHON_MAIN)?;
            write(&folder.join("outrigger_sep.py"), PYTHON_KIT)?;
            folder
        }
        Language::Rust => {
            let own = std::env::current_exe().context("the path of this program is not known")?;
            draft.install(&root, Program::Own { file: &own, args: &["sidecar", "sep-autoreply"] })?
        }
    };
    match format {
        Format::Json => {
            say::line(&json!({ "event": "new", "id": id, "dir": folder.display().to_string() }));
        }
        Format::Text => {
            anstream::eprintln!(
                "{} is there: it answers messages and counts them in a panel",
                folder.display()
            );
            anstream::eprintln!("next:");
            anstream::eprintln!("  outrigger ext trust {id}    when you have read it");
            anstream::eprintln!("  outrigger ext grant {id}    what it asks for");
            anstream::eprintln!("  outrigger ext up");
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
    let written = options.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

/// Vouches for an extension as it is now.
pub(crate) fn trust(id: &str, place: &Place, format: Format) -> anyhow::Result<()> {
    let id = ExtensionId::new(id)?;
    let site = place.site()?;
    let folders = site.policy.extensions_dirs.iter().map(|root| root.join(id.as_str()));
    let folder: PathBuf = match folders.into_iter().find(|folder| folder.is_dir()) {
        Some(folder) => folder,
        None => bail!("there is no extension {id} in {}", list(&site.policy.extensions_dirs)),
    };
    let found = examine(&folder, Home::Configured, &site.policy, &facts());
    if found.standing == Standing::Invalid {
        show::findings(&folder, &found.findings, found.standing, format);
        bail!("{id} cannot be used, so there is nothing to trust");
    }
    let digest = found.digest.with_context(|| format!("the files of {id} could not all be read"))?;
    let old = std::fs::read_to_string(&site.policy_file).unwrap_or_default();
    let text = without(&old, &id) + &format!("\n[[trusted]]\nid = \"{id}\"\ntree_sha256 = \"{digest}\"\n");
    let parent = site.policy_file.parent().unwrap_or(&site.home);
    std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    let fresh = site.policy_file.with_extension("new");
    let written =
        std::fs::write(&fresh, text.trim_start()).and_then(|()| std::fs::rename(&fresh, &site.policy_file));
    written.with_context(|| format!("{} cannot be written", site.policy_file.display()))?;
    match format {
        Format::Json => say::line(&json!({ "event": "trusted", "id": id, "treeSha256": digest.to_string() })),
        Format::Text => {
            anstream::eprintln!("{id} is trusted as it is now ({digest})");
            anstream::eprintln!(
                "  written to {}; a host reads it when it starts",
                site.policy_file.display()
            );
            anstream::eprintln!(
                "  when a file of it changes it is switched off until you trust it again and `ext enable` it"
            );
        }
    }
    Ok(())
}

/// The policy without what it says about trusting `id`. Only entries that `ext trust` wrote are recognised.
fn without(text: &str, id: &ExtensionId) -> String {
    let own = format!("id = \"{id}\"");
    let mut kept = String::new();
    for block in text.split("\n[[trusted]]\n").enumerate() {
        match block {
            (0, first) => kept.push_str(first),
            (_, entry) if entry.lines().next() == Some(own.as_str()) => {
                // What follows the two lines of the entry stays.
                let rest: Vec<&str> = entry.lines().skip(2).collect();
                if !rest.is_empty() {
                    kept.push('\n');
                    kept.push_str(&rest.join("\n"));
                }
            }
            (_, entry) => {
                kept.push_str("\n[[trusted]]\n");
                kept.push_str(entry);
            }
        }
    }
    kept.trim_end().to_owned() + "\n"
}

/// Makes a key, or signs with one.
pub(crate) fn sign(args: &SignArgs, format: Format) -> anyhow::Result<()> {
    if let Some(path) = &args.new_key {
        let key = AuthorKey::create(path)?;
        let public = path.with_extension("pub");
        write(&public, &(key.public() + "\n"))?;
        match format {
            Format::Json => say::line(&json!({
                "event": "key", "private": path.display().to_string(), "public": public.display().to_string(),
            })),
            Format::Text => anstream::eprintln!(
                "{} is the key, keep it to yourself; hosts need {} in their folder of keys",
                path.display(),
                public.display()
            ),
        }
        return Ok(());
    }
    let (Some(dir), Some(key), Some(key_id)) = (&args.dir, &args.key, &args.key_id) else {
        bail!("signing needs a folder, --key FILE and --key-id NAME");
    };
    let signed = sign_folder(dir, &AuthorKey::load(key)?, &KeyId::new(key_id)?)?;
    signed.install()?;
    match format {
        Format::Json => {
            say::line(&json!({ "event": "signed", "dir": dir.display().to_string(), "keyId": key_id }))
        }
        Format::Text => anstream::eprintln!("{} is signed with {key_id}", dir.display()),
    }
    Ok(())
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusting_again_replaces_the_entry_and_leaves_the_rest_alone() {
        let id = ExtensionId::new("a.b").expect("an id");
        let text = "trace = \"off\"\n\n[[trusted]]\nid = \"a.b\"\ntree_sha256 = \"1\"\n\n[[trusted]]\nid = \"c.d\"\nkey_id = \"k\"\n";
        assert_eq!(without(text, &id), "trace = \"off\"\n\n[[trusted]]\nid = \"c.d\"\nkey_id = \"k\"\n");
        assert_eq!(without("trace = \"off\"\n", &id), "trace = \"off\"\n");
    }
}
