//! From a request to its answer: refusals first, then the script, then what the API does by itself.

use super::seen::{Illegal, Seen, Sent, Unexpected};
use super::state::{Choice, Shared, State};
use crate::cache::Pending;
use crate::dice::{self, Dice};
use crate::http::{BadRequest, Framing, Refused, Request};
use crate::messages::compose::{Scene, compose};
use crate::messages::{self, Route};
use crate::play::{Cue, Performance, Piece, stage_body, stage_stream};
use crate::script::fill::{Values, fill_part, fill_text, fill_value};
use crate::script::part::Kind;
use crate::script::when::{Captured, Facts};
use crate::script::{Answer, NonStreaming, Reply, Staging, Status, Step};
use crate::strict::{self, Context, Endpoint, Refusal, Rule};
use crate::{catalogue, tokens};
use serde_json::{Value, json};
use std::sync::Arc;

/// An answer, ready to be written.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) number: usize,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) framing: Framing,
    /// Whether the answer comes event by event.
    pub(crate) is_stream: bool,
    pub(crate) performance: Performance,
    /// What the prompt cache holds once the answer has begun.
    pub(crate) cached: Option<Pending>,
}

/// Takes a request in and plans its answer.
pub(crate) fn plan(shared: &Shared, request: &Request) -> Planned {
    shared.change(|state| Planner::new(shared, state, request).plan())
}

/// Plans the answer to a request whose body could not be taken.
pub(crate) fn plan_refused(shared: &Shared, refused: &Refused) -> Planned {
    let Refused { request, bad } = refused;
    let refusal = Refusal {
        rule: if bad.status == 413 { Rule::BodySize } else { Rule::Shape },
        status: bad.status,
        kind: messages::kind_of_status(bad.status),
        message: bad.message.clone(),
        code: bad.code,
    };
    shared.change(|state| Planner::new(shared, state, request).refuse(refusal))
}

/// The answer to bytes that are no request; they are not counted as one.
pub(crate) fn plan_bad(shared: &Shared, bad: &BadRequest) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let id = Dice::new(shared.script.seed, bad.message.as_bytes()).id("req_");
    let body =
        messages::error_body(messages::kind_of_status(bad.status), &bad.message, bad.code, &id).to_string();
    let headers = vec![header("request-id", id), header("content-type", "application/json")];
    (bad.status, headers, body.into_bytes())
}

struct Planner<'a> {
    shared: &'a Shared,
    state: &'a mut State,
    request: &'a Request,
    route: Route,
    number: usize,
    dice: Dice,
    request_id: String,
    body: Arc<Value>,
    step: Option<usize>,
    refusal: Option<Refusal>,
    unexpected: bool,
    cached: Option<Pending>,
}

/// An answer before it is staged.
struct Draft {
    status: u16,
    headers: Vec<(String, String)>,
    content: Content,
    staging: Staging,
    usage: Option<Value>,
}

enum Content {
    Stream(Vec<Cue>),
    Json { waits: Vec<Piece>, body: Value },
    Text(String),
}

impl Draft {
    fn json(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            content: Content::Json { waits: Vec::new(), body },
            staging: Staging::default(),
            usage: None,
        }
    }
}

impl<'a> Planner<'a> {
    fn new(shared: &'a Shared, state: &'a mut State, request: &'a Request) -> Self {
        state.count += 1;
        let number = state.count;
        // Ids depend on the request too: two servers that share a conversation must not give the same ids.
        let purpose = dice::hash(number as u64, &request.body).to_be_bytes();
        let mut dice = Dice::new(shared.script.seed, &purpose);
        let request_id = dice.id("req_");
        let route = messages::route(&request.method, &request.path);
        let body = Arc::new(Value::Null);
        Self {
            shared,
            state,
            request,
            route,
            number,
            dice,
            request_id,
            body,
            step: None,
            refusal: None,
            unexpected: false,
            cached: None,
        }
    }

    fn plan(mut self) -> Planned {
        match self.check() {
            Ok(()) => {
                let draft = self.answer();
                self.stage(draft)
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn refuse(mut self, refusal: Refusal) -> Planned {
        self.state.illegal.push(Illegal { request: self.number, refusal: refusal.clone() });
        let draft = self.error(refusal.status, refusal.kind, &refusal.message, refusal.code);
        self.refusal = Some(refusal);
        self.stage(draft)
    }

    /// Everything the API looks at before it asks the model. A refused request uses up no step.
    fn check(&mut self) -> Result<(), Refusal> {
        let strictness = &self.shared.script.strictness;
        // The body is kept even when the headers are refused, so that a test can look at it.
        let parsed = match self.route {
            Route::Reply | Route::CountTokens => strict::parse(&self.request.body, strictness),
            _ => Ok(serde_json::from_slice(&self.request.body).unwrap_or(Value::Null)),
        };
        if let Ok(body) = &parsed {
            self.body = Arc::new(body.clone());
        }
        // What is no part of the API asks for no credentials: the answer is the script's, or 404.
        if matches!(self.route, Route::Root | Route::Unknown) {
            return Ok(());
        }
        messages::check_headers(self.request, strictness)?;
        parsed?;
        let endpoint = match self.route {
            Route::Reply => Endpoint::Messages,
            Route::CountTokens => Endpoint::CountTokens,
            _ => return Ok(()),
        };
        self.check_served_model()?;
        let context = Context {
            endpoint,
            body_bytes: self.request.body.len(),
            version: self.request.header("anthropic-version").unwrap_or_default(),
            betas: &messages::betas(self.request),
        };
        strict::check(&self.body, &context, &self.state.issued, strictness)
    }

    /// A script may serve one model alone.
    fn check_served_model(&self) -> Result<(), Refusal> {
        let asked = self.body["model"].as_str().unwrap_or_default();
        if self.serves(asked) {
            return Ok(());
        }
        Err(Refusal {
            rule: Rule::KnownModel,
            status: 404,
            kind: "not_found_error",
            message: format!("model: {asked}"),
            code: None,
        })
    }

    fn serves(&self, model: &str) -> bool {
        self.shared.script.model.as_deref().is_none_or(|served| served == model)
    }

    fn answer(&mut self) -> Draft {
        let facts = messages::facts(self.request, &self.body);
        match self.state.choose(&facts, &self.shared.script, &self.shared.matchers) {
            Choice::Step { index, captured } => {
                self.step = Some(index + 1);
                let values = self.values(&facts, captured);
                // The script is behind a shared reference of its own, not behind the state.
                let shared = self.shared;
                self.play(&shared.script.steps[index], &facts, &values)
            }
            Choice::None { misses } => self.without_step(&misses, &facts),
        }
    }

    /// What is answered when no step is: the API's own doings, or the complaint that the script is at its end.
    fn without_step(&mut self, misses: &[String], facts: &Facts) -> Draft {
        match &self.route {
            Route::Reply if messages::only_warms_cache(&self.body) => {
                self.play_reply(&Reply::default(), facts, &Values::new())
            }
            Route::Reply => {
                self.unexpected = true;
                let model = self.body["model"].as_str().unwrap_or("none");
                let mut message =
                    format!("scripted model: no step left for request {} (model {model})", self.number);
                for miss in misses {
                    message.push_str("; ");
                    message.push_str(miss);
                }
                self.state.unexpected.push(Unexpected { request: self.number, message: message.clone() });
                self.error(400, "invalid_request_error", &message, None)
            }
            Route::CountTokens => Draft::json(200, json!({"input_tokens": tokens::count(&self.body)})),
            Route::Models => Draft::json(
                200,
                match &self.shared.script.model {
                    Some(served) => catalogue::one_model_json(served),
                    None => catalogue::models_json(),
                },
            ),
            Route::Model(id) => match catalogue::model_json(id).filter(|_| self.serves(id)) {
                Some(model) => Draft::json(200, model),
                None => self.error(404, "not_found_error", &format!("model: {id}"), None),
            },
            Route::Root => Draft { content: Content::Text(String::new()), ..Draft::json(200, Value::Null) },
            Route::Unknown => self.error(404, "not_found_error", "Not found", None),
        }
    }

    fn play(&mut self, step: &Step, facts: &Facts, values: &Values) -> Draft {
        let mut draft = match &step.answer {
            Answer::Status(status) => self.play_status(status, values),
            Answer::Reply(reply) if !facts.stream && reply.non_streaming == NonStreaming::Refuse => {
                let message = "scripted model: this step is only played as a stream";
                self.error(400, "invalid_request_error", message, None)
            }
            Answer::Reply(reply) => self.play_reply(reply, facts, values),
        };
        draft.headers =
            step.headers.iter().map(|(name, value)| header(name, fill_text(value, values))).collect();
        draft.staging = step.staging.clone();
        draft
    }

    fn play_status(&self, status: &Status, values: &Values) -> Draft {
        let code = status.status;
        match &status.body {
            Some(Value::String(text)) => {
                Draft { content: Content::Text(fill_text(text, values)), ..Draft::json(code, Value::Null) }
            }
            Some(body) => Draft::json(code, fill_value(body, values)),
            None if code < 400 => {
                Draft { content: Content::Text(String::new()), ..Draft::json(code, Value::Null) }
            }
            None => {
                let kind = status.kind.as_deref().unwrap_or(messages::kind_of_status(code));
                let message = match &status.message {
                    Some(message) => fill_text(message, values),
                    None => messages::message_of_kind(kind).to_owned(),
                };
                self.error(code, kind, &message, None)
            }
        }
    }

    fn play_reply(&mut self, reply: &Reply, facts: &Facts, values: &Values) -> Draft {
        let filled = if messages::only_warms_cache(&self.body) {
            // The model is not asked: nothing is said, and nothing is paid for saying it.
            let usage = serde_json::Map::from_iter([("output_tokens".to_owned(), json!(0))]);
            Reply { stop: Some("max_tokens".to_owned()), usage, ..Reply::default() }
        } else {
            let parts = reply.parts.iter().map(|part| fill_part(part, values)).collect();
            Reply { parts, ..reply.clone() }
        };
        for part in &filled.parts {
            if let Kind::RawBlock { block, .. } = &part.kind {
                self.state.issued.allow_block_type(block["type"].as_str().unwrap_or_default());
            }
        }
        let (counted, pending) = self.state.cache.begin(&self.body, self.shared.started.elapsed());
        self.cached = Some(pending);
        let scene = Scene {
            request: &self.body,
            model: &facts.model,
            request_id: &self.request_id,
            counted,
            issued: &self.state.issued,
        };
        let composed = compose(&filled, &scene, &mut self.dice);
        let usage = Some(composed.usage);
        if facts.stream {
            return Draft { content: Content::Stream(composed.cues), usage, ..Draft::json(200, Value::Null) };
        }
        // Without a stream the waiting comes first and all the rest at once.
        let waits = composed.cues.into_iter().filter_map(|cue| match cue {
            Cue::Wait(wait) => Some(Piece::Wait(wait)),
            Cue::Gate(name) => Some(Piece::Gate(name)),
            Cue::Event(_) | Cue::Comment(_) => None,
        });
        let waits = waits.collect();
        match composed.error {
            None => Draft {
                content: Content::Json { waits, body: composed.message },
                usage,
                ..Draft::json(200, Value::Null)
            },
            Some((kind, message)) => {
                let body = messages::error_body(&kind, &message, None, &self.request_id);
                let status = messages::status_of_kind(&kind);
                Draft { content: Content::Json { waits, body }, ..Draft::json(status, Value::Null) }
            }
        }
    }

    fn error(&self, status: u16, kind: &str, message: &str, code: Option<&str>) -> Draft {
        Draft::json(status, messages::error_body(kind, message, code, &self.request_id))
    }

    /// What `${...}` may stand for in this answer. The request's facts win over the script's variables.
    fn values(&self, facts: &Facts, captured: Captured) -> Values {
        let mut values: Values = self.shared.script.vars.clone();
        let groups = captured.into_iter().map(|(group, text)| (format!("match.{group}"), text));
        values.extend(groups);
        let last_result = facts.results.last().map(|(_, text)| text.clone());
        values.insert("last_tool_result".to_owned(), last_result.unwrap_or_default());
        values.insert("last_user_text".to_owned(), facts.user_text.clone());
        values.insert("model".to_owned(), facts.model.clone());
        values.insert("request".to_owned(), self.number.to_string());
        values
    }

    /// Turns a draft into bytes and remembers the request with its answer.
    fn stage(mut self, draft: Draft) -> Planned {
        let Draft { status, headers: said, content, staging, usage } = draft;
        let mut headers = vec![header("request-id", self.request_id.clone())];
        let is_stream = matches!(content, Content::Stream(_));
        let mut sent_body = None;
        let (content_type, performance, framing) = match content {
            Content::Stream(cues) => {
                let performance = stage_stream(cues, &staging, &mut self.dice);
                ("text/event-stream; charset=utf-8", performance, Framing::Chunked)
            }
            Content::Json { waits, body } => {
                let performance = stage_body(waits, body.to_string().as_bytes(), &staging, &mut self.dice);
                let framing = Framing::Length(performance.length);
                sent_body = Some(body);
                ("application/json", performance, framing)
            }
            Content::Text(text) => {
                let performance = stage_body(Vec::new(), text.as_bytes(), &staging, &mut self.dice);
                let framing = Framing::Length(performance.length);
                sent_body = Some(Value::String(text));
                ("text/plain; charset=utf-8", performance, framing)
            }
        };
        headers.push(header("content-type", content_type));
        if is_stream {
            headers.push(header("cache-control", "no-cache"));
        }
        if staging.gzip {
            headers.push(header("content-encoding", "gzip"));
        }
        headers.retain(|(name, _)| !said.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        headers.extend(said);
        let reply = Sent {
            status: performance.headers.then_some(status),
            headers: headers.clone(),
            body: sent_body,
            usage,
            ..Sent::default()
        };
        let number = self.number;
        let seen = self.seen(reply);
        let Self { state, cached, .. } = self;
        state.arrive(seen);
        Planned { number, status, headers, framing, is_stream, performance, cached }
    }

    fn seen(&mut self, reply: Sent) -> Seen {
        Seen {
            number: self.number,
            method: self.request.method.clone(),
            path: self.request.path.clone(),
            query: self.request.query.clone(),
            headers: self.request.headers.clone(),
            body: self.body.clone(),
            raw: self.request.body.clone(),
            arrived: self.shared.started.elapsed(),
            step: self.step,
            refusal: self.refusal.take(),
            unexpected: self.unexpected,
            reply,
            hung_up: false,
        }
    }
}

fn header(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}
