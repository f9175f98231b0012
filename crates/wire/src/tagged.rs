//! Enums that are distinguished by one string member, such as `{"type": "interrupt"}`.

/// Declares an enum whose variants are told apart by a string member of a JSON object.
///
/// Each row is `"label" => Variant(Payload)`, or `"label" => Variant` when nothing but the label is on the wire;
/// `"label" | "alias"` also accepts an older name. A label that no row names is kept as [`serde_json::Value`] in
/// `Other` and written back unchanged, while a known label with a broken payload is an error that says what is
/// missing. That difference is why decoding is not derived.
///
/// Its schema names the known kinds; `x-open` says that there may be others.
///
/// `by "type" through path` first passes the value through a function that respells an older form.
#[macro_export]
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $tag:literal $(through $respell:path)? {
            $( $(#[$row:meta])* $label:literal $(| $alias:literal)* => $variant:ident $(($payload:ty))? ),* $(,)?
        }
    ) => {
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-open" = true)))]
        #[serde(tag = $tag)]
        $(#[$meta])*
        pub enum $name {
            $(
                $(#[$row])*
                #[serde(rename = $label)]
                $variant $(($payload))?,
            )*
            /// A kind that this release does not know, kept unchanged.
            #[serde(untagged)]
            #[cfg_attr(feature = "schema", schemars(skip))]
            Other(serde_json::Value),
        }

        impl $name {
            /// The labels of all known kinds, in the order of the declaration.
            pub const KINDS: &'static [&'static str] = &[$($label),*];

            /// The label on the wire; empty for an unknown kind that carries none.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $( $crate::tagged!(@pattern $variant $(($payload))?) => $label, )*
                    Self::Other(value) => value.get($tag).and_then(serde_json::Value::as_str).unwrap_or_default(),
                }
            }
        }

        #[cfg(feature = "arbitrary")]
        impl $name {
            /// One strategy per kind, so that a test can draw from every kind in turn.
            #[must_use]
            pub fn each_kind() -> Vec<proptest::strategy::BoxedStrategy<Self>> {
                use proptest::strategy::Strategy as _;
                vec![
                    $( $crate::tagged!(@strategy $variant $(($payload))?), )*
                    $crate::forms::any_other($tag).prop_map(Self::Other).boxed(),
                ]
            }
        }

        // Not derived, because the strategies of many kinds side by side do not fit the stack.
        #[cfg(feature = "arbitrary")]
        impl proptest::arbitrary::Arbitrary for $name {
            type Parameters = ();
            type Strategy = proptest::strategy::BoxedStrategy<Self>;

            fn arbitrary_with((): ()) -> Self::Strategy {
                proptest::strategy::Strategy::boxed(proptest::strategy::Union::new(Self::each_kind()))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(deserializer)?;
                $( let value = $respell(value); )?
                let Some(label) = value.get($tag).and_then(serde_json::Value::as_str) else {
                    return Err(serde::de::Error::missing_field($tag));
                };
                match label {
                    $( $label $(| $alias)* => $crate::tagged!(@decode value $tag $variant $(($payload))?), )*
                    _ => Ok(Self::Other(value)),
                }
            }
        }
    };
    (@pattern $variant:ident ($payload:ty)) => { Self::$variant(_) };
    (@pattern $variant:ident) => { Self::$variant };
    (@strategy $variant:ident ($payload:ty)) => {
        proptest::prelude::any::<$payload>().prop_map(Self::$variant).boxed()
    };
    (@strategy $variant:ident) => { proptest::strategy::Just(Self::$variant).boxed() };
    (@decode $value:ident $tag:literal $variant:ident ($payload:ty)) => {
        serde_json::from_value($crate::forms::without($value, $tag))
            .map(Self::$variant)
            .map_err(serde::de::Error::custom)
    };
    (@decode $value:ident $tag:literal $variant:ident) => { Ok(Self::$variant) };
}
