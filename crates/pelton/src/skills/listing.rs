//! What the model is told of the skills there are: names in any case, and what they are for as far as there is room.

use std::sync::Arc;

use super::skill::Skill;
use crate::context::attachment::{Attachment, AttachmentKind};

/// What is told of skills that the model does not know of.
pub fn news(new: &[Arc<Skill>], is_first: bool, chars_max: usize, each_max: usize) -> Option<Attachment> {
    if new.is_empty() {
        return None;
    }
    let lead = match is_first {
        true => "These skills are there. When a task fits one, call it with the Skill tool before you begin:",
        false => "These skills have come, and can be called with the Skill tool:",
    };
    let mut words = vec![lead.to_owned()];
    // Names come first: room that is left goes to what they are for, in the order in which skills count.
    let mut room = chars_max.saturating_sub(new.iter().map(|skill| skill.name.chars().count() + 3).sum());
    for skill in new {
        let about = if skill.name_only { String::new() } else { about(skill, each_max) };
        let length = about.chars().count() + 2;
        if about.is_empty() || length > room {
            words.push(format!("- {}", skill.name));
        } else {
            room -= length;
            words.push(format!("- {}: {about}", skill.name));
        }
    }
    let files = new.iter().map(|skill| skill.file.clone()).collect();
    Some(Attachment::reminder(AttachmentKind::SkillListing, files, &words))
}

fn about(skill: &Skill, chars_max: usize) -> String {
    let parts = [Some(skill.description.as_str()), skill.when_to_use.as_deref()];
    let about = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" - ");
    let line = about.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(chars_max).collect()
}
