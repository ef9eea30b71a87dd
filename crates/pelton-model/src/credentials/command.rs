//! A key that somebody's program prints.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{Issued, Issuer};
use crate::client::{Auth, Secret};
use crate::error::{ErrorKind, ModelError};
use crate::world::World;

/// How long a key is used before the program is run again, unless somebody says otherwise.
pub const HELPER_TTL: Duration = Duration::from_secs(5 * 60);

/// Runs the program. Processes are started elsewhere: this is the door to them.
///
/// ```
/// use futures::FutureExt;
/// use pelton_model::credentials::RunHelper;
///
/// // A function will do; a real one starts the program and bounds its time.
/// let helper = || async { Ok("sk-printed\n".to_owned()) }.boxed();
/// assert_eq!(helper.run().now_or_never(), Some(Ok("sk-printed\n".to_owned())));
/// ```
pub trait RunHelper: Send + Sync + 'static {
    /// What the program printed; or, in words for people, why there is nothing. Bounds its time.
    fn run(&self) -> BoxFuture<'static, Result<String, String>>;
}

impl<F> RunHelper for F
where
    F: Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync + 'static,
{
    fn run(&self) -> BoxFuture<'static, Result<String, String>> {
        self()
    }
}

/// Hands out what a program prints, and runs it again after a while.
///
/// ```
/// use std::sync::Arc;
///
/// use futures::FutureExt;
/// use pelton_model::credentials::{HELPER_TTL, HelperCommand, Issuer};
/// use pelton_model::{Auth, RealWorld, Secret};
///
/// let program = || async { Ok("sk-printed\n".to_owned()) }.boxed();
/// let helper = HelperCommand::new(program, Auth::ApiKey, HELPER_TTL, Arc::new(RealWorld::new()));
/// let issued = helper.issue(None).now_or_never().expect("it waits for nothing")?;
/// assert_eq!(issued.auth, Auth::ApiKey(Secret::new("sk-printed")));
/// # Ok::<(), pelton_model::ModelError>(())
/// ```
pub struct HelperCommand {
    program: Box<dyn RunHelper>,
    kind: fn(Secret) -> Auth,
    ttl: Duration,
    world: Arc<dyn World>,
}

impl HelperCommand {
    /// What `program` prints is sent as `kind` says: [`Auth::ApiKey`] or [`Auth::Bearer`].
    pub fn new(
        program: impl RunHelper,
        kind: fn(Secret) -> Auth,
        ttl: Duration,
        world: Arc<dyn World>,
    ) -> Self {
        Self { program: Box::new(program), kind, ttl, world }
    }
}

impl fmt::Debug for HelperCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelperCommand").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

impl Issuer for HelperCommand {
    /// A program can be run again.
    fn may_be_left(&self) -> bool {
        true
    }

    fn issue(&self, _: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
        let (printed, kind, ttl) = (self.program.run(), self.kind, self.ttl);
        let world = Arc::clone(&self.world);
        async move {
            let failed = |why: &str| {
                ModelError::new(ErrorKind::Authentication, format!("the key helper gave no key: {why}"))
            };
            let printed = printed.await.map_err(|why| failed(&why))?;
            let key = printed.trim();
            if key.is_empty() {
                return Err(failed("it printed nothing"));
            }
            // So long a life that no clock can tell its end is one without an end.
            let good_until = world.now().checked_add(ttl).ok();
            Ok(Issued { auth: kind(Secret::new(key)), good_until })
        }
        .boxed()
    }
}
