//! Who pays, where that changes while we run: tokens run out and are renewed, helpers hand out keys for a while.
//!
//! A [`Client`](crate::Client) asks its [`Credentials`] before every request, and again when a server refuses what
//! they said. [`Keeper`] is the one to use: it remembers what an [`Issuer`] handed out, and however many calls are
//! refused at once, asks it once. Issuers are slow and need not think of any of that:
//!
//! - [`OauthFile`]: a token in a file that many processes share, renewed over the network.
//! - [`HelperCommand`]: a key that somebody's program prints.

mod command;
mod keeper;
mod oauth;
mod store; // the file: read, locked, replaced

use futures::future::BoxFuture;
use jiff::Timestamp;

pub use self::command::{HELPER_TTL, HelperCommand, RunHelper};
pub use self::keeper::Keeper;
pub use self::oauth::{OauthFile, OauthOptions, TokenForm};
use crate::client::Auth;
use crate::error::ModelError;

/// Knows who pays.
///
/// ```
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
/// use pelton_model::{Auth, Credentials, ModelError, Secret};
///
/// /// One key, and no other.
/// struct Fixed;
///
/// impl Credentials for Fixed {
///     fn current(&self) -> BoxFuture<'static, Result<Auth, ModelError>> {
///         async { Ok(Auth::ApiKey(Secret::new("sk-secret"))) }.boxed()
///     }
///
///     fn refresh(&self, _: Auth) -> BoxFuture<'static, Result<Option<Auth>, ModelError>> {
///         async { Ok(None) }.boxed()
///     }
/// }
/// # assert!(matches!(Fixed.current().now_or_never(), Some(Ok(Auth::ApiKey(_)))));
/// ```
pub trait Credentials: Send + Sync {
    /// What the next request is sent with. Asked before every request: it has to be quick when nothing changed.
    fn current(&self) -> BoxFuture<'static, Result<Auth, ModelError>>;

    /// A server did not accept `refused`: what to send instead, or `None` if there is nothing else. Many calls may
    /// be refused at once, and some of them late: what was renewed since is not renewed again.
    fn refresh(&self, refused: Auth) -> BoxFuture<'static, Result<Option<Auth>, ModelError>>;
}

/// Hands out credentials. Asked by one at a time; what it began, it is left to finish.
///
/// ```
/// use futures::FutureExt;
/// use futures::future::BoxFuture;
/// use pelton_model::credentials::{Issued, Issuer};
/// use pelton_model::{Auth, ModelError, Secret};
///
/// /// Whoever asks gets a fresh token.
/// struct Desk;
///
/// impl Issuer for Desk {
///     fn issue(&self, _: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
///         let auth = Auth::Bearer(Secret::new("fresh"));
///         async { Ok(Issued { auth, good_until: None }) }.boxed()
///     }
/// }
///
/// # assert!(matches!(Desk.issue(None).now_or_never(), Some(Ok(_))));
/// ```
pub trait Issuer: Send + Sync + 'static {
    /// Credentials, and if there is any choice, others than `refused`.
    fn issue(&self, refused: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>>;

    /// Whether nothing is lost if nobody waits for them any more: then the issuer is left, and asked again by whoever comes
    /// next. What exchanges one token for another must not be left.
    fn may_be_left(&self) -> bool {
        false
    }
}

/// Credentials that were handed out.
///
/// ```
/// use jiff::{SignedDuration, Timestamp};
/// use pelton_model::credentials::Issued;
/// use pelton_model::{Auth, Secret};
///
/// let now = Timestamp::UNIX_EPOCH;
/// let issued = Issued { auth: Auth::Bearer(Secret::new("fresh")), good_until: Some(now + SignedDuration::from_hours(1)) };
/// assert!(issued.good_until.is_some_and(|until| until > now)); // not asked for again before that
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The credentials.
    pub auth: Auth,
    /// Ask again from then on; `None`: only when they are refused.
    pub good_until: Option<Timestamp>,
}

#[cfg(test)]
mod tests;
