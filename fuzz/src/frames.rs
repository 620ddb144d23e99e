//! The frame decoder: the same frames however the stream is cut, bounded memory, and decoding undoes encoding.

use outrigger_wire::frame::{Frame, FrameDecoder, FrameError, FrameLimit, encode_frame};

use crate::{Choices, cut};

type Frames = (Vec<(Vec<u8>, Vec<u8>)>, Result<(), FrameError>);

/// Decodes the input in one piece, in odd pieces and byte by byte, then encodes what came out.
pub fn frames(input: &[u8]) {
    let mut choices = Choices::new(input);
    let limit = FrameLimit(u64::from(choices.byte()));
    let seed = choices.byte();
    let stream = choices.rest;
    let whole = decode(limit, &[stream]);
    assert_eq!(decode(limit, &cut(stream, seed)), whole, "cut in pieces");
    assert_eq!(decode(limit, &stream.chunks(1).collect::<Vec<_>>()), whole, "cut in bytes");

    let mut encoded = Vec::new();
    for (header, blob) in &whole.0 {
        let fits = encode_frame(Frame { header, blob }, limit, &mut encoded);
        assert_eq!(fits, Ok(()), "what was decoded within the limit can be encoded within it");
    }
    assert!(stream.starts_with(&encoded), "encoding undoes decoding");
    assert!(whole.1.is_err() || encoded.len() == stream.len());
}

fn decode(limit: FrameLimit, pieces: &[&[u8]]) -> Frames {
    let mut decoder = FrameDecoder::new(limit);
    let mut frames = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match decoder.decode(rest) {
                Ok(step) => {
                    assert!(step.consumed > 0);
                    rest = &rest[step.consumed..];
                    frames.extend(step.frame.map(|frame| (frame.header.to_vec(), frame.blob.to_vec())));
                }
                Err(error) => return (frames, Err(error)),
            }
            assert!(
                decoder.held() as u64 <= limit.0 + 8 && decoder.capacity() as u64 <= (limit.0 + 8).max(64)
            );
        }
    }
    let end = decoder.finish();
    (frames, end)
}
