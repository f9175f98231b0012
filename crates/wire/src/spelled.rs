//! Enums that are plain strings on the wire and were spelled in several cases over the years.

/// Declares a string enum that is written in one spelling and read in any of kebab, snake and camel case.
///
/// `"label" | "alias" => Variant` also accepts another word. An `open` enum keeps a word it does not know in
/// `Other`; a closed one refuses it and names the words it knows, because policies must never be guessed. Its schema
/// has the one spelling that is written.
#[macro_export]
macro_rules! spelled {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$row:meta])* $label:literal $(| $alias:literal)* => $variant:ident ),* $(,)?
        }
    ) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
        $(#[$meta])*
        pub enum $name {
            $( $(#[$row])* #[cfg_attr(feature = "schema", schemars(rename = $label))] $variant, )*
        }

        impl $name {
            /// The word on the wire.
            #[must_use]
            pub const fn as_str(&self) -> &'static str {
                match self { $( Self::$variant => $label, )* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::forms::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $( if $crate::forms::same_word(word, &[$label $(, $alias)*]) { return Ok(Self::$variant); } )*
                Err($crate::forms::UnknownWord::new(word, &[$($label),*]))
            }
        }

        $crate::spelled!(@serde $name);
    };
    (
        $(#[$meta:meta])*
        pub open enum $name:ident {
            $( $(#[$row:meta])* $label:literal $(| $alias:literal)* => $variant:ident ),* $(,)?
        }
    ) => {
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
        $(#[$meta])*
        pub enum $name {
            $( $(#[$row])* #[cfg_attr(feature = "schema", schemars(rename = $label))] $variant, )*
            /// A word that this release does not know, passed through.
            #[cfg_attr(feature = "schema", schemars(untagged))]
            Other(#[cfg_attr(feature = "arbitrary", proptest(regex = "future[a-z]{1,8}"))] String),
        }

        impl $name {
            /// The word on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self { $( Self::$variant => $label, )* Self::Other(word) => word }
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $( if $crate::forms::same_word(word, &[$label $(, $alias)*]) { return Ok(Self::$variant); } )*
                Ok(Self::Other(word.to_owned()))
            }
        }

        $crate::spelled!(@serde $name);
    };
    (@serde $name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<str>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
