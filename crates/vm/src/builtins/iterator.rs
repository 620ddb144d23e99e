//! `next`, `return` and `throw` of generators; `iterator.js` has everything else about iterators.

use super::{Args, Row};
use crate::exec::state::{Res, State};
use crate::exec::{Resume, Window};

pub(super) const ROWS: &[Row] = &[
    ("Generator.prototype.next", |st, w, a| resume(st, w, a, Resume::Next)),
    ("Generator.prototype.return", |st, w, a| resume(st, w, a, Resume::Return)),
    ("Generator.prototype.throw", |st, w, a| resume(st, w, a, Resume::Throw)),
];

fn resume(st: &mut State, w: &mut Window, a: Args, how: Resume) -> Res {
    // The body's registers begin where the arguments of this call are: they have been read.
    let base = st.top().map_or(0, |f| f.base) + u32::from(a.first);
    st.generator_resume(base, a.calling, a.this, how, a.get(w, 0))
}
