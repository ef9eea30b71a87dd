//! Texts too long to be told: they go to a file, and their beginning with the file's name takes their place.

use std::path::Path;

use super::limits::{PREVIEW_CHARS, TEXT_CHARS_MAX};
use super::outcome::Said;
use crate::secrets::Secrets;
use crate::spill;

/// Replaces every text of a hook that is too long. `id` is the run's, and becomes part of the files' names.
pub(super) async fn keep(said: &mut Said, dir: &Path, secrets: &Secrets, id: &str) {
    let reason = said.permission.as_mut().and_then(|answer| answer.reason.as_mut());
    let texts = [said.stop.as_mut(), said.block.as_mut(), reason, said.context.as_mut()];
    let texts = texts.into_iter().flatten().chain(&mut said.messages);
    let long = texts.filter(|text| text.chars().nth(TEXT_CHARS_MAX).is_some());
    for (n, text) in long.enumerate() {
        let where_it_is = match spill::keep(dir, secrets, &format!("hook-{id}-{n}"), text).await {
            Ok(file) => format!("All of it is in {}.", file.display()),
            Err(error) => format!("The rest could not be kept: {error}."),
        };
        let preview: String = text.chars().take(PREVIEW_CHARS).collect();
        *text = format!("{preview}\n[… {} characters in all. {where_it_is}]", text.chars().count());
    }
}
