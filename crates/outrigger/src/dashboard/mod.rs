//! The dashboard: pages that are made here and kept alive by server-sent events.

use std::sync::Arc;

use crate::daemon::App;

/// The pages, without the checks around them.
pub(crate) fn router() -> axum::Router<Arc<App>> {
    axum::Router::new()
}
