//! Serialisation of names that need not be UTF-8: text where it is, else the bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for Name {
    fn from(name: &OsStr) -> Self {
        name.to_str()
            .map_or_else(|| Self::Bytes(name.as_bytes().to_vec()), |text| Self::Text(text.into()))
    }
}

impl From<Name> for OsString {
    fn from(name: Name) -> Self {
        match name {
            Name::Text(text) => text.into(),
            Name::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

pub(in crate::sandbox) mod path {
    use super::{Deserialize, Deserializer, Name, OsString, Serialize, Serializer};
    use std::path::{Path, PathBuf};

    pub(in crate::sandbox) fn serialize<S: Serializer>(
        path: &Path,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Name::from(path.as_os_str()).serialize(serializer)
    }

    pub(in crate::sandbox) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(OsString::from(Name::deserialize(deserializer)?).into())
    }
}

pub(in crate::sandbox) mod optional_path {
    use super::{Deserialize, Deserializer, Name, OsString, Serialize, Serializer};
    use std::path::PathBuf;

    pub(in crate::sandbox) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| Name::from(path.as_os_str())).serialize(serializer)
    }

    pub(in crate::sandbox) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let name = Option::<Name>::deserialize(deserializer)?;
        Ok(name.map(|name| OsString::from(name).into()))
    }
}

pub(in crate::sandbox) mod paths {
    use super::{Deserialize, Deserializer, Name, OsString, Serialize, Serializer};
    use std::path::PathBuf;

    pub(in crate::sandbox) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names: Vec<Name> = paths.iter().map(|path| path.as_os_str().into()).collect();
        names.serialize(serializer)
    }

    pub(in crate::sandbox) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let names = Vec::<Name>::deserialize(deserializer)?;
        Ok(names.into_iter().map(|name| OsString::from(name).into()).collect())
    }
}

pub(in crate::sandbox) mod strings {
    use super::{Deserialize, Deserializer, Name, OsString, Serialize, Serializer};

    pub(in crate::sandbox) fn serialize<S: Serializer>(
        strings: &[OsString],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names: Vec<Name> = strings.iter().map(|string| string.as_os_str().into()).collect();
        names.serialize(serializer)
    }

    pub(in crate::sandbox) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<Name>::deserialize(deserializer)?.into_iter().map(OsString::from).collect())
    }
}

pub(in crate::sandbox) mod pairs {
    use super::{Deserialize, Deserializer, Name, OsString, Serialize, Serializer};

    pub(in crate::sandbox) fn serialize<S: Serializer>(
        pairs: &[(OsString, OsString)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names: Vec<(Name, Name)> = pairs
            .iter()
            .map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()))
            .collect();
        names.serialize(serializer)
    }

    pub(in crate::sandbox) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let names = Vec::<(Name, Name)>::deserialize(deserializer)?;
        Ok(names.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
