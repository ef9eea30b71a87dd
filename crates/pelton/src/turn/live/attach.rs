//! I11: what the model is told beside the results, before it is asked again.

use super::Live;
use crate::context::reminder;
use crate::tools::offer::Callable;
use crate::transcript::TranscriptError;

impl Live<'_> {
    /// Appends what has changed around the conversation since the model was last asked. Nothing is spliced in: what
    /// was sent stays as it is.
    pub(super) async fn attach_changes(&mut self) -> Result<(), TranscriptError> {
        if let Some(news) = self.offer.news(Callable::FromTheNextPromptOn) {
            self.say_as_user(&reminder(&[news])).await?;
        }
        Ok(())
    }
}
