//! No bytes make the stream parser or the decoder panic, however they are cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, size) = input;
    let mut parser = codex_model::sse::Parser::new();
    for mut piece in bytes.chunks(usize::from(size).max(1)) {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            let _ = codex_model::decode::decode(event);
        }
    }
});
