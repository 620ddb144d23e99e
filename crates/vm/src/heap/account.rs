//! What the heap costs: every byte is charged before it is allocated, and the charge decides when to collect.
//!
//! The contract with the interpreter: an allocating operation that answers [`AllocError::Collect`] has changed
//! nothing that the guest can see. The interpreter collects and executes the same instruction again. It tells
//! [`super::Heap::collect`] at which [`Point`] it stands, so that an instruction which asks twice without moving is
//! recognised and the run ends with [`OverLimit`] instead of collecting for ever.
//!
//! When collections happen depends on charged bytes only, never on addresses, capacities chosen by an allocator or time.

use thiserror::Error;

/// The smallest amount allocated between two collections.
const MIN_THRESHOLD: usize = 4 << 20;

/// How many times the byte limit the arenas may take, free entries included.
const FOOTPRINT: usize = 4;

/// How much a guest may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes charged and not yet collected.
    pub bytes: usize,
    /// Records (objects, strings, cells, …) allocated and not yet collected; at most 2^30.
    pub records: usize,
}

impl Limits {
    /// The most that ids can name; a larger `records` is lowered to this.
    pub const MOST_RECORDS: usize = 1 << 30;
}

/// Why an allocation did not happen. Nothing visible has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllocError {
    /// Collect garbage, then execute the instruction again.
    #[error("the heap must be collected first")]
    Collect,
    /// The string, array or buffer would be longer than the language allows here: a guest RangeError.
    #[error("longer than any string or buffer can be")]
    TooLong,
}

/// The heap is full of things that are in use. Ends the run; the guest cannot catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OverLimit {
    /// Live bytes and the request together exceed the limit.
    #[error("heap limit of {limit} bytes exceeded")]
    Bytes {
        /// The limit that was hit.
        limit: usize,
    },
    /// Live records have reached the limit.
    #[error("allocation limit of {limit} live records exceeded")]
    Records {
        /// The limit that was hit.
        limit: usize,
    },
}

/// A name for "this instruction, this time": equal when, and only when, execution has not moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point(pub u64);

/// How eagerly to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// When what was allocated since the last collection is worth it.
    Adaptive,
    /// Before every allocation; for tests that look for forgotten roots.
    Torture,
}

#[derive(Clone, Debug)]
pub(crate) struct Account {
    bytes: usize,
    records: usize,
    byte_threshold: usize,
    record_threshold: usize,
    limits: Limits,
    pace: Pace,
    after: Level,
    /// What the refused request would have brought the heap to, counted from the last collection.
    demand: Level,
    /// The size of the refused request alone.
    request: usize,
    last_point: Option<Point>,
    /// Charged for things that no arena holds.
    outside: usize,
    /// What the image holds: counted, but not against the limits.
    floor: Level,
    /// In torture: how many allocations may still pass.
    grace: u32,
    granted: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    bytes: usize,
    records: usize,
}

impl Account {
    pub(crate) fn new(limits: Limits, pace: Pace) -> Account {
        let limits = Limits { records: limits.records.min(Limits::MOST_RECORDS), ..limits };
        let mut account = Account {
            bytes: 0,
            records: 0,
            byte_threshold: 0,
            record_threshold: 0,
            limits,
            pace,
            after: Level::default(),
            demand: Level::default(),
            request: 0,
            last_point: None,
            outside: 0,
            floor: Level::default(),
            grace: 0,
            granted: 0,
        };
        account.set_thresholds(Level::default());
        account
    }

    /// An account that starts with something in it.
    pub(crate) fn with_usage(limits: Limits, pace: Pace, (bytes, records): (usize, usize)) -> Account {
        let mut account = Account::new(limits, pace);
        account.bytes = bytes;
        account.records = records;
        account.after = Level { bytes, records };
        account.set_thresholds(Level::default());
        account
    }

    /// The account of a fork: what it starts with is counted, but not against its limits.
    pub(crate) fn fork(&self, limits: Limits, pace: Pace, (bytes, records): (usize, usize)) -> Account {
        let floor = Level { bytes, records };
        Account { outside: self.outside, floor, ..Account::new(limits, pace) }
    }

    /// The account of a fork of an image, which knows what it holds.
    pub(crate) fn fork_again(&self, limits: Limits, pace: Pace) -> Account {
        Account { outside: self.outside, floor: self.floor, ..Account::new(limits, pace) }
    }

    /// Starts over with so much charged, as after a collection.
    pub(crate) fn restart(&mut self, (bytes, records): (usize, usize)) {
        self.bytes = bytes;
        self.records = records;
        self.after = Level { bytes, records };
        self.demand = Level::default();
        self.request = 0;
        self.last_point = None;
        self.grace = 0;
        self.granted = 0;
        self.set_thresholds(Level::default());
    }

    /// Other limits: as if it had been restored under them.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = Limits { records: limits.records.min(Limits::MOST_RECORDS), ..limits };
        self.set_thresholds(Level::default());
    }

    /// Bytes and records in all, without those of the image.
    pub(crate) fn above_floor(&self, (bytes, records): (usize, usize)) -> (usize, usize) {
        (bytes.saturating_sub(self.floor.bytes), records.saturating_sub(self.floor.records))
    }

    /// Charges for one new record.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), AllocError> {
        self.charge_many(bytes, 1)
    }

    /// Charges for the growth of an existing record.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), AllocError> {
        self.charge_many(bytes, 0)
    }

    /// Charges for several records at once, all or nothing.
    #[inline]
    pub(crate) fn charge_many(&mut self, bytes: usize, records: usize) -> Result<(), AllocError> {
        let total = self.bytes.saturating_add(bytes);
        let count = self.records + records;
        if total > self.byte_threshold || count > self.record_threshold {
            return self.refuse(bytes, records);
        }
        self.bytes = total;
        self.records = count;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn refuse(&mut self, bytes: usize, records: usize) -> Result<(), AllocError> {
        if self.pace == Pace::Torture
            && self.granted < self.grace
            && self.bytes.saturating_add(bytes) <= self.limits.bytes
            && self.records + records <= self.limits.records
        {
            self.granted += 1;
            self.bytes += bytes;
            self.records += records;
            return Ok(());
        }
        self.request = bytes;
        self.demand = Level {
            bytes: self.bytes.saturating_sub(self.after.bytes).saturating_add(bytes),
            records: self.records.saturating_sub(self.after.records) + records,
        };
        Err(AllocError::Collect)
    }

    /// Gives back what a record shrank by.
    #[inline]
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Charges for something that no arena holds.
    pub(crate) fn grow_outside(&mut self, bytes: usize) -> Result<(), AllocError> {
        self.grow(bytes)?;
        self.outside += bytes;
        Ok(())
    }

    /// Gives back what [`Account::grow_outside`] took.
    pub(crate) fn shrink_outside(&mut self, bytes: usize) {
        let bytes = bytes.min(self.outside);
        self.outside -= bytes;
        self.shrink(bytes);
    }

    pub(crate) fn set_outside(&mut self, bytes: usize) {
        self.outside = bytes;
    }

    pub(crate) fn outside(&self) -> usize {
        self.outside
    }

    /// Takes note of what a collection left, and says whether the run can go on.
    pub(crate) fn collected(
        &mut self,
        bytes: usize,
        records: usize,
        footprint: usize,
        point: Point,
    ) -> Result<(), OverLimit> {
        let (bytes, records) = self.above_floor((bytes.saturating_add(self.outside), records));
        if footprint.saturating_sub(self.floor.bytes) > self.limits.bytes.saturating_mul(FOOTPRINT) {
            return Err(OverLimit::Bytes { limit: self.limits.bytes });
        }
        let again = self.last_point == Some(point);
        self.last_point = Some(point);
        self.bytes = bytes;
        self.records = records;
        self.after = Level { bytes, records };
        self.grace = if again { self.granted + 1 } else { 1 };
        self.granted = 0;
        // The first time, `demand` counts garbage made before this instruction too; only a repeat measures
        // what the instruction itself needs.
        let demand = if again { self.demand } else { Level { bytes: self.request, records: 1 } };
        self.demand = Level::default();
        self.request = 0;
        if again || demand.bytes > self.limits.bytes {
            if bytes.saturating_add(demand.bytes) > self.limits.bytes {
                return Err(OverLimit::Bytes { limit: self.limits.bytes });
            }
            if records.saturating_add(demand.records) > self.limits.records {
                return Err(OverLimit::Records { limit: self.limits.records });
            }
        }
        // A native that makes many things in one instruction begins again each time: let it get twice as far, or what it
        // does would cost its square.
        let room = if again { Level { bytes: demand.bytes.saturating_mul(2), ..demand } } else { demand };
        self.set_thresholds(room);
        Ok(())
    }

    fn set_thresholds(&mut self, demand: Level) {
        if self.pace == Pace::Torture {
            self.byte_threshold = 0;
            self.record_threshold = 0;
            return;
        }
        let wanted =
            self.bytes.saturating_add(demand.bytes).max(self.bytes.saturating_mul(2)).max(MIN_THRESHOLD);
        self.byte_threshold = wanted.min(self.limits.bytes);
        self.record_threshold = self.limits.records;
    }

    /// Bytes charged now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records charged now.
    pub(crate) fn records(&self) -> usize {
        self.records
    }

    /// The most bytes that may be charged.
    pub(crate) fn most_bytes(&self) -> usize {
        self.limits.bytes
    }

    /// The most records that may be charged.
    pub(crate) fn most_records(&self) -> usize {
        self.limits.records
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }
}
