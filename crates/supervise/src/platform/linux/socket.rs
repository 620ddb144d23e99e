//! Bytes and descriptors over a Unix stream socket.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::launch::Channels;

/// The standard three and every extra one.
const MAX_DESCRIPTORS: usize = Channels::MAX_EXTRA + 3;

/// Sends what fits of `bytes`; the descriptors go with the first byte. A closed peer is an error, not a signal.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOMANYREFS);
    }
    retry(|| rustix::net::sendmsg(&socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL))
}

/// Sends all of `bytes` on a blocking socket.
pub(super) fn send_all(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut sent = send(&socket, bytes, descriptors)?;
    while sent < bytes.len() {
        sent += send(&socket, &bytes[sent..], &[])?;
    }
    Ok(())
}

/// Receives into `buffer` and appends the descriptors that came along, closed on exec. Zero bytes means end of file.
pub(super) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = retry(|| {
        let mut slices = [std::io::IoSliceMut::new(buffer)];
        rustix::net::recvmsg(&socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(arrived) = message {
            descriptors.extend(arrived);
        }
    }
    Ok(received.bytes)
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}
