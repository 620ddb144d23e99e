//! Array buffers and the windows that typed arrays and data views open into them.

use super::arena::{Record, Vacancy};
use super::{AllocError, BufferId, Class, Flags, Heap, ObjId, Payload, ShapeId, ViewId};

/// The longest buffer.
pub const MAX_BUFFER: usize = i32::MAX as usize;

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(super) bytes: Vec<u8>,
    pub(super) max: Option<u32>,
    pub(super) detached: Detached,
    pub(super) vacancy: Vacancy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detached {
    No,
    Yes,
}

/// A typed array's or data view's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The ArrayBuffer object.
    pub buffer: ObjId,
    /// The element type, numbered by whoever implements typed arrays.
    pub element: u8,
    /// Where it begins, in bytes.
    pub offset: u32,
    /// How many elements; `None` follows the end of a resizable buffer.
    pub length: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewRecord(pub(crate) Option<View>);

impl Record for Buffer {
    fn vacant() -> Self {
        Buffer { bytes: Vec::new(), max: None, detached: Detached::No, vacancy: Vacancy::Free }
    }
    fn is_vacant(&self) -> bool {
        self.vacancy == Vacancy::Free
    }
    fn bytes(&self) -> usize {
        size_of::<Buffer>() + self.bytes.capacity()
    }
}

impl Record for ViewRecord {
    fn vacant() -> Self {
        ViewRecord(None)
    }
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
    fn bytes(&self) -> usize {
        size_of::<ViewRecord>()
    }
}

impl Heap {
    /// A new zeroed buffer object. `max` makes it resizable; only `length` bytes are charged until it grows.
    pub fn new_buffer(
        &mut self,
        shape: ShapeId,
        class: Class,
        length: usize,
        max: Option<u32>,
    ) -> Result<ObjId, AllocError> {
        debug_assert_eq!(class.payload(), Payload::Buffer);
        if length > MAX_BUFFER {
            return Err(AllocError::TooLong);
        }
        self.account.charge(size_of::<Buffer>() + length)?;
        let buffer = Buffer { bytes: vec![0; length], max, detached: Detached::No, vacancy: Vacancy::Taken };
        let id = self.buffers.insert(buffer);
        self.new_object_of(shape, class, Flags::NONE, id.raw())
    }

    /// The buffer of a buffer object.
    #[inline]
    pub fn buffer_of(&self, obj: ObjId) -> Option<BufferId> {
        self.payload(obj, Payload::Buffer).map(BufferId::from_raw)
    }

    /// The bytes (none when detached).
    #[inline]
    pub fn buffer(&self, id: BufferId) -> &[u8] {
        &self.buffers[id].bytes
    }

    /// The bytes, for writing.
    #[inline]
    pub fn buffer_mut(&mut self, id: BufferId) -> &mut [u8] {
        &mut self.buffers[id].bytes
    }

    /// How far a resizable buffer may grow; `None` for one of fixed length.
    pub fn buffer_max(&self, id: BufferId) -> Option<u32> {
        self.buffers[id].max
    }

    /// Has its content been taken away?
    pub fn is_detached(&self, id: BufferId) -> bool {
        self.buffers[id].detached == Detached::Yes
    }

    /// Changes the length; new bytes are zero. The caller has compared with [`Heap::buffer_max`].
    pub fn resize_buffer(&mut self, id: BufferId, length: usize) -> Result<(), AllocError> {
        if length > MAX_BUFFER {
            return Err(AllocError::TooLong);
        }
        let old = self.buffers[id].bytes.capacity();
        if length > old {
            self.account.grow(length - old)?;
            let bytes = &mut self.buffers[id].bytes;
            bytes.reserve_exact(length - bytes.len());
        }
        self.buffers[id].bytes.resize(length, 0);
        Ok(())
    }

    /// Takes the content away.
    pub fn detach_buffer(&mut self, id: BufferId) {
        let bytes = std::mem::take(&mut self.buffers[id].bytes);
        self.account.shrink(bytes.capacity());
        self.buffers[id].detached = Detached::Yes;
    }

    /// Copies bytes between two buffers, or inside one. What lies beyond the end of either is left out.
    pub fn copy_bytes(&mut self, to: BufferId, at: usize, from: BufferId, start: usize, count: usize) {
        let room = self.buffer(to).len().saturating_sub(at);
        let count = count.min(room).min(self.buffer(from).len().saturating_sub(start));
        if count == 0 {
            return;
        }
        if to == from {
            self.buffer_mut(to).copy_within(start..start + count, at);
            return;
        }
        let source = std::mem::take(&mut self.buffers[from].bytes);
        if let (Some(target), Some(bytes)) =
            (self.buffer_mut(to).get_mut(at..at + count), source.get(start..start + count))
        {
            target.copy_from_slice(bytes);
        }
        self.buffers[from].bytes = source;
    }

    /// A new typed array or data view object.
    pub fn new_view(&mut self, shape: ShapeId, class: Class, view: View) -> Result<ObjId, AllocError> {
        debug_assert_eq!(class.payload(), Payload::View);
        self.account.charge(size_of::<ViewRecord>())?;
        let id = self.views.insert(ViewRecord(Some(view)));
        self.new_object_of(shape, class, Flags::NONE, id.raw())
    }

    /// The window of a typed array or data view object.
    #[inline]
    pub fn view_of(&self, obj: ObjId) -> Option<View> {
        self.payload(obj, Payload::View).and_then(|raw| self.views[ViewId::from_raw(raw)].0)
    }
}
