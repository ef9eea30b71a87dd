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
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
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
        gives_way: false,
        closed: false,
    }));
    let future = produce(Sender { queue: Arc::clone(&queue) });
    Produced { queue, future: Some(Box::pin(future)) }
}

/// Hands items to the stream it belongs to.
///
/// ```
/// use pelton_model::stream::Sender;
///
/// /// A plain function that tells what it does, one thing at a time: it waits while nobody listens.
/// async fn count(to: u32, told: Sender<u32>) {
///     for number in 1..=to {
///         told.send(number).await;
///     }
/// }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use futures::StreamExt;
/// let counted = pelton_model::stream::stream(1, |told| count(3, told));
/// assert_eq!(counted.collect::<Vec<_>>().await, [1, 2, 3]);
/// # });
/// ```
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
            queue.wait(cx)
        })
        .await;
    }

    /// The same, but what the function does from here on until it waits comes first, and where one thread does everything, what
    /// others do because of that: as a rule the item, and all before it, is taken behind them.
    pub async fn send_behind(&self, item: T) {
        self.send(item).await;
        lock(&self.queue).gives_way = true;
    }

    /// Hands over all of `items`, waiting while the queue is full.
    pub async fn send_all(&self, items: &mut Vec<T>) {
        let mut items = items.drain(..);
        poll_fn(|cx| {
            let mut queue = lock(&self.queue);
            if queue.closed {
                return Poll::Ready(());
            }
            let room = queue.capacity.saturating_sub(queue.items.len());
            queue.items.extend(items.by_ref().take(room));
            if items.len() == 0 { Poll::Ready(()) } else { queue.wait(cx) }
        })
        .await;
    }

    /// Waits until everything handed over was taken: whoever takes it can still drop the stream before the function
    /// goes on.
    pub async fn taken(&self) {
        poll_fn(|cx| {
            let mut queue = lock(&self.queue);
            if queue.closed || queue.items.is_empty() {
                return Poll::Ready(());
            }
            queue.wait(cx)
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
///
/// ```
/// use futures::{FutureExt, StreamExt};
/// use pelton_model::stream::stream;
///
/// let mut produced = stream(1, |told| async move {
///     told.send("first").await;
///     std::future::pending().await // work that takes very long
/// });
/// assert_eq!(produced.next().now_or_never(), Some(Some("first")));
/// drop(produced); // and with it the work
/// ```
#[must_use = "a stream does nothing unless it is polled"]
pub struct Produced<T, F> {
    queue: Arc<Mutex<Queue<T>>>,
    future: Option<Pin<Box<F>>>,
}

impl<T, F> Produced<T, F> {
    /// The next item, if it is made already and is `wanted`. Nothing more is made for it.
    pub fn take_queued_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        take_if(&self.queue, wanted)
    }
}

/// A stream that may have several items at hand: whoever takes them together waits once for all of them.
///
/// ```
/// use futures::{FutureExt, StreamExt};
/// use pelton_model::stream::{Queued, stream};
///
/// let mut produced = stream(8, |told| async move {
///     for number in 0..3 {
///         told.send(number).await;
///     }
///     std::future::pending().await
/// });
/// assert_eq!(produced.next().now_or_never(), Some(Some(0)));
/// assert_eq!((produced.take_queued(), produced.take_queued(), produced.take_queued()), (Some(1), Some(2), None));
/// ```
pub trait Queued: Stream {
    /// The next item, if it is made already. Nothing more is made for it.
    fn take_queued(&mut self) -> Option<Self::Item>;
}

impl<T, F: Future<Output = ()>> Queued for Produced<T, F> {
    fn take_queued(&mut self) -> Option<T> {
        self.take_queued_if(|_| true)
    }
}

impl<T, F: Future<Output = ()>> Stream for Produced<T, F> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = &mut *self;
        // What is ready goes out before more is made: the reader is never behind by more than one burst.
        if let Some(item) = this.take_queued() {
            return Poll::Ready(Some(item));
        }
        let Some(future) = &mut this.future else { return Poll::Ready(None) };
        let finished = future.as_mut().poll(cx).is_ready();
        if finished {
            this.future = None;
        } else if std::mem::take(&mut lock(&this.queue).gives_way) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match this.take_queued() {
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
    /// What is there is taken a little later.
    gives_way: bool,
    closed: bool,
}

impl<T> Queue<T> {
    /// Whoever polls is woken when something is taken.
    fn wait(&mut self, cx: &Context<'_>) -> Poll<()> {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn take_if<T>(queue: &Mutex<Queue<T>>, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
    let mut queue = lock(queue);
    let item = queue.items.pop_front_if(|item| wanted(item))?;
    let waiting = std::mem::take(&mut queue.waiting);
    drop(queue);
    waiting.into_iter().for_each(Waker::wake);
    Some(item)
}

/// Nothing panics while the lock is held, so a poisoned queue is a whole one.
fn lock<T>(queue: &Mutex<Queue<T>>) -> MutexGuard<'_, Queue<T>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{FutureExt, StreamExt, future};

    use super::*;

    #[tokio::test]
    async fn items_come_in_order_and_the_stream_ends() {
        let items = stream(2, |out| async move {
            for number in 0..10 {
                out.send(number).await;
            }
        });
        assert_eq!(items.collect::<Vec<_>>().await, (0..10).collect::<Vec<_>>());
        let nothing = stream(2, |out: Sender<()>| async move { drop(out) });
        assert_eq!(nothing.collect::<Vec<_>>().await, []);
    }

    #[tokio::test]
    async fn others_go_first_where_the_function_says_so() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let (asks, mut asked) = tokio::sync::mpsc::channel(1);
        let other = tokio::spawn({
            let order = Arc::clone(&order);
            async move {
                asked.recv().await;
                order.lock().unwrap().push("others were asked");
            }
        });
        // It waits before anybody is told anything.
        tokio::task::yield_now().await;
        let mut items = stream(3, |out| async move {
            out.send("before").await;
            out.send_behind("asking").await;
            asks.send(()).await.unwrap();
            future::pending::<()>().await;
        });
        for expected in ["before", "asking"] {
            assert_eq!(items.next().await, Some(expected));
            order.lock().unwrap().push(expected);
        }
        other.await.unwrap();
        assert_eq!(*order.lock().unwrap(), ["others were asked", "before", "asking"]);
    }

    #[tokio::test]
    async fn an_item_that_gives_way_is_the_last_one_as_well() {
        let items = stream(1, |out| async move {
            out.send(1).await;
            out.send_behind(2).await;
        });
        assert_eq!(items.collect::<Vec<_>>().await, [1, 2]);
    }

    #[tokio::test]
    async fn what_is_made_ahead_is_bounded() {
        let made = AtomicUsize::new(0);
        let mut items = stream(3, |out| async {
            let out = out;
            for number in 0..100 {
                out.send(number).await;
                made.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert_eq!(items.next().await, Some(0));
        assert_eq!(made.load(Ordering::Relaxed), 3, "the fourth waits");
        assert_eq!(items.next().await, Some(1));
        assert_eq!(items.next().await, Some(2));
        assert_eq!(items.next().await, Some(3));
    }

    #[tokio::test]
    async fn many_items_sent_together_wait_for_room_and_come_in_order() {
        let mut items = stream(4, |out| async move {
            let mut many: Vec<usize> = (0..10).collect();
            out.send_all(&mut many).await;
            assert!(many.is_empty());
            out.send_all(&mut (10..14).collect()).await;
        });
        assert_eq!(items.take_queued(), None, "nothing is made unless it is pulled");
        assert_eq!(items.next().await, Some(0));
        assert_eq!(items.take_queued_if(|item| *item > 1), None, "it is not wanted, and stays");
        let mut came = Vec::new();
        while let Some(item) = items.take_queued() {
            came.push(item);
        }
        assert_eq!(came, [1, 2, 3], "four at the most wait");
        came.extend(items.collect::<Vec<_>>().await);
        assert_eq!(came, (1..14).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_function_can_wait_until_what_it_made_was_taken() {
        let went_on = AtomicUsize::new(0);
        let mut items = stream(3, |out| async {
            let out = out;
            out.send(1).await;
            out.send(2).await;
            out.taken().await;
            went_on.fetch_add(1, Ordering::Relaxed);
            out.send(3).await;
        });
        assert_eq!(items.next().await, Some(1));
        assert_eq!(items.next().await, Some(2));
        assert_eq!(went_on.load(Ordering::Relaxed), 0, "it can be dropped here");
        assert_eq!(items.next().await, Some(3));
        assert_eq!(items.next().await, None);
    }

    #[tokio::test]
    async fn several_senders_with_wakers_of_their_own_all_get_through() {
        let mut items = stream(1, |out| async move {
            let send = |number: usize| {
                let out = out.clone();
                async move {
                    for _ in 0..20 {
                        out.send(number).await;
                        tokio::task::yield_now().await;
                    }
                }
            };
            // This join polls only the senders that were woken.
            (0..5).map(send).collect::<futures::stream::FuturesUnordered<_>>().collect::<()>().await;
        });
        let mut counts = [0; 5];
        while let Some(number) = items.next().await {
            counts[number] += 1;
        }
        assert_eq!(counts, [20; 5]);
    }

    #[tokio::test]
    async fn dropping_the_stream_drops_the_function_where_it_stands() {
        let held = Arc::new(());
        let inside = Arc::clone(&held);
        let mut items = stream(1, |out| async move {
            out.send(1).await;
            future::pending::<()>().await;
            drop(inside);
        });
        assert_eq!(items.next().await, Some(1));
        assert_eq!(items.next().now_or_never(), None);
        drop(items);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test]
    async fn a_sender_that_outlives_its_stream_is_not_stuck() {
        let mut kept = None;
        let items = stream(1, |out| {
            kept = Some(out);
            future::ready(())
        });
        let out = kept.unwrap();
        out.send(1).await;
        let waiting = out.send(2);
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(items);
        waiting.await;
        out.send(3).await;
    }
}
