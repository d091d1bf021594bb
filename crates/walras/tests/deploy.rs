//! `deploy/` is consistent with this binary: its files parse, name metrics and settings that exist, and every alert
//! is explained to operators.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use process::{Process, agent, walras};
use yaml_rust2::{Yaml, YamlLoader};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/walras is two levels down")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn deploy(name: &str) -> String {
    text(&root().join("deploy").join(name))
}

/// All files below `deploy/`.
fn files() -> Vec<PathBuf> {
    let mut folders = vec![root().join("deploy")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn parse(name: &str, text: &str) -> Vec<Yaml> {
    YamlLoader::load_from_str(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
}

fn yaml(name: &str) -> Yaml {
    parse(name, &deploy(name)).swap_remove(0)
}

fn is_template(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "templates")
}

/// The words of a text that begin with `prefix`.
fn words(text: &str, prefix: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(prefix)).map(str::to_string).collect()
}

/// A chart's template with the values of `values.yaml` inserted: supports the few forms that the chart uses.
fn render(template: &str, release: &str, values: &Yaml) -> String {
    let mut out = String::new();
    // Whether each open block is rendered.
    let mut blocks: Vec<bool> = Vec::new();
    for line in template.lines() {
        match directive(line) {
            Some(("if" | "with", condition)) => blocks.push(is_set(&value(condition, release, values))),
            Some(("else", _)) => blocks.last_mut().into_iter().for_each(|taken| *taken = !*taken),
            Some(("end", _)) => drop(blocks.pop().expect("an end of something")),
            _ if blocks.contains(&false) => {}
            _ => out += &(substitute(line, release, values) + "\n"),
        }
    }
    assert!(blocks.is_empty(), "a block without its end");
    out
}

/// The word and the rest of a line that consists only of `{{- word rest }}`.
fn directive(line: &str) -> Option<(&str, &str)> {
    let inside = line.trim().strip_prefix("{{- ")?.strip_suffix("}}")?.trim();
    Some(inside.split_once(' ').unwrap_or((inside, "")))
}

fn is_set(value: &str) -> bool {
    !matches!(value, "" | "false" | "0")
}

fn substitute(line: &str, release: &str, values: &Yaml) -> String {
    let mut parts = line.split("{{");
    let mut out = parts.next().expect("one part at least").to_string();
    for part in parts {
        let (expression, after) = part.split_once("}}").unwrap_or_else(|| panic!("an open brace in {line:?}"));
        out += &(value(expression.trim(), release, values) + after);
    }
    out
}

/// The value of an expression, which must name an existing value.
fn value(expression: &str, release: &str, values: &Yaml) -> String {
    match expression {
        ".Release.Name" => return release.into(),
        ".Release.Namespace" => return "markets".into(),
        _ => {}
    }
    let names = expression.split([' ', '(', ')']).find_map(|word| word.strip_prefix(".Values."));
    let path = names.unwrap_or_else(|| panic!("not a form that this chart uses: {expression:?}"));
    let found = path.split('.').fold(values, |at, key| &at[key]);
    assert!(!found.is_badvalue(), "values.yaml has no {path}");
    match expression.strip_prefix("add ").and_then(|sum| sum.rsplit(' ').next()?.parse::<i64>().ok()) {
        Some(more) => (found.as_i64().expect("a number") + more).to_string(),
        None => scalar(found),
    }
}

/// The chart's manifests, with its own values.
fn manifests() -> Vec<Yaml> {
    rendered("walras", &deploy("helm/walras/values.yaml"))
}

/// The chart's manifests as a release of this name has them, with these values.
fn rendered(release: &str, values: &str) -> Vec<Yaml> {
    let values = parse("values.yaml", values).swap_remove(0);
    let templates = files().into_iter().filter(|path| is_template(path));
    let all = templates.flat_map(|path| parse(&path.display().to_string(), &render(&text(&path), release, &values)));
    all.filter(|manifest| !manifest.is_null()).collect()
}

fn manifest(kind: &str) -> Yaml {
    let found = manifests().into_iter().find(|one| one["kind"].as_str() == Some(kind));
    found.unwrap_or_else(|| panic!("no {kind} in the chart"))
}

#[test]
fn every_file_parses() {
    for path in files().iter().filter(|path| !is_template(path)) {
        let name = path.display().to_string();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => assert!(!parse(&name, &text(path)).is_empty(), "{name} is empty"),
            Some("json") => {
                let parsed: Result<serde_json::Value, _> = serde_json::from_str(&text(path));
                assert!(parsed.is_ok(), "{name}: {parsed:?}");
            }
            _ => {}
        }
    }
}

/// Metrics by label, which a node reports only once they have a value: as registered, and as reported.
const BY_LABEL: [(&str, &str); 5] = [
    ("submitted_transactions", "walras_submitted_transactions_total"),
    ("refused_frames", "walras_refused_frames_total"),
    ("lane_shard_up", "walras_lane_shard_up"),
    ("sub_blocks", "walras_sub_blocks_total"),
    ("block_stage", "walras_block_stage_seconds_sum"),
];

/// Names as a node reports them, with the suffixes of each kind of metric.
fn told() -> BTreeSet<String> {
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path().join("home");
    assert!(walras().args(["init", "--home"]).arg(&home).output().expect("runs").status.success());
    let node = Process::start(&home, &[]);
    let asked = agent().get(format!("{}/metrics", node.server)).header("accept", "application/openmetrics-text");
    let text = asked.call().expect("the node answers").body_mut().read_to_string().expect("text");
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("name and kind");
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    assert!(names.contains("walras_block_height"), "{text}");
    let source = self::text(&root().join("crates/readers/src/metrics.rs"));
    for (registered, told) in BY_LABEL {
        assert!(source.contains(&format!("(\"{registered}\", ")), "{registered} is not a metric");
        names.insert(told.to_string());
    }
    // The root of a market edge reports its own beside its page of fairness.
    names.extend(words(&self::text(&root().join("crates/walras/src/edge/page.rs")), "walras_edge_"));
    names
}

#[test]
fn rules_and_dashboard_use_metrics_that_exist() {
    let told = told();
    let mut used = words(&deploy("prometheus/rules.yml"), "walras_");
    let dashboard: serde_json::Value = serde_json::from_str(&deploy("grafana/dashboards/walras.json")).expect("JSON");
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            used.extend(words(target["expr"].as_str().expect("an expression"), "walras_"));
        }
    }
    assert!(used.len() > 10, "{used:?}");
    let unknown: Vec<&String> = used.difference(&told).collect();
    assert!(unknown.is_empty(), "no metrics: {unknown:?}; there are {told:?}");
}

#[test]
fn every_alert_is_explained() {
    let manual = text(&root().join("docs/operators.md"));
    let rules = yaml("prometheus/rules.yml");
    let groups = rules["groups"].as_vec().expect("groups");
    let alerts: Vec<&Yaml> = groups.iter().flat_map(|group| group["rules"].as_vec().expect("rules")).collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let name = alert["alert"].as_str().expect("a name");
        assert!(manual.contains(&format!("`{name}`")), "docs/operators.md does not explain {name}");
        assert!(alert["expr"].as_str().is_some() && alert["annotations"]["summary"].as_str().is_some(), "{name}");
        let severity = alert["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("page" | "ticket")), "{name}: {severity:?}");
    }
}

/// Settings of the environment, as pairs of name and value.
fn settings() -> Vec<(String, String)> {
    let compose = yaml("compose.yaml");
    let mut settings = Vec::new();
    for (_, service) in compose["services"].as_hash().expect("services") {
        let environment = service["environment"].as_hash();
        settings.extend(environment.into_iter().flatten().map(|(name, value)| (scalar(name), scalar(value))));
    }
    let pod = &manifest("StatefulSet")["spec"]["template"]["spec"];
    for variable in pod["containers"][0]["env"].as_vec().expect("variables") {
        settings.push((scalar(&variable["name"]), scalar(&variable["value"])));
    }
    settings
}

fn scalar(yaml: &Yaml) -> String {
    match yaml {
        Yaml::String(text) => text.clone(),
        Yaml::Integer(number) => number.to_string(),
        Yaml::Boolean(choice) => choice.to_string(),
        other => panic!("not a scalar: {other:?}"),
    }
}

#[test]
fn settings_are_those_of_the_configuration() {
    let settings = settings();
    assert!(settings.iter().any(|(name, _)| name == "WALRAS_HTTP__LISTEN"), "{settings:?}");
    node::Config::load(None, settings.into_iter()).expect("known settings");
}

/// Pods must start together, since none becomes ready alone, and reach each other before they are ready.
#[test]
fn the_chart_lets_validators_find_each_other_and_keeps_a_quorum() {
    let set = manifest("StatefulSet");
    assert_eq!(set["spec"]["podManagementPolicy"].as_str(), Some("Parallel"));
    assert!(set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"].as_str().is_some());
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["readinessProbe"]["httpGet"]["path"].as_str(), Some("/readyz"));
    assert_eq!(container["livenessProbe"]["httpGet"]["path"].as_str(), Some("/healthz"));
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"].as_bool(), Some(true));
    let headless = manifest("Service");
    assert_eq!(headless["spec"]["publishNotReadyAddresses"].as_bool(), Some(true));
    let source = deploy("helm/walras/templates/poddisruptionbudget.yaml");
    assert!(source.contains("maxUnavailable: {{ div (sub (int .Values.validators) 1) 3 }}"), "f of n = 3f + 1");
}

#[test]
fn compose_runs_a_network_that_init_can_make() {
    let compose = yaml("compose.yaml");
    let services = compose["services"].as_hash().expect("services");
    let names: Vec<String> = services.keys().map(scalar).filter(|name| name.starts_with("validator-")).collect();
    assert_eq!(names, ["validator-0", "validator-1", "validator-2", "validator-3"]);
    let scraped = yaml("prometheus/prometheus.yml");
    let targets = scraped["scrape_configs"][0]["static_configs"][0]["targets"].as_vec().expect("targets");
    for (name, target) in names.iter().zip(targets) {
        // A host name that is not configured is answered 421.
        assert_eq!(target.as_str(), Some(format!("{name}:8090").as_str()));
        assert_eq!(
            compose["services"][name.as_str()]["environment"]["WALRAS_HTTP__HOSTS"].as_str(),
            Some(name.as_str())
        );
    }
}

/// Homes that are made as the comment at the top says have these shards, each in a container of its own.
#[test]
fn compose_runs_the_shards_of_a_lane_that_init_can_make() {
    let source = deploy("compose.lane.yaml");
    let (_, told) = source.split_once("walras init ").expect("the command");
    let told: String = told.lines().take(2).map(|line| line.trim_start_matches("# ").replace('\\', " ")).collect();
    let dir = tempfile::tempdir().expect("a directory");
    let made = walras().current_dir(dir.path()).arg("init").args(told.split_whitespace()).output().expect("runs");
    assert!(made.status.success(), "{told}: {}", String::from_utf8_lossy(&made.stderr));
    let compose = yaml("compose.lane.yaml");
    let services = compose["services"].as_hash().expect("services");
    for validator in 0..4 {
        let name = format!("validator-{validator}");
        let home = dir.path().join("network").join(&name);
        let config = node::Config::load(Some(&home.join("walras.toml")), std::iter::empty()).expect("sound");
        let own = &compose["services"][name.as_str()]["networks"]["lane"]["ipv4_address"];
        let addresses = &config.lane.addresses[validator].0;
        assert!(addresses.iter().all(|of| Some(of.ip().to_string().as_str()) == own.as_str()), "{addresses:?}");
        for apart in &config.lane.apart {
            let shard = &compose["services"][format!("{name}-shard-{}", apart.shard).as_str()];
            assert_eq!(shard["command"][2].as_str(), Some(apart.shard.to_string().as_str()));
            assert_eq!(shard["network_mode"].as_str(), Some(format!("service:{name}").as_str()));
        }
        assert_eq!(config.lane.apart.len(), 2);
    }
    assert_eq!(services.len(), 4 + 8);
}

/// A release that runs one shard of each validator: pods that nodes reach by name.
#[test]
fn the_chart_runs_shards_apart() {
    let values = deploy("helm/walras/values.yaml");
    let values = values.replace("  apart: false", "  apart: true").replace("  shard: 0", "  shard: 1");
    let all = rendered("walras-shard-1", &values.replacen("lane:\n  enabled: false", "lane:\n  enabled: true", 1));
    let set = all.iter().find(|one| one["kind"].as_str() == Some("StatefulSet")).expect("a set");
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    let words: Vec<&str> = container["args"].as_vec().expect("words").iter().filter_map(Yaml::as_str).collect();
    assert_eq!(words[..4], ["shard", "--log-json", "--shard", "1"]);
    assert!(container["readinessProbe"].is_badvalue(), "a shard has no doors");
    let service = all.iter().find(|one| one["kind"].as_str() == Some("Service")).expect("a service");
    let ports = service["spec"]["ports"].as_vec().expect("ports");
    let numbers: Vec<Option<i64>> = ports.iter().map(|one| one["port"].as_i64()).collect();
    assert_eq!(numbers[2..4], [Some(6_800), Some(7_100)]);
}

/// Runs an external tool on its input, or prints that it is not installed.
fn judged_by(tool: &str, arguments: &[&str]) {
    match Command::new(tool).args(arguments).current_dir(root().join("deploy")).output() {
        Err(_) => eprintln!("{tool} is not installed: {} is not run", arguments.join(" ")),
        Ok(output) => assert!(
            output.status.success(),
            "{tool} {}: {}{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

#[test]
fn the_tools_of_others_agree() {
    judged_by("promtool", &["check", "rules", "prometheus/rules.yml"]);
    judged_by("helm", &["template", "helm/walras"]);
    judged_by("helm", &["lint", "helm/walras"]);
}

/// Every part of the chart, under a name that is not its own.
#[test]
fn the_chart_works_under_any_release_name_and_with_every_part() {
    let values = deploy("helm/walras/values.yaml").replace("enabled: false", "enabled: true");
    let values = values
        .replace("  host: \"\"", "  host: \"x.example\"")
        .replace("ethereumHost: \"\"", "ethereumHost: \"eth.example\"")
        .replace("trustedProxies: \"\"", "trustedProxies: \"10.42.0.0/16,192.0.2.7\"");
    let all = rendered("other", &values);
    let of = |kind: &str| {
        let found: Vec<&Yaml> = all.iter().filter(|one| one["kind"].as_str() == Some(kind)).collect();
        assert!(!found.is_empty(), "no {kind}");
        found
    };
    for manifest in &all {
        assert!(manifest["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("other")), "{manifest:?}");
    }
    let container = &of("StatefulSet")[0]["spec"]["template"]["spec"]["containers"][0];
    let variables = container["env"].as_vec().expect("variables");
    let hosts = variables.iter().find(|one| one["name"].as_str() == Some("WALRAS_HTTP__HOSTS")).expect("hosts");
    let hosts: Vec<&str> = hosts["value"].as_str().expect("text").split(',').collect();
    let proxies = variables.iter().find(|one| one["name"].as_str() == Some("WALRAS_HTTP__TRUSTED_PROXIES"));
    assert_eq!(proxies.and_then(|one| one["value"].as_str()), Some("10.42.0.0/16,192.0.2.7"));
    let services = of("Service");
    for host in ["other-http", "other-http.markets.svc.cluster.local", "x.example", "eth.example"] {
        assert!(hosts.contains(&host), "{host} would be answered 421: {hosts:?}");
    }
    let ports = |of: &Yaml, number: &str| {
        of.as_vec().map_or(vec![], |all| all.iter().map(|one| one[number].as_i64()).collect())
    };
    let lane: Vec<_> = (7_100..7_108).map(Some).collect();
    assert_eq!(ports(&container["ports"], "containerPort")[4..], lane);
    assert_eq!(ports(&services[0]["spec"]["ports"], "port")[2..], lane);
    let backend = &of("Ingress")[0]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"];
    assert!(services.iter().any(|service| service["metadata"]["name"] == *backend), "{backend:?}");
    let monitor = of("ServiceMonitor")[0];
    assert_eq!(monitor["spec"]["endpoints"][0]["port"].as_str(), Some("probes"));
    assert!(of("NetworkPolicy")[0]["spec"]["ingress"].as_vec().is_some_and(|rules| rules.len() == 3));
}

/// Every value is in the schema and every entry of the schema is a value, at every depth.
#[test]
fn the_values_are_those_of_their_schema() {
    fn compare(place: &str, values: &Yaml, schema: &serde_json::Value) {
        let Some(values) = values.as_hash() else { return };
        let described = schema["properties"].as_object().unwrap_or_else(|| panic!("{place}: no properties"));
        let names: BTreeSet<String> = values.keys().map(scalar).collect();
        let known: BTreeSet<String> = described.keys().filter(|name| *name != "global").cloned().collect();
        assert_eq!(names, known, "{place}");
        values.iter().for_each(|(name, value)| {
            let name = scalar(name);
            compare(&format!("{place}.{name}"), value, &described[&name]);
        });
    }
    let schema = serde_json::from_str(&deploy("helm/walras/values.schema.json")).expect("JSON");
    compare("values", &yaml("helm/walras/values.yaml"), &schema);
}
