//! Pictures of exhibits: curves, bars where the horizontal axis is text, or the table itself.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::chart::{Chart, ChartPlot, ChartSeries, cell_number, cell_text, group_name};

const WIDTH: u32 = 720;
const HEIGHT: u32 = 440;
/// Pixels between the lines of a table.
const ROW: usize = 20;
const COLOURS: [RGBColor; 8] = [
    RGBColor(27, 94, 155),
    RGBColor(200, 80, 30),
    RGBColor(46, 125, 50),
    RGBColor(123, 31, 162),
    RGBColor(183, 28, 28),
    RGBColor(0, 121, 107),
    RGBColor(93, 64, 55),
    RGBColor(69, 90, 100),
];
/// Most curves that a legend names.
const LEGEND: usize = 20;
/// Pixels of a letter at the size of marks and legends, no less than any font of the page needs.
const LETTER: f64 = 6.6;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A bar: its place, its colour, its height.
type Bar = (usize, usize, f64);

/// How a curve or a group of bars is drawn beside its name.
type Mark = fn((i32, i32), RGBColor) -> Rectangle<(i32, i32)>;

/// What a picture shows.
enum Content {
    Curves(Vec<ChartSeries>),
    Bars { places: Vec<String>, groups: Vec<String>, bars: Vec<Bar> },
    Table,
}

/// A picture as SVG.
///
/// # Panics
/// Never: drawing into a string cannot fail.
pub(crate) fn svg(title: &str, chart: &Chart, plot: Option<&ChartPlot>) -> String {
    let content = content(chart, plot);
    let names = content.names();
    let widths = column_widths(chart);
    let (width, height) = match content {
        Content::Table => (40 + widths.iter().sum::<u32>(), (70 + ROW * (chart.table.len() + 1)) as u32),
        _ => (WIDTH + legend_width(&names), HEIGHT),
    };
    let width = width.max((letters(title) * 1.3) as u32 + 60).max(WIDTH);
    let plotted = plot.filter(|_| chart.series.is_empty());
    let axes = plotted.map_or(chart.axes, |plot| (plot.x, plot.y));
    let log = plotted.map_or((false, false), |plot| plot.log);
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
    let draw = |area: &Area| -> Drawn {
        area.fill(&WHITE)?;
        area.draw(&Text::new(title.to_owned(), (20, 14), ("sans-serif", 15)))?;
        // The legend has a column of its own: nothing that is drawn lies under it.
        let (plotted, legend_area) = area.margin(30, 0, 0, 0).split_horizontally(WIDTH);
        match &content {
            Content::Curves(series) => {
                curves(&plotted, axes, log, series)?;
                legend(&legend_area, &names, |(x, y), colour| {
                    Rectangle::new([(x, y - 1), (x + 16, y + 1)], colour.filled())
                })?;
            }
            Content::Bars { places, groups, bars } => {
                draw_bars(&plotted, axes, (places, groups, bars))?;
                legend(&legend_area, &names, |(x, y), colour| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
                })?;
            }
            Content::Table => table(area, &widths, chart)?,
        }
        Ok(area.present()?)
    };
    draw(&area).expect("drawing into a string does not fail");
    drop(area);
    text
}

impl Content {
    /// Names of the curves, or of the groups of bars, if they have any.
    fn names(&self) -> Vec<&str> {
        let all: Vec<&str> = match self {
            Content::Curves(series) => series.iter().map(|one| one.name.as_str()).collect(),
            Content::Bars { groups, .. } => groups.iter().map(String::as_str).collect(),
            Content::Table => Vec::new(),
        };
        if all.iter().all(|name| name.is_empty()) { Vec::new() } else { all }
    }
}

fn letters(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// Pixels of the column of the legend: none without names.
fn legend_width(names: &[&str]) -> u32 {
    let widest = names.iter().take(LEGEND).map(|name| letters(name)).fold(0.0, f64::max);
    if names.is_empty() { 0 } else { widest as u32 + 50 }
}

fn legend(area: &Area, names: &[&str], mark: Mark) -> Drawn {
    for (at, name) in names.iter().enumerate().take(LEGEND) {
        let middle = 24 + (ROW * at) as i32;
        area.draw(&mark((8, middle), COLOURS[at % COLOURS.len()]))?;
        area.draw(&Text::new((*name).to_owned(), (30, middle - 6), ("sans-serif", 12)))?;
    }
    if names.len() > LEGEND {
        let more = format!("and {} more", names.len() - LEGEND);
        area.draw(&Text::new(more, (30, 18 + (ROW * LEGEND) as i32), ("sans-serif", 12)))?;
    }
    Ok(())
}

fn content(chart: &Chart, plot: Option<&ChartPlot>) -> Content {
    let series = chart.curves(plot);
    if !series.is_empty() {
        return Content::Curves(series);
    }
    let (mut places, mut groups, mut bars) = (Vec::new(), Vec::new(), Vec::new());
    let place_of = |names: &mut Vec<String>, name: String| {
        names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    };
    for row in plot.map(|_| chart.rows()).into_iter().flatten() {
        let Some(plot) = plot else { break };
        let Some(height) = cell_number(&row[plot.y]).filter(|height| height.is_finite()) else { continue };
        let place = place_of(&mut places, cell_text(&row[plot.x]));
        let group = place_of(&mut groups, group_name(&row, plot.by));
        bars.push((place, group, height));
    }
    if bars.is_empty() { Content::Table } else { Content::Bars { places, groups, bars } }
}

/// The least and the most of some finite numbers, with some room.
fn range(numbers: impl Iterator<Item = f64> + Clone, is_log: bool) -> std::ops::Range<f64> {
    let finite = numbers.filter(|number| number.is_finite());
    let most = finite.clone().fold(f64::NEG_INFINITY, f64::max);
    let least = finite.fold(f64::INFINITY, f64::min);
    let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
    match is_log {
        true => (least - 0.1)..(most + 0.1),
        // Curves begin at zero: a difference of a tenth should look like one.
        false => least.min(0.0)..if most > least.min(0.0) { most * 1.03 } else { least.min(0.0) + 1.0 },
    }
}

fn curves(area: &Area, axes: (&str, &str), log: (bool, bool), series: &[ChartSeries]) -> Drawn {
    let scaled = |value: f64, is_log: bool| if is_log { value.max(1e-9).log10() } else { value };
    let point = |(x, y): &(f64, f64)| (scaled(*x, log.0), scaled(*y, log.1));
    let all = || series.iter().flat_map(|one| &one.points).map(point);
    // The last thousandth of a distribution would leave no room for the rest.
    let is_distribution = !log.1 && all().all(|(_, y)| (0.0..=1.0).contains(&y));
    let right = all().filter(|(_, y)| !is_distribution || *y <= 0.99).map(|(x, _)| x);
    let (x_range, y_range) = (range(right, log.0), range(all().map(|(_, y)| y), log.1));
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(x_range.clone(), y_range)?;
    let label = |is_log: bool| move |value: &f64| compact(if is_log { 10f64.powf(*value) } else { *value });
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(axes.0)
        .y_desc(axes.1)
        .x_label_formatter(&label(log.0))
        .y_label_formatter(&label(log.1))
        .label_style(("sans-serif", 12))
        .draw()?;
    for (at, one) in series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let visible = |(x, y): &(f64, f64)| *x <= x_range.end && y.is_finite();
        let points: Vec<(f64, f64)> = one.points.iter().map(point).filter(visible).collect();
        let is_few = points.len() <= 30;
        chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        if is_few {
            chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
    }
    Ok(())
}

fn draw_bars(area: &Area, axes: (&str, &str), (places, groups, bars): (&[String], &[String], &[Bar])) -> Drawn {
    let heights = range(bars.iter().map(|(_, _, height)| *height), false);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..places.len() as f64, heights)?;
    // A mark in the middle of each place carries its name.
    let name = |at: &f64| {
        let is_middle = ((at - 0.5) - (at - 0.5).round()).abs() < 0.01;
        is_middle.then(|| places.get(*at as usize).cloned()).flatten().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_desc(axes.0)
        .y_desc(axes.1)
        .x_labels(2 * places.len() + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&|value: &f64| compact(*value))
        .label_style(("sans-serif", 12))
        .draw()?;
    let width = 0.8 / groups.len().max(1) as f64;
    for at in 0..groups.len() {
        let colour = COLOURS[at % COLOURS.len()];
        let own = bars.iter().filter(|(_, of, _)| *of == at).map(|(place, _, height)| {
            let left = *place as f64 + 0.1 + width * at as f64;
            Rectangle::new([(left, 0.0), (left + width * 0.94, *height)], colour.filled())
        });
        chart.draw_series(own)?;
    }
    Ok(())
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

/// A mark on an axis: 1,500,000 is 1.5M.
fn compact(value: f64) -> String {
    let (divided, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{unit}", cell_text(&serde_json::Value::from((divided * 1e4).round() / 1e4)))
}
