//! Orders over FIX through a bridge, which is killed, and whose venue is.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use primitives::venue::VenueSide;
use protocols::fix::{FixBody, FixDecimal};

use super::order_system::{self as fix, Fix};
use super::process::walras;
use super::{Bridge, Market, kinds};

const BUY: u8 = b'1';

fn bridge(market: &Market, reports: &Path, listen: &str) -> Command {
    let mut command = walras();
    command.args(["bridge", "--listen", listen, "--life", "5000", "--trading-key"]);
    command.arg(market.key("alice-trading")).args(["--venue", &market.venue, "--ouch", &market.ouch]);
    command.arg("--fix-journal").arg(market.folder.path().join("fix")).args(["--fix-names", "WALRAS:ALICE"]);
    command.args(["--session", "9", "--above", "2000000", "--cancel-after", "600000", "--reports"]).arg(reports);
    command.stdout(Stdio::piped());
    command
}

/// A bridge of alice's with a journal, names and references of its own.
pub fn bridge_of(market: &Market, journal: &str, names: &str, above: &str) -> Command {
    let mut command = walras();
    command.args(["bridge", "--listen", "127.0.0.1:0", "--life", "5000", "--trading-key"]);
    command.arg(market.key("alice-trading")).args(["--venue", &market.venue, "--ouch", &market.ouch]);
    command.arg("--fix-journal").arg(market.folder.path().join(journal)).args(["--fix-names", names]);
    command.args(["--session", "11", "--above", above]).stdout(Stdio::piped());
    command
}

/// Runs a bridge; returns the line with its address, too.
pub fn first_line(command: &mut Command) -> (Bridge, String) {
    let mut child = command.spawn().expect("walras runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    (Bridge(child), line.trim().to_string())
}

pub fn started(mut command: Command) -> (Bridge, String) {
    let (bridge, line) = first_line(&mut command);
    let address = line.strip_prefix("plain FIX on ").unwrap_or_else(|| panic!("{line}")).to_string();
    (bridge, address)
}

fn sell(market: &mut Market, tick: u32, lots: u32) {
    let order = market.order("bob", VenueSide::Sell, tick, lots);
    assert!(kinds(&market.place(&order)).contains(&"accepted"));
}

pub fn orders(market: &mut Market) {
    let reports = market.folder.path().join("fix-reports.txt");
    let listen = sockets::free_address().expect("a free port").to_string();
    let (first, address) = started(bridge(market, &reports, &listen));
    market.until(|status| status.sessions == 1);
    let lots = FixDecimal::from;

    // An order trades, and its fill is settled.
    sell(market, 120, 3);
    let mut system = Fix::connect(&address);
    system.send(&fix::new("f1", BUY, 121, 3));
    assert_eq!(system.report("f1", b'0').0.status, b'0');
    let (trade, _) = system.report("f1", b'F');
    assert_eq!((trade.status, trade.last_quantity, trade.last_price), (b'2', Some(lots(3)), FixDecimal::new(120, 4)));
    market.settled(4);
    assert!(system.report("f1", b'I').0.text.expect("words").to_string().contains("is settled at height"));
    assert_eq!(std::fs::read_to_string(&reports).expect("reports").lines().count(), 1, "the signed report is kept");

    // Another is replaced, asked for, cancelled, and cannot be cancelled twice.
    system.send(&fix::new("f2", BUY, 90, 3));
    system.report("f2", b'0');
    system.send(&fix::replace("f2", "f3", BUY, 90, 5));
    let (replaced, _) = system.report("f3", b'5');
    assert_eq!((replaced.left, replaced.original.map(|of| of.to_string())), (lots(5), Some("f2".into())));
    system.send(&fix::status("f3", BUY));
    assert_eq!(system.report("f3", b'I').0.left, lots(5));
    system.send(&fix::cancel("f3", "c1", BUY));
    assert_eq!(system.report("c1", b'4').0.status, b'4');
    system.send(&fix::cancel("f3", "c2", BUY));
    system.next(|body| matches!(body, FixBody::CancelReject(of) if of.reason == Some(0)));
    system.send(&fix::new("f4", BUY, 1_000, 3));
    assert_eq!(system.report("f4", b'8').0.status, b'8', "it is outside of the band");
    system.send(&fix::new("f5", BUY, 91, 3));
    system.report("f5", b'0');
    system.send(&fix::cancel_all("m1"));
    system.next(|body| matches!(body, FixBody::MassCancelReport(of) if of.response == b'7'));
    assert_eq!(system.report("f5", b'4').0.left, lots(0));

    // The bridge is killed. What trades meanwhile is told when it is there again, as it would have been.
    system.send(&fix::new("f6", BUY, 95, 6));
    system.report("f6", b'0');
    drop(first);
    system.until_closed();
    market.until(|status| status.sessions == 0);
    sell(market, 95, 2);
    let (_second, _) = started(bridge(market, &reports, &listen));
    system.reconnect(&address);
    let (missed, _) = system.report("f6", b'F');
    assert_eq!((missed.left, missed.filled), (lots(4), lots(2)));
    market.settled(5);

    // The node is killed. The session at the venue goes on where it was, and the order is the same.
    drop(market.node.take());
    market.start();
    market.until(|status| status.standing == "runs" && status.paused.is_none() && status.sessions == 1);
    system.until_closed();
    system.reconnect(&address);
    system.send(&fix::cancel("f6", "c3", BUY));
    let (ended, _) = system.report("c3", b'4');
    assert_eq!((ended.left, ended.filled), (lots(0), lots(2)));
    market.next = 3_000_000;
}
