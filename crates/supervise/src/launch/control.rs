//! The host's grip on one tree after the start.

use crate::launch::{Exit, Signal};
use crate::platform;

/// The host's grip on one tree. Dropping it kills the tree; what remains of the processes is reaped in the background.
#[derive(Debug)]
pub struct Control {
    pub(crate) grip: platform::Grip,
}

impl Control {
    /// Sends `signal` to the program's process group. Without effect once the program has ended.
    pub fn signal(&self, signal: Signal) {
        self.grip.signal(signal);
    }

    /// Kills every process of the tree, wherever it hid. [`Control::wait`] tells when that is done.
    pub fn kill(&self) {
        self.grip.kill();
    }

    /// Waits until the program has ended *and* every process of the tree is gone and reaped. Can be called again and
    /// answers the same; can be dropped and called anew.
    pub async fn wait(&mut self) -> Exit {
        self.grip.wait().await
    }
}
