//! Binary frames as their users meet them: limits, every place a stream can end, independence from how it was cut.

use outrigger_wire::frame::{
    BlockingFrameReader, BlockingFrameWriter, Frame, FrameDecoder, FrameEncodeError, FrameError, FrameLimit,
    FramePart, FrameReadError, FrameReader, FrameWriteError, FrameWriter, encode_frame,
};
use proptest::prelude::*;

const LIMIT: FrameLimit = FrameLimit(16);

type Owned = (Vec<u8>, Vec<u8>);

fn owned(frame: Frame<'_>) -> Owned {
    (frame.header.to_vec(), frame.blob.to_vec())
}

fn frame(header: &[u8], blob: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(Frame { header, blob }, FrameLimit(u64::MAX), &mut out).unwrap();
    out
}

/// Decodes chunks until the end or the first error, checking the memory bound at every step.
fn decode<'a>(
    limit: FrameLimit,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Owned>, Result<(), FrameError>) {
    let mut decoder = FrameDecoder::new(limit);
    let mut frames = Vec::new();
    for mut chunk in chunks {
        while !chunk.is_empty() {
            match decoder.decode(chunk) {
                Ok(step) => {
                    assert!(step.consumed > 0, "every step makes progress");
                    chunk = &chunk[step.consumed..];
                    frames.extend(step.frame.map(owned));
                }
                Err(error) => {
                    assert_eq!(decoder.decode(b"again"), Err(error), "a dead decoder stays dead");
                    return (frames, Err(error));
                }
            }
            assert!(decoder.held() as u64 <= limit.0 + 8);
            assert!(decoder.capacity() as u64 <= (limit.0 + 8).max(64));
        }
    }
    (frames, decoder.finish())
}

#[track_caller]
fn check(input: &[u8], frames: &[(&[u8], &[u8])], end: Result<(), FrameError>) {
    let expect = (frames.iter().map(|(header, blob)| (header.to_vec(), blob.to_vec())).collect(), end);
    assert_eq!(decode(LIMIT, std::iter::once(input)), expect, "in one push");
    assert_eq!(decode(LIMIT, input.chunks(1)), expect, "byte by byte");
    for at in 0..=input.len() {
        let (left, right) = input.split_at(at);
        assert_eq!(decode(LIMIT, [left, right].into_iter()), expect, "split at {at}");
    }
}

#[test]
fn frames_come_out_whole_and_in_order() {
    check(b"", &[], Ok(()));
    check(&frame(b"{}", b""), &[(b"{}", b"")], Ok(()));
    check(
        &[frame(b"{}", b"\0\n\xFF"), frame(b"", b"x")].concat(),
        &[(b"{}", b"\0\n\xFF"), (b"", b"x")],
        Ok(()),
    );
}

#[test]
fn a_blank_frame_is_delivered_and_says_that_it_is_blank() {
    check(&[0; 8], &[(b"", b"")], Ok(()));
    assert!(Frame { header: b"", blob: b"" }.is_blank());
    assert!(Frame { header: b" \n", blob: b"" }.is_blank());
    assert!(!Frame { header: b" ", blob: b"x" }.is_blank());
    assert!(!Frame { header: b"{}", blob: b"" }.is_blank());
}

#[test]
fn a_frame_at_the_limit_passes_and_one_past_it_dies_before_its_body_is_read() {
    check(&frame(&[b'h'; 10], &[b'b'; 6]), &[(&[b'h'; 10], &[b'b'; 6])], Ok(()));
    let too_large = |header_len, blob_len| Err(FrameError::TooLarge { limit: 16, header_len, blob_len });
    // Only the lengths are sent: the error needs no body.
    check(&[10, 0, 0, 0, 7, 0, 0, 0], &[], too_large(10, 7));
    check(&[17, 0, 0, 0, 0, 0, 0, 0], &[], too_large(17, 0));
    // Lengths whose sum wraps around 32 bits.
    check(&[0xFF; 8], &[], too_large(u32::MAX, u32::MAX));
    check(&[frame(b"{}", b""), vec![0xFF; 8]].concat(), &[(b"{}", b"")], too_large(u32::MAX, u32::MAX));
}

#[test]
fn every_place_where_a_stream_can_end_has_its_name() {
    let whole = frame(b"hh", b"bbb");
    let part = |at: usize| match at {
        1..4 => FramePart::HeaderLength { got: at },
        4..8 => FramePart::BlobLength { got: at - 4 },
        8..10 => FramePart::Header { got: at - 8, want: 2 },
        _ => FramePart::Blob { got: at - 10, want: 3 },
    };
    check(&whole, &[(b"hh", b"bbb")], Ok(()));
    for at in 1..whole.len() {
        check(&whole[..at], &[], Err(FrameError::Truncated { part: part(at) }));
        let after_one = [&whole[..], &whole[..at]].concat();
        check(&after_one, &[(b"hh", b"bbb")], Err(FrameError::Truncated { part: part(at) }));
    }
}

#[test]
fn messages_name_the_part_as_hosts_expect_it() {
    let message = |part| FrameError::Truncated { part }.to_string();
    assert_eq!(
        message(FramePart::HeaderLength { got: 2 }),
        "unexpected EOF while reading frame length (2 of 4 bytes)"
    );
    assert_eq!(
        message(FramePart::BlobLength { got: 0 }),
        "unexpected EOF while reading blob length (0 of 4 bytes)"
    );
    let too_large = FrameError::TooLarge { limit: 16, header_len: 17, blob_len: 0 };
    assert_eq!(too_large.to_string(), "frame exceeds maximum size of 16 bytes (header 17, blob 0)");
}

#[test]
fn an_announcement_costs_no_memory() {
    let mut decoder = FrameDecoder::new(FrameLimit(1 << 33));
    decoder.decode(&[0xFF; 8]).unwrap();
    assert!(decoder.capacity() < 1024);
}

#[test]
fn memory_for_one_large_frame_is_given_back() {
    let mut decoder = FrameDecoder::new(FrameLimit(1 << 20));
    let big = frame(b"{}", &vec![1; 1 << 19]);
    let (left, right) = big.split_at(1 << 18);
    decoder.decode(left).unwrap();
    assert!(decoder.decode(right).unwrap().frame.is_some());
    decoder.decode(&[1]).unwrap();
    assert!(decoder.capacity() <= 65_536);
}

#[test]
fn a_whole_frame_is_lent_from_the_input_and_not_copied() {
    let input = frame(b"{}", b"blob");
    let mut decoder = FrameDecoder::new(LIMIT);
    let lent = decoder.decode(&input).unwrap().frame.unwrap();
    assert_eq!(lent.header.as_ptr(), input[8..].as_ptr());
    assert_eq!(decoder.capacity(), 0);
}

#[test]
fn an_encoder_refuses_what_the_decoder_would_refuse() {
    let mut out = b"kept".to_vec();
    let error = encode_frame(Frame { header: &[0; 10], blob: &[0; 7] }, LIMIT, &mut out).unwrap_err();
    assert_eq!(error, FrameEncodeError::TooLarge { limit: 16, header_len: 10, blob_len: 7 });
    assert_eq!(out, b"kept");
    encode_frame(Frame { header: &[0; 10], blob: &[0; 6] }, LIMIT, &mut out).unwrap();
    assert_eq!(out.len(), 4 + 8 + 16);
}

#[tokio::test]
async fn tokio_writer_and_reader_agree() {
    let (writer, reader) = tokio::io::duplex(7);
    let mut writer = FrameWriter::new(writer, LIMIT);
    let sender = tokio::spawn(async move {
        writer.write(Frame { header: b"{\"id\":1}", blob: b"blob" }).await.unwrap();
        writer.write(Frame { header: b"", blob: b"" }).await.unwrap();
        let refused = writer.write(Frame { header: &[0; 17], blob: b"" }).await;
        assert!(matches!(refused, Err(FrameWriteError::Encode(_))));
    });
    let mut reader = FrameReader::new(reader, LIMIT);
    assert_eq!(reader.next().await.unwrap().map(owned), Some((b"{\"id\":1}".to_vec(), b"blob".to_vec())));
    assert_eq!(reader.next().await.unwrap().map(owned), Some((vec![], vec![])));
    assert_eq!(reader.next().await.unwrap().map(owned), None);
    sender.await.unwrap();
}

#[test]
fn blocking_writer_and_reader_agree() {
    let mut writer = BlockingFrameWriter::new(Vec::new(), LIMIT);
    writer.write(Frame { header: b"{}", blob: b"b" }).unwrap();
    let mut bytes = writer.into_inner();
    bytes.extend_from_slice(&[1, 0, 0]);
    let mut reader = BlockingFrameReader::new(&bytes[..], LIMIT);
    assert_eq!(reader.next().unwrap().map(owned), Some((b"{}".to_vec(), b"b".to_vec())));
    let Err(FrameReadError::Frame(error)) = reader.next() else { panic!("a truncated frame") };
    assert_eq!(error, FrameError::Truncated { part: FramePart::HeaderLength { got: 3 } });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn results_do_not_depend_on_how_the_stream_was_cut(
        frames in proptest::collection::vec((0usize..12, 0usize..8), 0..5),
        tail in proptest::collection::vec(any::<u8>(), 0..12),
        sizes in proptest::collection::vec(1usize..20, 1..6),
    ) {
        let mut stream: Vec<u8> = frames.iter().flat_map(|(h, b)| frame(&vec![b'h'; *h], &vec![b'b'; *b])).collect();
        stream.extend(tail);
        let whole = decode(LIMIT, std::iter::once(&stream[..]));
        let mut rest = &stream[..];
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(&decode(LIMIT, chunks.into_iter()), &whole);
        prop_assert_eq!(&decode(LIMIT, stream.chunks(1)), &whole);
    }
}
