//! What every page has around it: where one is, where one can go, and what keeps it alive.

use maud::{DOCTYPE, Markup, html};

use super::assets;
use super::parts::{Icon, icon};
use crate::engine::Seq;
use crate::runs::id::RunId;

/// What is around a page.
pub(super) struct Shell<'a> {
    pub(super) title: &'a str,
    pub(super) here: Here,
    /// How many runs wait for a person.
    pub(super) waiting: u64,
    pub(super) live: Live<'a>,
}

/// Which part of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    Runs,
    Playground,
    Agents,
    Sidecars,
    Extensions,
    Help,
}

/// What makes a page look again.
pub(super) enum Live<'a> {
    /// Nothing does.
    Still,
    /// Any run that changes.
    Changes,
    /// What happens in one run after this record.
    Run(&'a RunId, Seq),
    /// So many milliseconds.
    Every(u32),
}

impl Here {
    const ALL: [Here; 5] = [Here::Runs, Here::Playground, Here::Agents, Here::Sidecars, Here::Extensions];

    fn path(self) -> &'static str {
        match self {
            Here::Runs => "/",
            Here::Playground => "/playground",
            Here::Agents => "/agents",
            Here::Sidecars => "/sidecars",
            Here::Extensions => "/extensions",
            Here::Help => "/help",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Here::Runs => "Runs",
            Here::Playground => "Playground",
            Here::Agents => "Agents",
            Here::Sidecars => "Sidecars",
            Here::Extensions => "Extensions",
            Here::Help => "Help",
        }
    }

    /// The second key after `g`.
    fn key(self) -> &'static str {
        match self {
            Here::Runs => "r",
            Here::Playground => "p",
            Here::Agents => "a",
            Here::Sidecars => "s",
            Here::Extensions => "e",
            Here::Help => "h",
        }
    }

    fn icon(self) -> Icon {
        match self {
            Here::Runs => Icon::Runs,
            Here::Playground => Icon::Playground,
            Here::Agents => Icon::Agents,
            Here::Sidecars => Icon::Sidecars,
            Here::Extensions => Icon::Extensions,
            Here::Help => Icon::Help,
        }
    }
}

/// A whole page.
pub(super) fn page(shell: &Shell<'_>, content: Markup) -> Markup {
    let (stream, poll) = match shell.live {
        Live::Still => (None, None),
        Live::Changes => (Some("/v1/changes".to_owned()), None),
        Live::Run(run, after) => (Some(format!("/v1/runs/{run}/events?after={}", after.0)), None),
        Live::Every(millis) => (None, Some(millis)),
    };
    let is_live = stream.is_some() || poll.is_some();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Without a referrer a form would come from nowhere (`Origin: null`), and the door would not let it in.
                meta name="referrer" content="same-origin";
                title { (shell.title) " · Outrigger" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href={ "/assets/app.css?v=" (assets::version()) };
                // Not deferred: the theme must be known before anything is painted.
                script src={ "/assets/theme.js?v=" (assets::version()) } {}
                script src={ "/assets/app.js?v=" (assets::version()) } defer {}
            }
            body data-stream=[stream] data-poll=[poll] {
                a.skip href="#main" { "Skip to the content" }
                div.frame {
                    (side(shell))
                    main #main tabindex="-1" { (content) }
                }
                div #toasts role="status" aria-live="polite" {}
                span #live hidden[!is_live] data-state="connecting" role="status" { "connecting…" }
                (keys())
            }
        }
    }
}

/// The head of a page: its name, and what can be done.
pub(super) fn head(title: &str, about: &str, actions: Markup) -> Markup {
    html! {
        header.page-head {
            div { h1 { (title) } @if !about.is_empty() { p.about { (about) } } }
            div.actions { (actions) }
        }
    }
}

/// Something that is not there yet, and what to do about it.
pub(super) fn empty(picture: Icon, title: &str, then: Markup) -> Markup {
    html! { div.empty { (icon(picture)) h2 { (title) } div { (then) } } }
}

fn side(shell: &Shell<'_>) -> Markup {
    html! {
        header.side {
            a.brand href="/" { (icon(Icon::Logo)) span { "Outrigger" } }
            nav aria-label="Main" {
                ul {
                    @for here in Here::ALL {
                        li {
                            a href=(here.path()) aria-current=[(here == shell.here).then_some("page")] data-go=(here.key()) {
                                (icon(here.icon())) span { (here.name()) }
                                @if here == Here::Runs {
                                    span #waiting-count.pill data-live hidden[shell.waiting == 0] { (shell.waiting) span.visually-hidden { " waiting for you" } }
                                }
                            }
                        }
                    }
                }
            }
            div.side-foot {
                button.quiet.icon-only type="button" data-theme-toggle aria-label="Switch between dark and light" title="Dark or light" { (icon(Icon::Theme)) }
                a.button.quiet.icon-only href="/help" data-help aria-label="Help and keys" title="Help (?)" { (icon(Icon::Help)) }
            }
        }
    }
}

/// The keys, in a dialog that the script opens; the page `/help` has them too.
fn keys() -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-title" {
            form method="dialog" {
                header { h2 #keys-title { "Keys" } button.quiet.icon-only aria-label="Close" { (icon(Icon::Cross)) } }
            }
            (key_list())
            p.hint { a href="/help" { "More help" } }
        }
        dialog #sure aria-labelledby="sure-title" {
            form method="dialog" {
                h2 #sure-title { "Are you sure?" }
                p #sure-text {}
                div.row.end { button value="no" { "No" } button.primary value="yes" { "Yes" } }
            }
        }
    }
}

/// What each key does.
pub(super) fn key_list() -> Markup {
    let keys: [(&[&str], &str); 9] = [
        (&["g", "r"], "runs"),
        (&["g", "p"], "playground"),
        (&["g", "a"], "agents"),
        (&["g", "s"], "sidecars"),
        (&["g", "e"], "extensions"),
        (&["j", "k"], "down and up in a list, Enter opens"),
        (&["a", "d"], "approve or deny what waits, after a question"),
        (&["/"], "find"),
        (&["?"], "these keys"),
    ];
    html! {
        dl.keys {
            @for (keys, what) in keys {
                div { dt { @for key in keys { kbd { (key) } } } dd { (what) } }
            }
        }
    }
}
