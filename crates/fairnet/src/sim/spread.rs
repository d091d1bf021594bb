//! Percentiles, distances of samples, intervals of means.

/// Sorted samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// Sorts samples.
    pub fn new(mut samples: Vec<f64>) -> Spread {
        samples.sort_by(f64::total_cmp);
        Spread(samples)
    }

    /// The samples, ascending.
    pub fn sorted(&self) -> &[f64] {
        &self.0
    }

    /// The value below which a share of the samples lie, by the nearest rank; NaN of none.
    pub fn at(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil().max(1.0) as usize - 1;
        self.0.get(rank).or(self.0.last()).copied().unwrap_or(f64::NAN)
    }

    /// Mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Standard deviation.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / self.0.len() as f64).sqrt()
    }

    /// Share of samples that are at most `value`.
    pub fn share_up_to(&self, value: f64) -> f64 {
        self.0.partition_point(|sample| *sample <= value) as f64 / self.0.len() as f64
    }
}

/// The largest difference between the distribution functions of two samples.
pub fn kolmogorov_smirnov(one: &Spread, two: &Spread) -> f64 {
    let at = |value: &f64| (one.share_up_to(*value) - two.share_up_to(*value)).abs();
    one.0.iter().chain(&two.0).map(at).fold(0.0, f64::max)
}

/// Student's t for a two-sided interval of 95 %, by degrees of freedom from 1 on.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Mean and half width of its interval of 95 %, of values of several seeds.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let student = values.len().checked_sub(2).map_or(f64::INFINITY, |at| STUDENT.get(at).copied().unwrap_or(1.96));
    (mean, student * (square / count).sqrt())
}
