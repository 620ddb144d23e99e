//! What pages are put together from.

pub(super) mod approval;
pub(super) mod badge;
pub(super) mod diff;
pub(super) mod icon;
pub(super) mod json;
pub(super) mod patch;
pub(super) mod say;
pub(super) mod spark;
pub(super) mod time;
pub(super) mod waterfall;

pub(super) use badge::{health_badge, phase_badge, tone_badge};
pub(super) use icon::{Icon, icon};
pub(super) use say::{bytes, count, money, span};
pub(super) use time::{ago, ticking};
