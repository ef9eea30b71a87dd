//! What servers may ask of us, and tell us unasked.

// Roots are on their way out of the protocol; the servers that ask for them are not.
#![allow(deprecated, reason = "servers in use still ask for roots")]

use std::sync::Weak;

use crate::server::{Server, Wanted};
use pelton::host::Elicited;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    ProgressNotificationParam, ProtocolVersion, Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

/// Our side of a connection.
pub(crate) struct Handler(pub Weak<Server>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let (form, url) = (FormElicitationCapability::default(), UrlElicitationCapability::default());
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form).with_url(url));
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.roots = Some(roots);
        // The newest versions have no handshake: whoever makes one names the newest that has.
        ClientConfig::new(capabilities, Implementation::new("pelton", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.0.upgrade().map(|server| server.roots()).unwrap_or_default();
        Ok(ListRootsResult::new(roots.into_iter().map(Root::new).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (message, wanted) = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                (message, Wanted::Fields(schema))
            }
            // The address is for a person to open: the answer is only that they have.
            ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => {
                (message, Wanted::Visit { url, id: elicitation_id })
            }
            _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
        };
        let Some(server) = self.0.upgrade() else { return Ok(ElicitResult::new(ElicitationAction::Cancel)) };
        Ok(match server.elicit(message, wanted).await {
            Elicited::Accept(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            Elicited::Decline => ElicitResult::new(ElicitationAction::Decline),
            Elicited::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(server) = self.0.upgrade() {
            server.heard_progress(&progress);
        }
    }

    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        if let Some(server) = self.0.upgrade() {
            server.relist(&context.peer).await;
        }
    }

    async fn on_prompt_list_changed(&self, context: NotificationContext<RoleClient>) {
        if let Some(server) = self.0.upgrade() {
            server.relist_prompts(&context.peer).await;
        }
    }
}
