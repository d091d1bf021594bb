//! The market edge as processes: `walras edge proxy` and `walras edge gateway` around a root in this process, and the
//! commands that plan it.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use edge::{EdgeClock, EdgeCommand, EdgeHost, EdgeSockets, HostHandle, HostOptions, Station};
use fairnet::{EdgeEffect, EdgeNode, EdgeRules, ROOT_MEMBER, RootNode, SeatingShape};
use protocols::mold::MoldPacket;
use serde_json::Value;

const SESSION: [u8; 10] = *b"0000000001";

fn walras() -> Command {
    Command::new(env!("CARGO_BIN_EXE_walras"))
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Processes that end with the test.
struct Members(Vec<Child>);

impl Drop for Members {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A root in a thread of this process; participants and bodies of orders come out of the receiver.
fn root(secret: [u8; 32]) -> (HostHandle, SocketAddr, Receiver<(u64, Vec<u8>)>) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let sockets = EdgeSockets::bind(any, any).expect("free ports");
    let place = sockets.place().expect("bound");
    let mut clock = EdgeClock::system(Some(0));
    let shape = SeatingShape { layers: Some(2), hedging: 1 };
    let rules = EdgeRules { shape, sample: 4, ..EdgeRules::shared_machine() };
    let node = EdgeNode::Root(RootNode::new(clock.now(), place, (SESSION, 0), secret, rules));
    let (sender, orders) = channel();
    let observer = move |_: u64, effect: &EdgeEffect, _: &mut Vec<EdgeCommand>| {
        if let EdgeEffect::Engine(order) = effect {
            drop(sender.send((order.item.participant, order.item.body.clone())));
        }
    };
    let station = Station::new(ROOT_MEMBER, secret, node, sockets, None, Box::new(observer));
    let (host, handle) = EdgeHost::new(HostOptions { clock, spin: 0 }, vec![station]).expect("a host");
    std::thread::spawn(move || host.run());
    handle.send(0, EdgeCommand::Ready(u64::MAX));
    (handle, place.streams, orders)
}

fn member(kind: &str, number: u32, root: SocketAddr, secret: &Path) -> Command {
    let mut command = walras();
    command.args(["edge", kind, "--member", &number.to_string(), "--root", &root.to_string(), "--machines", "shared"]);
    command.arg("--secret").arg(secret).stderr(Stdio::null()).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[test]
fn proxy_and_gateway_processes_carry_the_feed_down_and_orders_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    assert!(walras().args(["edge", "secret", "--out"]).arg(&path).output().expect("runs").status.success());
    let text = std::fs::read_to_string(&path).expect("the secret");
    let (handle, address, orders) = root(primitives::from_hex(text.trim()).expect("32 bytes"));
    let mut members = Members(Vec::new());
    for proxy in 1..=2 {
        members.0.push(member("proxy", proxy, address, &path).spawn().expect("starts"));
    }
    let mut feed = member("gateway", 1_000, address, &path);
    members.0.push(feed.arg("--feed").stdout(Stdio::piped()).spawn().expect("starts"));
    let shown = members.0[2].stdout.take().expect("a pipe");
    let lines = BufReader::new(shown).lines();
    // The gateway shows what is published after it has joined, from the first packet that it shows on without a gap.
    let publish = |first: u64| {
        let packet = MoldPacket { session: SESSION, first, messages: vec![b"a price"], is_end: false };
        handle.send(0, EdgeCommand::Publish(packet.encode().expect("short")));
    };
    let (found, seen) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(found.send(line))));
    let mut number = 0;
    let line = loop {
        number += 1;
        publish(number);
        if let Ok(line) = seen.recv_timeout(std::time::Duration::from_millis(20)) {
            break line;
        }
    };
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["messages"], serde_json::json!(["a price"]));

    let mut sender = member("gateway", 1_001, address, &path);
    members.0.push(sender.arg("--orders").stdin(Stdio::piped()).spawn().expect("starts"));
    let mut input = members.0[3].stdin.take().expect("a pipe");
    let sent: Vec<Vec<u8>> = (1..=300).map(|number| format!("buy {number}").into_bytes()).collect();
    for order in &sent {
        input.write_all(&[&order[..], b"\n"].concat()).expect("it reads");
    }
    drop(input);
    let arrived: Vec<Vec<u8>> = orders.iter().map(|(_, body)| body).take(sent.len()).collect();
    assert_eq!(arrived, sent, "in the order in which they were made");
    let ended = members.0[3].wait().expect("a child");
    assert!(ended.success(), "a gateway whose orders are all acknowledged ends by itself");
}

/// The sample market maker inside one gateway and outside of another one.
#[test]
fn remote_strategy_issues_what_the_module_in_the_gateway_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    assert!(walras().args(["edge", "secret", "--out"]).arg(&path).output().expect("runs").status.success());
    let text = std::fs::read_to_string(&path).expect("the secret");
    let (handle, address, orders) = root(primitives::from_hex(text.trim()).expect("32 bytes"));
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../edge/strategies/market_maker.wat");
    let mut members = Members(Vec::new());
    members.0.push(member("gateway", 1_000, address, &path).args(["--strategy", module]).spawn().expect("starts"));
    let mut outside = member("gateway", 1_001, address, &path);
    outside.args(["--feed", "--orders"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut outside = outside.spawn().expect("starts");
    let feed = outside.stdout.take().expect("a pipe");
    let mut maker = walras();
    maker.args(["edge", "quote"]).stdin(feed).stdout(Stdio::piped());
    let mut maker = maker.spawn().expect("starts");
    let (mut quotes, mut input) = (maker.stdout.take().expect("a pipe"), outside.stdin.take().expect("a pipe"));
    std::thread::spawn(move || drop(std::io::copy(&mut quotes, &mut input)));
    members.0.extend([outside, maker]);

    let message = |height: u64| format!("{{\"height\":{height},\"asset\":3,\"price\":1.{height:09}}}").into_bytes();
    let mut issued = [Vec::new(), Vec::new()];
    for height in 1.. {
        let (message, first) = (message(height), height);
        let packet = MoldPacket { session: SESSION, first, messages: vec![&message], is_end: false };
        handle.send(0, EdgeCommand::Publish(packet.encode().expect("short")));
        while let Ok((participant, body)) = orders.recv_timeout(std::time::Duration::from_millis(10)) {
            issued[participant as usize - 1_000].push(body);
        }
        // Each begins with the packet that it is shown first.
        if issued.iter().all(|own| own.len() >= 40) {
            break;
        }
    }
    let expected: Vec<Vec<u8>> = (1..10_000).flat_map(|height| edge::sample_quotes(&message(height))).collect();
    for own in issued {
        let begin = expected.iter().position(|body| *body == own[0]).expect("a quote upon a packet");
        assert_eq!(own, expected[begin..begin + own.len()]);
    }
}

#[test]
fn fairnet_secret_is_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    let make = || walras().args(["edge", "secret", "--out"]).arg(&path).output().expect("runs");
    assert!(make().status.success());
    let before = std::fs::read(&path).expect("the secret");
    let again = make();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists"));
    assert_eq!(std::fs::read(&path).expect("the secret"), before);
}

#[test]
fn fairnet_plan_says_what_a_tree_costs_and_refuses_what_cannot_be() {
    let plan = |words: &[&str]| walras().args(["edge", "plan", "--json"]).args(words).output().expect("runs");
    let report = json(&plan(&["--participants", "1000", "--hedging", "2", "--trees", "3"]));
    assert_eq!((&report["depth"], &report["proxies"]), (&3.into(), &330.into()));
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(4));
    let impossible = plan(&["--participants", "3", "--depth", "2"]);
    assert_eq!(impossible.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&impossible.stderr).contains("needs 3 proxies"));
}
