//! The sep dialect: extensions with manifests, and permissions checked on every call.
//!
//! # Theory of operation
//!
//! An extension is a folder with a manifest and a program. The *host* finds it, decides how far it is trusted, starts it in
//! its box, and speaks JSON-RPC with it over a socket that only this process can have. Nothing it asks for happens unless one
//! place, the gate, allows it; every such decision is written to a chained log.
//!
//! * [`protocol`] has the words of the contract: names, versions, errors, messages.
//! * [`manifest`] reads what is on disk and trusts nothing of it: strict JSON, the schema, the semantic rules, who may be what.
//! * [`config`] is the policy of a host, as a file.
//! * [`mesh`] is what extensions talk about: messages, contacts and presence, behind one trait.
//! * [`host`] is the end that drives: lifecycle, channel, gate, events, panels, records.
//! * [`extension`] is the kit for authors; [`mod@reference`] has the extensions that ship.

pub mod config;
pub mod extension;
pub mod host;
pub mod manifest;
pub mod mesh;
pub mod protocol;
pub mod reference;
