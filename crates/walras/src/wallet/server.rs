//! The node that a wallet uses, and the assets that it lists.

use std::time::Duration;

use anyhow::{Context, bail};
use primitives::{Address, Amount, AssetId, Digest};
use serde_json::Value;

use crate::decimal::from_units;

/// The node to use.
#[derive(clap::Args, Clone)]
pub struct Server {
    /// Address of a node.
    #[arg(long = "server", value_name = "URL", env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    pub url: String,
}

/// An answer: its status, and its JSON.
pub struct Answered {
    pub status: u16,
    pub body: Value,
}

impl Answered {
    /// The body, or the node's error as an error.
    pub fn sound(self) -> anyhow::Result<Value> {
        match &self.body["error"] {
            Value::Null => Ok(self.body),
            error => bail!("{}: {}", text(&error["code"]), text(&error["message"])),
        }
    }
}

impl Server {
    fn agent() -> ureq::Agent {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(60)));
        config.build().into()
    }

    /// The JSON at a path, or the node's error as an error.
    pub fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.ask(path)?.sound()
    }

    /// The node's answer at a path, errors included.
    pub fn ask(&self, path: &str) -> anyhow::Result<Answered> {
        self.json(Self::agent().get(format!("{}{path}", self.url)).call())
    }

    /// The node's answer to a body.
    pub fn post(&self, path: &str, body: &[u8]) -> anyhow::Result<Answered> {
        let request = Self::agent().post(format!("{}{path}", self.url)).content_type("application/octet-stream");
        self.json(request.send(body))
    }

    fn json(&self, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> anyhow::Result<Answered> {
        let unreachable = || format!("no node answers at {}; give another --server", self.url);
        let mut response = response.with_context(unreachable)?;
        let other = || format!("what answers at {} is no walras node: its answer is not JSON", self.url);
        let body: Value = response.body_mut().read_json().with_context(other)?;
        Ok(Answered { status: response.status().as_u16(), body })
    }

    /// `None` if the node is ready, otherwise its code and sentence.
    pub fn unready(&self) -> anyhow::Result<Option<(String, String)>> {
        let unreachable = || format!("no node answers at {}; give another --server", self.url);
        let mut response = Self::agent().get(format!("{}/readyz", self.url)).call().with_context(unreachable)?;
        if response.status().is_success() {
            return Ok(None);
        }
        let status = response.status();
        let foreign = || format!("{} answers {status} and no walras node does: give another --server", self.url);
        let value: Value = response.body_mut().read_json().with_context(foreign)?;
        Ok(Some((text(&value["error"]["code"]).into(), text(&value["error"]["message"]).into())))
    }

    /// All resting offers of an account, page by page.
    pub fn offers(&self, account: &Address) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let mut page = self.get(&format!("/v1/accounts/{account}/offers?limit=1000{cursor}"))?;
            let listed = page["offers"].as_array_mut().context("the node lists no offers")?;
            all.append(listed);
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(all),
            }
        }
    }

    /// The height of the node's newest block.
    pub fn height(&self) -> anyhow::Result<u64> {
        let status = self.get("/v1/status")?;
        status["height"].as_u64().or_else(|| text(&status["height"]).parse().ok()).context("the node tells no height")
    }

    /// The chain's number and the identity of the network, for which transactions are signed.
    pub fn chain(&self) -> anyhow::Result<(u64, Digest)> {
        let limits = self.get("/v1/limits")?;
        let other = || format!("what answers at {} is no walras node of this version; give another --server", self.url);
        let chain = text(&limits["chain"]).parse().ok().with_context(other)?;
        Ok((chain, text(&limits["network"]).parse().ok().with_context(other)?))
    }

    pub fn assets(&self) -> anyhow::Result<Assets> {
        let value = self.get("/v1/assets")?;
        let entries = value["assets"].as_array().context("the node lists no assets")?;
        let listed = entries.iter().map(|entry| {
            Some(Listed {
                asset: AssetId(u32::try_from(entry["asset"].as_u64()?).ok()?),
                symbol: entry["symbol"].as_str()?.into(),
                decimals: u8::try_from(entry["decimals"].as_u64()?).ok()?,
                least_units: entry["least_units"].as_str()?.parse().ok()?,
            })
        });
        listed.collect::<Option<_>>().map(Assets).context("cannot decode the node's list of assets")
    }
}

/// The assets as a node lists them.
pub(crate) struct Assets(Vec<Listed>);

/// An asset as the node lists it.
pub struct Listed {
    pub asset: AssetId,
    pub symbol: String,
    pub decimals: u8,
    pub least_units: Amount,
}

impl Assets {
    /// The asset with a symbol.
    pub fn find(&self, symbol: &str) -> anyhow::Result<&Listed> {
        let known = || self.0.iter().map(|asset| asset.symbol.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.0.iter().find(|asset| asset.symbol == symbol);
        found.with_context(|| format!("no asset {symbol:?}; there are {}", known()))
    }

    /// The first asset, in which fees and stakes are counted.
    pub fn first(&self) -> anyhow::Result<&Listed> {
        self.0.iter().find(|listed| listed.asset == AssetId(0)).context("the node lists no first asset")
    }

    /// Units in decimals, with the symbol. `units` is the node's value.
    pub fn money(&self, units: &Value, symbol: &Value) -> String {
        let (units, symbol) = (text(units), text(symbol));
        match (units.parse(), self.find(symbol)) {
            (Ok(units), Ok(listed)) => listed.money(units),
            _ => format!("{units} units of {symbol}"),
        }
    }
}

impl Listed {
    /// An amount in decimals with its symbol.
    pub fn money(&self, units: Amount) -> String {
        format!("{} {}", from_units(units, self.decimals), self.symbol)
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
