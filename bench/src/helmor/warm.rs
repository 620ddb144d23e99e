//! The second turn of a session with the real Claude Code: from the request to the first word, and the same without the bridge's
//! warm program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Group;
use crate::child::Child;
use crate::figure::{Figure, Measured, Spread, Target};
use crate::table::Missing;

pub(super) const GROUP: Group = Group { rows: &[WARM, COLD], measure };

const WARM: &str = "helmor/warm-claude-first-word";
const COLD: &str = "helmor/cold-claude-first-word";

const TURNS: usize = 8;
const SESSIONS: usize = 3;

/// Where `cargo xtask needs` puts Claude Code.
const FOLDER: &str = "OUTRIGGER_NPM_ANTHROPIC_AI_CLAUDE_CODE";

fn measure() -> Result<Vec<Figure>> {
    let figure = |name, measured, goal, note: &str| Figure {
        name,
        measured,
        floor: None,
        goal,
        note: note.to_owned(),
    };
    let goal = Target::Wall(Duration::from_millis(100));
    let Some(claude) = claude() else {
        let why = format!("{FOLDER} is not set: eval \"$(cargo xtask needs --print-env)\"");
        let missing = |name| figure(name, Err(Missing(why.clone())), Target::Shown, "");
        return Ok(vec![missing(WARM), missing(COLD)]);
    };
    let folder = std::env::temp_dir().join(format!("outrigger-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = turns(&claude, &folder);
    // Whatever was measured, the folder is nobody's.
    let _ = std::fs::remove_dir_all(&folder);
    let (warm, cold) = measured?;
    let time = |times| Spread::of(times).context("nothing was timed");
    let warm = Measured::Time { wall: time(warm)?, processor: None };
    let cold = Measured::Time { wall: time(cold)?, processor: None };
    Ok(vec![
        figure(WARM, Ok(warm), goal, "the real Claude Code, the project's own model server"),
        figure(COLD, Ok(cold), Target::Shown, "the first turn, which starts the program"),
    ])
}

fn claude() -> Option<PathBuf> {
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("node_modules/@anthropic-ai/claude-code-linux-{machine}/claude");
    Some(PathBuf::from(std::env::var_os(FOLDER)?).join(package)).filter(|path| path.exists())
}

/// The times to the first word: of warm turns, and of the first ones.
fn turns(claude: &std::path::Path, folder: &std::path::Path) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let mut model = Child::python(concat!(env!("CARGO_MANIFEST_DIR"), "/../fakes/anthropic.py"))?;
    let said: serde_json::Value = serde_json::from_str(model.hear()?)?;
    let url = format!("http://127.0.0.1:{}", said["port"]);
    let variables: [(&str, OsString); 8] = [
        ("HOME", folder.into()),
        ("CLAUDE_CONFIG_DIR", folder.join("claude").into()),
        ("ANTHROPIC_BASE_URL", url.into()),
        ("ANTHROPIC_API_KEY", "none".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
    ];
    let mut sidecar = super::sidecar(&["--claude".into(), claude.into()], &variables)?;
    ensure!(sidecar.hear()?.contains(r#""type":"ready""#), "the first line is another one");
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for session in 0..SESSIONS {
        for turn in 0..=TURNS {
            let times = if turn == 0 { &mut cold } else { &mut warm };
            times.push(first_word(&mut sidecar, session, turn, folder)?);
        }
    }
    Ok((warm, cold))
}

fn first_word(
    sidecar: &mut Child,
    session: usize,
    turn: usize,
    folder: &std::path::Path,
) -> Result<Duration> {
    let cwd = serde_json::Value::from(folder.to_string_lossy());
    let start = Instant::now();
    sidecar.say(&format!(
        r#"{{"id":"{session}-{turn}","method":"sendMessage","params":{{"sessionId":"s{session}","prompt":"{{{{say one two three}}}}","provider":"claude","permissionMode":"default","cwd":{cwd}}}}}"#
    ))?;
    let mut first = None;
    loop {
        let line = sidecar.hear()?;
        if first.is_none() && line.contains("text_delta") {
            first = Some(start.elapsed());
        }
        ensure!(!line.contains(r#""type":"error""#), "{line}");
        if line.contains(r#""type":"end""#) {
            return first.context("the turn had no word");
        }
    }
}
