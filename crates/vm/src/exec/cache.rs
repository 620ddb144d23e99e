//! What property sites found, shared by all of them: the second chance of a site that sees objects of several shapes.
//!
//! Like the sites' own memory it never changes a result or a charge, is not part of a snapshot, and is forgotten when
//! shapes are freed.

use super::state::Site;
use crate::heap::{Key, ShapeId};

/// Entries of each kind; a power of two.
const ENTRIES: usize = 256;

/// The last finds by shape and key.
#[derive(Debug)]
pub(crate) struct Finds {
    entries: Vec<Site>,
}

impl Finds {
    /// Nothing is taken from the allocator before there is something to remember.
    pub(crate) const fn new() -> Finds {
        Finds { entries: Vec::new() }
    }

    /// What a site with this key last found in an object of this shape.
    #[inline]
    pub(crate) fn find(&self, shape: ShapeId, key: Key) -> Option<Site> {
        let site = *self.entries.get(place(shape, key))?;
        (site.shape == shape && site.key == key).then_some(site)
    }

    pub(crate) fn remember(&mut self, site: Site) {
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES, Site::new(site.key));
        }
        if let Some(entry) = self.entries.get_mut(place(site.shape, site.key)) {
            *entry = site;
        }
    }

    pub(crate) fn forget(&mut self) {
        self.entries.clear();
    }
}

#[inline]
fn place(shape: ShapeId, key: Key) -> usize {
    (shape.raw().wrapping_mul(0x9E37_79B1) ^ key.raw().wrapping_mul(0x85EB_CA6B)) as usize >> 16
        & (ENTRIES - 1)
}
