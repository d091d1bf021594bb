//! A stream ends where what it showed may be wrong: a gap, a foreign message, an end with its reason.

use std::net::TcpListener;

use api::{ChannelState, StreamMessage};
use client::{Channel, ClientError, NodeClient, Stream};
use primitives::Address;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, Utf8Bytes};

/// A server that takes one request, which it returns, and says these messages before it closes with a reason.
fn serve(messages: &'static [&'static str]) -> (NodeClient, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let served = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut socket = tungstenite::accept(stream).expect("a handshake");
        let request = socket.read().expect("a request").into_text().expect("text").to_string();
        for message in messages {
            socket.send(Message::text(*message)).expect("sent");
        }
        let reason = Utf8Bytes::from_static("the node is stopping");
        socket.close(Some(CloseFrame { code: CloseCode::Again, reason })).expect("closed");
        // Until the other side has closed, so that nothing is lost on the way.
        while socket.read().is_ok() {}
        request
    });
    (NodeClient::at(format!("http://{address}")), served)
}

#[test]
fn channels_are_asked_for_by_name_and_resumed_from_a_height() {
    let (node, served) = serve(&[
        r#"{"type":"resumed","channel":"blocks","height":7,"sequence":0}"#,
        r#"{"type":"snapshot","channel":"trades","height":9,"trades":[],"sequence":1}"#,
        r#"{"type":"snapshot","channel":"batches","height":9,"batch":null,"sequence":2}"#,
        r#"{"type":"heartbeat","height":9,"time_ms":1,"sequence":3}"#,
        r#"{"type":"error","code":"unknown_channel","message":"none","sequence":4}"#,
    ]);
    let account = Channel::Account(Address([1; 20]));
    let channels = [
        (Channel::Blocks, Some(7)),
        (Channel::Trades(None), None),
        (Channel::Candles("EUR/USD".into(), "1m".into()), None),
        (account.clone(), None),
    ];
    let mut stream = Stream::open(&node, &channels).expect("a stream");
    let mut hear = || stream.wait().expect("a message").event;
    assert_eq!(hear(), StreamMessage::Resumed { channel: "blocks".into(), height: 7 });
    let StreamMessage::Snapshot(trades) = hear() else { panic!("a snapshot") };
    assert_eq!((&*trades.channel, trades.height, trades.state), ("trades", 9, ChannelState::Trades(Vec::new())));
    assert!(matches!(hear(), StreamMessage::Snapshot(batch) if batch.state == ChannelState::Batch(None)));
    assert_eq!(hear(), StreamMessage::Heartbeat { height: 9, time_ms: 1 });
    assert!(matches!(hear(), StreamMessage::Error { code, .. } if code == "unknown_channel"));
    let end = stream.wait().expect_err("it ends").to_string();
    assert!(end.contains("the node is stopping") && end.contains(node.url()), "{end}");
    drop(stream);
    let asked: serde_json::Value = serde_json::from_str(&served.join().expect("served")).expect("JSON");
    assert_eq!(asked["resume"], serde_json::json!({"blocks": 7}));
    assert_eq!(asked["subscribe"], serde_json::json!(["blocks", "trades", "candles:EUR/USD:1m", account.to_string()]));
}

#[test]
fn a_gap_and_a_message_of_another_version_end_a_stream() {
    type IsTold = fn(&ClientError) -> bool;
    let cases: [(&'static [&'static str], IsTold); 4] = [
        (
            &[r#"{"type":"heartbeat","height":9,"time_ms":1,"sequence":1}"#],
            |error| matches!(error, ClientError::StreamEnded { reason, .. } if reason.contains("message 1 came")),
        ),
        (&[r#"{"type":"news","sequence":0}"#], |error| matches!(error, ClientError::Foreign { .. })),
        (
            &[r#"{"type":"snapshot","channel":"trades","height":1,"sequence":0}"#],
            |error| matches!(error, ClientError::Foreign { what, .. } if what.contains("no trades")),
        ),
        (&["hello"], |error| matches!(error, ClientError::Foreign { .. })),
    ];
    for (messages, is_told) in cases {
        let (node, served) = serve(messages);
        let mut stream = Stream::open(&node, &[(Channel::Blocks, None)]).expect("a stream");
        let error = stream.wait().expect_err("it cannot be believed");
        assert!(is_told(&error), "{messages:?}: {error}");
        drop(stream);
        served.join().expect("served");
    }
    let nobody = NodeClient::at("http://127.0.0.1:9");
    let error = Stream::open(&nobody, &[]).err().expect("nobody listens there");
    assert!(matches!(error, ClientError::NoStream { .. }), "{error}");
}
