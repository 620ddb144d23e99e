//! The merging half of a sort: two neighbouring runs become one. `sort` has the rest.

use super::sort::{
    A, B, G_BASE, G_HINT, G_N, G_RIGHT, G_TEMP, GALLOP, HI, I, In, J, KEY, M, MIN_GALLOP, Machine, N, Phase,
    RUNS, Side, SortStep, THEN, TO, WINS_A, WINS_B,
};
use crate::value::Value;

impl Machine<'_> {
    /// Takes two neighbouring runs off the stack, puts their sum there, and begins to merge them.
    pub(super) fn merge_at(&mut self, at: i64) -> Option<SortStep> {
        let ((a, n), (b, m)) = (self.run(at), self.run(at + 1));
        self.set_run(at, a, n + m);
        let runs = self.get(RUNS);
        if at == runs - 3 {
            let (start, length) = self.run(at + 2);
            self.set_run(at + 1, start, length);
        }
        self.set(RUNS, runs - 1);
        for (field, v) in [(A, a), (N, n), (B, b), (M, m)] {
            self.set(field, v);
        }
        self.gallop(Phase::TrimmedA, Side::Right, self.at(b), In::List, [a, n, 0])
    }

    /// The runs are trimmed: the shorter one is copied out and the merge goes on from its side.
    pub(super) fn merge(&mut self) -> Option<SortStep> {
        let (a, n, b, m) = (self.get(A), self.get(N), self.get(B), self.get(M));
        if m <= 0 {
            return self.go(Phase::Merged);
        }
        if n <= m {
            self.copy_out(a, n);
            self.set(TO, a + 1);
            self.set(I, 0);
            self.set(J, b + 1);
            self.put(a, self.at(b));
            self.set(M, m - 1);
            return match (m - 1, n) {
                (0, _) => self.low_end(Rest::First),
                (_, 1) => self.low_end(Rest::LastOfFirst),
                _ => self.go(Phase::LowRound),
            };
        }
        self.copy_out(b, m);
        let to = b + m - 1;
        self.set(TO, to - 1);
        self.set(I, a + n - 2);
        self.set(J, m - 1);
        self.put(to, self.at(a + n - 1));
        self.set(N, n - 1);
        match (n - 1, m) {
            (0, _) => self.high_end(Rest::First),
            (_, 1) => self.high_end(Rest::LastOfFirst),
            _ => self.go(Phase::HighRound),
        }
    }

    pub(super) fn low(&mut self, less: bool) -> Option<SortStep> {
        let to = self.get(TO);
        self.set(TO, to + 1);
        let gallop = self.get(GALLOP);
        if less {
            let j = self.get(J);
            self.put(to, self.at(j));
            self.set(J, j + 1);
            self.set(WINS_A, 0);
            if self.add(M, -1) == 0 {
                return self.low_end(Rest::First);
            }
            if self.add(WINS_B, 1) >= gallop {
                self.set(GALLOP, gallop + 1);
                return self.go(Phase::LowGallop);
            }
        } else {
            let i = self.get(I);
            self.put(to, self.temp_at(i));
            self.set(I, i + 1);
            self.set(WINS_B, 0);
            if self.add(N, -1) == 1 {
                return self.low_end(Rest::LastOfFirst);
            }
            if self.add(WINS_A, 1) >= gallop {
                self.set(GALLOP, gallop + 1);
                return self.go(Phase::LowGallop);
            }
        }
        self.ask(Phase::Low, self.at(self.get(J)), self.temp_at(self.get(I)))
    }

    pub(super) fn low_a(&mut self) -> Option<SortStep> {
        let wins = self.get(HI);
        self.set(WINS_A, wins);
        if wins > 0 {
            self.copy_in(self.get(I), self.get(TO), wins);
            self.add(TO, wins);
            self.add(I, wins);
            match self.add(N, -wins) {
                1 => return self.low_end(Rest::LastOfFirst),
                n if n <= 0 => return self.low_end(Rest::First),
                _ => {}
            }
        }
        let (to, j) = (self.get(TO), self.get(J));
        self.put(to, self.at(j));
        self.set(TO, to + 1);
        self.set(J, j + 1);
        let m = self.add(M, -1);
        if m == 0 {
            return self.low_end(Rest::First);
        }
        self.gallop(Phase::LowB, Side::Left, self.temp_at(self.get(I)), In::List, [j + 1, m, 0])
    }

    pub(super) fn low_b(&mut self) -> Option<SortStep> {
        let wins = self.get(HI);
        self.set(WINS_B, wins);
        if wins > 0 {
            self.slide(self.get(J), self.get(TO), wins);
            self.add(TO, wins);
            self.add(J, wins);
            if self.add(M, -wins) <= 0 {
                return self.low_end(Rest::First);
            }
        }
        let (to, i) = (self.get(TO), self.get(I));
        self.put(to, self.temp_at(i));
        self.set(TO, to + 1);
        self.set(I, i + 1);
        if self.add(N, -1) == 1 {
            return self.low_end(Rest::LastOfFirst);
        }
        self.again(Phase::LowGallop, Phase::LowRound)
    }

    fn low_end(&mut self, rest: Rest) -> Option<SortStep> {
        let (to, i, j, n, m) = (self.get(TO), self.get(I), self.get(J), self.get(N), self.get(M));
        match rest {
            Rest::First => self.copy_in(i, to, n),
            Rest::LastOfFirst => {
                self.slide(j, to, m);
                self.put(to + m, self.temp_at(i));
            }
        }
        self.go(Phase::Merged)
    }

    pub(super) fn high(&mut self, less: bool) -> Option<SortStep> {
        let to = self.get(TO);
        self.set(TO, to - 1);
        let gallop = self.get(GALLOP);
        if less {
            let i = self.get(I);
            self.put(to, self.at(i));
            self.set(I, i - 1);
            self.set(WINS_B, 0);
            if self.add(N, -1) == 0 {
                return self.high_end(Rest::First);
            }
            if self.add(WINS_A, 1) >= gallop {
                self.set(GALLOP, gallop + 1);
                return self.go(Phase::HighGallop);
            }
        } else {
            let j = self.get(J);
            self.put(to, self.temp_at(j));
            self.set(J, j - 1);
            self.set(WINS_A, 0);
            if self.add(M, -1) == 1 {
                return self.high_end(Rest::LastOfFirst);
            }
            if self.add(WINS_B, 1) >= gallop {
                self.set(GALLOP, gallop + 1);
                return self.go(Phase::HighGallop);
            }
        }
        self.ask(Phase::High, self.temp_at(self.get(J)), self.at(self.get(I)))
    }

    pub(super) fn high_a(&mut self) -> Option<SortStep> {
        let wins = self.get(N) - self.get(HI);
        self.set(WINS_A, wins);
        if wins > 0 {
            let (to, i) = (self.add(TO, -wins), self.add(I, -wins));
            self.slide(i + 1, to + 1, wins);
            if self.add(N, -wins) <= 0 {
                return self.high_end(Rest::First);
            }
        }
        let (to, j) = (self.get(TO), self.get(J));
        self.put(to, self.temp_at(j));
        self.set(TO, to - 1);
        self.set(J, j - 1);
        let m = self.add(M, -1);
        if m == 1 {
            return self.high_end(Rest::LastOfFirst);
        }
        self.gallop(Phase::HighB, Side::Left, self.at(self.get(I)), In::Temp, [0, m, m - 1])
    }

    pub(super) fn high_b(&mut self) -> Option<SortStep> {
        let wins = self.get(M) - self.get(HI);
        self.set(WINS_B, wins);
        if wins > 0 {
            let (to, j) = (self.add(TO, -wins), self.add(J, -wins));
            self.copy_in(j + 1, to + 1, wins);
            match self.add(M, -wins) {
                1 => return self.high_end(Rest::LastOfFirst),
                m if m <= 0 => return self.high_end(Rest::First),
                _ => {}
            }
        }
        let (to, i) = (self.get(TO), self.get(I));
        self.put(to, self.at(i));
        self.set(TO, to - 1);
        self.set(I, i - 1);
        if self.add(N, -1) == 0 {
            return self.high_end(Rest::First);
        }
        self.again(Phase::HighGallop, Phase::HighRound)
    }

    fn high_end(&mut self, rest: Rest) -> Option<SortStep> {
        let (to, i, j, n, m) = (self.get(TO), self.get(I), self.get(J), self.get(N), self.get(M));
        match rest {
            Rest::First => self.copy_in(0, to - (m - 1), m),
            Rest::LastOfFirst => {
                self.slide(i - n + 1, to - n + 1, n);
                self.put(to - n, self.temp_at(j));
            }
        }
        self.go(Phase::Merged)
    }

    /// Gallops on while that pays; afterwards it must pay a little more.
    fn again(&mut self, gallop: Phase, round: Phase) -> Option<SortStep> {
        if self.get(WINS_A) >= MIN_GALLOP || self.get(WINS_B) >= MIN_GALLOP {
            return self.go(gallop);
        }
        self.add(GALLOP, 1);
        self.go(round)
    }

    /// Looks for the place of a key among `n` elements from `base` on, starting at `hint`; the place is in `HI` afterwards.
    pub(super) fn gallop(
        &mut self,
        then: Phase,
        side: Side,
        key: Value,
        list: In,
        [base, n, hint]: [i64; 3],
    ) -> Option<SortStep> {
        self.set(THEN, then as i64);
        self.fields[KEY] = key;
        self.set(G_TEMP, i64::from(list == In::Temp));
        self.set(G_RIGHT, i64::from(side == Side::Right));
        for (field, v) in [(G_BASE, base), (G_N, n), (G_HINT, hint)] {
            self.set(field, v);
        }
        self.ask_gallop(Phase::GallopFirst, hint)
    }
}

/// What is left when one run is used up: the rest of the shorter one, or the rest of the longer one and then one element.
enum Rest {
    First,
    LastOfFirst,
}
