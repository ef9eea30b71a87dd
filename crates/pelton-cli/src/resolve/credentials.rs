//! Who pays.

use pelton_model::{Auth, Secret};

use super::env::Env;
use crate::fail::Fail;

pub(super) fn credentials(env: &Env) -> Result<(Auth, &'static str), Fail> {
    if let Some(key) = env.get("ANTHROPIC_API_KEY") {
        return Ok((Auth::ApiKey(Secret::new(key.trim())), "ANTHROPIC_API_KEY"));
    }
    if let Some(token) = env.get("ANTHROPIC_AUTH_TOKEN") {
        return Ok((Auth::Bearer(Secret::new(token.trim())), "none"));
    }
    Err(Fail::at_start(
        "no API key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN (a local server that wants none takes any value), or \
         try 'pelton demo', which needs no key",
    ))
}
