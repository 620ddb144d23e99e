//! Two-length binary frames: the decoder, its encoder, and the readers and writers over them.
//!
//! ```text
//! u32le header_len | u32le blob_len | header_len bytes | blob_len bytes
//! ```

mod decode;
mod encode;
mod read;

pub use decode::{DecodedFrame, Frame, FrameDecoder, FrameError, FrameLimit, FramePart};
pub use encode::{BlockingFrameWriter, FrameEncodeError, FrameWriteError, FrameWriter, encode_frame};
pub use read::{BlockingFrameReader, FrameReadError, FrameReader};
