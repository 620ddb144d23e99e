//! The real coding agents as their users have them: where they are, and the environment in which they talk to a model on loopback.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::model::Model;

/// What an agent has in its environment.
pub(crate) type Environment = Vec<(&'static str, OsString)>;

/// Claude Code in a home of its own; none where it is not installed, which is said.
pub(crate) fn claude(home: &Path, model: &Model) -> Option<Environment> {
    let modules = installed("Claude Code", "OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE")?;
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let program = format!("node_modules/@anthropic-ai/claude-code-linux-{machine}/claude");
    Some(vec![
        ("CLAUDE_CONFIG_DIR", home.join("claude").into_os_string()),
        ("HELMOR_CLAUDE_CODE_BIN_PATH", modules.join(program).into_os_string()),
        ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", model.port).into()),
        ("ANTHROPIC_API_KEY", "none".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("CLAUDE_CODE_MAX_RETRIES", "0".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
    ])
}

/// Codex in a home of its own, with a model that speaks `responses`; none where it is not installed, which is said.
pub(crate) fn codex(home: &Path, model: &Model) -> Option<Environment> {
    let modules = installed("Codex", "OUTRIGGER_NPM_OPENAI_CODEX")?;
    let settings = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\n\
         base_url = \"http://127.0.0.1:{}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n\
         request_max_retries = 0\nstream_max_retries = 0\n",
        model.port
    );
    std::fs::create_dir(home.join("codex")).unwrap();
    std::fs::write(home.join("codex/config.toml"), settings).unwrap();
    let (machine, triple) = match cfg!(target_arch = "aarch64") {
        true => ("arm64", "aarch64"),
        false => ("x64", "x86_64"),
    };
    let program =
        format!("node_modules/@openai/codex-linux-{machine}/vendor/{triple}-unknown-linux-musl/bin/codex");
    Some(vec![
        ("CODEX_HOME", home.join("codex").into_os_string()),
        ("FAKE_KEY", "none".into()),
        ("HELMOR_CODEX_BIN_PATH", modules.join(program).into_os_string()),
    ])
}

/// The folder that npm installed an agent into.
fn installed(name: &str, variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        #[expect(clippy::print_stderr, reason = "who runs the tests must know what they did not cover")]
        {
            eprintln!("skipped, because {name} is not installed: run the tests with `cargo xtask test`");
        }
    }
    folder
}
