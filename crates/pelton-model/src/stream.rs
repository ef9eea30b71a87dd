//! A plain async function with a sender, as a [`Stream`].
//!
//! The function and the queue live in one value and are polled by whoever polls the stream: no task is spawned,
//! nothing runs unless it is pulled, and dropping the stream drops the function where it stands.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;

/// Runs `produce` as a stream of what it sends. At most `capacity` items wait to be taken.
///
/// ```
/// # futures::executor::block_on(async {
/// use futures::StreamExt;
///
/// let numbers = pelton_model::stream::stream(1, |out| async move {
///     for number in 0..3 {
///         out.send(number).await;
///     }
/// });
/// assert_eq!(numbers.collect::<Vec<_>>().await, [0, 1, 2]);
/// # });
/// ```
pub fn stream<T, F, P>(capacity: usize, produce: P) -> Produced<T, F>
where
    P: FnOnce(Sender<T>) -> F,
    F: Future<Output = ()>,
{
    let queue = Arc::new(Mutex::new(Queue {
        items: VecDeque::new(),
        capacity: capacity.max(1),
        waiting: Vec::new(),
        closed: false,
    }));
    let future = produce(Sender { queue: Arc::clone(&queue) });
    Produced { queue, future: Some(Box::pin(future)) }
}

/// Hands items to the stream it belongs to.
#[derive(Debug)]
pub struct Sender<T> {
    queue: Arc<Mutex<Queue<T>>>,
}

impl<T> Sender<T> {
    /// Hands over one item, waiting while the queue is full. After the stream was dropped, items vanish.
    pub async fn send(&self, item: T) {
        let mut item = Some(item);
        poll_fn(|cx| {
            let mut queue = lock(&self.queue);
            if queue.closed {
                return Poll::Ready(());
            }
            if queue.items.len() < queue.capacity {
                queue.items.extend(item.take());
                return Poll::Ready(());
            }
            if !queue.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                queue.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { queue: Arc::clone(&self.queue) }
    }
}

/// The stream made by [`stream`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct Produced<T, F> {
    queue: Arc<Mutex<Queue<T>>>,
    future: Option<Pin<Box<F>>>,
}

impl<T, F: Future<Output = ()>> Stream for Produced<T, F> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = &mut *self;
        // What is ready goes out before more is made: the reader is never behind by more than one burst.
        if let Some(item) = take(&this.queue) {
            return Poll::Ready(Some(item));
        }
        let Some(future) = &mut this.future else { return Poll::Ready(None) };
        let finished = future.as_mut().poll(cx).is_ready();
        if finished {
            this.future = None;
        }
        match take(&this.queue) {
            Some(item) => Poll::Ready(Some(item)),
            None if finished => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl<T, F> Drop for Produced<T, F> {
    fn drop(&mut self) {
        // The function goes first: what it sends while it is torn down has nowhere to go.
        self.future = None;
        let mut queue = lock(&self.queue);
        queue.closed = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<T>,
    capacity: usize,
    /// Senders that found the queue full. They may be polled through wakers of their own (inside a join, say), so
    /// polling the function alone does not reach them.
    waiting: Vec<Waker>,
    closed: bool,
}

fn take<T>(queue: &Mutex<Queue<T>>) -> Option<T> {
    let mut queue = lock(queue);
    let item = queue.items.pop_front()?;
    let waiting = std::mem::take(&mut queue.waiting);
    drop(queue);
    waiting.into_iter().for_each(Waker::wake);
    Some(item)
}

/// Nothing panics while the lock is held, so a poisoned queue is a whole one.
fn lock<T>(queue: &Mutex<Queue<T>>) -> MutexGuard<'_, Queue<T>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
