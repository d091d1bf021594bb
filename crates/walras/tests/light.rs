//! `walras light` beyond the founders' epoch: by a process, of a network whose epochs are short.

mod process;

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use process::{Process, agent, get, walras};
use serde_json::{Value, json};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn light(genesis: &Path, server: &str, trust: Option<&Path>, asked: &[&str]) -> Output {
    let mut command = walras();
    command.args(["light", asked[0], "--json", "--server", server, "--genesis"]).arg(genesis).args(&asked[1..]);
    if let Some(trust) = trust {
        command.arg("--trust").arg(trust);
    }
    command.output().expect("walras runs")
}

fn proved(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON")
}

fn write(path: &Path, value: &Value) {
    std::fs::write(path, value.to_string()).expect("writable");
}

#[test]
fn a_light_client_walks_from_the_genesis_to_the_present() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let network = folder.path().join("network");
    let init = "init --json --validators 1 --asset USD:2 --supply 1000 --stake 500 --epoch-heights 3 --reward 5 \
                --reward-pool 1000000 --home";
    let output = walras().args(init.split_whitespace()).arg(&network).output().expect("walras runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let home = network.join("validator-0");
    let genesis = home.join("genesis.json");
    let mut hasty = read(&genesis);
    hasty["consensus"]["heartbeat_ms"] = json!(30);
    write(&genesis, &hasty);
    let node =
        Process::start(&home, &[("WALRAS_BLOCKS__INTERVAL_MS", "10"), ("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")]);
    let begun = Instant::now();
    let (mut epoch, mut held) = (0, 0);
    while epoch < 40 || held < 36 {
        assert!(begun.elapsed() < Duration::from_secs(120), "epoch {epoch}, handovers to {held}: {}", node.log());
        std::thread::sleep(Duration::from_millis(50));
        epoch = get(&agent(), &node.server, "/v1/validators").1["epoch"].as_u64().unwrap_or(0);
        held = get(&agent(), &node.server, "/v1/handovers").1["last"].as_u64().unwrap_or(0);
    }
    // More than a page of them; each of a height of the epoch before.
    let page = get(&agent(), &node.server, "/v1/handovers?from=3").1;
    let of_page = page["handovers"].as_array().expect("a list");
    assert_eq!((&page["from"], of_page.len(), &of_page[31]["epoch"]), (&json!(3), 32, &json!(34)));
    assert_eq!(get(&agent(), &node.server, "/v1/handovers?from=1000000").1["handovers"], json!([]));

    let account = read(&home.join("validator-key.json"))["public_key"].as_str().expect("a key").to_string();
    let validators = get(&agent(), &node.server, "/v1/validators").1;
    let founder = &validators["validators"][0];
    assert_eq!(founder["key"], json!(account));
    let address = founder["account"].as_str().expect("an account");
    let trust = folder.path().join("trusted.json");
    let shown = proved(&light(&genesis, &node.server, Some(&trust), &["account", address]));
    assert!(shown["epoch"].as_u64().is_some_and(|epoch| epoch >= 40) && shown["exists"] == true, "{shown}");
    assert_eq!((&shown["signed_by"], &shown["validators"]), (&json!(1), &json!(1)));
    // The next time it begins where it was.
    let remembered = read(&trust);
    assert!(remembered["epoch"].as_u64() >= shown["epoch"].as_u64(), "{remembered}");
    let again = proved(&light(&genesis, &node.server, Some(&trust), &["account", address]));
    assert!(again["epoch"].as_u64() >= shown["epoch"].as_u64());

    // Who trusts another committee believes nothing of this one.
    let mut other = remembered.clone();
    other["keys"] = json!([primitives::SecretKey::from_seed([9; 32]).public().to_string()]);
    write(&trust, &other);
    let refused = light(&genesis, &node.server, Some(&trust), &["account", address]);
    assert!(refused.status.code() == Some(1), "{}", text(&refused.stdout));
    assert_eq!(read(&trust), other, "nothing is remembered of what was not proved");
    other["network"] = json!(primitives::Digest([3; 32]).to_string());
    write(&trust, &other);
    let refused = light(&genesis, &node.server, Some(&trust), &["account", address]);
    assert!(text(&refused.stderr).contains("another network"), "{}", text(&refused.stderr));
    // Nor does who holds another genesis.
    hasty["consensus"]["validators"][0]["key"] = json!(primitives::SecretKey::from_seed([9; 32]).public().to_string());
    let elsewhere = folder.path().join("elsewhere.json");
    write(&elsewhere, &hasty);
    let refused = light(&elsewhere, &node.server, None, &["account", address]);
    assert!(text(&refused.stderr).contains("epoch 1"), "{}", text(&refused.stderr));
    assert_eq!(node.terminate().code(), Some(0));
}
