//! Credentials that sign a request, where a secret in a header will not do.
//!
//! Some servers want proof that covers the request itself: its address, its headers and the hash of its body, at a
//! certain time. What holds the key is a [`Sign`]; an [`Issuer`](crate::credentials::Issuer) hands out one after the other as [`Auth::Signed`], so
//! that credentials which run out are renewed like any others. Nothing here knows a provider.
//!
//! [`Auth::Signed`]: crate::Auth::Signed

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::client::Secret;
use crate::error::ModelError;
use crate::transport::Post;

/// Signs requests. Pure: the time comes in, and nothing is asked of anybody.
pub trait Sign: Send + Sync {
    /// Adds to a request, which is complete otherwise, what proves who sends it. The body is there in
    /// [pieces](crate::Body::pieces), to be hashed without a copy.
    fn sign(&self, post: &mut Post, now: Timestamp) -> Result<(), ModelError>;

    /// What it signs with that nobody may read later: the key, and a token that goes with it. Whoever writes things down leaves
    /// these out.
    fn secrets(&self) -> Vec<Secret>;
}

/// A [`Sign`] and the name its credentials go by. Two of the same name are the same credentials.
#[derive(Clone)]
pub struct Signing {
    id: Secret,
    signer: Arc<dyn Sign>,
}

impl Signing {
    /// `id` tells these credentials from renewed ones.
    pub fn new(id: Secret, signer: impl Sign + 'static) -> Self {
        Self { id, signer: Arc::new(signer) }
    }

    /// What must not be written down.
    pub fn secrets(&self) -> Vec<Secret> {
        self.signer.secrets()
    }

    pub(crate) fn sign(&self, post: &mut Post, now: Timestamp) -> Result<(), ModelError> {
        self.signer.sign(post, now)
    }
}

impl PartialEq for Signing {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Signing {}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signing(***)")
    }
}
