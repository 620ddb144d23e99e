//! `outrigger run`: one work order to one backend, live, with a receipt at the end.

mod approve;
pub(crate) mod args;
mod backend;
mod form;
mod order;
mod places;
mod screen;
mod show;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use outrigger_abp::conduct::{self, Afterwards, ConductError, Job};
use outrigger_abp::govern::{self, Approver, Choice, OnDenied};
use outrigger_abp::host::{Foreign, Noise, Pulse, Remote, Terms};
use outrigger_abp::protocol::{Offer, RunId};
use outrigger_abp::receipt::{Folder, SigningKey, SpoolLimit};
use outrigger_abp::workspace;

pub(crate) use self::approve::answer;
pub(crate) use self::backend::usual_policy;
pub(crate) use self::backend::{Around, Chosen, ready};
pub(crate) use self::order::read_policy;
pub(crate) use self::places::{chats as chats_folder, receipts as receipts_folder, stages as stages_folder};

use self::approve::{Person, Typed};
use self::args::{ApproveArg, NoiseArg, OnDeniedArg, RunArgs};
use self::screen::Live;
use crate::args::StdinArg;
use crate::config::Config;
use crate::exec::owner::{Owner, Wish};
use crate::say::Format;
use crate::trees::supervisor;

/// Pings that may go unanswered in a row.
const MISSED_PINGS: std::num::NonZeroU32 = std::num::NonZeroU32::new(3).unwrap();

/// Does what `outrigger run` was asked for.
pub(crate) fn run(args: RunArgs, format: Format) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the async runtime could not be started")?;
    let code = runtime.block_on(go(args, format))?;
    // A thread may still wait for an answer that nobody types.
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

async fn go(args: RunArgs, format: Format) -> anyhow::Result<u8> {
    let config = Config::find(args.config.as_deref())?;
    let policy = args.policy.as_deref().or(config.policy.as_deref());
    let mut order = order::build(&args, policy)?;
    let (name, backend) = backend::named(&args, &config)?;
    // An order from elsewhere brings its own.
    if policy.is_none() && args.order.is_none() {
        order.policy = usual_policy(&backend);
    }
    let chosen = backend::choose(&args, &name, backend, &order)?;
    let folder = places::receipts(args.receipts.as_deref(), &config)?;
    let receipts = Arc::new(Folder::open(&folder, SpoolLimit::USUAL)?);
    let sign = args.sign.as_deref().map(signing_key).transpose()?;
    for sealed in conduct::recover(&receipts, sign.as_ref())? {
        screen::recovered(sealed, format);
    }
    let run = RunId::random().context("the system has no randomness to give")?;
    let job = Job {
        terms: terms(&args, chosen.timeout),
        limits: govern::Limits { total_tokens: args.max_tokens, ..govern::Limits::none() },
        on_denied: match args.on_denied {
            OnDeniedArg::End => OnDenied::End,
            OnDeniedArg::Warn => OnDenied::Warn,
        },
        approver: match args.approve {
            ApproveArg::Ask => Approver::Person { within: args.approve_within, default: Choice::Deny },
            ApproveArg::All => Approver::Everything,
            ApproveArg::None => Approver::Nobody,
        },
        workspace: workspace::Terms {
            stages: places::stages()?,
            name: workspace::StageName::new(run.as_str())?,
            repository: workspace::AgentRepository::Make,
            limits: workspace::Limits::usual(),
        },
        sign,
        afterwards: match (args.apply, args.keep) {
            (true, _) => Afterwards::Apply,
            (false, true) => Afterwards::Keep,
            (false, false) => Afterwards::Discard,
        },
        backend: chosen.spec,
        confinement: chosen.confinement,
        run,
        order,
        receipts,
    };
    let (remote, control) = conduct::control();
    let (typing, mut typed) = Person::channel();
    let mut live = Live::new(format, &job, args.approve, typing);
    let supervisor = supervisor();
    let conducted = {
        let mut conducted = std::pin::pin!(conduct::conduct(&supervisor, job, &mut live, control));
        // A pipe that closes is an owner that left, unless it only brought the order.
        let brings_order = args.order.as_deref().is_some_and(|path| path.as_os_str() == "-");
        let mut owner = Owner::watch(if brings_order { StdinArg::Null } else { StdinArg::Lifeline })?;
        loop {
            tokio::select! {
                ended = &mut conducted => break ended,
                wish = owner.next() => {
                    if wish == Wish::Stop {
                        screen::cancelling(format);
                    }
                    interfere(&remote, wish).await;
                }
                Some(typed) = typed.recv() => {
                    // A run that is over hears nothing any more.
                    let _ = match typed {
                        Typed::Words(text) => remote.steer(text).await,
                        Typed::Answer(answer) => remote.answer(answer).await,
                    };
                }
            }
        }
    };
    match conducted {
        Ok(concluded) => live.concluded(&concluded, args.out.as_deref()),
        Err(ConductError::Stopped) => Ok(screen::CANCELLED),
        // Its sentence has its cause in it.
        Err(error) => Err(anyhow!("{error}")),
    }
}

/// The key in this file, which is made if it is not there.
pub(crate) fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    let key =
        match path.try_exists().with_context(|| format!("the key {} cannot be looked at", path.display()))? {
            true => SigningKey::load(path),
            false => SigningKey::create(path),
        };
    Ok(key?)
}

/// The first signal cancels, the second one kills.
async fn interfere(remote: &Remote, wish: Wish) {
    // A run that is over needs neither.
    let _ = match wish {
        Wish::Stop => remote.cancel("cancelled by its user").await,
        Wish::Kill => remote.kill("killed by its user").await,
    };
}

fn terms(args: &RunArgs, configured: Option<std::time::Duration>) -> Terms {
    let (noise, foreign) = match args.noise {
        NoiseArg::Fail => (Noise::Fail, Foreign::Fail),
        NoiseArg::Skip => (Noise::SkipAndWarn, Foreign::DropAndCount),
    };
    Terms {
        hello_within: args.hello_within,
        silence: args.silence,
        total: args.timeout.or(configured),
        noise,
        foreign,
        pulse: args.ping.map_or(Pulse::None, |every| Pulse::Ping { every, missed: MISSED_PINGS }),
        offer: Some(Offer::all()),
        ..Terms::usual()
    }
}
