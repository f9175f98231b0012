//! Ids whose text many events share.

/// Declares an id of which clones share one text.
macro_rules! shared_id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Creates an id from text.
            #[must_use]
            pub fn new(id: impl Into<std::sync::Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The id as a string of messages, which shares its text.
            #[must_use]
            pub fn to_name(&self) -> codex_wire::name::Name {
                std::sync::Arc::clone(&self.0).into()
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

pub(crate) use shared_id;
