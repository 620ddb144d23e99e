//! The files of the dashboard: one style sheet, two scripts, one picture. They are part of the program.

use std::sync::LazyLock;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use outrigger_policy::Digest;

const CSS: &str = include_str!("assets/app.css");
const JS: &str = include_str!("assets/app.js");
const THEME: &str = include_str!("assets/theme.js");
const ICON: &str = include_str!("assets/icon.svg");

/// A name for these very files, so that a browser keeps them until the program is another one.
pub(super) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let digest = Digest::of([CSS, JS, THEME].concat().as_bytes()).to_string();
        digest.chars().filter(char::is_ascii_hexdigit).take(12).collect()
    });
    &VERSION
}

/// One of the files. Whoever names its version may keep it.
pub(super) fn asset(name: &str, query: Option<&str>) -> Response {
    let (kind, text) = match name {
        "app.css" => ("text/css; charset=utf-8", CSS),
        "app.js" => ("text/javascript; charset=utf-8", JS),
        "theme.js" => ("text/javascript; charset=utf-8", THEME),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return (StatusCode::NOT_FOUND, "there is no such file\n").into_response(),
    };
    let named = query.and_then(|query| query.strip_prefix("v=")) == Some(version());
    let kept = if named { "private, max-age=31536000, immutable" } else { "no-cache" };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, kept)], text).into_response()
}
