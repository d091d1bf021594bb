//! `walras demo --developer`: one node for people who develop contracts, in this process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use ledger::Genesis;
use node::{Config, Node};
use serde_json::json;
use store::{Options, RealDisk};

use crate::demo_network::door_addresses;
use crate::developers::{DEVELOPER_KEYS, developers};
use crate::node_command::StopSignals;

/// The options of the demo.
pub struct DeveloperDemo {
    pub listen: SocketAddr,
    pub ethereum_listen: SocketAddr,
    /// Milliseconds between blocks; 0 makes one as soon as a transaction is pending.
    pub interval_ms: u64,
    /// Stop after this many seconds.
    pub seconds: Option<u64>,
}

impl DeveloperDemo {
    /// Runs a chain in a home until it is stopped: the existing chain, or a new one with this genesis.
    pub fn run(self, home: &Path, genesis: Genesis, json: bool) -> anyhow::Result<ExitCode> {
        let path = home.join("genesis.json");
        if !path.exists() {
            crate::init::make_home(home)?;
            let genesis = Genesis { is_developers: true, ..genesis.clone() };
            genesis.issued_assets()?;
            ::founding::genesis_file::write(&path, &genesis)?;
        }
        let forks = genesis.forks;
        let genesis = ::founding::genesis_file::read(&path)?;
        ensure!(
            forks.is_usual() || forks == genesis.forks,
            "--fork: {} has a chain with other forks, which stay as they are: choose another --home",
            path.display()
        );
        ensure!(
            genesis.is_developers,
            "{} is not the home of a developers' chain: choose another --home, or leave --developer out",
            path.display()
        );
        let mut config = Config::load(None, std::env::vars())?;
        config.http.listen = door_addresses(self.listen, 1)?[0];
        config.ethereum.listen = door_addresses(self.ethereum_listen, 1)?[0];
        config.blocks.interval_ms = self.interval_ms;
        let data = home.join("data");
        let runtime = tokio::runtime::Runtime::new().context("threads")?;
        runtime.block_on(self.serve(config, &genesis, &data, json))?;
        let restored = node::recover_state(RealDisk::existing(&data)?, Options::default(), &genesis)?;
        let audit = restored.ledger.audit();
        let conservation = audit.as_ref().map_or_else(ToString::to_string, |_| "holds".to_string());
        if json {
            println!("{}", json!({"blocks": restored.ledger.height(), "conservation": conservation}));
        } else {
            println!("\n{} blocks; conservation {conservation}", restored.ledger.height());
        }
        Ok(if audit.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn serve(&self, config: Config, genesis: &Genesis, data: &Path, json: bool) -> anyhow::Result<()> {
        let mut stop = StopSignals::new().context("signals")?;
        let node = Node::start(config, genesis, data, None).await?;
        self.greet(&node, json);
        let over = async {
            match self.seconds {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
        };
        let failed = tokio::select! {
            () = stop.next() => None,
            () = over => None,
            reason = node.exchange().failed() => Some(reason),
        };
        tokio::select! {
            _ = tokio::spawn(node.stop()) => {}
            () = stop.next() => std::process::exit(130),
        }
        failed.map_or(Ok(()), |reason| anyhow::bail!("the node stopped itself: {reason}"))
    }

    fn greet(&self, node: &Node, json: bool) {
        let say = |line: String| {
            // With --json, standard output carries only the result.
            if json { eprintln!("{line}") } else { println!("{line}") }
        };
        let ethereum = node.ethereum_address().map_or_else(String::new, |address| address.to_string());
        say(format!("Walras is running: http://{}", node.address()));
        say(format!("Ethereum JSON-RPC: http://{ethereum}, chain {}", ledger::DEVELOPERS_CHAIN));
        say("A developers' chain: evm_, anvil_ and hardhat_ methods change accounts and time, and restore snapshots."
            .into());
        let blocks = match self.interval_ms {
            0 => "A block is made as soon as a transaction is pending.".into(),
            interval => format!("A block is made every {interval} ms."),
        };
        say(blocks);
        say("The usual development accounts. Their keys are public:".into());
        for (account, key) in developers().zip(DEVELOPER_KEYS) {
            say(format!("  {}  {key}", account.checked()));
        }
        say("Ctrl-C stops.".into());
    }
}
