use proptest::prelude::*;

use super::*;

/// The contents of the examples, which the program `zstd` has compressed.
const WORDS: [&str; 16] = [
    "the",
    "model",
    "answers",
    "in",
    "small",
    "pieces",
    "and",
    "each",
    "of",
    "them",
    "is",
    "shown",
    "at",
    "once",
    "data:",
    "{\"type\":\"response.output_text.delta\"}",
];

/// A sequence of numbers that is the same everywhere.
fn numbers() -> impl Iterator<Item = u32> {
    let next = |number: &u32| Some(number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(1_u32), next).skip(1).map(|number| number >> 16)
}

fn text(length: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for (place, number) in numbers().enumerate() {
        text.extend_from_slice(WORDS[number as usize % WORDS.len()].as_bytes());
        text.push(if place % 12 == 11 { b'\n' } else { b' ' });
        if text.len() >= length {
            text.truncate(length);
            return text;
        }
    }
    text
}

fn noise(length: usize) -> Vec<u8> {
    numbers().map(|number| number.to_le_bytes()[0]).take(length).collect()
}

fn example(name: &str) -> (&'static [u8], Vec<u8>) {
    match name {
        "text-1" => (include_bytes!("../../tests/zstd/text-1.zst"), text(60_000)),
        "text-3" => (include_bytes!("../../tests/zstd/text-3.zst"), text(60_000)),
        "text-19" => (include_bytes!("../../tests/zstd/text-19.zst"), text(60_000)),
        "short" => (include_bytes!("../../tests/zstd/short.zst"), text(300)),
        "zeros" => (include_bytes!("../../tests/zstd/zeros.zst"), vec![0; 300_000]),
        "noise" => (include_bytes!("../../tests/zstd/noise.zst"), noise(3000)),
        "repeated" => (include_bytes!("../../tests/zstd/repeated.zst"), text(20_000).repeat(15)),
        "mixed" => (include_bytes!("../../tests/zstd/mixed.zst"), [noise(5000), text(200_000), noise(2000)].concat()),
        "empty" => (include_bytes!("../../tests/zstd/empty.zst"), Vec::new()),
        name => panic!("there is no {name}"),
    }
}

const EXAMPLES: [&str; 9] = ["text-1", "text-3", "text-19", "short", "zeros", "noise", "repeated", "mixed", "empty"];

/// Decompresses pieces; the result says whether the stream was complete.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<u8>, bool), ZstdError> {
    let (mut decoder, mut content) = (Decoder::new(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        while let Some(block) = decoder.next()? {
            assert!(block.len() <= MOST_BLOCK);
            content.extend_from_slice(block);
        }
    }
    Ok((content, decoder.is_complete()))
}

#[test]
fn examples_have_their_contents_however_they_are_cut() {
    for name in EXAMPLES {
        let (compressed, content) = example(name);
        for size in [1, 7, 1000, usize::MAX] {
            let (decoded, is_complete) = decode(compressed.chunks(size.min(compressed.len()))).unwrap();
            assert!(decoded == content, "{name} in pieces of {size}");
            assert!(is_complete, "{name}");
        }
    }
}

#[test]
fn frames_follow_each_other_and_those_of_other_programs_are_skipped() {
    let (text, noise) = (example("short"), example("noise"));
    let skipped = [&(SKIPPABLE + 5).to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
    let stream = [text.0, &skipped, noise.0].concat();
    assert_eq!(decode(stream.chunks(5)).unwrap(), ([text.1, noise.1].concat(), true));
}

/// A frame of blocks that are not compressed, without its end.
fn raw_frame(blocks: &[&[u8]]) -> Vec<u8> {
    let mut frame = [&MAGIC.to_le_bytes()[..], &[0, 0]].concat();
    for block in blocks {
        frame.extend_from_slice(&(u32::try_from(block.len()).unwrap() << 3).to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame
}

#[test]
fn a_block_comes_out_as_soon_as_it_is_complete() {
    let mut decoder = Decoder::new();
    decoder.push(&raw_frame(&[b"one"]));
    assert_eq!(decoder.next(), Ok(Some(&b"one"[..])));
    assert_eq!(decoder.next(), Ok(None));
    assert!(!decoder.is_complete());
    decoder.push(&[0b1, 0, 0]);
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.is_complete());
}

#[test]
fn a_large_window_a_dictionary_and_other_formats_are_refused() {
    let frame = |rest: &[u8]| [&MAGIC.to_le_bytes()[..], rest].concat();
    for (bytes, why) in [
        (frame(&[0, 0x69]), "its window is larger than 8 MiB"),
        (frame(&[0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), "its window is larger than 8 MiB"),
        (frame(&[1, 0, 7]), "it needs a dictionary"),
        (frame(&[8, 0]), "the header of a frame is reserved"),
        (frame(&[0, 0, 6, 0, 0]), "the kind of a block is reserved"),
        (frame(&[0, 0, 0xfc, 0xff, 0xff]), "a block is too large"),
        (b"\x1f\x8b\x08\x00".to_vec(), "it does not begin with a frame"),
    ] {
        assert_eq!(decode([&bytes[..]]), Err(ZstdError(why)));
    }
    assert!(decode([&frame(&[0, 0x68])[..]]).is_ok());
}

#[test]
fn memory_does_not_grow_with_the_content() {
    let mut decoder = Decoder::new();
    decoder.push(&raw_frame(&[]));
    // Each of these blocks has four bytes and stands for 128 KiB.
    let block = (u32::try_from(MOST_BLOCK).unwrap() << 3 | 2).to_le_bytes();
    decoder.push(&[&block[..3], b"x"].concat().repeat(1000));
    let mut length = 0;
    while let Some(block) = decoder.next().unwrap() {
        length += block.len();
    }
    assert_eq!(length, 1000 * MOST_BLOCK);
    assert!(decoder.block.capacity() < 1024 * 1024, "{}", decoder.block.capacity());
}

proptest! {
    #[test]
    fn damaged_examples_do_no_harm(
        name in prop::sample::select(vec!["text-19", "short", "repeated", "noise"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = example(name).0.to_vec();
        for (place, byte) in &changes {
            let place = place.index(bytes.len());
            bytes[place] = *byte;
        }
        let whole = decode([&bytes[..]]);
        prop_assert_eq!(decode(bytes.chunks(3)), whole);
        bytes.truncate(cut.index(bytes.len()));
        let _ = decode([&bytes[..]]);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode([&bytes[..]]);
        let frame = [&MAGIC.to_le_bytes()[..], &bytes].concat();
        let _ = decode([&frame[..]]);
    }
}
