//! Queue disciplines: the choice of packets that are sent, dropped or marked.
//!
//! Timers of a discipline run within the calls when a packet arrives ([`Discipline::push`]) and when the capacity is
//! free ([`Discipline::pop`]). Where Linux differs from an RFC, the code follows Linux. A new discipline needs a file
//! here, and a variant of [`Discipline`] and of `thalweg_plan::plan::Queue`.

mod codel;
mod control_law;
mod dualpi2;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod item;
mod pie;
mod random;
mod red;
mod rounds;
mod tally;

pub(crate) use item::Item;
pub(crate) use tally::Tally;

use crate::error::{LinkError, probability};
use crate::packet::Packet;
use codel::Codel;
use dualpi2::Dualpi2;
use fifo::Fifo;
use fq::Fq;
use fq_codel::FqCodel;
use fq_pie::FqPie;
use pie::Pie;
use red::Red;
use thalweg_plan::plan::{self, Buffer};
use thalweg_units::{Bytes, Packets, Span, Time};

/// The queue of a link.
#[derive(Debug)]
pub(crate) enum Discipline<P> {
    Fifo(Fifo<P>),
    Codel(Box<Codel<P>>),
    FqCodel(Box<FqCodel<P>>),
    Pie(Box<Pie<P>>),
    FqPie(Box<FqPie<P>>),
    Red(Box<Red<P>>),
    Fq(Box<Fq<P>>),
    Dualpi2(Box<Dualpi2<P>>),
}

/// Evaluates one expression for `Fifo`, and another for any other discipline.
macro_rules! of_discipline {
    ($self:expr, $fifo:pat => $of_fifo:expr, $queue:ident => $of_others:expr) => {
        match $self {
            Discipline::Fifo($fifo) => $of_fifo,
            Discipline::Codel($queue) => $of_others,
            Discipline::FqCodel($queue) => $of_others,
            Discipline::Pie($queue) => $of_others,
            Discipline::FqPie($queue) => $of_others,
            Discipline::Red($queue) => $of_others,
            Discipline::Fq($queue) => $of_others,
            Discipline::Dualpi2($queue) => $of_others,
        }
    };
}

impl<P: Packet> Discipline<P> {
    /// Creates an empty queue. `seed` seeds its random decisions and its flow hash.
    ///
    /// # Errors
    /// If a parameter is invalid, or the discipline is cake, which only the kernel has.
    pub fn new(queue: &plan::Queue, buffer: Buffer, seed: u64) -> Result<Discipline<P>, LinkError> {
        Ok(match queue {
            plan::Queue::Fifo {} => Discipline::Fifo(Fifo::new(buffer)),
            plan::Queue::Codel { .. } => Discipline::Codel(Box::new(Codel::new(queue, buffer))),
            plan::Queue::FqCodel { flows, .. } => {
                check_flows(*flows)?;
                Discipline::FqCodel(Box::new(FqCodel::new(queue, buffer, seed)))
            }
            plan::Queue::Pie { tupdate_ns, .. } => {
                check_interval(*tupdate_ns)?;
                Discipline::Pie(Box::new(Pie::new(queue, buffer, seed)))
            }
            plan::Queue::FqPie { flows, tupdate_ns, .. } => {
                check_flows(*flows)?;
                check_interval(*tupdate_ns)?;
                Discipline::FqPie(Box::new(FqPie::new(queue, buffer, seed)))
            }
            plan::Queue::Red { probability: max, .. } => {
                probability("queue.probability", *max)?;
                Discipline::Red(Box::new(Red::new(queue, buffer, seed)))
            }
            plan::Queue::Fq { .. } => Discipline::Fq(Box::new(Fq::new(queue, buffer, seed))),
            plan::Queue::Dualpi2 { tupdate_ns, .. } => {
                check_interval(*tupdate_ns)?;
                Discipline::Dualpi2(Box::new(Dualpi2::new(queue, buffer, seed)))
            }
            plan::Queue::Cake { .. } => {
                let hint = "use the engine uml or kernel, or the queue discipline fq_codel";
                return Err(LinkError::new(
                    "cake",
                    "queue.kind",
                    "cake",
                    "a queue discipline other than cake, which only the kernel has",
                    hint,
                ));
            }
        })
    }

    /// Offers an item. Returns whether it was accepted; other items may be dropped to make space for it.
    pub fn push(&mut self, now: Time, item: Item<P>, tally: &mut Tally) -> bool {
        of_discipline!(self,
            fifo => {
                let number = item.number;
        let fits = fifo.push(item);
                if !fits {
                    tally.drop_at_limit(number);
                }
                fits
            },
            queue => queue.push(now, item, tally))
    }

    /// Removes the next item to send; may drop and mark items.
    pub fn pop(&mut self, now: Time, tally: &mut Tally) -> Option<Item<P>> {
        of_discipline!(self, fifo => fifo.pop(), queue => queue.pop(now, tally))
    }

    pub fn packets(&self) -> Packets {
        of_discipline!(self, fifo => fifo.packets(), queue => queue.packets())
    }

    pub fn bytes(&self) -> Bytes {
        of_discipline!(self, fifo => fifo.bytes(), queue => queue.bytes())
    }
}

fn check_flows(flows: u32) -> Result<(), LinkError> {
    if flows > 0 {
        return Ok(());
    }
    Err(LinkError::new("no-flows", "queue.flows", 0, "at least 1", "Linux's default is flows = 1024"))
}

fn check_interval(interval: Span) -> Result<(), LinkError> {
    if interval > Span::ZERO {
        return Ok(());
    }
    Err(LinkError::new("no-interval", "queue.tupdate_ns", 0, "a time above zero", "the default is tupdate = \"15ms\""))
}
