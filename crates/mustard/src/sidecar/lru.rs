//! What is kept for later, within a budget: what was not used for longest goes first.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, whose costs together stay within a budget.
pub(super) struct Lru<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, K>,
    now: u64,
    spent: usize,
    budget: usize,
}

struct Entry<V> {
    value: V,
    cost: usize,
    used: u64,
}

impl<K: Hash + Eq + Copy, V> Lru<K, V> {
    pub(super) fn new(budget: usize) -> Lru<K, V> {
        Lru { entries: HashMap::new(), order: BTreeMap::new(), now: 0, spent: 0, budget }
    }

    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// The value, which counts as a use.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        self.now += 1;
        self.order.remove(&entry.used);
        self.order.insert(self.now, *key);
        entry.used = self.now;
        Some(&mut entry.value)
    }

    /// The value, as if nobody had looked.
    pub(super) fn peek(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Keeps a value, if it fits at all, and drops others for it.
    pub(super) fn put(&mut self, key: K, value: V, cost: usize) {
        self.take(&key);
        if cost > self.budget {
            return;
        }
        self.now += 1;
        self.spent += cost;
        self.order.insert(self.now, key);
        self.entries.insert(key, Entry { value, cost, used: self.now });
        while self.spent > self.budget {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.spent -= entry.cost;
            }
        }
    }

    /// Takes a value out.
    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.used);
        self.spent -= entry.cost;
        Some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut lru = Lru::new(10);
        lru.put(1, "one", 4);
        lru.put(2, "two", 4);
        assert_eq!(lru.get(&1), Some(&mut "one"));
        lru.put(3, "three", 2);
        assert!(lru.get(&2).is_some() && lru.spent == 10, "exactly the budget is within it");
        lru.put(4, "four", 1);
        assert_eq!(lru.get(&1), None, "one was used before the others");
        assert!(lru.get(&2).is_some() && lru.get(&3).is_some() && lru.get(&4).is_some());
    }

    #[test]
    fn what_is_too_large_is_not_kept_and_drops_nobody_else() {
        let mut lru = Lru::new(10);
        lru.put(1, "one", 10);
        lru.put(2, "two", 11);
        assert!(lru.get(&1).is_some() && lru.get(&2).is_none());
        lru.put(1, "uno", 3);
        assert_eq!((lru.get(&1).copied(), lru.spent), (Some("uno"), 3));
        assert_eq!((lru.take(&1), lru.take(&1), lru.spent), (Some("uno"), None, 0));
        assert!(lru.order.is_empty() && lru.entries.is_empty());
    }
}
