//! Model providers: one call of a model as a stream of events.
