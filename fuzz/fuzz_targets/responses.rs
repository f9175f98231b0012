//! No bytes make the decoder of this wire panic, however they are cut.
#![no_main]

use std::collections::VecDeque;

use codex_model::ResponsesDecoder;
use codex_wire::conversation_item::ItemOrigin;

libfuzzer_sys::fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, size) = input;
    let maker = ItemOrigin { provider: "fuzz".to_owned(), account: None, opaque: None };
    let (mut parser, mut events) = (codex_model::sse::Parser::new(), VecDeque::new());
    let mut decoder = ResponsesDecoder::new(maker, true);
    for mut piece in bytes.chunks(usize::from(size).max(1)) {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            let _ = decoder.decode(event, &mut events);
        }
    }
});
