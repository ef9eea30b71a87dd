//! Pages of the web: only addresses that were judged are connected to.

use super::*;
use crate::transport::Get;

async fn ask(transport: &HttpTransport, url: String, pinned: Vec<SocketAddr>) -> Result<u16, TransportError> {
    transport.get(Get { url, headers: HeaderMap::new(), pinned }).await.map(|response| response.status)
}

#[tokio::test]
async fn a_name_leads_to_the_pinned_address_and_nowhere_else() {
    let server = Server::start(OK, false).await;
    let transport = plain();
    let url = format!("http://nobody.invalid:{}/page", server.address.port());
    assert_eq!(ask(&transport, url.clone(), vec![server.address]).await, Ok(200));
    assert!(server.heard()[0].1.starts_with("GET /page HTTP/1.1"));
    // This name is known to the system, and is not looked up.
    let known = url.replace("nobody.invalid", "localhost");
    assert!(ask(&transport, known, Vec::new()).await.is_err());
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://localhost:1/\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(moved, false).await;
    let url = format!("http://here.invalid:{}/", server.address.port());
    assert_eq!(ask(&plain(), url, vec![server.address]).await, Ok(302));
}

#[tokio::test]
async fn names_are_looked_up_whole() {
    let found = plain().addresses("localhost").await.unwrap();
    assert!(found.iter().all(|address| address.is_loopback()), "{found:?}");
    let lost = plain().addresses("nobody.invalid").await.unwrap_err();
    assert_eq!(lost.kind, TransportErrorKind::Dns);
    assert!(lost.message.contains("nobody.invalid"), "{lost}");
}
