//! What is stated when a submission begins: what there is.

use pelton_model::{FastMode, catalogue};

use super::Engine;
use crate::event::Init;
use crate::options::Options;
use crate::plugins::{PluginError, PluginProblem};
use crate::tools::agent;

impl Engine {
    pub(super) fn init(&self, model: String) -> Init {
        Init {
            session_id: self.session.id,
            cwd: self.cwd(),
            model,
            mode: self.kin.permissions.mode(),
            tools: self.offer.names(),
            commands: self.menu().all(),
            skills: self.skills.all().iter().map(|skill| skill.name.clone()).collect(),
            servers: self.offer.servers(),
            server_sources: self.offer.server_sources(),
            server_errors: self.offer.unusable_servers(),
            agents: self.agents_offered(),
            output_style: self.options.style_name().to_owned(),
            plugins: self.options.plugins.clone(),
            plugin_errors: plugin_errors(&self.options),
            api_key_source: self.options.api_key_source,
            setting_sources: self.options.setting_sources.clone(),
            fast_mode: self.fast_mode(),
            effort: self.question.effort,
            betas: self.options.endpoint.betas.clone(),
            transcript: self.session.file(),
        }
    }

    /// The agents the model may start, by name.
    pub(super) fn agents_offered(&self) -> Vec<String> {
        let offered = self.offer.tools().iter().any(|tool| agent::is_one(tool.as_ref()));
        let startable = self.options.startable().agents.into_iter();
        startable.filter(|_| offered).map(|agent| agent.name).collect()
    }

    /// Whether the next answer will be a fast one.
    pub(super) fn fast_mode(&self) -> FastMode {
        if self.options.fast_mode && catalogue::can_be_fast(&self.options.model) {
            self.kin.client.fast_mode()
        } else {
            FastMode::Off
        }
    }
}

/// What is wrong with plugins, those that can be used included.
fn plugin_errors(options: &Options) -> Vec<PluginError> {
    let partly = options.plugins.iter().flat_map(|plugin| {
        let told = |problem: &PluginProblem| PluginError::unusable(plugin.id(), problem.clone(), None);
        plugin.problems.iter().map(told)
    });
    options.plugin_errors.iter().cloned().chain(partly).collect()
}
