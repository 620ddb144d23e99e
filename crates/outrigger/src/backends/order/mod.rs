//! Work orders to children: the abp dialect as a backend, and through it the coding agents.
