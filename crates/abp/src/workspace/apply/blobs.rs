//! The contents that our repository has, read piece by piece from one git.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

use super::super::changes::ObjectId;
use super::super::git::{Git, GitError, Repository, Talk};

/// A git that is asked for contents.
pub(super) struct Blobs {
    talk: Talk,
    within: Duration,
}

/// The longest content that is wanted whole: what a symlink says.
const MAX_SHORT: usize = 64 * 1024;

/// The longest line before a content: a name, a kind and a size.
const MAX_HEADER: u64 = 256;

const CHUNK: usize = 64 * 1024;

impl Blobs {
    pub(super) async fn open(git: &Git, repository: &Repository) -> Result<Self, GitError> {
        let talk = git.converse(repository, &["cat-file", "--batch"]).await?;
        Ok(Self { talk, within: git.within })
    }

    pub(super) async fn close(self) -> Result<(), GitError> {
        self.talk.end(self.within).await
    }

    /// A short content, whole.
    pub(super) async fn short(&mut self, object: &ObjectId) -> Result<Vec<u8>, GitError> {
        let mut content = Vec::new();
        let mut fits = true;
        self.read(object, |chunk| {
            fits = fits && content.len() + chunk.len() <= MAX_SHORT;
            if fits {
                content.extend_from_slice(chunk);
            }
        })
        .await?;
        match fits {
            true => Ok(content),
            false => Err(GitError::TooMuch { command: COMMAND.into(), limit: MAX_SHORT as u64 }),
        }
    }

    /// Gives a content to `take`, piece by piece, and its size.
    pub(super) async fn read(&mut self, object: &ObjectId, take: impl FnMut(&[u8])) -> Result<u64, GitError> {
        let (talk, within) = (&mut self.talk, self.within);
        match tokio::time::timeout(within, read(talk, object, take)).await {
            Ok(result) => result,
            Err(_) => Err(GitError::Late { command: COMMAND.into(), within }),
        }
    }
}

const COMMAND: &str = "cat-file";

async fn read(talk: &mut Talk, object: &ObjectId, mut take: impl FnMut(&[u8])) -> Result<u64, GitError> {
    let pipe = |error| GitError::Io { what: "pipe", error };
    let bad = |what| GitError::Answer { command: COMMAND.into(), what };
    let Some(stdin) = &mut talk.stdin else { return Err(bad("it had ended before")) };
    stdin.write_all(format!("{}\n", object.as_str()).as_bytes()).await.map_err(pipe)?;
    let mut header = Vec::new();
    (&mut talk.stdout).take(MAX_HEADER).read_until(b'\n', &mut header).await.map_err(pipe)?;
    let header = std::str::from_utf8(&header).map_err(|_| bad("a header is no text"))?;
    let size = header.trim_end().strip_prefix(object.as_str()).and_then(|rest| rest.strip_prefix(" blob "));
    let size: u64 = size.and_then(|size| size.parse().ok()).ok_or_else(|| bad("an object is not there"))?;
    let mut left = size;
    let mut buffer = vec![0; CHUNK];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let read = talk.stdout.read(&mut buffer[..wanted]).await.map_err(pipe)?;
        if read == 0 {
            return Err(bad("it ended in the middle"));
        }
        take(&buffer[..read]);
        left -= read as u64;
    }
    match talk.stdout.read_u8().await.map_err(pipe)? {
        b'\n' => Ok(size),
        _ => Err(bad("a content has no end")),
    }
}
