//! Enums that survive a reader older than the file: an unknown value is kept, not refused.

/// Declares a string enum with an `Other` variant, and its text and serde forms.
macro_rules! open_enum {
    ($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $vdoc:literal])* $variant:ident = $text:literal),+ $(,)?
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $vdoc])* $variant,)+
            /// A value that this version does not know, as it stands in the file.
            Other(String),
        }

        impl $name {
            /// Every value that this version knows.
            pub const KNOWN: &'static [$name] = &[$($name::$variant),+];

            /// The text that stands in journals, tables and case ids.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $text,)+
                    $name::Other(text) => text,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => $name::$variant,)+
                    _ => $name::Other(text),
                }
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let known = [$(($text, concat!($($vdoc),*))),+];
                crate::record::open_enum::schema(concat!($($doc),*), &known)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(<String as serde::Deserialize>::deserialize(deserializer)?.into())
            }
        }
    };
}

pub(crate) use open_enum;

/// A schema of strings that names the known values, with their meaning, and allows all others.
pub(crate) fn schema(what: &str, known: &[(&str, &str)]) -> schemars::Schema {
    let known = known.iter().map(|(text, meaning)| format!("- `{text}`: {}", meaning.trim()));
    let known = known.collect::<Vec<_>>().join("\n");
    let what = what.trim();
    schemars::json_schema!({
        "type": "string",
        "description": format!("{what} Known values; later versions may add others:\n{known}"),
    })
}
