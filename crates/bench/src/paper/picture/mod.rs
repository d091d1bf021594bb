//! Pictures of exhibits: curves, bars where the horizontal axis is text, or the table itself.
//!
//! What the paper states is drawn beside, hollow and dashed. Below stands where and when the picture was taken.

mod axes;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use self::axes::{Axis, Names};
use super::chart::{Chart, ChartPlot, ChartSeries, QuotedPoints, cell_number, cell_text, group_name};

const WIDTH: u32 = 720;
const HEIGHT: u32 = 410;
/// The height of each of several panels.
const PANEL: u32 = 250;
/// Pixels between the lines of a table.
const ROW: usize = 20;
/// Most curves that a legend names.
const LEGEND: usize = 20;
/// Pixels of a letter at the size of marks and legends, no less than any font of the page needs.
const LETTER: f64 = 6.6;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// What all parts of a picture are drawn with.
#[derive(Clone, Copy)]
struct Drawing<'a> {
    /// Names of both axes.
    axes: (&'a str, &'a str),
    /// Whether they are logarithmic.
    log: (bool, bool),
    /// Names in the legend: the place of one is its colour.
    names: &'a [&'a str],
    /// Whether curves of this name are the paper's.
    quoted: &'a [&'a str],
}

/// A bar: its place, its group, its height.
type Bar = (usize, String, f64);

/// What a picture shows.
enum Content {
    Curves(Vec<ChartSeries>),
    Bars { places: Vec<String>, bars: Vec<Bar> },
    Table,
}

/// A picture as SVG: its title, what is drawn, what the paper states, and a line about where it was taken.
///
/// # Panics
/// Never: drawing into a string cannot fail.
pub(crate) fn svg(
    (title, taken): (&str, &str),
    chart: &Chart,
    plot: Option<&ChartPlot>,
    quoted: &[QuotedPoints],
) -> String {
    let content = content(chart, plot, quoted);
    let names = content.names();
    let widths = column_widths(chart);
    let panels = content.panels();
    let (width, height) = match content {
        Content::Table => (40 + widths.iter().sum::<u32>(), (70 + ROW * (chart.table.len() + 1)) as u32),
        _ if panels.len() > 1 => (WIDTH + legend_width(&names), PANEL * panels.len() as u32 + 30),
        _ => (WIDTH + legend_width(&names), HEIGHT + 30),
    };
    let width = width.max((letters(title) * 1.3) as u32 + 60).max(letters(taken) as u32 + 40).max(WIDTH);
    let plotted = plot.filter(|_| chart.series.is_empty());
    let drawing = Drawing {
        axes: plotted.map_or(chart.axes, |plot| (plot.x, plot.y)),
        log: plotted.map_or((false, false), |plot| plot.log),
        names: &names,
        quoted: &quoted.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
    };
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (width, height + 22)).into_drawing_area();
    let draw = |area: &Area| -> Drawn {
        area.fill(&WHITE)?;
        area.draw(&Text::new(title.to_owned(), (20, 14), ("sans-serif", 15)))?;
        area.draw(&Text::new(taken.to_owned(), (20, height as i32 + 4), ("sans-serif", 11).into_font().color(&GREY)))?;
        // The legend has a column of its own: nothing that is drawn lies under it.
        let (plotted, legend_area) = area.margin(30, 22, 0, 0).split_horizontally(WIDTH);
        match &content {
            Content::Curves(series) => {
                let areas = plotted.split_evenly((panels.len(), 1));
                for (panel, area) in panels.iter().zip(areas) {
                    let own: Vec<&ChartSeries> = series.iter().filter(|one| one.panel == *panel).collect();
                    drawing.curves(&area, panel, &own)?;
                }
            }
            Content::Bars { places, bars } => drawing.bars(&plotted, places, bars)?,
            Content::Table => return table(area, &widths, chart),
        }
        drawing.legend(&legend_area, matches!(content, Content::Bars { .. }))
    };
    draw(&area).and_then(|()| Ok(area.present()?)).expect("drawing into a string does not fail");
    drop(area);
    text
}

const GREY: RGBColor = RGBColor(110, 110, 110);

/// The colour of a curve: no two of a picture have the same.
fn colour(at: usize) -> RGBColor {
    const FIRST: [RGBColor; 8] = [
        RGBColor(27, 94, 155),
        RGBColor(200, 80, 30),
        RGBColor(46, 125, 50),
        RGBColor(123, 31, 162),
        RGBColor(183, 28, 28),
        RGBColor(0, 121, 107),
        RGBColor(93, 64, 55),
        RGBColor(69, 90, 100),
    ];
    let further = || {
        // Hues that are far from all before, and lightness in turns.
        let hue = (at as f64 * 0.618_034).fract();
        let (red, green, blue) = HSLColor(hue, 0.75, [0.35, 0.5, 0.62][at % 3]).to_backend_color().rgb;
        RGBColor(red, green, blue)
    };
    FIRST.get(at).copied().unwrap_or_else(further)
}

impl Content {
    /// Names of the curves, or of the groups of bars, each once, if they have any.
    fn names(&self) -> Vec<&str> {
        let all: Vec<&str> = match self {
            Content::Curves(series) => series.iter().map(|one| one.name.as_str()).collect(),
            Content::Bars { bars, .. } => bars.iter().map(|(_, group, _)| group.as_str()).collect(),
            Content::Table => Vec::new(),
        };
        distinct(all.into_iter())
    }

    /// Headings of its panels; one without a heading where there are none.
    fn panels(&self) -> Vec<&'static str> {
        match self {
            Content::Curves(series) => distinct(series.iter().map(|one| one.panel)),
            _ => vec![""],
        }
    }
}

fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

fn letters(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Pixels of the column of the legend: none without names.
fn legend_width(names: &[&str]) -> u32 {
    let widest = names.iter().take(LEGEND).map(|name| letters(name)).fold(0.0, f64::max);
    if names.iter().all(|name| name.is_empty()) { 0 } else { widest as u32 + 50 }
}

fn content(chart: &Chart, plot: Option<&ChartPlot>, quoted: &[QuotedPoints]) -> Content {
    let mut series = chart.curves(plot);
    // What has no name is told from the paper's.
    let named = |name: String| if name.is_empty() && !quoted.is_empty() { "here".into() } else { name };
    for one in &mut series {
        one.name = named(std::mem::take(&mut one.name));
    }
    if !series.is_empty() {
        series.extend(quoted.iter().map(|(name, points)| ChartSeries {
            name: (*name).into(),
            points: points.to_vec(),
            panel: chart.series.first().map_or("", |first| first.panel),
            is_quoted: true,
            ..ChartSeries::default()
        }));
        return Content::Curves(series);
    }
    let Some(plot) = plot else { return Content::Table };
    let (mut places, mut bars) = (Vec::new(), Vec::new());
    for row in chart.rows() {
        let Some(height) = cell_number(&row[plot.y]).filter(|height| height.is_finite()) else { continue };
        let place = cell_text(&row[plot.x]);
        let at = places.iter().position(|known| *known == place).unwrap_or(places.len());
        if at == places.len() {
            places.push(place);
        }
        bars.push((at, named(group_name(&row, plot.by)), height));
    }
    if bars.is_empty() {
        return Content::Table;
    }
    // What the paper says of bars is told by their place.
    let stated =
        quoted.iter().flat_map(|(name, points)| points.iter().map(|(at, y)| (*at as usize, (*name).into(), *y)));
    bars.extend(stated.filter(|(at, ..)| *at < places.len()));
    Content::Bars { places, bars }
}

impl Drawing<'_> {
    fn colour(&self, name: &str) -> RGBColor {
        colour(self.names.iter().position(|known| *known == name).unwrap_or(0))
    }

    fn legend(&self, area: &Area, is_bars: bool) -> Drawn {
        let shown = if legend_width(self.names) == 0 { &[] } else { self.names };
        let half = if is_bars { 5 } else { 1 };
        for (at, name) in shown.iter().enumerate().take(LEGEND) {
            let middle = 24 + (ROW * at) as i32;
            if self.quoted.contains(name) && !is_bars {
                area.draw(&Circle::new((16, middle), 4, colour(at).stroke_width(2)))?;
            } else {
                let style = self.fill(name, at);
                area.draw(&Rectangle::new([(8, middle - half), (24, middle + half)], style))?;
            }
            area.draw(&Text::new((*name).to_owned(), (30, middle - 6), ("sans-serif", 12)))?;
        }
        if shown.len() > LEGEND {
            let more = format!("and {} more", shown.len() - LEGEND);
            area.draw(&Text::new(more, (30, 18 + (ROW * LEGEND) as i32), ("sans-serif", 12)))?;
        }
        Ok(())
    }

    /// How a bar is filled: the paper's are hollow.
    fn fill(&self, name: &str, at: usize) -> ShapeStyle {
        if self.quoted.contains(&name) { colour(at).stroke_width(2) } else { colour(at).filled() }
    }

    fn curves(&self, area: &Area, heading: &str, series: &[&ChartSeries]) -> Drawn {
        let all = || series.iter().flat_map(|one| &one.points);
        // The last thousandth of a distribution would leave no room for the rest.
        let is_distribution = !self.log.1 && all().all(|(_, y)| (0.0..=1.0).contains(y));
        let beyond = series.iter().flat_map(|one| &one.beyond).map(|(x, _)| *x);
        let right = all().filter(|(_, y)| !is_distribution || *y <= 0.99).map(|(x, _)| *x).chain(beyond);
        let x = Axis::of(right, self.log.0);
        let mut y = Axis::of(all().map(|(_, y)| *y), self.log.1);
        if series.iter().any(|one| !one.beyond.is_empty()) {
            // A line above all numbers for what each curve has beyond them.
            y.range.end += 0.08 * (series.len() + 1) as f64 * (y.range.end - y.range.start);
        }
        let mut chart = ChartBuilder::on(area);
        if !heading.is_empty() {
            chart.caption(heading, ("sans-serif", 13));
        }
        chart.margin(12).x_label_area_size(42).y_label_area_size(70);
        let mut chart = chart.build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(self.axes.0)
            .y_desc(if self.axes.1.contains(heading) && !heading.is_empty() { heading } else { self.axes.1 })
            .label_style(("sans-serif", 12))
            .draw()?;
        for (at, one) in series.iter().enumerate() {
            let colour = self.colour(&one.name);
            let placed = one.points.iter().filter_map(|(along, up)| Some((x.place(*along)?, y.place(*up)?)));
            let points: Vec<(f64, f64)> = placed.filter(|(along, _)| *along <= x.range.end).collect();
            let is_few = points.len() <= 30;
            if one.is_quoted {
                chart.draw_series(DashedLineSeries::new(points.clone(), 4, 4, colour.stroke_width(1)))?;
                chart.draw_series(points.into_iter().map(|at| Circle::new(at, 5, colour.stroke_width(2))))?;
            } else {
                chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
                if is_few {
                    chart.draw_series(points.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
                }
            }
            let edge = y.range.end - 0.06 * (at + 1) as f64 * (y.range.end - y.range.start);
            let marks = one.beyond.iter().filter_map(|(along, says)| Some((x.place(*along)?, says.clone())));
            for (along, says) in marks {
                chart.draw_series([TriangleMarker::new((along, edge), 5, colour.filled())])?;
                let style = ("sans-serif", 11).into_font().color(&colour).pos(Pos::new(HPos::Right, VPos::Center));
                chart.draw_series([Text::new(format!("{says}  "), (along, edge), style)])?;
            }
        }
        Ok(())
    }

    fn bars(&self, area: &Area, places: &[String], bars: &[Bar]) -> Drawn {
        let heights = Axis::of(bars.iter().map(|(_, _, height)| *height), self.log.1).down_to_a_power();
        let mut chart = ChartBuilder::on(area);
        chart.margin(12).x_label_area_size(42).y_label_area_size(70);
        let mut chart = chart.build_cartesian_2d(Names(places.to_vec()), heights.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .x_desc(self.axes.0)
            .y_desc(self.axes.1)
            .label_style(("sans-serif", 12))
            .draw()?;
        let width = 0.8 / self.names.len().max(1) as f64;
        for (at, name) in self.names.iter().enumerate() {
            let own = bars.iter().filter(|(_, group, _)| group == name).filter_map(|(place, _, height)| {
                let left = *place as f64 + 0.1 + width * at as f64;
                let corners = [(left, heights.range.start), (left + width * 0.94, heights.place(*height)?)];
                Some(Rectangle::new(corners, self.fill(name, at)))
            });
            chart.draw_series(own)?;
        }
        Ok(())
    }
}

/// Pixels of each column of a table: those of its longest cell.
fn column_widths(chart: &Chart) -> Vec<u32> {
    let width = |(column, name): (usize, &&str)| {
        let cells = chart.table.iter().map(|row| letters(&row.get(column).map(cell_text).unwrap_or_default()));
        cells.fold(letters(name), f64::max) as u32 + 16
    };
    chart.columns.iter().enumerate().map(width).collect()
}

fn table(area: &Area, widths: &[u32], chart: &Chart) -> Drawn {
    let head: Vec<String> = chart.columns.iter().map(|name| (*name).to_string()).collect();
    let rows = chart.table.iter().map(|row| row.iter().map(cell_text).collect());
    for (line, cells) in std::iter::once(head).chain(rows).enumerate() {
        let mut left = 20;
        for (cell, width) in cells.into_iter().zip(widths) {
            area.draw(&Text::new(cell, (left, (44 + ROW * line) as i32), ("sans-serif", 12)))?;
            left += *width as i32;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn no_two_curves_have_one_colour() {
        let colours: BTreeSet<_> = (0..64).map(|at| colour(at).rgb()).collect();
        assert_eq!(colours.len(), 64);
    }

    #[test]
    fn what_the_paper_states_and_what_is_beyond_the_axis_are_drawn() {
        let rows = [json!({ "n": 1, "ms": 5.0 }), json!({ "n": 100, "ms": "over 1600" })];
        let chart = Chart::of("by hand", &[("n", "/n"), ("ms", "/ms")], &rows);
        let plot = ChartPlot { x: "n", y: "ms", by: &[], log: (true, true) };
        let drawn = svg(("a title", "commit abc"), &chart, Some(&plot), &[("the paper", &[(10.0, 7.0)])]);
        for part in ["a title", "commit abc", "the paper", "over 1600", "polygon"] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        let plain = svg(("a title", "commit abc"), &chart, Some(&plot), &[]);
        assert!(!plain.contains("the paper"));
    }

    #[test]
    fn each_panel_has_its_heading_and_one_legend() {
        let one = |name: &str, panel: &'static str| ChartSeries {
            name: name.into(),
            points: vec![(1.0, 2.0)],
            panel,
            ..ChartSeries::default()
        };
        let series = vec![one("H=0", "window"), one("H=2", "window"), one("H=0", "latency")];
        let drawn = svg(("a title", ""), &Chart { series, ..Chart::default() }, None, &[]);
        for (part, times) in [("window", 1), ("latency", 1), ("H=0", 1), ("H=2", 1)] {
            assert_eq!(drawn.matches(part).count(), times, "{part}");
        }
    }

    #[test]
    fn bars_of_the_paper_are_hollow() {
        let rows = [json!({ "what": "sign", "ns": 20.0 }), json!({ "what": "verify", "ns": 90_000.0 })];
        let chart = Chart::of("by hand", &[("what", "/what"), ("ns", "/ns")], &rows);
        let plot = ChartPlot { x: "what", y: "ns", by: &[], log: (false, true) };
        let bars = |drawn: String| drawn.matches("<rect").count();
        let without = bars(svg(("a", "b"), &chart, Some(&plot), &[]));
        assert_eq!(
            bars(svg(("a", "b"), &chart, Some(&plot), &[("the paper", &[(1.0, 50_000.0)])])),
            without + 3,
            "a bar, two marks"
        );
    }
}
