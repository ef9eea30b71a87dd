//! Peers that nothing is heard of. The kernel is told to drop what is sent to them, as a network does that is no
//! longer there.

use std::net::Ipv4Addr;
use std::time::Instant;

use socket2::{Domain, SockFilter, SockRef, Socket, Type};

use super::calls::{ask, client, hello};
use super::*;
use crate::Step;

/// Drops every packet that arrives at the socket. Nothing is acknowledged, nothing refused.
fn cut_off(socket: &SockRef<'_>) {
    const RETURN: u16 = 0x06;
    socket.attach_filter(&[SockFilter::new(RETURN, 0, 0, 0)]).unwrap();
}

#[tokio::test]
async fn pit_L16_a_connection_that_died_silently_costs_no_more_than_ten_seconds() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(format!("http://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_request(&mut first).await.unwrap();
        first.write_all(hello().as_bytes()).await.unwrap();
        // The connection is kept by both sides, and the network between them goes away.
        cut_off(&SockRef::from(&first));
        let (mut second, _) = listener.accept().await.unwrap();
        read_request(&mut second).await.unwrap();
        second.write_all(hello().as_bytes()).await.unwrap();
        (first, second)
    });
    assert!(matches!(ask(&client).await.last(), Some(Step::Finished(_))));
    let began = Instant::now();
    let steps = ask(&client).await;
    assert!(matches!(steps.last(), Some(Step::Finished(_))), "{steps:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let retries = steps.iter().filter(|step| matches!(step, Step::Retry(_))).count();
    assert_eq!(retries, 1, "{steps:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn pit_L16_an_address_without_a_route_costs_no_more_than_a_second() {
    let server = Server::start(OK, false).await;
    let port = server.address.port();
    let nowhere = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
    let address: SocketAddr = (std::net::Ipv6Addr::LOCALHOST, port).into();
    nowhere.set_only_v6(true).unwrap();
    nowhere.bind(&address.into()).unwrap();
    nowhere.listen(1).unwrap();
    cut_off(&SockRef::from(&nowhere));

    let transport = plain();
    let addresses = [address, (Ipv4Addr::LOCALHOST, port).into()];
    let known = transport.plan().unwrap().resolve_to_addrs("two.ways", &addresses).build().unwrap();
    *transport.client.lock().unwrap() = Some(known);
    let began = Instant::now();
    let url = format!("http://two.ways:{port}/v1/messages");
    assert_eq!(send(&transport, post(url)).await.unwrap().0, 200);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(took > Duration::from_millis(100), "the first address was really tried: {took:?}");
}

#[tokio::test]
async fn loop_R6_after_a_reset_the_next_attempt_has_a_connection_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(format!("http://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        read_request(&mut first).await.unwrap();
        first.write_all(hello().as_bytes()).await.unwrap();
        // The second question comes on the connection that was kept, and that is then reset.
        read_request(&mut first).await.unwrap();
        SockRef::from(&first).set_linger(Some(Duration::ZERO)).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        let request = read_request(&mut second).await.unwrap();
        second.write_all(hello().as_bytes()).await.unwrap();
        request
    });
    assert!(matches!(ask(&client).await.last(), Some(Step::Finished(_))));
    let steps = ask(&client).await;
    assert!(matches!(steps.last(), Some(Step::Finished(_))), "{steps:?}");
    let retries = steps.iter().filter(|step| matches!(step, Step::Retry(_))).count();
    assert_eq!(retries, 1, "it was announced: {steps:?}");
    server.await.unwrap();
}
