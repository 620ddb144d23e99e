//! Requests that a provider answers outside of turns: what can be chosen, how full a window is, a title, a setting.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::core::Core;
use super::reply::{Problem, Reply};
use super::sessions::{Place, Session};
use super::title;
use crate::protocol::{
    GenerateTitle, GetContextUsage, ListModels, ListSlashCommands, MutateGoal, ProviderName, TitleRequest,
    UpdateConfig,
};
use crate::provider::{Change, Failure, FailureCode};

/// How long each may take, as hosts of the original expect.
const MODELS: Duration = Duration::from_secs(30);
const SLASH_COMMANDS: Duration = Duration::from_secs(20);
const CONTEXT_USAGE: Duration = Duration::from_secs(30);
const TITLE_STEP: Duration = Duration::from_secs(30);
const GOAL: Duration = Duration::from_secs(20);
const CHANGE: Duration = Duration::from_secs(20);

/// The event that answers a request, or why there is none.
type Answered = Result<(&'static str, Vec<(&'static str, Value)>), Problem>;

fn answer(core: &Arc<Core>, reply: Reply, work: impl Future<Output = Answered> + Send + 'static) {
    core.tasks.spawn(async move {
        match work.await {
            Ok((kind, members)) => reply.end(kind, &members),
            Err(problem) => reply.fail(&problem),
        }
    });
}

/// `listModels`.
pub(super) fn models(core: &Arc<Core>, reply: Reply, ListModels { provider: name, api_key }: ListModels) {
    if let Some(key) = &api_key {
        core.log.hide(key);
    }
    let provider = match core.provider(&name) {
        Ok(provider) => provider,
        Err(problem) => return reply.fail(&problem),
    };
    let asking = Arc::clone(core);
    answer(core, reply, async move {
        let ask = async move { provider.models(api_key.as_deref()).await };
        let models = asking.ask("listing the models", MODELS, ask).await?;
        Ok(("modelsListed", vec![("provider", Value::from(name.to_string())), ("models", json(&models)?)]))
    });
}

/// `listSlashCommands`.
pub(super) fn slash_commands(core: &Arc<Core>, reply: Reply, request: ListSlashCommands) {
    let ListSlashCommands { provider, query } = request;
    let provider = match core.provider(&provider) {
        Ok(provider) => provider,
        Err(problem) => return reply.fail(&problem),
    };
    let asking = Arc::clone(core);
    answer(core, reply, async move {
        let ask = async move { provider.slash_commands(&query).await };
        let commands = asking.ask("listing the commands", SLASH_COMMANDS, ask).await?;
        Ok(("slashCommandsListed", vec![("commands", json(&commands)?)]))
    });
}

/// `getContextUsage`.
pub(super) fn context_usage(core: &Arc<Core>, reply: Reply, request: GetContextUsage) {
    let GetContextUsage { provider: name, query } = request;
    let provider = match core.provider(&name) {
        Ok(provider) => provider,
        Err(problem) => return reply.fail(&problem),
    };
    let session = core.sessions.get_or_make((name, query.session_id.clone()), &provider);
    let asking = Arc::clone(core);
    answer(core, reply, async move {
        let agent = session.agent();
        let ask = async move { agent.context_usage(&query).await };
        let meta = asking.ask("asking how full the window is", CONTEXT_USAGE, ask).await;
        super::warm::look_after(&asking);
        Ok(("contextUsageResult", vec![("meta", Value::from(meta?))]))
    });
}

/// `updateConfig`.
pub(super) fn update_config(core: &Arc<Core>, reply: Reply, request: UpdateConfig) {
    let UpdateConfig { session_id, change } = request;
    if let Some(Some(key)) = &change.cursor_api_key {
        core.log.hide(key);
    }
    if core.defaults().change(session_id.as_deref(), &change).is_err() {
        let message = "too many sessions have settings of their own".to_owned();
        return reply.fail(&Problem::Refused { code: "overloaded", message });
    }
    let Some(session_id) = session_id else {
        core.providers.configure(&change);
        return reply.end("pong", &[]);
    };
    if change.cursor_api_key.is_some() {
        // There is one key, whoever says it.
        let key = Change { cursor_api_key: change.cursor_api_key.clone(), ..Change::default() };
        core.providers.configure(&key);
    }
    let sessions: Vec<(Arc<Session>, Place)> = core
        .sessions
        .called(&session_id)
        .into_iter()
        .map(|session| {
            let place = session.enter_change();
            (session, place)
        })
        .collect();
    let asking = Arc::clone(core);
    answer(core, reply, async move {
        for (session, place) in sessions {
            place.turn().await;
            let (agent, change) = (session.agent(), change.clone());
            let ask = async move { agent.reconfigure(&change).await };
            asking.ask("changing the settings of the session", CHANGE, ask).await?;
        }
        Ok(("pong", Vec::new()))
    });
}

/// `mutateCodexGoal`.
pub(super) fn mutate_goal(core: &Arc<Core>, reply: Reply, MutateGoal { session_id, action }: MutateGoal) {
    let Some(session) = core.sessions.get(&(ProviderName::Codex, session_id)) else {
        return reply.end("pong", &[]);
    };
    let place = session.enter_change();
    let asking = Arc::clone(core);
    answer(core, reply, async move {
        place.turn().await;
        let agent = session.agent();
        let ask = async move { agent.mutate_goal(action).await };
        asking.ask("changing the goal", GOAL, ask).await?;
        Ok(("pong", Vec::new()))
    });
}

/// `generateTitle`.
pub(super) fn title(core: &Arc<Core>, reply: Reply, request: GenerateTitle) {
    for (_, value) in &request.claude_environment {
        core.log.hide(value);
    }
    let asking = Arc::clone(core);
    answer(core, reply, async move {
        let mut reasons: Vec<(String, Problem)> = Vec::new();
        for (name, step) in steps(&request) {
            let said = match asking.provider(&name) {
                Ok(provider) => {
                    let ask = async move { provider.one_shot(&step).await };
                    asking.ask("making a title", TITLE_STEP, ask).await
                }
                Err(problem) => Err(problem),
            };
            match said.and_then(|text| title::read(&text, request.generate_branch).ok_or_else(wordless)) {
                Ok(title) => {
                    let branch = title.branch.map(|branch| ("branchName", Value::from(branch)));
                    let members = std::iter::once(("title", Value::from(title.title))).chain(branch);
                    return Ok(("titleGenerated", members.collect()));
                }
                Err(problem) if problem == Problem::closing() => return Err(problem),
                Err(problem) => reasons.push((name.to_string(), problem)),
            }
        }
        Err(untitled(reasons))
    });
}

/// Who is asked for a title, one after the other.
fn steps(request: &GenerateTitle) -> Vec<(ProviderName, TitleRequest)> {
    let prompt = title::prompt(request);
    let plain = TitleRequest {
        prompt,
        model: None,
        claude_environment: Vec::new(),
        agent_proxy: request.agent_proxy.clone(),
    };
    let custom = TitleRequest {
        model: request.claude_model.clone(),
        claude_environment: request.claude_environment.clone(),
        ..plain.clone()
    };
    let chain = match &request.provider {
        Some(name) => vec![name.clone()],
        None => vec![ProviderName::Claude, ProviderName::Codex, ProviderName::Cursor],
    };
    let mut steps = Vec::new();
    for name in chain {
        if name == ProviderName::Claude && custom != plain {
            steps.push((name.clone(), custom.clone()));
        }
        steps.push((name, plain.clone()));
    }
    steps
}

fn wordless() -> Problem {
    Problem::Failed(Failure::new(FailureCode::Provider, "the model said nothing"))
}

/// Every reason, because the last one alone is seldom the one that helps. Its code is that of the first who was there.
fn untitled(reasons: Vec<(String, Problem)>) -> Problem {
    let code = |problem: &Problem| match problem {
        Problem::Failed(failure) => failure.code,
        Problem::Params(_) | Problem::Refused { .. } | Problem::Internal(_) => FailureCode::Provider,
    };
    let codes: Vec<FailureCode> = reasons.iter().map(|(_, problem)| code(problem)).collect();
    let present = codes.iter().copied().find(|code| *code != FailureCode::NotInstalled);
    let said = reasons.iter().map(|(name, problem)| format!("{name}: {}", problem.message()));
    let message = format!("no title: {}", said.collect::<Vec<_>>().join("; "));
    Problem::Failed(Failure::new(present.unwrap_or(FailureCode::NotInstalled), message))
}

fn json(value: &impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(value).map_err(|error| Problem::Internal(error.to_string()))
}
