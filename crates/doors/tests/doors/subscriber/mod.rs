//! A client of the stream that logs in.

use std::net::{SocketAddr, TcpStream};

use primitives::{Address, Digest, SecretKey, SessionSlot, TypedData, TypedValue, WalletKey, to_hex};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// A connection of the stream.
pub struct Subscriber(pub WebSocket<TcpStream>);

impl Subscriber {
    pub fn new(server: SocketAddr) -> Subscriber {
        let stream = TcpStream::connect(server).expect("listens");
        let socket = tungstenite::client(format!("ws://localhost:{}/v1/stream", server.port()), stream);
        Subscriber(socket.expect("a stream").0)
    }

    pub fn say(&mut self, request: &Value) {
        self.0.send(Message::text(request.to_string())).expect("sent");
    }

    /// The next message that is no heartbeat. A hundred heartbeats without one say that none is coming.
    pub fn hear(&mut self) -> Value {
        let mut messages = (0..100).map(|_| {
            let text = loop {
                // A ping is answered with the next reading.
                if let Message::Text(text) = self.0.read().expect("a message") {
                    break text;
                }
            };
            let event: Result<api::StreamMessage, _> = serde_json::from_str(&text);
            assert!(event.is_ok(), "clients read {text}: {event:?}");
            serde_json::from_str::<Value>(&text).expect("JSON")
        });
        messages.find(|message| message["type"] != "heartbeat").expect("a message besides heartbeats")
    }

    pub fn ask(&mut self, request: &Value) -> Value {
        self.say(request);
        self.hear()
    }

    pub fn challenge(&mut self) -> Challenge {
        let told = self.ask(&json!({"challenge": true}));
        assert_eq!(told["type"], "challenge", "{told}");
        let text = |name: &str| told[name].as_str().expect("text").to_string();
        let nonce = crate::open::bytes(&told["nonce"]).try_into().expect("32 bytes");
        Challenge { nonce, server: text("server"), network: text("network").parse().expect("a network") }
    }

    /// Logs in with a key for an account, as its slot.
    pub fn log_in(&mut self, key: &SecretKey, account: Address, slot: SessionSlot) {
        let challenge = self.challenge();
        let answer = self.ask(&challenge.by(key, account));
        let told =
            json!({"type": "login", "account": account.to_string(), "slot": slot, "sequence": answer["sequence"]});
        assert_eq!(answer, told);
    }

    /// Whether an error has a code and words.
    pub fn refuses(&mut self, request: &Value, code: &str, words: &str) {
        let answer = self.ask(request);
        assert_eq!((&answer["type"], &answer["code"]), (&json!("error"), &json!(code)), "{request}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|told| told.contains(words)), "{request}: {answer}");
    }
}

/// What a login signs.
#[derive(Clone)]
pub struct Challenge {
    pub nonce: [u8; 32],
    pub server: String,
    pub network: Digest,
}

impl Challenge {
    /// A login with a key of the ledger's own kind.
    pub fn by(&self, key: &SecretKey, account: Address) -> Value {
        let tag = b"walras stream login v1\0";
        let signed = [&tag[..], &self.network.0, &account.0, &self.nonce, self.server.as_bytes()].concat();
        let signature = format!("0x{}", to_hex(&key.sign(&signed).0));
        json!({"login": {"account": account.to_string(), "key": key.public().to_string(), "signature": signature}})
    }

    /// A login with the key of a wallet.
    #[allow(dead_code, reason = "not every test has wallets")]
    pub fn by_wallet(&self, key: &WalletKey, account: Address, chain: u64) -> Value {
        let fields = vec![
            ("account", TypedValue::Address(account)),
            ("nonce", TypedValue::Bytes32(self.nonce)),
            ("server", TypedValue::Text(self.server.clone())),
        ];
        let signature = key.sign(&TypedData { primary: "StreamLogin", fields }.hash(chain, &self.network));
        json!({"login": {"account": account.to_string(), "signature": format!("0x{}", to_hex(&signature.0))}})
    }
}
