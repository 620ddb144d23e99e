//! The terms of a thread and of a turn: what the agent may do unasked, and with which model.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::protocol::{PermissionMode, SendMessage};
use crate::provider::prompt;

/// What Codex may do unasked. It knows three ways where the host has six words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Everything.
    Everything,
    /// What it knows to be harmless; it asks for the rest.
    Harmless,
    /// To look and to plan.
    Plan,
}

impl Leave {
    /// What the host's word means here.
    pub(super) fn of(mode: Option<PermissionMode>) -> Self {
        match mode {
            None | Some(PermissionMode::BypassPermissions) => Self::Everything,
            Some(PermissionMode::Plan) => Self::Plan,
            Some(
                PermissionMode::Default
                | PermissionMode::AcceptEdits
                | PermissionMode::DontAsk
                | PermissionMode::Auto,
            ) => Self::Harmless,
        }
    }

    /// A plain `never` would also decline what MCP servers ask, so everything but that is named.
    fn approval_policy(self) -> Value {
        match self {
            Self::Harmless => json!("untrusted"),
            Self::Everything | Self::Plan => json!({ "granular": {
                "sandbox_approval": false, "rules": false, "skill_approval": false,
                "request_permissions": false, "mcp_elicitations": true,
            } }),
        }
    }

    fn sandbox(self) -> &'static str {
        match self {
            Self::Everything | Self::Harmless => "danger-full-access",
            Self::Plan => "workspace-write",
        }
    }

    fn sandbox_policy(self, roots: &[PathBuf]) -> Value {
        match self {
            Self::Everything | Self::Harmless => json!({ "type": "dangerFullAccess" }),
            Self::Plan => json!({
                "type": "workspaceWrite", "writableRoots": roots, "networkAccess": false,
                "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
            }),
        }
    }
}

/// What earlier turns left in a thread, because what a turn says stays until another says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    /// The model.
    pub(super) model: String,
    /// How hard it thinks.
    pub(super) effort: Option<String>,
    /// Whether it may be planning.
    pub(super) planning: bool,
    /// Whether it may be fast.
    pub(super) fast: bool,
}

/// The parameters of `thread/start`, and with a thread those of `thread/resume`.
pub(super) fn thread(send: &SendMessage, cwd: &Path, resume: Option<&str>) -> Value {
    let leave = Leave::of(send.permission_mode);
    let mut params = Map::new();
    if let Some(resume) = resume {
        params.insert("threadId".to_owned(), json!(resume));
        // The history stays where it is; a host that wants it has it.
        params.insert("excludeTurns".to_owned(), json!(true));
    }
    params.insert("cwd".to_owned(), json!(cwd));
    params.insert("approvalPolicy".to_owned(), leave.approval_policy());
    params.insert("sandbox".to_owned(), json!(leave.sandbox()));
    if let Some(model) = &send.model {
        params.insert("model".to_owned(), json!(model));
    }
    if send.fast_mode {
        params.insert("serviceTier".to_owned(), json!("fast"));
    }
    Value::Object(params)
}

/// The parameters of `turn/start`. `left` becomes what this turn leaves.
pub(super) fn turn(send: &SendMessage, cwd: &Path, thread: &str, left: &mut Left) -> Value {
    let leave = Leave::of(send.permission_mode);
    let mut params = Map::new();
    let directories = git_directories(cwd, &send.additional_directories);
    let text = prompt::text_of(&send.prompt, &send.images, &directories);
    let roots: Vec<PathBuf> = std::iter::once(cwd.to_owned()).chain(directories).collect();
    params.insert("threadId".to_owned(), json!(thread));
    params.insert("input".to_owned(), input(&text, &send.images));
    params.insert("approvalPolicy".to_owned(), leave.approval_policy());
    params.insert("sandboxPolicy".to_owned(), leave.sandbox_policy(&roots));
    if let Some(model) = &send.model {
        left.model.clone_from(model);
        params.insert("model".to_owned(), json!(model));
    }
    if let Some(effort) = send.effort.as_ref().and_then(|effort| effort_word(&effort.0)) {
        left.effort = Some(effort.to_owned());
        params.insert("effort".to_owned(), json!(effort));
    }
    if send.fast_mode || left.fast {
        params.insert("serviceTier".to_owned(), if send.fast_mode { json!("fast") } else { Value::Null });
        left.fast = send.fast_mode;
    }
    let planning = leave == Leave::Plan;
    if planning || left.planning {
        // It counts more than the model and the effort beside it, so both are in it.
        let settings = json!({
            "model": left.model, "reasoning_effort": left.effort, "developer_instructions": null,
        });
        let mode = if planning { "plan" } else { "default" };
        params.insert("collaborationMode".to_owned(), json!({ "mode": mode, "settings": settings }));
        left.planning = planning;
    }
    Value::Object(params)
}

/// What the user says, as the server wants it: the text, then the pictures.
pub(super) fn input(text: &str, images: &[impl AsRef<Path>]) -> Value {
    let text = json!({ "type": "text", "text": text, "text_elements": [] });
    let pictures = images.iter().map(|path| json!({ "type": "localImage", "path": path.as_ref() }));
    std::iter::once(text).chain(pictures).collect()
}

/// The words for effort that Codex knows. It takes others too, and then every call of the model fails.
fn effort_word(word: &str) -> Option<&str> {
    const WORDS: [&str; 8] = ["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"];
    WORDS.into_iter().find(|known| *known == word)
}

/// The linked folders and, if `cwd` is a worktree, the two folders of git that belong to it: commits are written there.
fn git_directories(cwd: &Path, linked: &[PathBuf]) -> Vec<PathBuf> {
    let mut directories = linked.to_vec();
    let link = std::fs::read_to_string(cwd.join(".git")).ok();
    let git = link
        .as_deref()
        .and_then(|text| text.trim().strip_prefix("gitdir:"))
        .map(|path| cwd.join(path.trim()));
    if let Some(git) = git {
        let common = std::fs::read_to_string(git.join("commondir")).ok().map(|path| git.join(path.trim()));
        directories.push(git);
        directories.extend(common);
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Effort, ProviderName};

    fn send(mode: Option<PermissionMode>) -> SendMessage {
        SendMessage {
            session_id: "S".to_owned(),
            prompt: "do it".to_owned(),
            provider: ProviderName::Codex,
            model: None,
            cwd: None,
            resume: None,
            permission_mode: mode,
            effort: None,
            fast_mode: false,
            ask_every_tool: false,
            thinking_display: None,
            claude_environment: Vec::new(),
            agent_proxy: None,
            additional_directories: Vec::new(),
            source_repo: None,
            images: Vec::new(),
        }
    }

    fn left() -> Left {
        Left { model: "gpt-5.5".to_owned(), effort: None, planning: false, fast: false }
    }

    #[test]
    fn without_a_word_codex_does_not_ask_but_its_mcp_servers_may() {
        let params = thread(&send(None), Path::new("/w"), None);
        assert_eq!(params["approvalPolicy"]["granular"]["mcp_elicitations"], json!(true));
        assert_eq!(params["approvalPolicy"]["granular"]["sandbox_approval"], json!(false));
        assert_eq!(params["sandbox"], json!("danger-full-access"));
        assert_eq!(params.get("threadId"), None);
    }

    #[test]
    fn every_word_that_is_not_bypass_asks() {
        use PermissionMode::{AcceptEdits, Auto, Default, DontAsk};
        for mode in [Default, AcceptEdits, DontAsk, Auto] {
            let params = turn(&send(Some(mode)), Path::new("/w"), "T", &mut left());
            assert_eq!(params["approvalPolicy"], json!("untrusted"), "{mode:?}");
        }
    }

    #[test]
    fn a_thread_that_planned_is_told_to_plan_no_more() {
        let mut left = left();
        let first = turn(&send(Some(PermissionMode::Plan)), Path::new("/w"), "T", &mut left);
        assert_eq!(first["collaborationMode"]["mode"], json!("plan"));
        assert_eq!(first["collaborationMode"]["settings"]["model"], json!("gpt-5.5"));
        assert_eq!(first["sandboxPolicy"]["writableRoots"], json!(["/w"]));
        let second = turn(&send(None), Path::new("/w"), "T", &mut left);
        assert_eq!(second["collaborationMode"]["mode"], json!("default"));
        let third = turn(&send(None), Path::new("/w"), "T", &mut left);
        assert_eq!(third.get("collaborationMode"), None);
    }

    #[test]
    fn a_fast_turn_does_not_make_the_next_one_fast() {
        let mut left = left();
        let fast = SendMessage { fast_mode: true, ..send(None) };
        assert_eq!(turn(&fast, Path::new("/w"), "T", &mut left)["serviceTier"], json!("fast"));
        let next = turn(&send(None), Path::new("/w"), "T", &mut left);
        assert_eq!(next.get("serviceTier"), Some(&Value::Null));
        assert_eq!(turn(&send(None), Path::new("/w"), "T", &mut left).get("serviceTier"), None);
    }

    #[test]
    fn an_effort_that_codex_does_not_know_is_dropped() {
        let with = |word: &str| SendMessage { effort: Some(Effort(word.to_owned())), ..send(None) };
        let params = turn(&with("xhigh"), Path::new("/w"), "T", &mut left());
        assert_eq!(params["effort"], json!("xhigh"));
        assert_eq!(turn(&with("nonsense"), Path::new("/w"), "T", &mut left()).get("effort"), None);
    }

    #[test]
    fn pictures_follow_the_text_and_their_marks_leave_it() {
        let send = SendMessage {
            prompt: "see @/p/a.png please".to_owned(),
            images: vec!["/p/a.png".into()],
            ..send(None)
        };
        let params = turn(&send, Path::new("/w"), "T", &mut left());
        let expected = json!([
            { "type": "text", "text": "see please", "text_elements": [] },
            { "type": "localImage", "path": "/p/a.png" },
        ]);
        assert_eq!(params["input"], expected);
    }

    #[test]
    fn the_folders_of_git_behind_a_worktree_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        let (work, git) = (folder.path().join("work"), folder.path().join("repo/.git/worktrees/work"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::create_dir_all(&git).unwrap();
        std::fs::write(work.join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
        std::fs::write(git.join("commondir"), "../..\n").unwrap();
        assert_eq!(git_directories(&work, &[]), vec![git.clone(), git.join("../..")]);
        assert_eq!(git_directories(folder.path(), &["/x".into()]), vec![PathBuf::from("/x")]);
    }
}
