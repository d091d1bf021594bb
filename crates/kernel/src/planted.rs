//! The place of a planted mistake.

/// Whether mistakes can be planted in what is built: never in the product, if it is built alone.
pub const PLANTABLE: bool = cfg!(feature = "mistakes");

/// A place for a mistake, or for faulty links, that a simulation plants: a check that never fires proves nothing.
///
/// Without the feature `mistakes` the place is always empty and takes no room: [`Planted::is`] is false at compile
/// time, and the code of each mistake is removed. Nothing but [`From`], which needs the feature, fills a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Planted<M>(place::Place<M>);

#[cfg(feature = "mistakes")]
mod place {
    use std::fmt::{Debug, Formatter, Result};

    pub(super) type Place<M> = Option<M>;
    pub(super) const fn empty<M>() -> Place<M> {
        None
    }
    pub(super) fn content<M>(place: &Place<M>) -> Option<&M> {
        place.as_ref()
    }
    pub(super) fn change<M>(place: &mut Place<M>) -> Option<&mut M> {
        place.as_mut()
    }
    pub(super) fn name<M: Debug>(place: &Place<M>, f: &mut Formatter<'_>) -> Result {
        place.fmt(f)
    }
}

#[cfg(not(feature = "mistakes"))]
mod place {
    use std::fmt::{Debug, Formatter, Result};

    pub(super) type Place<M> = std::marker::PhantomData<M>;
    pub(super) const fn empty<M>() -> Place<M> {
        std::marker::PhantomData
    }
    pub(super) fn content<M>(_: &Place<M>) -> Option<&M> {
        None
    }
    pub(super) fn change<M>(_: &mut Place<M>) -> Option<&mut M> {
        None
    }
    pub(super) fn name<M: Debug>(_: &Place<M>, f: &mut Formatter<'_>) -> Result {
        f.write_str("None")
    }
}

impl<M> Planted<M> {
    /// An empty place.
    pub const NOTHING: Planted<M> = Planted(place::empty());

    /// What is planted.
    #[inline]
    pub fn as_ref(&self) -> Option<&M> {
        place::content(&self.0)
    }

    /// The same, to be changed.
    #[inline]
    pub fn as_mut(&mut self) -> Option<&mut M> {
        place::change(&mut self.0)
    }
}

impl<M: Copy + PartialEq> Planted<M> {
    /// Whether this mistake is to be made.
    #[inline]
    pub fn is(&self, mistake: M) -> bool {
        self.get() == Some(mistake)
    }

    /// The mistake that is to be made, if one is.
    #[inline]
    pub fn get(&self) -> Option<M> {
        self.as_ref().copied()
    }
}

impl<M> Default for Planted<M> {
    fn default() -> Planted<M> {
        Planted::NOTHING
    }
}

/// A place without room names not even the type of what it could hold: no mistake's name reaches the product.
impl<M: std::fmt::Debug> std::fmt::Debug for Planted<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        place::name(&self.0, f)
    }
}

#[cfg(feature = "mistakes")]
impl<M> From<Option<M>> for Planted<M> {
    fn from(mistake: Option<M>) -> Planted<M> {
        Planted(mistake)
    }
}

#[cfg(feature = "mistakes")]
impl<M> From<M> for Planted<M> {
    fn from(mistake: M) -> Planted<M> {
        Planted(Some(mistake))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Trial {
        Made,
    }

    #[test]
    #[cfg(not(feature = "mistakes"))]
    fn outside_of_simulations_a_planted_mistake_has_no_place() {
        assert_eq!(size_of::<Planted<Trial>>(), 0);
        assert!(!Planted::NOTHING.is(Trial::Made));
    }

    #[test]
    #[cfg(feature = "mistakes")]
    fn a_planted_mistake_is_made() {
        assert!(Planted::from(Trial::Made).is(Trial::Made) && !Planted::NOTHING.is(Trial::Made));
        assert_eq!(format!("{:?} {:?}", Planted::from(Trial::Made), Planted::<Trial>::default()), "Some(Made) None");
    }
}
