//! The ignore rules of a tree as they were when it was looked at first, and git to read them.
//!
//! Every `.gitignore` is copied to its place in a folder of ours, and git is asked there. So a run that edits the rules
//! hides nothing, and git never walks through a tree that changes under it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::git::{Git, GitError, Repository, Talk};
use super::path::TreePath;

/// Where the rules are.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The copy of the top of the tree: folders and rules, nothing else.
    pub(super) folder: PathBuf,
    /// Where the root is below the top.
    pub(super) prefix: TreePath,
}

/// The name of the files that have rules.
pub(super) const RULES_FILE: &[u8] = b".gitignore";

/// The largest file of rules.
pub(super) const MAX_RULES_BYTES: u64 = 1 << 20;

/// How many paths are asked for at once.
const AT_ONCE: usize = 4096;

impl Rules {
    /// Notes that this is a folder: some rules are for folders only, and git looks.
    pub(super) fn note_folder(&self, path: &TreePath) -> io::Result<()> {
        match fs::create_dir(self.place(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(self.place(path)),
            // Also if it is a file of rules: then the folder is a new one of that name, and has no name to us.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Notes the rules of a folder.
    pub(super) fn note_rules(&self, folder: &TreePath, text: &[u8]) -> io::Result<()> {
        self.note_folder(folder)?;
        fs::write(self.place(&folder.child(RULES_FILE)), text)
    }

    /// Notes rules of a folder above the root; `folder` is below the top.
    pub(super) fn note_rules_above(&self, folder: &TreePath, text: &[u8]) -> io::Result<()> {
        let place = self.folder.join(folder.as_path());
        fs::create_dir_all(&place)?;
        fs::write(place.join(".gitignore"), text)
    }

    fn place(&self, path: &TreePath) -> PathBuf {
        self.folder.join(self.prefix.as_path()).join(path.as_path())
    }
}

/// A git that is asked which paths the rules name.
#[derive(Debug)]
pub(super) struct Asker {
    talk: Option<Talk>,
    /// What comes before every path: so that none begins with `:`, which means something to git.
    before: Vec<u8>,
    within: Duration,
}

/// Whether the rules name something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Yes,
    No,
}

impl Asker {
    pub(super) async fn start(git: &Git, folder: PathBuf, rules: &Rules) -> Result<Self, GitError> {
        let repository = Repository { folder, tree: rules.folder.clone() };
        let talk = git
            .converse(
                &repository,
                &["check-ignore", "-z", "--stdin", "--verbose", "--non-matching", "--no-index"],
            )
            .await?;
        let mut before = b"./".to_vec();
        if !rules.prefix.is_root() {
            before.extend_from_slice(rules.prefix.as_bytes());
            before.push(b'/');
        }
        Ok(Self { talk: Some(talk), before, within: git.within })
    }

    /// Asks for paths, and gives an answer for each.
    pub(super) async fn ask(&mut self, paths: &[&TreePath]) -> Result<Vec<Named>, GitError> {
        let mut answers = Vec::with_capacity(paths.len());
        for some in paths.chunks(AT_ONCE) {
            self.ask_some(some, &mut answers).await?;
        }
        Ok(answers)
    }

    /// Ends the conversation.
    pub(super) async fn end(mut self) -> Result<(), GitError> {
        // It says with its exit code whether it found anything, so that tells nothing.
        match self.talk.take() {
            Some(talk) => match talk.end(self.within).await {
                Err(GitError::Failed { status, .. }) if status == "exit code 1" => Ok(()),
                other => other,
            },
            None => Ok(()),
        }
    }

    async fn ask_some(&mut self, paths: &[&TreePath], answers: &mut Vec<Named>) -> Result<(), GitError> {
        let Some(talk) = &mut self.talk else { return Err(gone()) };
        let mut question = Vec::new();
        for path in paths {
            question.extend_from_slice(&self.before);
            question.extend_from_slice(path.as_bytes());
            question.push(0);
        }
        let Talk { stdin, stdout, .. } = talk;
        let Some(stdin) = stdin else { return Err(gone()) };
        let wanted = answers.len() + paths.len();
        let listen = async {
            let mut reader = AnswerReader::new();
            let mut buffer = vec![0; 64 * 1024];
            while answers.len() < wanted {
                let read = stdout.read(&mut buffer).await?;
                if read == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                reader.read(&buffer[..read], answers);
            }
            Ok(())
        };
        let exchange = async { tokio::try_join!(stdin.write_all(&question), listen) };
        match tokio::time::timeout(self.within, exchange).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => match self.talk.take() {
                Some(talk) => Err(talk.broke(self.within).await),
                None => Err(gone()),
            },
            Err(_) => {
                self.talk = None;
                Err(GitError::Late { command: "check-ignore".into(), within: self.within })
            }
        }
    }
}

fn gone() -> GitError {
    GitError::Answer { command: "check-ignore".into(), what: "it had ended before" }
}

/// Reads the answers: four fields each, of which the third is the rule that decided, if any did. A rule that begins with
/// `!` decides that a path is not ignored; one that ends up here with a `!` of its own has a backslash before it.
struct AnswerReader {
    field: u8,
    /// The first byte of the rule.
    rule: Option<u8>,
}

impl AnswerReader {
    fn new() -> Self {
        Self { field: 0, rule: None }
    }

    fn read(&mut self, bytes: &[u8], answers: &mut Vec<Named>) {
        for byte in bytes {
            match (byte, self.field) {
                (0, 3) => {
                    answers.push(match self.rule.take() {
                        None | Some(b'!') => Named::No,
                        Some(_) => Named::Yes,
                    });
                    self.field = 0;
                }
                (0, field) => self.field = field + 1,
                (first, 2) => {
                    self.rule.get_or_insert(*first);
                }
                (_, _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_wherever_they_are_cut() {
        let fields = [
            ".gitignore",
            "1",
            "build/",
            "./build",
            "",
            "",
            "",
            "./src",
            ".gitignore",
            "3",
            "!keep.o",
            "./keep.o",
            "a",
            "9",
            "\\!x",
            "./!x",
            "",
        ];
        let said = fields.join("\u{0}").into_bytes();
        let wanted = [Named::Yes, Named::No, Named::No, Named::Yes];
        for cut in 0..said.len() {
            let (mut reader, mut answers) = (AnswerReader::new(), Vec::new());
            reader.read(&said[..cut], &mut answers);
            reader.read(&said[cut..], &mut answers);
            assert_eq!(answers, wanted, "cut at {cut}");
        }
    }
}
