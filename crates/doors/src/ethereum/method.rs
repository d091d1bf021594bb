//! What is known of a method: its name, parameters and result, who may call it, and what runs it.

use super::Session;
use super::params::{Param, Params};
use super::wire::Answer;
use crate::roles::Role;

/// A method.
pub(super) struct Method {
    pub name: &'static str,
    /// The method's purpose, in one sentence.
    pub summary: &'static str,
    pub params: &'static [Param],
    /// The schema of its result.
    pub result: &'static str,
    pub role: Role,
    /// Whether it executes or scans.
    pub is_heavy: bool,
    pub run: fn(&Session, &Params) -> Answer,
}

pub(super) const fn method(
    name: &'static str,
    summary: &'static str,
    params: &'static [Param],
    result: &'static str,
    run: fn(&Session, &Params) -> Answer,
) -> Method {
    Method { name, summary, params, result, role: Role::Read, is_heavy: false, run }
}

pub(super) const fn heavy(method: Method) -> Method {
    Method { is_heavy: true, ..method }
}
