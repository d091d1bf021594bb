//! The demo's edge: 20 participants behind two layers of proxies, fed with the batch prices of each block. Orders for
//! the batch market come back through the tree, in bundles that the root signs.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use edge::{EdgeClock, EdgeCommand, EdgeSockets, EdgeStatus, HostHandle, Station};
use fairnet::{EdgeEffect, EdgeNode, ROOT_MEMBER, RootNode};
use ledger::BlockReceipts;
use primitives::{SecretKey, Transaction, to_hex};
use serde_json::{Value, json};

use super::bundles::{Boundaries, BundleShelf};
use crate::demo_network::free_addresses;

use super::{Machines, make_secret, page, prices, read_secret, start};

/// Proxies, and the number of the first gateway.
const PROXIES: u64 = 6;
const FIRST_GATEWAY: u64 = 1_000;
/// Processes of gateways, and gateways in each.
const GATEWAY_PROCESSES: u64 = 2;
const GATEWAYS_EACH: u64 = 10;
/// Proxies of the venue's own edge, processes of gateways, and gateways in each. Each gateway has a door for OUCH.
const VENUE_PROXIES: u64 = 2;
const VENUE_PROCESSES: u16 = 2;
const VENUE_GATEWAYS: u16 = 2;
/// Pause before a process that ended is started again.
const PAUSE: Duration = Duration::from_secs(2);
/// Orders that wait for a process of gateways; more are lost.
const LINES: usize = 4_096;
/// All members run on one machine and read one clock.
const CLOCK_ERROR_NS: u64 = 0;

struct Member {
    name: String,
    arguments: Vec<String>,
    process: Child,
    /// Lines for its standard input, if it takes orders.
    input: Option<SyncSender<String>>,
    ended: Option<Instant>,
}

/// The root in this process, and the processes of the other members.
pub struct DemoEdge {
    folder: PathBuf,
    root: HostHandle,
    page: SocketAddr,
    members: Vec<Member>,
    /// The number of the feed's next message.
    next: u64,
    shelf: Arc<BundleShelf>,
    boundaries: Boundaries,
    /// Orders that were handed to gateways.
    ordered: usize,
}

impl DemoEdge {
    /// The file with the secret of all machines of the demo's edges, which is made if it is not there.
    pub fn secret(folder: &Path) -> anyhow::Result<PathBuf> {
        let path = folder.join("edge-secret");
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        if !path.exists() {
            make_secret(&path)?;
        }
        Ok(path)
    }

    /// Starts the root, the page of fairness at `listen` or another port, and the other members.
    pub fn start(folder: &Path, listen: SocketAddr) -> anyhow::Result<DemoEdge> {
        let path = DemoEdge::secret(folder)?;
        let secret = read_secret(&path)?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let sockets = EdgeSockets::bind(any, any).context("the root of the edge cannot listen")?;
        let (place, now) = (sockets.place()?, EdgeClock::system(None).now());
        // A demo that begins again with its old home must be above every epoch that its members may have heard of.
        let epoch = (now / 1_000_000_000) as u32;
        let node = RootNode::new(now, place, (prices::SESSION, epoch), secret, Machines::Shared.rules());
        let shelf = Arc::new(BundleShelf::new(root_key(folder)?));
        let own = shelf.clone();
        let collect = move |_, effect: &EdgeEffect, _: &mut Vec<EdgeCommand>| {
            if let EdgeEffect::Bundle(closed) = effect {
                own.add((**closed).clone());
            }
        };
        let station = Station::new(ROOT_MEMBER, secret, EdgeNode::Root(node), sockets, None, Box::new(collect));
        let root = start(vec![station], Machines::Shared, Some(CLOCK_ERROR_NS))?;
        root.send(0, EdgeCommand::Ready(u64::MAX));
        let page = page::serve(listen, root.clone(), shelf.clone())
            .or_else(|_| page::serve(SocketAddr::new(listen.ip(), 0), root.clone(), shelf.clone()))
            .context("the page of fairness cannot listen")?;
        let mut edge = DemoEdge {
            folder: folder.into(),
            root,
            page,
            members: Vec::new(),
            next: 1,
            shelf,
            boundaries: Boundaries::default(),
            ordered: 0,
        };
        edge.start_members(place.streams, &path)?;
        Ok(edge)
    }

    fn start_members(&mut self, root: SocketAddr, secret: &Path) -> anyhow::Result<()> {
        for member in 1..=PROXIES {
            self.add(format!("proxy {member}"), arguments("proxy", member, root, secret))?;
        }
        for process in 0..GATEWAY_PROCESSES {
            let first = FIRST_GATEWAY + process * GATEWAYS_EACH;
            let mut arguments = arguments("gateway", first, root, secret);
            arguments.extend(["--count".into(), GATEWAYS_EACH.to_string(), "--orders".into()]);
            self.add(format!("gateways {first} to {}", first + GATEWAYS_EACH - 1), arguments)?;
        }
        Ok(())
    }

    /// Starts the edge of the venue's continuous markets, whose root is the venue's node: market data reaches all its
    /// gateways at one deadline, and each takes orders over OUCH. Returns their doors, process by process.
    pub fn add_venue(
        &mut self,
        root: SocketAddr,
        venue: SocketAddr,
        say: &impl Fn(String),
    ) -> anyhow::Result<Vec<SocketAddr>> {
        let (secret, all) = (DemoEdge::secret(&self.folder)?, VENUE_PROCESSES * VENUE_GATEWAYS);
        let first = free_addresses(1, all)?[0];
        for member in 1..=VENUE_PROXIES {
            self.add(format!("venue's proxy {member}"), arguments("proxy", member, root, &secret))?;
        }
        let doors: Vec<SocketAddr> = (0..all).map(|at| SocketAddr::new(first.ip(), first.port() + at)).collect();
        for (members, doors) in
            (FIRST_GATEWAY..).step_by(VENUE_GATEWAYS.into()).zip(doors.chunks(VENUE_GATEWAYS.into()))
        {
            let mut words = arguments("gateway", members, root, &secret);
            let (count, ouch) = (VENUE_GATEWAYS.to_string(), doors[0].to_string());
            words.extend(["--count".into(), count, "--ouch".into(), ouch]);
            let last = members + u64::from(VENUE_GATEWAYS) - 1;
            self.add(format!("venue's gateways {members} to {last}"), words)?;
        }
        say(format!("The venue's own edge: fairness at http://{venue}/v1/fairness, OUCH at its first gateway {first}"));
        Ok(doors)
    }

    fn add(&mut self, name: String, arguments: Vec<String>) -> anyhow::Result<()> {
        let mut process = spawn(&self.folder, &arguments)?;
        let input = process.stdin.take().map(writer);
        self.members.push(Member { name, arguments, process, input, ended: None });
        Ok(())
    }

    /// Where the page is.
    pub fn page(&self) -> SocketAddr {
        self.page
    }

    /// Each process, and its id.
    pub fn processes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.members.iter().map(|member| (&member.name[..], member.process.id()))
    }

    /// Hands orders for the batch market to the processes of gateways, each order to the next.
    pub fn order<'t>(&mut self, transactions: impl Iterator<Item = &'t Transaction>) {
        for transaction in transactions {
            let bytes = borsh::to_vec(transaction).expect("writing to memory cannot fail");
            let process = PROXIES as usize + self.ordered % GATEWAY_PROCESSES as usize;
            self.ordered += 1;
            // A process that has ended or does not read takes no orders: they are lost, as with any broker.
            if let Some(input) = &self.members[process].input {
                drop(input.try_send(format!("0x{}", to_hex(&bytes))));
            }
        }
    }

    /// The orders of bundles that were closed meanwhile, each bundle for itself. What is no transaction is left out.
    pub fn bundles(&mut self) -> Vec<Vec<Transaction>> {
        let mut all = Vec::new();
        for closed in self.shelf.take() {
            let mut taken = Vec::new();
            for (place, (order, body)) in closed.bundle.orders.iter().zip(&closed.bodies).enumerate() {
                let Ok(transaction) = borsh::from_slice::<Transaction>(body) else { continue };
                self.boundaries.expect(transaction.id(), (closed.bundle.number, place as u32, order.is_late));
                taken.push(transaction);
            }
            all.push(taken);
        }
        all
    }

    /// Publishes the prices of a block.
    pub fn publish(&mut self, block: &BlockReceipts) {
        self.boundaries.block(block.outcomes.iter().map(|(id, _)| *id));
        for packet in prices::packets(block, &mut self.next) {
            self.root.send(0, EdgeCommand::Publish(packet));
        }
    }

    /// Starts processes again that have ended, and says so.
    pub fn tend(&mut self, say: &impl Fn(String)) -> anyhow::Result<()> {
        for member in &mut self.members {
            match member.ended {
                None => {
                    if let Some(status) = member.process.try_wait()? {
                        say(format!("{} ended ({status}); market data takes other paths", member.name));
                        member.ended = Some(Instant::now());
                    }
                }
                Some(since) if since.elapsed() >= PAUSE => {
                    member.process = spawn(&self.folder, &member.arguments)?;
                    member.input = member.process.stdin.take().map(writer);
                    member.ended = None;
                    say(format!("{} starts again, process {}", member.name, member.process.id()));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn status(&self) -> Option<EdgeStatus> {
        self.root.status(0)
    }

    /// What the page shows, without the log.
    pub fn report(&self) -> Value {
        let mut report = self.status().map_or(Value::Null, |status| pit::fairness_body(&status));
        if let Some(fields) = report.as_object_mut() {
            fields.remove("log");
            let Boundaries { included, overtaken, .. } = &self.boundaries;
            fields.insert("orders_in_blocks".into(), json!(included));
            fields.insert("orders_overtaken_by_a_later_stamp".into(), json!(overtaken));
        }
        report
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let Some(EdgeStatus { root: Some(root), counters, .. }) = self.status() else {
            return "edge           ended".into();
        };
        let [window, lateness] = [root.windows.width, root.windows.late].map(|figure| figure[0] / 1_000);
        format!(
            "edge           epoch {}, {} gateways, {} packets, {} orders in {} bundles, {} overtaken; delivery window \
             {window} µs, lateness {lateness} µs (medians)",
            root.epoch,
            root.gateways.len(),
            root.sequence,
            counters.orders,
            counters.bundles,
            self.boundaries.overtaken
        )
    }

    /// Stops all processes and waits for them.
    pub fn stop(&mut self) {
        for member in &mut self.members {
            // A child that was not waited for keeps its id.
            if member.process.try_wait().is_ok_and(|ended| ended.is_none()) {
                drop(member.process.kill());
            }
            drop(member.process.wait());
        }
    }
}

impl Drop for DemoEdge {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How a member is started.
fn arguments(kind: &str, member: u64, root: SocketAddr, secret: &Path) -> Vec<String> {
    let words = ["edge", kind, "--member", &member.to_string(), "--root", &root.to_string(), "--machines", "shared"];
    let mut arguments: Vec<String> = words.iter().map(ToString::to_string).collect();
    arguments.extend(["--clock-error-ns".into(), CLOCK_ERROR_NS.to_string()]);
    arguments.extend(["--secret".into(), secret.display().to_string()]);
    arguments
}

/// Writes lines to a process, in a thread of its own: a process that does not read delays nobody else.
fn writer(mut input: ChildStdin) -> SyncSender<String> {
    let (sender, lines) = sync_channel::<String>(LINES);
    std::thread::spawn(move || {
        while let Ok(line) = lines.recv()
            && writeln!(input, "{line}").is_ok()
        {}
    });
    sender
}

/// The key that the root signs bundles with; its own, unlike the secret that all machines of the venue have.
fn root_key(folder: &Path) -> anyhow::Result<SecretKey> {
    let path = folder.join("edge-root-key");
    if !path.exists() {
        make_secret(&path)?;
    }
    Ok(SecretKey::from_seed(read_secret(&path)?))
}

fn spawn(folder: &Path, arguments: &[String]) -> anyhow::Result<Child> {
    let log = File::options().create(true).append(true).open(folder.join("edge-log"));
    let log = log.context("cannot open the log of the edge")?;
    let errors = log.try_clone().context("cannot open the log of the edge")?;
    let walras = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(walras);
    let input = if arguments.iter().any(|word| word == "--orders") { Stdio::piped() } else { Stdio::null() };
    command.args(arguments).stdin(input).stdout(log).stderr(errors);
    command.spawn().context("cannot start a process of the edge")
}
