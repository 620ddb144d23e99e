//! Which containers are open, as bits.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Container {
    Array,
    Object,
}

/// One bit for each open container, so that a million brackets cost 128 KB and no recursion.
#[derive(Debug)]
pub(super) struct OpenContainers {
    bits: Vec<u64>,
    pub(super) depth: usize,
}

impl OpenContainers {
    pub(super) fn new() -> OpenContainers {
        OpenContainers { bits: vec![0], depth: 0 }
    }

    pub(super) fn push(&mut self, container: Container) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.bits.len() {
            self.bits.push(0);
        }
        if let Some(bits) = self.bits.get_mut(word) {
            *bits = (*bits & !(1 << bit)) | (u64::from(container == Container::Object) << bit);
        }
        self.depth += 1;
    }

    pub(super) fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// The innermost one. Called only while something is open.
    pub(super) fn top(&self) -> Container {
        let last = self.depth.saturating_sub(1);
        match self.bits.get(last / 64) {
            Some(bits) if bits >> (last % 64) & 1 == 1 => Container::Object,
            Some(_) | None => Container::Array,
        }
    }
}
