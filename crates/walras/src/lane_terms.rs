//! `walras upgrade lane`: on what terms the payment lane carries assets, by lane epoch.

use std::process::ExitCode;

use anyhow::Context;
use api::{LaneBody, LaneTermsBody};
use client::NodeClient;
use primitives::{Amount, format_units};
use serde_json::json;

/// Shows the terms of the epochs that count, and of later ones.
pub fn show(node: &NodeClient, json: bool) -> anyhow::Result<ExitCode> {
    let LaneBody { epoch, terms, .. } = node.get("/v1/lane")?;
    match json {
        true => println!("{}", json!({"epoch": epoch, "terms": terms})),
        false => {
            println!("lane epoch {epoch}");
            terms.iter().try_for_each(|of| line(of).map(|line| println!("{line}")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(of: &LaneTermsBody) -> anyhow::Result<String> {
    let amount = |text: &str| -> anyhow::Result<String> {
        let units: Amount = text.parse().with_context(|| format!("the node tells {text:?} units of {}", of.asset))?;
        Ok(format!("{} {}", format_units(units, of.decimals), of.asset))
    };
    let (least, fee) = (amount(&of.least_units)?, amount(&of.fee)?);
    let leaves = match of.outflow_most.as_str() {
        "0" => "no limit on what leaves".into(),
        most => format!("{} leaves at once, {} more a height", amount(most)?, amount(&of.outflow_per_height)?),
    };
    let (asset, from, deposits) = (&of.asset, of.from, &of.deposits);
    Ok(format!(
        "  {asset:<12} from epoch {from}: outputs of {least} at least, fee {fee}, deposits {deposits}, {leaves}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_told_in_whole_assets() {
        let mut of = LaneTermsBody {
            asset: "EUR.17".into(),
            number: 17,
            decimals: 2,
            from: 4,
            least_units: "100".into(),
            fee: "1".into(),
            deposits: "refused".into(),
            outflow_most: "0".into(),
            outflow_per_height: "0".into(),
        };
        let shown = line(&of).expect("sound");
        assert!(
            shown.contains("from epoch 4: outputs of 1 EUR.17 at least, fee 0.01 EUR.17, deposits refused"),
            "{shown}"
        );
        of.outflow_most = "90000".into();
        of.outflow_per_height = "250".into();
        let shown = line(&of).expect("sound");
        assert!(shown.ends_with("900 EUR.17 leaves at once, 2.5 EUR.17 more a height"), "{shown}");
        of.fee = "much".into();
        assert!(line(&of).expect_err("no number").to_string().contains("\"much\" units of EUR.17"));
    }
}
