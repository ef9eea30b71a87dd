//! Remembers what was handed out, and asks for more one call at a time.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, Shared, WeakShared, select};

use super::{Credentials, Issued, Issuer};
use crate::client::Auth;
use crate::error::{ErrorKind, ModelError};
use crate::world::World;

/// How long a call waits for new credentials.
const ISSUE_WAIT_MAX: Duration = Duration::from_secs(120);
/// How long credentials are used on that could not be renewed, before the issuer is asked again.
pub(super) const KEPT_ON: Duration = Duration::from_secs(30);

/// [`Credentials`] from an [`Issuer`]. One for all clients that use the same credentials: share it.
///
/// ```
/// # use futures::FutureExt;
/// # use futures::future::BoxFuture;
/// # use pelton_model::credentials::{Issued, Issuer};
/// # use pelton_model::{Auth, ModelError, Secret};
/// # struct Desk;
/// #
/// # impl Issuer for Desk {
/// #     fn issue(&self, _: Option<Auth>) -> BoxFuture<'static, Result<Issued, ModelError>> {
/// #         let auth = Auth::Bearer(Secret::new("fresh"));
/// #         async { Ok(Issued { auth, good_until: None }) }.boxed()
/// #     }
/// # }
/// use std::sync::Arc;
///
/// use pelton_model::credentials::Keeper;
/// use pelton_model::{Credentials, RealWorld};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let keeper = Keeper::new(Desk, Arc::new(RealWorld::new())); // `Desk` is an issuer of yours
/// assert_eq!(keeper.current().await?, Auth::Bearer(Secret::new("fresh")));
/// # Ok::<(), ModelError>(())
/// # }).unwrap();
/// ```
pub struct Keeper {
    desk: Arc<Desk>,
}

impl Keeper {
    /// Nothing is asked of the issuer before somebody needs it.
    pub fn new(issuer: impl Issuer, world: Arc<dyn World>) -> Self {
        Self { desk: Arc::new(Desk { issuer: Box::new(issuer), world, drawer: Mutex::default() }) }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Credentials for Keeper {
    fn current(&self) -> BoxFuture<'static, Result<Auth, ModelError>> {
        let desk = Arc::clone(&self.desk);
        async move {
            let errand = match desk.good() {
                Ok(auth) => return Ok(auth),
                Err(mut drawer) => desk.join(&mut drawer, None).0,
            };
            desk.wait(errand).await
        }
        .boxed()
    }

    fn refresh(&self, refused: Auth) -> BoxFuture<'static, Result<Option<Auth>, ModelError>> {
        let desk = Arc::clone(&self.desk);
        async move {
            loop {
                let (errand, ours) = {
                    let mut drawer = desk.lock();
                    match &drawer.held {
                        // Somebody was quicker.
                        Some(held) if held.auth != refused => return Ok(Some(held.auth.clone())),
                        _ => desk.join(&mut drawer, Some(refused.clone())),
                    }
                };
                match desk.wait(errand).await? {
                    // An errand that began before the refusal may come back with what was refused.
                    auth if auth == refused && !ours => {}
                    auth => return Ok(Some(auth).filter(|auth| *auth != refused)),
                }
            }
        }
        .boxed()
    }
}

struct Desk {
    issuer: Box<dyn Issuer>,
    world: Arc<dyn World>,
    drawer: Mutex<Drawer>,
}

#[derive(Default)]
struct Drawer {
    held: Option<Issued>,
    /// Somebody is on the way to the issuer.
    errand: Option<Way>,
}

type Going = BoxFuture<'static, Result<Auth, ModelError>>;
type Errand = Shared<Going>;

enum Way {
    /// Goes on whoever waits.
    Kept(Errand),
    /// Ends when nobody waits any more.
    Left(WeakShared<Going>),
}

impl Way {
    fn errand(&self) -> Option<Errand> {
        match self {
            Self::Kept(errand) => Some(errand.clone()),
            Self::Left(errand) => errand.upgrade(),
        }
    }
}

impl Desk {
    /// What is held and still good; else the open drawer.
    fn good(&self) -> Result<Auth, MutexGuard<'_, Drawer>> {
        let drawer = self.lock();
        match &drawer.held {
            Some(held) if held.good_until.is_none_or(|until| self.world.now() < until) => {
                Ok(held.auth.clone())
            }
            _ => Err(drawer),
        }
    }

    /// The errand under way, or a new one of our own.
    fn join(self: &Arc<Self>, drawer: &mut Drawer, refused: Option<Auth>) -> (Errand, bool) {
        if let Some(errand) = drawer.errand.as_ref().and_then(Way::errand) {
            return (errand, false);
        }
        let desk = Arc::clone(self);
        let going = async move {
            let issued = desk.issuer.issue(refused.clone()).await;
            desk.put_away(issued, refused.as_ref())
        };
        if self.issuer.may_be_left() {
            let desk = Arc::clone(self);
            let errand =
                AssertUnwindSafe(going).catch_unwind().map(move |came| came.unwrap_or_else(|_| desk.fault()));
            let errand = errand.boxed().shared();
            drawer.errand = errand.downgrade().map(Way::Left);
            return (errand, true);
        }
        // A task of its own: the call that began it may be cancelled, but a token that was exchanged and not stored
        // would be lost to everybody.
        let task = tokio::spawn(going);
        let desk = Arc::clone(self);
        let errand = task.map(move |came| came.unwrap_or_else(|_| desk.fault())).boxed().shared();
        drawer.errand = Some(Way::Kept(errand.clone()));
        (errand, true)
    }

    /// The issuer broke down: whoever comes next asks it again.
    fn fault(&self) -> Result<Auth, ModelError> {
        self.lock().errand = None;
        Err(ModelError::new(ErrorKind::Other, "the credentials could not be renewed: a fault inside"))
    }

    fn put_away(
        &self,
        issued: Result<Issued, ModelError>,
        refused: Option<&Auth>,
    ) -> Result<Auth, ModelError> {
        let mut drawer = self.lock();
        drawer.errand = None;
        match (issued, &mut drawer.held) {
            (Ok(issued), held) => Ok(held.insert(issued).auth.clone()),
            // Nobody has refused it yet: it may be good for a while.
            (Err(_), Some(held)) if refused != Some(&held.auth) => {
                held.good_until = self.world.now().checked_add(KEPT_ON).ok();
                Ok(held.auth.clone())
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn wait(&self, errand: Errand) -> Result<Auth, ModelError> {
        match select(errand, self.world.sleep(ISSUE_WAIT_MAX)).await {
            Either::Left((auth, _)) => auth,
            Either::Right(((), _)) => {
                let waited = ISSUE_WAIT_MAX.as_secs();
                let message = format!("no credentials came within {waited} seconds");
                Err(ModelError::new(ErrorKind::Timeout, message))
            }
        }
    }

    /// Nothing panics while the lock is held.
    fn lock(&self) -> MutexGuard<'_, Drawer> {
        self.drawer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
