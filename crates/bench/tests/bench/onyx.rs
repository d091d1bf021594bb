//! The exhibits of Onyx: labelled, reproducible, and the numbers that are known.

use bench::paper::exhibit::{Exhibit, ExhibitKind, Paper, PaperOptions};
use bench::paper::{NoExhibit, exhibits, run};
use serde_json::Value;

fn chosen(figures: &[u32], tables: &[u32], names: &[String], all: bool) -> Result<Vec<&'static Exhibit>, NoExhibit> {
    bench::paper::chosen(Paper::Onyx, figures, tables, names, all)
}

fn shown(name: &str) -> Value {
    let exhibit = chosen(&[], &[], &[name.into()], false).expect("an exhibit");
    run(&exhibit, &PaperOptions::small(), None, &mut |_| ()).expect("no file is written")["exhibits"][0].clone()
}

fn row<'a>(exhibit: &'a Value, series: &str) -> &'a Value {
    let rows = exhibit["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["series"] == series).expect("a row")
}

#[test]
fn exhibits_are_found_by_their_numbers() {
    let names = |figures: &[u32], tables: &[u32]| -> Vec<&str> {
        chosen(figures, tables, &[], false).expect("exhibits").iter().map(|exhibit| exhibit.id).collect()
    };
    assert_eq!(names(&[15, 7], &[4]), ["table-4", "figure-15", "figure-7"]);
    assert_eq!(chosen(&[], &[], &[], true).expect("all").len(), exhibits(Paper::Onyx).len());
    let refused = chosen(&[32], &[], &[], false).err().expect("the paper has 31").to_string();
    assert!(refused.starts_with("onyx has no figure-32"), "{refused}");
    let missing = (1..=31).filter(|number| chosen(&[*number], &[], &[], false).is_err());
    assert_eq!(missing.collect::<Vec<u32>>(), Vec::<u32>::new());
    assert!(chosen(&[], &[1, 2, 3, 4], &[], false).is_ok());
}

#[test]
fn measured_exhibits_are_labelled_and_a_release_is_one_loop() {
    let names = ["proxy-rate".to_string(), "release-span".to_string()];
    let exhibits = chosen(&[5], &[], &names, false).expect("exhibits");
    assert!(exhibits.iter().all(|exhibit| exhibit.kind == ExhibitKind::Measured));
    let spans = shown("release-span");
    let rows = spans["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["release, ns"].as_f64() > Some(0.0)));
    let rates = shown("proxy-rate");
    assert!(rates["rows"].as_array().expect("rows").iter().all(|row| row["ratio"].as_f64() > Some(0.0)), "{rates}");
}

#[test]
fn table_4_counts_the_proxies_and_dollars_of_the_paper() {
    let table = shown("table-4");
    let rows = table["rows"].as_array().expect("rows");
    let numbers = |row: &Value| {
        ["proxies H=0", "proxies H=2", "dollars/hour H=2"].map(|column| row[column].as_f64().expect("a number"))
    };
    assert_eq!([numbers(&rows[0]), numbers(&rows[1])], [[10.0, 30.0, 10.2], [110.0, 330.0, 112.2]]);
    assert_eq!(table["kind"], "computed");
}

#[test]
fn table_3_is_within_its_residuals() {
    let table = shown("table-3");
    for row in table["rows"].as_array().expect("rows") {
        let off = row["simulated off %"].as_f64().expect("a number");
        assert!(off.abs() <= 13.0, "{row}");
    }
}

#[test]
fn figure_15_has_the_known_means_of_both_kinds_of_draw() {
    let figure = shown("figure-15");
    let means = [(0, 1.49), (1, 1.04), (2, 0.82), (3, 0.70)];
    for (hedging, mean) in means {
        let found = row(&figure, &format!("D=3 H={hedging} tree"))["mean"].as_f64().expect("a number");
        assert!((found - mean).abs() < 0.03, "H = {hedging}: {found}");
    }
}

#[test]
fn designs_of_the_way_in_rank_as_in_the_paper_on_the_same_orders() {
    let figure = shown("figure-31");
    let find = |design: &str, column: &str| {
        let rows = figure["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["design"] == design).expect("a design");
        row[column].as_f64().expect("a number")
    };
    let rate = |design| find(design, "in bursts");
    assert!(rate("Onyx") > 1.2 * rate("CloudEx") && rate("CloudEx") > rate("DBO"), "{figure}");
    assert!(find("Onyx", "latency p50 ms") < find("CloudEx", "latency p50 ms"), "{figure}");
    // Everybody had the same orders.
    assert_eq!(find("Onyx", "orders made"), find("DBO", "orders made"));
}

#[test]
fn validations_by_the_closed_form_and_by_ablation_hold() {
    for name in ["validation-a", "validation-f"] {
        let checks = shown(name);
        assert_eq!(checks["holds"], true, "{checks}");
    }
}

#[test]
fn lateness_is_nothing_without_losses_and_grows_with_them() {
    let figure = shown("figure-13");
    let mean = |series: &str| row(&figure, series)["mean"].as_f64().expect("a number");
    assert!(mean("0 % lost") < 0.01 && mean("1 % lost") > mean("0.05 % lost"));
    assert_eq!(row(&figure, "0.005 % lost")["p50"], 0.0);
    assert!(row(&figure, "0.005 % lost")["p90"].as_f64().is_some_and(|late| late <= 3.0));
}

#[test]
fn figures_are_reproducible_by_seed_and_no_plot_lacks_its_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = chosen(&[17, 22, 24], &[4], &[], false).expect("exhibits");
    let report = |seed| {
        let options = PaperOptions { seed, ..PaperOptions::small() };
        let report = run(&asked, &options, Some(folder.path()), &mut |_| ()).expect("files");
        let rows = report["exhibits"].as_array().expect("exhibits").iter().map(|exhibit| exhibit["rows"].clone());
        rows.collect::<Vec<Value>>()
    };
    let first = report(7);
    assert_eq!(first, report(7));
    assert_ne!(first, report(8));
    for exhibit in &asked {
        let read = |kind: &str| {
            std::fs::read_to_string(folder.path().join(format!("{}.{kind}", exhibit.file()))).expect("a file")
        };
        assert!(read("csv").starts_with(&format!("# {}: ", exhibit.kind.name())));
        let picture = read("svg");
        assert!(picture.contains(&format!("({})", exhibit.kind.name())) && picture.trim_end().ends_with("</svg>"));
    }
    assert!(exhibits(Paper::Onyx).iter().any(|exhibit| exhibit.kind == ExhibitKind::Quoted));
}

#[test]
fn bursts_trade_more_behind_a_queue_by_class_and_nobody_is_skipped_for_a_backlog() {
    let figure = shown("figure-9");
    let rows = figure["rows"].as_array().expect("rows");
    let number = |row: usize, column: &str| rows[row][column].as_f64().expect("a number");
    assert!(number(0, "in bursts") > 1.5 * number(1, "in bursts"));
    assert!(number(0, "latency ms") < number(1, "latency ms") / 2.0);
    assert!((0..2).all(|row| rows[row]["fairness events"] == 0), "{rows:?}");
}
