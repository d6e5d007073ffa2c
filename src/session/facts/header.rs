//! The first line of the file.

use super::extension::EXTENSION;
use super::read;
use crate::base::ids::Id;
use serde::{Deserialize, Serialize};

/// What a session is, decided when it is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// The session.
    pub id: Id,
    /// Milliseconds since the Unix epoch.
    #[serde(deserialize_with = "read::safe_integer")]
    pub created_at: u64,
    /// The workspace.
    #[serde(deserialize_with = "read::non_empty")]
    pub cwd: String,
    /// The model's provider.
    #[serde(deserialize_with = "read::non_empty")]
    pub provider: String,
    /// The model.
    #[serde(deserialize_with = "read::non_empty")]
    pub model: String,
    /// Where effects take place: for stoplog the canonical workspace path.
    #[serde(deserialize_with = "read::non_empty")]
    pub environment_identity: String,
    /// Which additions to version 2 the file may hold; absent in a plain version 2 file.
    #[serde(
        default,
        deserialize_with = "read::non_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub extensions: Vec<String>,
}

impl Header {
    /// Whether our own facts may stand in the file.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.extensions.iter().any(|name| name == EXTENSION)
    }

    /// The header's line, without its line feed.
    pub(crate) fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct Line<'header> {
            kind: &'static str,
            version: u8,
            #[serde(flatten)]
            header: &'header Header,
        }
        serde_json::to_vec(&Line { kind: "header", version: 2, header: self })
    }
}
