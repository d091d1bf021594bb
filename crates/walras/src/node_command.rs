//! `walras node`: runs the node of a home until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use node::{Config, Node};

use std::process::ExitCode;

/// Runs the node of a home.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras node --home ./exchange
  WALRAS_BLOCKS__INTERVAL_MS=250 walras node --home ./exchange --listen 127.0.0.1:9000

The first Ctrl-C (or SIGTERM) stops in order: what waits is committed and answered. A second one stops at once; nothing
that was answered is lost either way.")]
pub struct NodeCommand {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Where to listen, instead of what the configuration says.
    #[arg(long)]
    listen: Option<SocketAddr>,
}

impl NodeCommand {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let genesis_path = self.home.join("genesis.json");
        let missing =
            || format!("{} is no home; make one with: walras init --home {}", self.home.display(), self.home.display());
        anyhow::ensure!(genesis_path.exists(), missing());
        let genesis = node::genesis_file::read(&genesis_path)?;
        let config_path = self.home.join("walras.toml");
        let config_path = config_path.exists().then_some(config_path.as_path());
        let mut config = Config::load(config_path, std::env::vars())?;
        if let Some(listen) = self.listen {
            config.http.listen = listen;
        }
        let runtime = tokio::runtime::Runtime::new().context("threads")?;
        runtime.block_on(async {
            let node = Node::start(config, &genesis, &self.home.join("data"), None).await?;
            // Scripts wait for this line.
            println!("listening on http://{}", node.address());
            let failed = tokio::select! {
                () = stop_signal() => None,
                reason = node.exchange().failed() => Some(reason),
            };
            tokio::spawn(async {
                stop_signal().await;
                std::process::exit(130);
            });
            node.stop().await;
            match failed {
                None => Ok(ExitCode::SUCCESS),
                Some(reason) => Err(anyhow::anyhow!("the node stopped itself: {reason}")),
            }
        })
    }
}

/// Waits for Ctrl-C or SIGTERM.
pub async fn stop_signal() {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminate => {}
    }
}
