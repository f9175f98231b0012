//! Settings that are one of a few words.

/// An unknown word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{word}`, expected one of {}", .known.join(", "))]
pub struct UnknownWord {
    pub word: String,
    pub known: &'static [&'static str],
}

/// Declares an enum that is written as one word in `config.toml`.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$row:meta])* $label:literal => $variant:ident ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$row])* $variant, )* }

        impl $name {
            /// The word in `config.toml`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $label, )* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $( $label => Ok(Self::$variant), )*
                    _ => Err($crate::UnknownWord { word: word.to_owned(), known: &[$($label),*] }),
                }
            }
        }
    };
}
pub(crate) use words;
