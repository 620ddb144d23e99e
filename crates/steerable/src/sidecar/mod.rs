//! The child's end: serves JSON-RPC on standard input and output.
