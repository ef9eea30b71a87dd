//! What a session is known by in a list: a name that a model makes for it, and a colour.

use futures::FutureExt;
use serde_json::{Value, json};

use super::requests::{Handles, Served};

impl Handles {
    /// A name for what the client describes. If it wants, the session is called so where nobody has named it.
    pub(super) fn make_title(&self, body: &Value) -> Served {
        let Some(description) = body.get("description").and_then(Value::as_str) else {
            return Served::Now(Err("generate_session_title: description is missing".to_owned()));
        };
        let named = self.namer.name(description);
        let keeps = body.get("persist").and_then(Value::as_bool) == Some(true);
        let title = self.title.clone();
        let answer = async move {
            let name = named.await;
            if let Some(name) = name.as_deref().filter(|_| keeps) {
                title.suggest(name).map_err(|error| error.to_string())?;
            }
            Ok(json!({"title": name}))
        };
        Served::Later(answer.boxed())
    }

    /// The colour is kept with the session, for whoever shows it.
    pub(super) fn set_color(&self, color: &str) -> Result<Value, String> {
        self.title.color(color).map_err(|error| format!("set_color: {error}"))?;
        Ok(json!({}))
    }
}
