//! The tools an agent can call, and what they may reach.
