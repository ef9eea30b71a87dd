//! What a session keeps beside what is said, and a summary of it is not trusted with. All of it follows from the record:
//! entries are looked at once, in their order, while they come or when a session goes on. A summary carries what was kept
//! until then, so that nobody has to look at what stands before it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pelton_wire::content::Block;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::compact::auto::{AskedBlock, Places};
use crate::context::attachment::{AttachmentFacts, AttachmentKind};
use crate::history::{Entry, EntryId, Kind, Piece};
use crate::limits::{BACKGROUND_KEPT_MAX, FILES_KEPT_MAX, REQUEST_REATTACHED_CHARS_MAX, SKILLS_KEPT_MAX};
use crate::skills;
use crate::spill::Shown;
use crate::tools::agent;
use crate::tools::background;
use crate::tools::builtin::tasks::{self, TaskList};
use crate::tools::builtin::todo::{self, Todo};
use crate::tools::builtin::{FILE_TOOLS, plan, task};
use crate::tools::executor::Call;
use crate::tools::tool_search;

/// Tools whose calls may leave an agent in the background.
const STARTS_AGENTS: [&str; 4] = [agent::NAME, agent::ALIAS, agent::SEND_MESSAGE, skills::NAME];

/// What is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Kept {
    /// The first thing the user asked for.
    pub first_request: Option<Request>,
    /// The newest.
    pub request: Option<Request>,
    /// The newest plan the user approved.
    pub plan: Option<String>,
    /// What is to be done, by either kind of list.
    pub todos: Vec<Todo>,
    pub tasks: TaskList,
    /// Files that were read or written, the newest last.
    pub files: Vec<PathBuf>,
    /// Texts of skills that the model has read, by their files, the newest last.
    pub skills: Vec<(PathBuf, String)>,
    /// Files of skills that it knows of.
    pub listed: Vec<PathBuf>,
    /// Memory files that it was told.
    pub told: Vec<PathBuf>,
    /// It was told those of the start.
    pub instructed: bool,
    /// The tools of servers that are there, as far as it knows, if that was ever said in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Vec<String>>,
    /// Agents that were put into the background, and whose end it was not told.
    pub agents: Vec<String>,
    /// Calls that do something to this and have no result yet.
    #[serde(skip)]
    open: HashMap<Arc<str>, Call>,
    /// The ids of what the user asked for, as far as it was seen.
    #[serde(skip)]
    prompted: HashSet<EntryId>,
    /// Pictures and documents that the next request mentions, with what is said of them.
    #[serde(skip)]
    mentioned: Vec<Bytes>,
}

/// Something the user asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub id: EntryId,
    /// Its words, or their beginning and end, for a reader who has them from nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    /// Which blocks of the summary that it stands in are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Range<usize>>,
    /// Its content array as it was sent, with the pictures and documents it mentions.
    #[serde(skip)]
    json: Bytes,
}

impl Request {
    fn of(entry: &Entry, mentioned: &[Bytes]) -> Self {
        let json = match mentioned {
            [] => entry.json.clone(),
            _ => {
                let inside = |array: &Bytes| array.slice(1..array.len() - 1);
                array_of(&std::iter::once(&entry.json).chain(mentioned).map(inside).collect::<Vec<_>>())
            }
        };
        Self { id: entry.id, words: None, told: None, json }
    }

    /// Its blocks, as they were sent.
    pub fn blocks(&self) -> Vec<AskedBlock> {
        blocks_of(&self.json)
    }

    /// Its words.
    pub fn words(&self) -> String {
        self.blocks().iter().filter_map(AskedBlock::words).collect::<Vec<_>>().join("\n")
    }

    /// As the record of a summary keeps it: by where it stands there, or else by its words.
    fn recorded(mut self, told: Option<Range<usize>>) -> Self {
        let words = || Shown::of(&self.words(), REQUEST_REATTACHED_CHARS_MAX).with_note(None);
        self.words = told.is_none().then(words);
        Self { told, ..self }
    }

    /// What a record kept of it: what stands before the summary, where it is whole, what is told in that, or the words alone.
    fn recalled(mut self, summary: &Entry, before: [Option<&Self>; 2]) -> Option<Self> {
        let same = before.into_iter().flatten().find(|other| other.id == self.id);
        let told = self.told.take().and_then(|told| {
            let blocks = blocks_of(&summary.json);
            Some(array_of(&blocks.get(told)?.iter().map(|block| block.json.clone()).collect::<Vec<_>>()))
        });
        let words = || Some(super::content(&[Block::Text { text: self.words.as_deref()? }]));
        self.json = same.map(|same| same.json.clone()).or(told).or_else(words)?;
        self.words = None;
        Some(self)
    }
}

/// The blocks of a content array.
fn blocks_of(json: &Bytes) -> Vec<AskedBlock> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    let blocks: Vec<&RawValue> = serde_json::from_slice(json).unwrap_or_default();
    let block = |raw: &&RawValue| {
        let is_words = serde_json::from_str::<Typed<'_>>(raw.get()).is_ok_and(|block| block.r#type == "text");
        AskedBlock { is_words, json: json.slice_ref(raw.get().as_bytes()) }
    };
    blocks.iter().map(block).collect()
}

fn array_of(blocks: &[Bytes]) -> Bytes {
    Bytes::from([&b"["[..], &blocks.join(&b","[..]), &b"]"[..]].concat())
}

/// What the record of a summary says beside its words.
#[derive(Serialize, Deserialize)]
struct SummaryFacts<K> {
    r#type: AttachmentKind,
    /// Memory files that are told with it.
    #[serde(default)]
    files: Vec<PathBuf>,
    kept: K,
}

impl Kept {
    /// What a conversation has left.
    pub fn of(entries: &[Arc<Entry>]) -> Self {
        let mut kept = Self::default();
        entries.iter().for_each(|entry| kept.saw(entry));
        kept
    }

    /// Something was said.
    pub fn saw(&mut self, entry: &Entry) {
        if !self.agents.is_empty() && matches!(entry.kind, Kind::Prompt { .. }) {
            let words = entry.words();
            self.agents.retain(|agent| !background::tells_end_of(&words, agent));
        }
        match &entry.kind {
            Kind::Prompt { meta: false } => {
                let request = Request::of(entry, &std::mem::take(&mut self.mentioned));
                self.prompted.insert(entry.id);
                self.first_request.get_or_insert_with(|| request.clone());
                self.request = Some(request);
                // One that called a skill.
                if let Some(facts) = entry.detail.as_deref().and_then(AttachmentFacts::read) {
                    self.was_told(facts, entry);
                }
            }
            Kind::Prompt { meta: true } => {
                if let Some(facts) = entry.detail.as_deref().and_then(AttachmentFacts::read) {
                    self.was_told(facts, entry);
                }
            }
            Kind::Assistant { piece: Piece::Call { id, name }, .. } if matters(name) => {
                self.open.extend(call_of(entry).map(|call| (Arc::clone(id), call)));
            }
            Kind::ToolResult { call, is_error } => {
                if let Some(call) = self.open.remove(call).filter(|_| !is_error) {
                    self.did(&call, entry.detail.as_deref());
                }
            }
            Kind::Assistant { .. } => {}
        }
    }

    /// Whether the user asked for something under this id.
    pub fn was_prompted_as(&self, id: EntryId) -> bool {
        self.prompted.contains(&id)
    }

    /// What the record of a summary says: what was kept until then, and which memory files are told with it.
    pub fn facts(mut self, memory: Vec<PathBuf>, places: &Places) -> Option<Bytes> {
        let recorded = |request: Option<Request>, place: &Option<Range<usize>>| {
            request.map(|request| request.recorded(place.clone()))
        };
        self.first_request = recorded(self.first_request, &places.first_request);
        self.request = recorded(self.request, &places.request);
        // What was told because of files that were read is gone with what was said of them.
        (self.instructed, self.told) = (!memory.is_empty(), memory.clone());
        let facts = SummaryFacts { r#type: AttachmentKind::CompactSummary, files: memory, kept: self };
        // A path that is no text cannot be kept as one; then a reader has to go further back.
        serde_json::to_vec(&facts).ok().map(Bytes::from)
    }

    /// A file was read or written.
    pub fn touched(&mut self, path: &Path) {
        // By their bytes: paths are taken to pieces to be compared.
        self.files.retain(|known| known.as_os_str() != path.as_os_str());
        self.files.push(path.to_path_buf());
        let too_many = self.files.len().saturating_sub(FILES_KEPT_MAX);
        self.files.drain(..too_many);
    }

    fn was_told(&mut self, AttachmentFacts { r#type, files, tools }: AttachmentFacts, entry: &Entry) {
        match r#type {
            AttachmentKind::Instructions | AttachmentKind::NestedInstructions => {
                self.instructed |= r#type == AttachmentKind::Instructions;
                self.told.extend(files);
            }
            AttachmentKind::SkillListing => self.listed.extend(files),
            AttachmentKind::ServedTools => self.served = Some(tools),
            AttachmentKind::InvokedSkill => {
                self.skills.extend(files.into_iter().map(|file| (file, entry.words())));
                let too_many = self.skills.len().saturating_sub(SKILLS_KEPT_MAX);
                self.skills.drain(..too_many);
            }
            AttachmentKind::CompactSummary => {
                let facts = entry.detail.as_deref().map(serde_json::from_slice::<SummaryFacts<Self>>);
                if let Some(Ok(SummaryFacts { mut kept, .. })) = facts {
                    let before = [self.first_request.as_ref(), self.request.as_ref()];
                    let recalled = |request: Option<Request>| request?.recalled(entry, before);
                    kept.first_request = recalled(kept.first_request);
                    kept.request = recalled(kept.request);
                    let (open, prompted) =
                        (std::mem::take(&mut self.open), std::mem::take(&mut self.prompted));
                    *self = Self { open, prompted, ..kept };
                }
            }
            AttachmentKind::Mentioned if entry.media > 0 => self.mentioned.push(entry.json.clone()),
            AttachmentKind::ChangedFiles
            | AttachmentKind::FilesAgain
            | AttachmentKind::Mentioned
            | AttachmentKind::Todos => {}
        }
    }

    fn did(&mut self, call: &Call, detail: Option<&[u8]>) {
        let Ok(input) = &call.input else { return };
        let detail = || serde_json::from_slice::<Value>(detail.unwrap_or_default()).unwrap_or_default();
        match &*call.tool {
            // What was done may not be what was asked for: hooks and people change it on its way.
            todo::NAME => {
                if let Ok(todos) = Deserialize::deserialize(&detail()["newTodos"]) {
                    self.todos = todos;
                }
            }
            plan::EXIT => {
                self.plan = detail()["plan"].as_str().map(str::to_owned).or_else(|| self.plan.take());
            }
            name if tasks::NAMES.contains(&name) => tasks::replay(&mut self.tasks, name, input),
            name if STARTS_AGENTS.contains(&name) => {
                let detail = detail();
                if detail["status"] == "async_launched"
                    && let Some(agent) = detail["agentId"].as_str()
                {
                    self.agents.retain(|known| known != agent);
                    self.agents.push(agent.to_owned());
                    let too_many = self.agents.len().saturating_sub(BACKGROUND_KEPT_MAX);
                    self.agents.drain(..too_many);
                }
            }
            task::OUTPUT_NAME | task::STOP_NAME => {
                let detail = detail();
                let ended = detail["task"]["status"] != "running";
                let told = detail["task"]["task_id"].as_str().or(detail["task_id"].as_str());
                self.agents.retain(|agent| !(ended && told == Some(agent)));
            }
            _ => {
                let path = ["file_path", "notebook_path"].iter().find_map(|name| input.get(name)?.as_str());
                if let Some(path) = path {
                    self.touched(Path::new(path));
                }
            }
        }
    }
}

/// What of all that is kept an entry tells the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tells {
    /// What is to be done.
    List,
    /// What is in a file.
    File(PathBuf),
}

impl Tells {
    /// What an entry tells.
    pub fn of(entry: &Entry) -> Vec<Self> {
        if let Some(call) = call_of(entry) {
            let input = call.input.as_deref().ok();
            let path = || ["file_path", "notebook_path"].iter().find_map(|name| input?.get(name)?.as_str());
            return match &*call.tool {
                name if name == todo::NAME || tasks::NAMES.contains(&name) => vec![Self::List],
                name if FILE_TOOLS.contains(&name) => {
                    path().map(|path| Self::File(path.into())).into_iter().collect()
                }
                _ => Vec::new(),
            };
        }
        match entry.detail.as_deref().and_then(AttachmentFacts::read) {
            Some(AttachmentFacts { r#type: AttachmentKind::Todos, .. }) => vec![Self::List],
            Some(AttachmentFacts { r#type: AttachmentKind::FilesAgain, files, .. }) => {
                files.into_iter().map(Self::File).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A call that was made.
pub(crate) fn call_of(entry: &Entry) -> Option<Call> {
    #[derive(Deserialize)]
    struct Made {
        input: Value,
    }
    let Kind::Assistant { piece: Piece::Call { id, name }, .. } = &entry.kind else { return None };
    let [Made { input }] = serde_json::from_slice(&entry.json).ok()?;
    Some(Call::meant(Arc::clone(id), Arc::clone(name), Ok(Arc::new(input))))
}

/// Whether calls of a tool do something to what is kept.
fn matters(tool: &str) -> bool {
    [todo::NAME, plan::EXIT, tool_search::CALL, task::OUTPUT_NAME, task::STOP_NAME].contains(&tool)
        || STARTS_AGENTS.contains(&tool)
        || tasks::NAMES.contains(&tool)
        || FILE_TOOLS.contains(&tool)
}
