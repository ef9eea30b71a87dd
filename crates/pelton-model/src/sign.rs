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
///
/// ```
/// use jiff::Timestamp;
/// use pelton_model::{ErrorKind, ModelError, Post, Secret, Sign};
///
/// /// Puts a tag on every request.
/// struct Tag;
///
/// impl Sign for Tag {
///     fn sign(&self, post: &mut Post, now: Timestamp) -> Result<(), ModelError> {
///         let length = post.body.length();
///         let tag = format!("{length}-{}", now.as_second()).parse().map_err(|error| {
///             ModelError::new(ErrorKind::Authentication, format!("no tag: {error}"))
///         })?;
///         post.headers.insert("x-tag", tag);
///         Ok(())
///     }
///
///     fn secrets(&self) -> Vec<Secret> {
///         vec![Secret::new("the key")]
///     }
/// }
/// # let body = vec![bytes::Bytes::from_static(b"hello")].into();
/// # let mut post = Post { url: String::new(), headers: Default::default(), body, fresh_connection: false };
/// # Tag.sign(&mut post, Timestamp::UNIX_EPOCH).unwrap();
/// # assert_eq!(post.headers["x-tag"], "5-0");
/// ```
pub trait Sign: Send + Sync {
    /// Adds to a request, which is complete otherwise, what proves who sends it. The body is there in
    /// [pieces](crate::Body::pieces), to be hashed without a copy.
    fn sign(&self, post: &mut Post, now: Timestamp) -> Result<(), ModelError>;

    /// What it signs with that nobody may read later: the key, and a token that goes with it. Whoever writes things down leaves
    /// these out.
    fn secrets(&self) -> Vec<Secret>;
}

/// A [`Sign`] and the name its credentials go by. Two of the same name are the same credentials.
///
/// ```
/// # use jiff::Timestamp;
/// # use pelton_model::{ErrorKind, ModelError, Post, Secret, Sign};
/// # /// Puts a tag on every request.
/// # struct Tag;
/// #
/// # impl Sign for Tag {
/// #     fn sign(&self, post: &mut Post, now: Timestamp) -> Result<(), ModelError> {
/// #         let length = post.body.length();
/// #         let tag = format!("{length}-{}", now.as_second()).parse().map_err(|error| {
/// #             ModelError::new(ErrorKind::Authentication, format!("no tag: {error}"))
/// #         })?;
/// #         post.headers.insert("x-tag", tag);
/// #         Ok(())
/// #     }
/// #
/// #     fn secrets(&self) -> Vec<Secret> {
/// #         vec![Secret::new("the key")]
/// #     }
/// # }
/// use pelton_model::{Auth, Endpoint, Signing};
///
/// let signing = Signing::new(Secret::new("key-1"), Tag); // `Tag` is a signer of yours
/// let endpoint = Endpoint::new("https://models.example", Auth::Signed(signing.clone()));
/// assert_eq!(signing.secrets(), [Secret::new("the key")]);
/// # drop(endpoint);
/// ```
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
