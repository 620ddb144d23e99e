//! The one who writes: takes all lines that wait at once, so that many small events cost few calls of the system.

use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::conversation::Conversation;

/// Writes until nobody reads any more.
pub(super) async fn write(conversation: Arc<Conversation>, mut output: impl AsyncWrite + Unpin) {
    let mut batch = Vec::new();
    loop {
        conversation.take(&mut batch).await;
        let mut sent = 0;
        while sent < batch.len() {
            match output.write(&batch[sent..]).await {
                Ok(wrote) if wrote > 0 => {
                    sent += wrote;
                    conversation.left(wrote);
                }
                // Whatever the pipe says, there is nobody left to tell.
                Ok(_) | Err(_) => return conversation.hung_up(),
            }
        }
        if output.flush().await.is_err() {
            return conversation.hung_up();
        }
    }
}
