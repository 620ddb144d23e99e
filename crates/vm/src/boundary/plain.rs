//! A value that guest and host can both have: plain data, owned, without identity.

/// A value on its way between guest and host.
///
/// It is dropped without recursion, however deep it is; cloning, comparing and printing recurse, so whoever makes one of
/// foreign data keeps to [`super::NESTING`]. Since it has a destructor, its parts are borrowed or taken with
/// [`std::mem::take`], not moved out of a pattern.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Plain {
    /// `undefined`.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// A missing element; only in an array.
    Hole,
    /// A boolean.
    Bool(bool),
    /// A number, also -0, NaN or an infinity.
    Number(f64),
    /// Text. A guest's string with half of a surrogate pair has no such form.
    String(String),
    /// The elements of an array.
    Array(Vec<Plain>),
    /// The members of an object. Of a key that comes twice the last one counts.
    Object(Vec<(String, Plain)>),
}

impl Plain {
    /// Has it parts that have parts?
    fn is_nested(&self) -> bool {
        match self {
            Plain::Array(elements) => elements.iter().any(Plain::has_parts),
            Plain::Object(members) => members.iter().any(|(_, value)| value.has_parts()),
            _ => false,
        }
    }

    fn has_parts(&self) -> bool {
        match self {
            Plain::Array(elements) => !elements.is_empty(),
            Plain::Object(members) => !members.is_empty(),
            _ => false,
        }
    }

    /// Takes the parts that have parts themselves.
    fn give_up(&mut self, to: &mut Vec<Plain>) {
        let mut give = |value: &mut Plain| {
            if value.has_parts() {
                to.push(std::mem::take(value));
            }
        };
        match self {
            Plain::Array(elements) => elements.iter_mut().for_each(give),
            Plain::Object(members) => members.iter_mut().for_each(|(_, value)| give(value)),
            _ => {}
        }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        if !self.is_nested() {
            return;
        }
        let mut doomed = Vec::new();
        self.give_up(&mut doomed);
        while let Some(mut value) = doomed.pop() {
            value.give_up(&mut doomed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_a_million_levels_deep_is_dropped_without_a_deep_stack() {
        let mut array = Plain::Null;
        let mut object = Plain::Bool(true);
        for _ in 0..1_000_000 {
            array = Plain::Array(vec![Plain::Null, array]);
            object = Plain::Object(vec![("a".into(), object), ("b".into(), Plain::Null)]);
        }
        drop(array);
        drop(object);
    }
}
