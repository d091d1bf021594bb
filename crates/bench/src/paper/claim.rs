//! What must hold of an exhibit's rows, checked by the program.

use serde_json::{Value, json};

use super::chart::{cell_number, cell_text, group_name};
use super::circumstances::{ClaimNeeds, RunCircumstances};

/// A sentence about rows, and how it is checked.
#[derive(Clone, Copy, Debug)]
pub struct ShapeClaim {
    /// The sentence.
    pub says: &'static str,
    /// Only rows whose columns have these texts count.
    pub only: &'static [(&'static str, &'static str)],
    /// Rows with equal values in these columns belong together; the claim holds if it holds of each group.
    pub by: &'static [&'static str],
    /// What must hold.
    pub shape: ClaimShape,
    /// What a run must have for it to be tested.
    pub needs: ClaimNeeds,
}

/// What must hold of the rows of a group, in their order.
#[derive(Clone, Copy, Debug)]
pub enum ClaimShape {
    /// Each number is at least the one before it, less a share `slack` of it, and the last is above the first.
    Rises {
        /// The column.
        column: &'static str,
        /// A share, for noise.
        slack: f64,
    },
    /// Each number is at most the one before it, plus a share `slack` of it, and the last is below the first.
    Falls {
        /// The column.
        column: &'static str,
        /// A share, for noise.
        slack: f64,
    },
    /// In each row, `over` is at least `least` times `under`.
    RatioAtLeast {
        /// The larger column.
        over: &'static str,
        /// The smaller column.
        under: &'static str,
        /// The factor.
        least: f64,
    },
    /// Each number over the one before it is between these: what a doubling gains.
    Steps {
        /// The column.
        column: &'static str,
        /// The least ratio.
        least: f64,
        /// The most.
        most: f64,
    },
    /// The number where the column `x` has the text `over`, over that where it has `under`, is between these.
    At {
        /// The column.
        column: &'static str,
        /// The column by which the two rows are found.
        x: &'static str,
        /// Its text in the row whose number is divided.
        over: &'static str,
        /// Its text in the row by whose number it is divided.
        under: &'static str,
        /// The least ratio.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Of two rows, each of which has a cell with this text, one number over the other is between these.
    Rows {
        /// The column.
        column: &'static str,
        /// The row whose number is divided.
        over: &'static str,
        /// The row by whose number it is divided.
        under: &'static str,
        /// The least ratio.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Each number is between these.
    Within {
        /// The column.
        column: &'static str,
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// The last number over the first is between these.
    LastOverFirst {
        /// The column.
        column: &'static str,
        /// The least ratio.
        least: f64,
        /// The most.
        most: f64,
    },
    /// `falling`, which begins above `rising`, is first below it at an `x` between these.
    Crosses {
        /// The column along which they cross.
        x: &'static str,
        /// The column that begins above.
        falling: &'static str,
        /// The column that ends above.
        rising: &'static str,
        /// The least x.
        least: f64,
        /// The most.
        most: f64,
    },
    /// The column says true.
    True(&'static str),
}

/// What a check found: `holds` is `None` if the rows have too few numbers for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimVerdict {
    /// Whether the claim holds.
    pub holds: Option<bool>,
    /// The numbers that say so: one for each group, those that fail first.
    pub numbers: String,
}

/// Numbers that a verdict prints.
const SHOWN: usize = 6;

/// What one group says: whether it holds, and its numbers.
type Found = (bool, String);

impl ShapeClaim {
    /// A claim about all rows together, which every run tests.
    pub const fn of(says: &'static str, shape: ClaimShape) -> ShapeClaim {
        ShapeClaim { says, only: &[], by: &[], shape, needs: ClaimNeeds::Rows }
    }

    /// The same of those rows alone whose columns have these texts.
    pub const fn only(mut self, only: &'static [(&'static str, &'static str)]) -> ShapeClaim {
        self.only = only;
        self
    }

    /// The same of each group of rows that are equal in these columns.
    pub const fn by(mut self, by: &'static [&'static str]) -> ShapeClaim {
        self.by = by;
        self
    }

    /// The same, tested only by a run that has this.
    pub const fn needs(mut self, needs: ClaimNeeds) -> ShapeClaim {
        self.needs = needs;
        self
    }

    /// Every column that it reads.
    pub fn columns(&self) -> Vec<&'static str> {
        let only = self.only.iter().map(|(column, _)| *column);
        only.chain(self.by.iter().copied()).chain(self.shape.columns()).collect()
    }

    /// Checks the claim on the rows of a table.
    pub fn check(&self, rows: &[Value]) -> ClaimVerdict {
        let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
        let counts = |row: &&Value| self.only.iter().all(|(column, text)| cell_text(&row[*column]) == *text);
        for row in rows.iter().filter(counts) {
            let name = group_name(row, self.by);
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, group)) => group.push(row),
                None => groups.push((name, vec![row])),
            }
        }
        let mut found: Vec<(bool, String)> = Vec::new();
        for (name, group) in &groups {
            let numbers = self.shape.check(group).into_iter();
            let named = |text: String| if name.is_empty() { text } else { format!("{text} ({name})") };
            found.extend(numbers.map(|(holds, text)| (holds, named(text))));
        }
        let holds = (!found.is_empty()).then(|| found.iter().all(|(holds, _)| *holds));
        found.sort_by_key(|(holds, _)| *holds);
        let more = found.len().saturating_sub(SHOWN);
        let mut texts: Vec<String> = found.into_iter().take(SHOWN).map(|(_, text)| text).collect();
        if more > 0 {
            texts.push(format!("and {more} more"));
        }
        let numbers = if texts.is_empty() { "too few numbers to check it".into() } else { texts.join("; ") };
        ClaimVerdict { holds, numbers }
    }

    /// The sentence with its verdict, why it is known not to hold, and why the run does not test it. The numbers are
    /// told in any case.
    pub fn as_json(&self, rows: &[Value], unmet: Option<&str>, run: &RunCircumstances) -> Value {
        let ClaimVerdict { holds, numbers } = self.check(rows);
        let lack = run.lack(self.needs);
        let judged = holds.filter(|_| lack.is_none());
        let verdict = judged.map_or("not tested", |holds| if holds { "holds" } else { "fails" });
        let mut told = json!({ "claim": self.says, "verdict": verdict, "numbers": numbers });
        let reasons = [("unmet", unmet.map(str::to_owned)), ("untested", lack)];
        for (name, reason) in reasons.into_iter().filter_map(|(name, reason)| Some((name, reason?))) {
            told[name] = reason.into();
        }
        told
    }
}

fn described(number: f64) -> String {
    if number.is_infinite() { "infinite".into() } else { cell_text(&Value::from(number)) }
}

/// Whether a number is between two others, and its text.
fn between(number: f64, least: f64, most: f64) -> Found {
    ((least..=most).contains(&number), described(number))
}

impl ClaimShape {
    /// The columns that it names; [`ClaimShape::Rows`] looks for its rows in all.
    fn columns(&self) -> Vec<&'static str> {
        match *self {
            ClaimShape::Rises { column, .. }
            | ClaimShape::Falls { column, .. }
            | ClaimShape::Steps { column, .. }
            | ClaimShape::Rows { column, .. }
            | ClaimShape::Within { column, .. }
            | ClaimShape::LastOverFirst { column, .. }
            | ClaimShape::True(column) => vec![column],
            ClaimShape::At { column, x, .. } => vec![column, x],
            ClaimShape::RatioAtLeast { over, under, .. } => vec![over, under],
            ClaimShape::Crosses { x, falling, rising, .. } => vec![x, falling, rising],
        }
    }

    fn check(&self, rows: &[&Value]) -> Vec<Found> {
        let column = |name: &str| rows.iter().filter_map(|row| cell_number(&row[name])).collect::<Vec<f64>>();
        match *self {
            ClaimShape::Rises { column: name, slack } => direction(&column(name), true, slack),
            ClaimShape::Falls { column: name, slack } => direction(&column(name), false, slack),
            ClaimShape::Steps { column: name, least, most } => {
                column(name).windows(2).map(|pair| between(ratio(pair[0], pair[1]), least, most)).collect()
            }
            ClaimShape::At { column, x, over, under, least, most } => {
                let number = |at: &str| cell_number(&rows.iter().find(|row| cell_text(&row[x]) == at)?[column]);
                quotient(number(over), number(under), least, most)
            }
            ClaimShape::Rows { column: name, over, under, least, most } => {
                let number = |of: &str| {
                    let is_named =
                        |row: &&&Value| row.as_object().is_some_and(|row| row.values().any(|cell| cell == of));
                    cell_number(&rows.iter().find(is_named)?[name])
                };
                quotient(number(over), number(under), least, most)
            }
            ClaimShape::RatioAtLeast { over, under, least } => {
                let found = |row: &&Value| Some(ratio(cell_number(&row[under])?, cell_number(&row[over])?));
                rows.iter().filter_map(found).map(|found| between(found, least, f64::INFINITY)).collect()
            }
            ClaimShape::Within { column: name, least, most } => {
                column(name).into_iter().map(|number| between(number, least, most)).collect()
            }
            ClaimShape::LastOverFirst { column: name, least, most } => {
                let numbers = column(name);
                let [first, .., last] = numbers[..] else { return Vec::new() };
                vec![between(ratio(first, last), least, most)]
            }
            ClaimShape::Crosses { x, falling, rising, least, most } => {
                crossing(rows, [x, falling, rising], least..=most)
            }
            ClaimShape::True(name) => {
                rows.iter().filter_map(|row| row[name].as_bool()).map(|is| (is, u8::from(is).to_string())).collect()
            }
        }
    }
}

/// How many times `before` a number is. Two infinite numbers are as large as each other.
fn ratio(before: f64, after: f64) -> f64 {
    if before == after { 1.0 } else { after / before }
}

/// One finding if both numbers are there.
fn quotient(over: Option<f64>, under: Option<f64>, least: f64, most: f64) -> Vec<Found> {
    let found = over.zip(under).map(|(over, under)| ratio(under, over));
    found.map(|found| between(found, least, most)).into_iter().collect()
}

/// One finding for a sequence: the last number over the first, and its worst step. Both decide, since a sequence that
/// ends where it began neither rises nor falls.
fn direction(numbers: &[f64], is_to_rise: bool, slack: f64) -> Vec<Found> {
    let pairs = numbers.windows(2).map(|pair| ratio(pair[0], pair[1]));
    let Some(worst) = pairs.reduce(if is_to_rise { f64::min } else { f64::max }) else { return Vec::new() };
    let whole = ratio(numbers[0], numbers[numbers.len() - 1]);
    let (is_smooth, moves) = match is_to_rise {
        true => (worst >= 1.0 - slack, whole > 1.0),
        false => (worst <= 1.0 + slack, whole < 1.0),
    };
    vec![(is_smooth && moves, format!("{} in all, worst step {}", described(whole), described(worst)))]
}

fn crossing(rows: &[&Value], [x, falling, rising]: [&str; 3], within: std::ops::RangeInclusive<f64>) -> Vec<Found> {
    let point = |row: &&Value| Some((cell_number(&row[x])?, cell_number(&row[falling])?, cell_number(&row[rising])?));
    let points: Vec<(f64, f64, f64)> = rows.iter().filter_map(point).collect();
    if points.len() < 2 {
        return Vec::new();
    }
    let begins_above = points[0].1 > points[0].2;
    let crossed = points.iter().find(|(_, falling, rising)| falling < rising);
    match crossed.filter(|_| begins_above) {
        Some((x, ..)) => vec![between(*x, *within.start(), *within.end())],
        None => vec![(false, "infinite".into())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(by: &'static [&'static str], shape: ClaimShape) -> ShapeClaim {
        ShapeClaim::of("it holds", shape).by(by)
    }

    fn rows(numbers: &[f64]) -> Vec<Value> {
        (1..).zip(numbers).map(|(x, y)| json!({ "x": x, "y": y, "z": 3 })).collect()
    }

    #[test]
    fn every_shape_holds_on_good_rows_and_fails_on_bad_ones() {
        let checks = [
            (ClaimShape::Rises { column: "y", slack: 0.1 }, [1.0, 2.0, 1.9], [1.0, 2.0, 1.7]),
            (ClaimShape::Falls { column: "y", slack: 0.0 }, [3.0, 2.0, 2.0], [3.0, 2.0, 2.1]),
            (ClaimShape::RatioAtLeast { over: "y", under: "z", least: 2.0 }, [6.0, 7.0, 8.0], [6.0, 5.9, 8.0]),
            (ClaimShape::Steps { column: "y", least: 1.4, most: 2.0 }, [1.0, 1.5, 3.0], [1.0, 1.5, 2.0]),
            (
                ClaimShape::At { column: "y", x: "x", over: "3", under: "1", least: 2.0, most: 4.0 },
                [1.0, 9.0, 2.0],
                [2.0, 4.0, 3.0],
            ),
            (ClaimShape::Within { column: "y", least: 1.0, most: 2.0 }, [1.0, 1.5, 2.0], [1.0, 2.5, 2.0]),
            (ClaimShape::LastOverFirst { column: "y", least: 2.0, most: 4.0 }, [1.0, 9.0, 3.0], [1.0, 3.0, 5.0]),
            (
                ClaimShape::Crosses { x: "x", falling: "y", rising: "z", least: 2.0, most: 2.0 },
                [4.0, 2.0, 1.0],
                [4.0, 4.0, 1.0],
            ),
        ];
        for (shape, good, bad) in checks {
            assert_eq!(claim(&[], shape).check(&rows(&good)).holds, Some(true), "{shape:?}");
            assert_eq!(claim(&[], shape).check(&rows(&bad)).holds, Some(false), "{shape:?}");
            assert_eq!(claim(&[], shape).check(&[]).holds, None, "{shape:?}");
        }
        for shape in [ClaimShape::Rises { column: "y", slack: 0.1 }, ClaimShape::Falls { column: "y", slack: 0.1 }] {
            assert_eq!(claim(&[], shape).check(&rows(&[0.0; 3])).holds, Some(false), "equal numbers: {shape:?}");
            assert_eq!(claim(&[], shape).check(&rows(&[3.0, 2.9, 3.0])).holds, Some(false), "no way made: {shape:?}");
        }
        let named = [json!({ "series": "a", "y": 6 }), json!({ "series": "b", "y": 2 })];
        let rows_of = |over, under| ClaimShape::Rows { column: "y", over, under, least: 2.0, most: 4.0 };
        assert_eq!(claim(&[], rows_of("a", "b")).check(&named).holds, Some(true));
        assert_eq!(claim(&[], rows_of("b", "a")).check(&named).holds, Some(false));
        assert_eq!(claim(&[], rows_of("a", "c")).check(&named).holds, None);
        let told = [json!({ "is": true }), json!({ "is": false })];
        assert_eq!(claim(&[], ClaimShape::True("is")).check(&told[..1]).holds, Some(true));
        assert_eq!(claim(&[], ClaimShape::True("is")).check(&told).holds, Some(false));
    }

    #[test]
    fn a_direction_tells_the_whole_way_and_the_worst_step() {
        let rises = claim(&[], ClaimShape::Rises { column: "y", slack: 0.1 });
        let all = "4 in all, worst step 0.8";
        assert_eq!(rises.check(&rows(&[1.0, 5.0, 4.0])), ClaimVerdict { holds: Some(false), numbers: all.into() });
        let all = "4 in all, worst step 2";
        assert_eq!(rises.check(&rows(&[1.0, 2.0, 4.0])), ClaimVerdict { holds: Some(true), numbers: all.into() });
    }

    #[test]
    fn what_a_run_cannot_test_is_not_judged_and_its_numbers_are_told() {
        let quiet = claim(&[], ClaimShape::Within { column: "y", least: 0.0, most: 1.0 }).needs(ClaimNeeds::Quiet);
        let run = |load: f64| RunCircumstances::of(&json!({ "cores": 2, "threads": [1, 2], "load_before": [load] }));
        let told = quiet.as_json(&rows(&[3.0]), None, &run(2.5));
        let why = "a load of 2.5 on 2 cores decides it";
        assert_eq!(told, json!({ "claim": "it holds", "verdict": "not tested", "numbers": "3", "untested": why }));
        let told = quiet.as_json(&rows(&[3.0]), Some("slow"), &run(1.5));
        assert_eq!(told, json!({ "claim": "it holds", "verdict": "fails", "numbers": "3", "unmet": "slow" }));
        let told = quiet.as_json(&[], None, &run(1.5));
        assert_eq!((&told["verdict"], told.get("untested")), (&"not tested".into(), None), "nothing is there to judge");
    }

    #[test]
    fn curves_that_never_cross_do_not_cross_within_anything() {
        let shape = ClaimShape::Crosses { x: "x", falling: "y", rising: "z", least: 0.0, most: f64::INFINITY };
        assert_eq!(claim(&[], shape).check(&rows(&[5.0, 4.0])).holds, Some(false), "always above");
        assert_eq!(claim(&[], shape).check(&rows(&[2.0, 1.0])).holds, Some(false), "never above");
    }

    #[test]
    fn groups_are_checked_one_by_one_and_what_fails_is_shown_first() {
        let row = |group: &str, y: f64| json!({ "g": group, "y": y });
        let shape = ClaimShape::LastOverFirst { column: "y", least: 1.0, most: 2.0 };
        let all = [row("a", 1.0), row("b", 4.0), row("a", 2.0), row("b", 2.0)];
        let verdict = claim(&["g"], shape).check(&all);
        assert_eq!(verdict, ClaimVerdict { holds: Some(false), numbers: "0.5 (g b); 2 (g a)".into() });
        let only = claim(&["g"], shape).only(&[("g", "a")]);
        assert_eq!(only.columns(), ["g", "g", "y"]);
        assert_eq!(only.check(&all).holds, Some(true));
    }

    #[test]
    fn infinite_numbers_are_numbers() {
        let all = [json!({ "y": "infinite", "z": 2 }), json!({ "y": "over 1600", "z": "over 1600" })];
        let ratio = claim(&[], ClaimShape::RatioAtLeast { over: "y", under: "z", least: 1.0 });
        assert_eq!(ratio.check(&all), ClaimVerdict { holds: Some(true), numbers: "infinite; 1".into() });
        let least = claim(&[], ClaimShape::Within { column: "y", least: 0.0, most: 9.0 });
        assert_eq!(least.check(&all).holds, Some(false));
    }
}
