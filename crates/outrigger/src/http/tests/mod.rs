//! The server over real sockets: a store, a backend that does as its task says, and clients that write their own bytes.

mod api;
mod entrance;
mod hostile;
mod site;
mod streams;
