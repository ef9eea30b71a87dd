//! The conversation on disk: one JSON object per line, appended and never changed.

mod place; // which file
mod disk; // what it asks of a disk
mod lease; // who writes to it
mod blobs; // long texts beside it
mod write; // appending, and when it is safe
mod requests; // what is known of each request
mod queued; // prompts that were not consumed
mod block; // what of a message can still be sent
mod proof; // what shows that a line is as it was written
mod read; // reading it back, whatever happened to it
mod opening; // what stands for its first words if they are lost
mod withdrawn; // what of it does not count
mod window; // as much of it as is needed to go on
mod part; // going on from elsewhere than its end
mod list; // which sessions there are, by the ends of their files
mod remove; // taking one away
mod examine; // what is wrong with a file
mod mend; // the same made anew, without that

/// Marks the lines that name what is not sent any more.
const MEDIA_LEFT_OUT_LINE: &str = "media_left_out";

/// Marks the lines that say what was done to what the model is sent.
const CONTEXT_EDIT_LINE: &str = "context_edit";

/// Marks the lines that say what became of a request.
const REQUEST_LINE: &str = "request";

/// Marks the lines from which on a summary stands for what was said before.
const COMPACT_BOUNDARY: &str = "compact_boundary";

/// Marks the lines from which on parts of what was said before are not sent.
const SNIP_BOUNDARY: &str = "snip_boundary";

/// Marks the lines from which on a conversation goes on from an earlier place.
const GONE_BACK_LINE: &str = "gone_back";

/// Marks the lines that name the agent that the session works as.
const AGENT_LINE: &str = "agent-setting";

/// Marks the lines that say what the session has cost.
const COST_LINE: &str = "session-cost";

/// Marks the lines that say what somebody in front of the session let run unasked.
const MODE_LINE: &str = "session-mode";

/// Marks the lines that take entries back.
const TOMBSTONE_LINE: &str = "tombstone";

/// In the first line that a process writes: names the directory it works in.
const DIRECTORY_FIELD: &str = "directoryId";

/// In lines of the conversation: shows that they are as they were written.
const PROOF_FIELD: &str = "proof";

/// Marks the lines about questions to people, and what they say.
const QUESTION_LINE: &str = "permission-question";
const ASKED: &str = "asked";
const DECIDED: &str = "decided";
const DEFERRED: &str = "deferred";

pub use blobs::{in_parts, whole_lines};
pub use disk::{Disk, DiskFile, RealDisk};
pub use examine::{Examined, Fault, FaultKind, examine};
pub use lease::{Holder, holder};
pub use list::{Listed, SessionFacts, SessionFile, list_sessions, listed, session_files, with_facts};
pub use mend::{Mended, Mending, mend};
pub use part::{copy_as, move_to};
pub use place::{
    find_session, newest_attended_session, newest_session, project_key, session_file, sessions_of,
};
pub use queued::QueuedPrompt;
pub use read::{Loaded, ReadError, conversation, read, read_from};
pub use remove::remove_session;
pub use window::{read_window, read_window_until};
pub use withdrawn::withdrawn;
pub use write::{Durability, TranscriptError};

pub(crate) use list::is_program;
pub(crate) use place::directory_id;
pub(crate) use read::read_agent;
pub(crate) use requests::{FileFacts, PrefixFacts, RequestFacts, kept_prefix};
pub(crate) use write::{CompactLines, EditLine, End, Facts, QuestionState, TakenPrompt, Transcript};
