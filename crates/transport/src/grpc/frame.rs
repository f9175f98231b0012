//! Encodes messages of `proto/app_server.proto` in gRPC frames.
//!
//! A frame is a flag, a length and a message; the message is one text in field 1. That is all, so it is written by hand
//! instead of being generated.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The flag and the length before a message.
const HEADER_BYTES: usize = 5;
/// Allowance for the rest of a message: its field, its length, and fields of later versions.
const EXTRA_BYTES: usize = 1024;
/// Field 1, a text.
const JSON_FIELD: u64 = 1 << 3 | 2;

/// The reason why a frame cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// A message is too long.
    TooLong,
    /// A message is compressed, which was not negotiated.
    Compressed,
    /// A message is malformed.
    Malformed,
}

/// Encodes a text as a frame.
pub(crate) fn encode(json: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(json.len() + 16);
    put_varint(&mut message, JSON_FIELD);
    put_varint(&mut message, json.len() as u64);
    let length = message.len() + json.len();
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame.extend_from_slice(&message);
    frame.extend_from_slice(json);
    frame.freeze()
}

/// Decodes the next text from the received bytes; `None` if they contain no complete frame yet.
pub(crate) fn decode(bytes: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [flag, length @ ..] = *header;
    let length = u32::from_be_bytes(length) as usize;
    if flag != 0 {
        return Err(FrameError::Compressed);
    }
    if length > limit.saturating_add(EXTRA_BYTES) {
        return Err(FrameError::TooLong);
    }
    if bytes.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    bytes.advance(HEADER_BYTES);
    let json = text(bytes.split_to(length).freeze()).ok_or(FrameError::Malformed)?;
    if json.len() > limit { Err(FrameError::TooLong) } else { Ok(Some(json)) }
}

/// The text of a message. Unknown fields are skipped, and the last of several counts.
fn text(mut message: Bytes) -> Option<Bytes> {
    let mut json = Bytes::new();
    while message.has_remaining() {
        let field = take_varint(&mut message)?;
        let skipped = match field & 7 {
            0 => take_varint(&mut message).map(|_| 0)?,
            1 => 8,
            2 => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                if field == JSON_FIELD {
                    json = (length <= message.len()).then(|| message.split_to(length))?;
                    0
                } else {
                    length
                }
            }
            5 => 4,
            _ => return None,
        };
        (skipped <= message.len()).then(|| message.advance(skipped))?;
    }
    std::str::from_utf8(&json).is_ok().then_some(json)
}

fn put_varint(bytes: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        bytes.put_u8(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.put_u8(u8::try_from(number).unwrap_or_default());
}

fn take_varint(bytes: &mut Bytes) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = bytes.has_remaining().then(|| bytes.get_u8())?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_is_what_others_write_too() {
        // As in protoc and gRPC: flag, length, tag 0x0a, length, text.
        assert_eq!(&encode(b"{}")[..], b"\0\0\0\0\x04\x0a\x02{}");
    }

    #[test]
    fn frames_that_break_the_rules_are_named() {
        let check = |bytes: &[u8]| decode(&mut BytesMut::from(bytes), 100);
        assert_eq!(check(b"\x01\0\0\0\0"), Err(FrameError::Compressed));
        assert_eq!(check(b"\0\x7f\0\0\0"), Err(FrameError::TooLong));
        assert_eq!(check(&encode(&[b'x'; 101])), Err(FrameError::TooLong));
        assert_eq!(check(b"\0\0\0\0\x04\x0a\x05{}"), Err(FrameError::Malformed));
        assert_eq!(check(b"\0\0\0\0\x04\x0a\x02\xff\xfe"), Err(FrameError::Malformed));
        assert_eq!(check(b"\0\0\0\0\x02\x0b\x00"), Err(FrameError::Malformed));
        assert_eq!(check(b"\0\0\0\0\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"), Err(FrameError::Malformed));
        // Fields of a later version: a number, a text, four and eight bytes.
        let later = b"\0\0\0\0\x17\x10\x05\x1a\x01z\x25\x01\x02\x03\x04\x29\x01\x02\x03\x04\x05\x06\x07\x08\x0a\x02{}";
        let mut later = later.to_vec();
        later[4] = u8::try_from(later.len() - 5).unwrap();
        assert_eq!(check(&later), Ok(Some(Bytes::from_static(b"{}"))));
        assert_eq!(check(b"\0\0\0\0\0"), Ok(Some(Bytes::new())));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_texts(texts in prop::collection::vec(".{0,300}", 0..5), size in 1_usize..50) {
            let all: Vec<u8> = texts.iter().flat_map(|text| encode(text.as_bytes())).collect();
            let (mut bytes, mut read) = (BytesMut::new(), Vec::new());
            for piece in all.chunks(size) {
                bytes.extend_from_slice(piece);
                while let Some(text) = decode(&mut bytes, 10_000).unwrap() {
                    read.push(String::from_utf8(text.to_vec()).unwrap());
                }
            }
            prop_assert_eq!(read, texts);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut bytes = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = decode(&mut bytes, 32) {}
        }
    }
}
