//! Web pages. The document is requested first; every other object is referenced by another one, and is requested when
//! that one has arrived and a connection is idle. A connection carries one object at a time, as in HTTP/1.1.
//!
//! The other objects are spread evenly over `depth - 1` levels, and each is referenced by a random object of the
//! previous level. With a depth of 1, all objects are known from the start.

use crate::app::message::{Delivery, Item, Message, Wake};
use crate::streams::{self, Stream};
use std::collections::VecDeque;
use thalweg_plan::plan::App;
use thalweg_units::{Bytes, Span, Time};

/// A browser.
#[derive(Clone, Debug)]
pub struct Web {
    objects: usize,
    depth: usize,
    sizes: Vec<Bytes>,
    connections: usize,
    pages: u64,
    think: Span,
    stream: Stream,
    /// Number of pages started.
    begun: u64,
    page: Page,
    /// Start of the next page; `None` while a page is loading, and before the first wakeup.
    begin_at: Option<Time>,
    /// Time at which an object was last discovered or a connection last became idle.
    changed_at: Time,
    /// Object that each open connection is loading.
    loading: Vec<Option<usize>>,
}

#[derive(Clone, Debug, Default)]
struct Page {
    sizes: Vec<Bytes>,
    /// For each object, the objects that it references.
    children: Vec<Vec<usize>>,
    /// Objects that were discovered but not requested.
    found: VecDeque<usize>,
    left: usize,
}

impl Web {
    pub(super) fn new(app: &App, stream: Stream) -> Web {
        let App::Web { objects, depth, sizes_bytes, connections, pages, think_ns } = app else {
            unreachable!("the caller has matched the kind")
        };
        Web {
            objects: *objects as usize,
            depth: *depth as usize,
            sizes: sizes_bytes.clone(),
            connections: *connections as usize,
            pages: (*pages).into(),
            think: *think_ns,
            stream,
            begun: 0,
            page: Page::default(),
            begin_at: None,
            changed_at: Time::ZERO,
            loading: Vec::new(),
        }
    }

    pub(super) fn wake(&mut self, now: Time) -> Wake {
        if self.begun == 0 {
            self.begin_at = Some(now);
        }
        if let Some(begin) = self.begin_at.take_if(|begin| *begin <= now) {
            self.page = self.draw_page();
            self.begun += 1;
            self.changed_at = begin;
        }
        let mut messages = Vec::new();
        while !self.page.found.is_empty() {
            let Some(connection) = self.idle_connection() else { break };
            let Some(object) = self.page.found.pop_front() else { break };
            self.loading[connection] = Some(object);
            let item = Item { number: self.begun - 1, bitrate: None };
            let size = self.page.sizes[object];
            messages.push(Message { connection: connection as u64, size, due: self.changed_at, item });
        }
        Wake { messages, next: None }
    }

    pub(super) fn delivered(&mut self, connection: u64, now: Time) -> Delivery {
        let Some(object) = self.loading.get_mut(connection as usize).and_then(Option::take) else {
            return Delivery::default();
        };
        self.changed_at = now;
        self.page.found.extend(std::mem::take(&mut self.page.children[object]));
        self.page.left -= 1;
        if self.page.left > 0 {
            return Delivery { next: (!self.page.found.is_empty()).then_some(now), ..Delivery::default() };
        }
        if self.begun == self.pages {
            return Delivery { is_done: true, ..Delivery::default() };
        }
        self.begin_at = Some(now + self.think);
        Delivery { next: self.begin_at, ..Delivery::default() }
    }

    /// Returns an open idle connection, or a new one; `None` if all are busy.
    fn idle_connection(&mut self) -> Option<usize> {
        if let Some(idle) = self.loading.iter().position(Option::is_none) {
            return Some(idle);
        }
        if self.loading.len() == self.connections {
            return None;
        }
        self.loading.push(None);
        Some(self.loading.len() - 1)
    }

    fn draw_page(&mut self) -> Page {
        let Web { objects, depth, .. } = *self;
        let sizes = (0..objects).map(|_| self.sizes[streams::index(self.sizes.len(), &mut self.stream)]).collect();
        let mut page = Page { sizes, children: vec![Vec::new(); objects], found: VecDeque::new(), left: objects };
        // Index of the first object of each level. The document is alone on its level, unless all objects are known
        // from the start.
        let first = |level: usize| match level {
            0 => 0,
            _ if level == depth => objects,
            _ => 1 + (level - 1) * (objects - 1) / (depth - 1),
        };
        page.found.extend(first(0)..first(1));
        for level in 1..depth {
            let parents = first(level - 1)..first(level);
            for object in first(level)..first(level + 1) {
                let parent = parents.start + streams::index(parents.len(), &mut self.stream);
                page.children[parent].push(object);
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn browser(objects: u32, depth: u32, connections: u32, pages: u32) -> Web {
        let sizes_bytes = vec![Bytes(1_000), Bytes(50_000)];
        let app = App::Web { objects, depth, sizes_bytes, connections, pages, think_ns: Span::from_secs(1) };
        Web::new(&app, Stream::seed_from_u64(7))
    }

    /// Loads all pages over connections on which each object takes 100 ms. Returns the request time of each object, in
    /// ms.
    fn load(web: &mut Web) -> Vec<u64> {
        let (mut now, mut requests, mut in_flight) = (Time::ZERO, Vec::new(), VecDeque::new());
        loop {
            for message in web.wake(now).messages {
                requests.push(message.due.0 / 1_000_000);
                in_flight.push_back((message.connection, now + Span::from_millis(100)));
            }
            let Some((connection, at)) = in_flight.pop_front() else { return requests };
            now = at;
            let delivery = web.delivered(connection, now);
            assert_eq!(delivery.is_done, in_flight.is_empty() && web.begun == web.pages && web.page.left == 0);
            if web.page.left == 0 {
                now = delivery.next.unwrap_or(now);
            }
        }
    }

    #[test]
    fn objects_wait_for_their_parent_object() {
        let requests = load(&mut browser(9, 3, 100, 1));
        assert_eq!(requests, [0, 100, 100, 100, 100, 200, 200, 200, 200]);
    }

    #[test]
    fn each_connection_carries_one_object_at_a_time() {
        let requests = load(&mut browser(5, 2, 2, 1));
        assert_eq!(requests, [0, 100, 100, 200, 200]);
    }

    #[test]
    fn objects_known_from_the_start_are_requested_immediately() {
        assert_eq!(load(&mut browser(3, 1, 3, 1)), [0, 0, 0]);
    }

    #[test]
    fn the_next_page_starts_after_a_pause_on_the_same_connections() {
        let mut web = browser(2, 2, 6, 2);
        assert_eq!(load(&mut web), [0, 100, 1200, 1300]);
        assert_eq!(web.loading.len(), 1);
    }
}
