//! The platform under a fleet: what it does reaches every extension, also one that is found only afterwards.

use super::fleet::Fleet;
use super::life::PlatformSignal;
use super::life::platform::Platform;

/// Where the platform is, as far as it has said: what an extension that comes later has missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The latest of foreground and background.
    ground: Option<PlatformSignal>,
    frozen: bool,
}

impl Position {
    /// Something happened to all of them.
    pub(super) fn note(&mut self, signal: PlatformSignal) {
        match signal {
            // What the user looks at is not frozen.
            PlatformSignal::Foreground => *self = Self { ground: Some(signal), frozen: false },
            PlatformSignal::Background => self.ground = Some(signal),
            PlatformSignal::Freeze => self.frozen = true,
            PlatformSignal::Thaw => self.frozen = false,
            // Both are about processes that were there at the time.
            PlatformSignal::TrimMemory(_) | PlatformSignal::Reclaimed => {}
        }
    }

    /// What to tell one that knows nothing, in order.
    pub(super) fn missed(self) -> impl Iterator<Item = PlatformSignal> {
        self.ground.into_iter().chain(self.frozen.then_some(PlatformSignal::Freeze))
    }
}

impl Fleet {
    /// Tells all extensions what the platform does, until it has nothing more to say or the host leaves.
    pub async fn follow(&self, mut platform: impl Platform) {
        let left = self.left();
        tokio::pin!(left);
        loop {
            let signal = tokio::select! {
                signal = platform.next() => signal,
                () = &mut left => None,
            };
            match signal {
                Some(signal) => self.signal(signal, None).await,
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::life::TrimLevel;

    #[test]
    fn one_that_comes_late_hears_where_the_platform_is_and_not_how_it_came_there() {
        let after = |signals: &[PlatformSignal]| {
            let mut position = Position::default();
            signals.iter().for_each(|signal| position.note(*signal));
            position.missed().collect::<Vec<_>>()
        };
        use PlatformSignal::{Background, Foreground, Freeze, Reclaimed, Thaw, TrimMemory};
        assert_eq!(after(&[]), []);
        assert_eq!(after(&[Reclaimed, TrimMemory(TrimLevel::Critical)]), []);
        assert_eq!(after(&[Foreground, Background, Foreground, Background]), [Background]);
        assert_eq!(after(&[Background, Freeze]), [Background, Freeze]);
        assert_eq!(after(&[Background, Freeze, Thaw]), [Background]);
        assert_eq!(after(&[Background, Freeze, Foreground]), [Foreground]);
    }
}
