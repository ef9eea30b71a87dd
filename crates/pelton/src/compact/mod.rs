//! Keeping what the model sees small enough. The loop asks a [`Shaper`] before every call and again when the API
//! refused a prompt; what it may do to a view is legal by construction.

pub(crate) mod result_budget; // which results of a message are too much: pure
mod local; // the last step, which needs no model

use futures::future::BoxFuture;

use crate::history::View;

pub use local::LocalShaper;

/// Shapes a view. Everything it does, it does to the view: the log keeps what was said. An interrupt drops its
/// futures wherever they wait, and what the view is then is what the next question is made of.
///
/// ```
/// use futures::future::BoxFuture;
/// use pelton::compact::{LocalShaper, Room, Shaper};
/// use pelton::history::View;
///
/// /// Keeps the context twice as small as it has to be.
/// struct Thrifty(LocalShaper);
///
/// impl Shaper for Thrifty {
///     fn fit<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, ()> {
///         if !room.fits(view.tokens() * 2) {
///             view.leave_out_oldest(room.window_tokens / 4);
///         }
///         Box::pin(async {})
///     }
///
///     fn drain(&self, view: &mut View) -> bool {
///         self.0.drain(view)
///     }
///
///     fn compact<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, bool> {
///         self.0.compact(view, room)
///     }
///
///     fn could_free(&self, view: &View) -> u64 {
///         self.0.could_free(view)
///     }
/// }
/// # let _ = Thrifty(LocalShaper);
/// ```
pub trait Shaper: Send + Sync {
    /// Before a call: makes the view fit, cheaply, if it does not.
    fn fit<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, ()>;

    /// Commits folds that were staged earlier. Tells whether the view became smaller.
    fn drain(&self, view: &mut View) -> bool;

    /// The API refused the prompt: makes it smaller whatever it takes. Tells whether it became smaller.
    fn compact<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, bool>;

    /// About how many tokens [`compact`](Self::compact) could free.
    fn could_free(&self, view: &View) -> u64;
}

/// How much there is room for.
///
/// ```
/// use pelton::compact::Room;
///
/// let room = Room { window_tokens: 200_000, answer_tokens: 3_000 };
/// assert!(room.fits(150_000) && !room.fits(199_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The context window.
    pub window_tokens: u64,
    /// What must be left of it for an answer.
    pub answer_tokens: u64,
}

impl Room {
    /// Whether a view of this size leaves enough for an answer.
    pub fn fits(&self, tokens: u64) -> bool {
        tokens.saturating_add(self.answer_tokens) <= self.window_tokens
    }
}
