//! What the numbers of a date add up to: a day, a time and an offset.

pub(super) struct Day {
    pub(super) parts: Vec<i64>,
    pub(super) month: Option<i64>,
    pub(super) order: Order,
}

#[derive(PartialEq)]
pub(super) enum Order {
    /// Year, month, day, and the year as it is.
    Standard,
    Guess,
}

impl Day {
    pub(super) fn add(&mut self, part: i64) -> Option<()> {
        add(&mut self.parts, 3, part)
    }

    /// Year, month from one, day.
    pub(super) fn resolve(&self) -> Option<(i64, i64, i64)> {
        let part = |index: usize| self.parts.get(index).copied().unwrap_or(1);
        self.parts.first()?;
        let is_day = |part: i64| (1..=31).contains(&part);
        let (year, month, day) = match self.month {
            None if self.order == Order::Standard || !is_day(part(0)) => (part(0), part(1), part(2)),
            None => (part(2), part(0), part(1)),
            Some(month) if !is_day(part(0)) => (part(0), month, part(1)),
            Some(month) => (part(1), month, part(0)),
        };
        let year = match year {
            _ if self.order == Order::Standard => year,
            0..=49 => year + 2000,
            50..=99 => year + 1900,
            _ => year,
        };
        ((1..=12).contains(&month) && is_day(day)).then_some((year, month, day))
    }
}

pub(super) struct Time {
    pub(super) parts: Vec<i64>,
    pub(super) half: Option<i64>,
}

impl Time {
    pub(super) fn add(&mut self, part: i64) -> Option<()> {
        add(&mut self.parts, 4, part)
    }

    /// Adds the last part that was written; those after it are zero.
    pub(super) fn add_final(&mut self, part: i64) -> Option<()> {
        self.add(part)?;
        self.parts.resize(4, 0);
        Some(())
    }

    pub(super) fn expects(&self, part: i64) -> bool {
        match self.parts.len() {
            1 | 2 => (0..60).contains(&part),
            3 => (0..1000).contains(&part),
            _ => false,
        }
    }

    pub(super) fn resolve(&self) -> Option<[i64; 4]> {
        let part = |index: usize| self.parts.get(index).copied().unwrap_or(0);
        let mut hour = part(0);
        if let Some(half) = self.half {
            (0..=12).contains(&hour).then_some(())?;
            hour = hour % 12 + half;
        }
        let parts = [hour, part(1), part(2), part(3)];
        let limits = [24, 60, 60, 1000];
        let fits = parts.iter().zip(limits).all(|(part, limit)| *part < limit) || parts == [24, 0, 0, 0];
        fits.then_some(parts)
    }
}

pub(super) struct Zone {
    pub(super) sign: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
}

impl Zone {
    pub(super) fn set(&mut self, hours: i64) {
        self.sign = Some(if hours < 0 { -1 } else { 1 });
        (self.hour, self.minute) = (Some(hours.abs()), Some(0));
    }

    pub(super) fn is_utc(&self) -> bool {
        (self.hour, self.minute) == (Some(0), Some(0))
    }

    pub(super) fn expects(&self, part: i64) -> bool {
        self.hour.is_some() && self.minute.is_none() && (0..60).contains(&part)
    }

    pub(super) fn seconds(&self) -> i64 {
        self.sign.unwrap_or(1) * (self.hour.unwrap_or(0) * 3600 + self.minute.unwrap_or(0) * 60)
    }
}

fn add(parts: &mut Vec<i64>, limit: usize, part: i64) -> Option<()> {
    (parts.len() < limit).then(|| parts.push(part))
}
