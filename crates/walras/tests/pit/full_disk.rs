//! The disk of a venue is full: it halts with a sentence that says what to do, its node goes on, and what it had
//! acknowledged is there when there is space again.
//!
//! The node runs in a mount namespace of its own, in which the directory of venues, or that of the whole node, is a
//! small file system.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pit::door::bodies::order_body;
use primitives::venue::{SignedOrder, VenueSide};
use serde_json::json;
use tempfile::TempDir;
use venue::TraderAsk;

use super::{Market, agent, kinds};

/// Mounts a small file system over a directory, with its content, and runs the rest, whose process number it notes.
const IN_SMALL_DIRECTORY: &str = r#"set -e; size=$1; shift; export WALRAS_STORE__FREE_BYTES=$1; shift
echo $$ > "$0.process"; mkdir -p "$0" "$0.kept"; chmod 700 "$0" "$0.kept"; cp -a "$0/." "$0.kept/"
mount -t tmpfs -o mode=700,size=$size tmpfs "$0"; cp -a "$0.kept/." "$0/"; exec "$@""#;

/// What runs a node so, if this machine permits it: a file system of so many megabytes, of which the node keeps some
/// free.
fn wrapper(directory: &str, megabytes: u64, keeps_free: u64) -> Option<Vec<String>> {
    let can = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("no mount namespaces for this user: a full disk is not tried");
        return None;
    }
    let (size, free) = (format!("{megabytes}m"), (keeps_free << 20).to_string());
    Some(["unshare", "-rm", "sh", "-c", IN_SMALL_DIRECTORY, directory, &size, &free].map(String::from).to_vec())
}

/// A file that takes the space that is left.
struct Filler(PathBuf);

impl Filler {
    /// Takes all.
    fn new(directory: &Path) -> Filler {
        Filler::leaving(directory, 0)
    }

    /// Leaves so many bytes at most.
    fn leaving(directory: &Path, bytes: u64) -> Filler {
        let node = std::fs::read_to_string(directory.with_extension("process")).expect("the shell has noted it");
        let inside = PathBuf::from(format!("/proc/{}/root{}", node.trim(), directory.display()));
        let path = inside.join("filler");
        let mut file = std::fs::File::create(&path).expect("the namespace of the node");
        for size in [1 << 16, 1 << 8, 1] {
            let is_room = || node::free_bytes(&inside).is_some_and(|free| free > bytes) || bytes == 0;
            while is_room() && file.write_all(&vec![7; size]).is_ok() {}
        }
        Filler(path)
    }

    fn remove(self) {
        std::fs::remove_file(self.0).expect("it is there");
    }
}

fn is_accepted(market: &Market, order: &SignedOrder) -> bool {
    let result = market.place(order);
    result["reports"].is_array() && kinds(&result).contains(&"accepted")
}

fn halts_and_resumes(market: &mut Market) {
    let before = market.order("bob", VenueSide::Sell, 150, 3);
    assert!(is_accepted(market, &before));
    let filler = Filler::new(&market.home().join("data").join("venues"));
    // Files have been made long enough for some records: orders go on until none is left.
    let mut acknowledged = vec![before];
    let unanswered = loop {
        let order = market.order("bob", VenueSide::Sell, 151 + acknowledged.len() as u32 % 40, 1);
        match is_accepted(market, &order) {
            true => acknowledged.push(order),
            false => break order,
        }
        assert!(acknowledged.len() < 100_000, "the disk is full");
    };
    let status = market.until(|status| status.standing == "failed");
    let said = status.why.expect("a sentence");
    assert!(said.contains("free space") && said.contains("by itself"), "{said}");
    // The node answers, and its blocks go on.
    let server = market.node.as_ref().expect("it runs").server.clone();
    let height = || {
        let mut answer = agent().get(format!("{server}/v1/status")).call().expect("it answers");
        let body: serde_json::Value = answer.body_mut().read_json().expect("JSON");
        body["height"].as_u64().unwrap_or_else(|| panic!("{body}"))
    };
    let first = height();
    while height() < first + 3 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    filler.remove();
    market.until(|status| status.standing == "runs" && status.paused.is_none());
    for order in &acknowledged {
        let status = market.ask("bob", TraderAsk::Status(order.order.number));
        assert_eq!(status["reports"][0]["status"]["standing"], json!("open"), "{status}");
    }
    // What was not answered is asked for again, and trades once.
    assert!(is_accepted(market, &unanswered));
    let buy = market.order("alice", VenueSide::Buy, 150, 3);
    let bought = market.place(&buy);
    assert_eq!(kinds(&bought), ["accepted", "executed"], "{bought}");
    market.settled(1);
}

/// The node keeps some bytes free: before it has less, its venue takes no new orders and says why, but ends those that
/// it has. What was executed settles, and everything goes on when there is space again.
fn takes_no_orders_without_room(market: &mut Market) {
    let resting = market.order("bob", VenueSide::Sell, 150, 3);
    assert!(is_accepted(market, &resting));
    let bought = market.order("alice", VenueSide::Buy, 150, 1);
    assert_eq!(kinds(&market.place(&bought)), ["accepted", "executed"]);
    let filler = Filler::leaving(&market.home().join("data"), 30 << 20);
    // The node looks at its disk now and then.
    let (status, refused) = loop {
        let order = market.order("bob", VenueSide::Sell, 160, 1);
        let (status, answer) = market.post("/v1/venue/orders", &json!({ "orders": [order_body(&order, None)] }));
        if status != 200 {
            break (status, answer);
        }
    };
    assert_eq!((status, &refused["error"]["code"]), (507, &json!("disk_full")), "{refused}");
    market.settled(1);
    let number = resting.order.number;
    let ended = market.ask("bob", TraderAsk::Cancel { number, keeps: 0 });
    assert_eq!(kinds(&ended), ["ended"], "{ended}");
    filler.remove();
    let again = market.order("alice", VenueSide::Buy, 140, 1);
    while market.post("/v1/venue/orders", &json!({ "orders": [order_body(&again, None)] })).0 != 200 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(is_accepted(market, &again));
}

#[test]
fn a_venue_on_a_full_disk_acknowledges_nothing_that_is_not_durable_and_resumes() {
    let folder = TempDir::new().expect("a folder");
    let venues = folder.path().join("home/data/venues");
    if let Some(wrapper) = wrapper(venues.to_str().expect("text"), 24, 256) {
        halts_and_resumes(&mut Market::run_by(folder, wrapper));
    }
}

#[test]
fn a_venue_whose_node_has_no_room_takes_no_orders_and_ends_those_that_it_has() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("home/data");
    if let Some(wrapper) = wrapper(data.to_str().expect("text"), 96, 32) {
        takes_no_orders_without_room(&mut Market::run_by(folder, wrapper));
    }
}
