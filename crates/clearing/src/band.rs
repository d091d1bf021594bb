//! The window of rates in which an offer trades in part (§C.2).

/// The window in which offers trade in part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Band {
    /// 1 − μ.
    pub(crate) alpha: f64,
    /// 1 − ε.
    pub(crate) beta: f64,
}
