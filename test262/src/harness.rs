//! The scripts that every test needs before itself: assertions, and whatever its front matter includes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::meta::Meta;

/// The folder `harness/` of a checkout; each file is read once.
pub(crate) struct Harness {
    folder: PathBuf,
    files: BTreeMap<String, String>,
}

impl Harness {
    pub(crate) fn of(checkout: &Path) -> Self {
        Self { folder: checkout.join("harness"), files: BTreeMap::new() }
    }

    /// Everything that runs before the test, in order, as one script.
    pub(crate) fn before(&mut self, meta: &Meta) -> Result<String> {
        let done = meta.has_flag("async").then_some("doneprintHandle.js");
        let own = ["assert.js", "sta.js"].into_iter().chain(done);
        let mut script = String::new();
        for name in own.chain(meta.includes.iter().map(String::as_str)) {
            script.push_str(self.file(name)?);
            script.push('\n');
        }
        Ok(script)
    }

    fn file(&mut self, name: &str) -> Result<&str> {
        if !self.files.contains_key(name) {
            let text = std::fs::read_to_string(self.folder.join(name))
                .with_context(|| format!("reading harness/{name}"))?;
            self.files.insert(name.to_owned(), text);
        }
        Ok(&self.files[name])
    }
}
