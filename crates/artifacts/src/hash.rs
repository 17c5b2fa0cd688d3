//! The address of what is kept: its BLAKE3 hash, in 64 hexadecimal digits. Nothing else becomes a path.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Hash(blake3::Hash);

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(blake3::hash(bytes))
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Hash {
        Hash(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// Hashes what comes piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Hasher(blake3::Hasher);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> Hash {
        Hash(self.0.finalize())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// It is not 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoHash;

impl FromStr for Hash {
    type Err = NoHash;

    fn from_str(text: &str) -> Result<Hash, NoHash> {
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(NoHash);
        }
        blake3::Hash::from_hex(text).map(Hash).map_err(|_| NoHash)
    }
}
