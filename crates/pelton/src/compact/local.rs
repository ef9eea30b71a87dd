//! The last steps: old results are folded into a note, then the oldest rounds are left out. They need no model, so a
//! conversation that cannot be sent can always be made sendable.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{Room, Shaper};
use crate::history::View;

/// Folds old results, then leaves out the oldest rounds until the rest takes half of the window.
///
/// See [`Shaper`].
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalShaper;

impl LocalShaper {
    /// The share of the window that may stay in use, in percent: enough room that the next turn does not bring
    /// the same trouble again.
    const KEEP_PERCENT: u64 = 50;
    /// The results of so many rounds are what the model is working on.
    const ROUNDS_UNFOLDED: usize = 3;
}

impl Shaper for LocalShaper {
    fn fit<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, ()> {
        if !room.fits(view.tokens()) {
            view.leave_out_oldest(room.window_tokens * Self::KEEP_PERCENT / 100);
        }
        async {}.boxed()
    }

    fn drain(&self, view: &mut View) -> bool {
        // A fold without a summary needs no preparation: every old result is always staged.
        view.fold_old_results(Self::ROUNDS_UNFOLDED) > 0
    }

    fn compact<'a>(&'a self, view: &'a mut View, room: Room) -> BoxFuture<'a, bool> {
        // The API counted more than we did: what it refused must become smaller by its own measure.
        let keep = (room.window_tokens * Self::KEEP_PERCENT / 100).min(view.tokens() / 2);
        let freed = view.leave_out_oldest(keep);
        async move { freed > 0 }.boxed()
    }

    fn could_free(&self, view: &View) -> u64 {
        view.tokens_left_out_at_most()
    }
}
