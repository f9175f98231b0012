//! No bytes make the decoder of this wire panic, however they are cut.
#![no_main]

use std::collections::VecDeque;

use codex_model::{AnswerTools, AnthropicDecoder};
use codex_wire::conversation_item::ItemOrigin;
use codex_wire::provider_traits::{ProviderTraits, Thoughts};
use codex_wire::tool_spec::ToolList;

libfuzzer_sys::fuzz_target!(|input: (&[u8], u8)| {
    let (bytes, size) = input;
    let maker = ItemOrigin { provider: "fuzz".to_owned(), account: None, opaque: None };
    let tools = AnswerTools::new(&ToolList::of(Vec::new()), &ProviderTraits::unknown());
    let (mut parser, mut events) = (codex_model::sse::Parser::new(), VecDeque::new());
    let mut decoder = AnthropicDecoder::new(maker, tools, Thoughts::Summary);
    for mut piece in bytes.chunks(usize::from(size).max(1)) {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            let _ = decoder.decode(event, &mut events);
        }
    }
    let _ = decoder.end(&mut events);
});
