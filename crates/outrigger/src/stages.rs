//! `outrigger stages`: the copies that runs worked in and that stayed, and their end.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use outrigger_abp::workspace::{Found, Removal, StageName, StageState, Stages, Sweep};
use serde::Serialize;

use crate::run;
use crate::say::{self, Format, printable};

#[derive(Subcommand)]
#[command(after_help = "\
Examples:
  outrigger stages list
  outrigger stages remove 4f1c…       by the name of the run, or its beginning
  outrigger stages remove --all       everything that no living run works in")]
pub(crate) enum StagesCommand {
    /// List the copies that are there.
    List,
    /// Remove copies. What a living run works in stays.
    Remove {
        /// The names, or their beginnings.
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// All of them.
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
}

#[derive(Serialize)]
struct Listed<'a> {
    event: &'static str,
    stage: &'a Found,
}

/// Does what `outrigger stages` was asked for.
pub(crate) fn run(command: StagesCommand, format: Format) -> anyhow::Result<ExitCode> {
    let stages = Stages::of(run::stages_folder()?);
    let there = stages.sweep(Sweep::Look)?.there;
    match command {
        StagesCommand::List => {
            for stage in &there {
                show("stage", stage, format);
            }
            if there.is_empty() && format == Format::Text {
                anstream::eprintln!("there are none");
            }
        }
        StagesCommand::Remove { names, all } => {
            let chosen = if all { there } else { choose(&names, &there)? };
            for stage in &chosen {
                match stages.remove(&StageName::new(&stage.name)?)? {
                    Removal::Done => show("removed", stage, format),
                    Removal::NotThere => {}
                    Removal::InUse if all => show("stays", stage, format),
                    Removal::InUse => bail!("a living run works in {}", stage.name),
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One for each name, found before the first is removed.
fn choose(names: &[String], there: &[Found]) -> anyhow::Result<Vec<Found>> {
    let one = |name: &String| {
        let found: Vec<&Found> = there.iter().filter(|stage| stage.name.starts_with(name.as_str())).collect();
        match found.as_slice() {
            [stage] => Ok((*stage).clone()),
            [] => bail!("no copy begins with `{name}`; `outrigger stages list` shows them"),
            several => bail!("{} copies begin with `{name}`; give more of the name", several.len()),
        }
    };
    names.iter().map(one).collect()
}

fn show(event: &'static str, stage: &Found, format: Format) {
    if format == Format::Json {
        return say::object(&Listed { event, stage });
    }
    let state = match &stage.state {
        StageState::Live => "a run works in it".to_owned(),
        StageState::Kept { why } => why.clone(),
        StageState::Abandoned => "its host was killed".to_owned(),
    };
    let word = if event == "stage" { String::new() } else { format!("{event}  ") };
    anstream::println!("{word}{}  {}", stage.folder.display(), printable(&state));
}
