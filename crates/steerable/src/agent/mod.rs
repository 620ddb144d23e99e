//! An agent's turn: model, tools, model, until there is an answer.
