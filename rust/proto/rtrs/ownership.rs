// SPDX-License-Identifier: GPL-2.0

//! Who may use a chunk of a server: at most one request at a time, over all paths of a session.
//!
//! A client uses a chunk for one request until it has the answer, but after a path failed it sends the request again on
//! another path while the server may still work on the first one. Executing both at once would let the late one
//! overwrite what came after it, so the second waits until the first is over. Two requests on one path at a time are
//! against the protocol.
//!
//! C has no counterpart: its server keeps one operation per path and chunk and never looks whether it is in use.

/// One path in one of its lives.
pub type PathId = u64;

/// What a chunk is used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    path: PathId,
    /// The answer is being sent, so the client may use the chunk again before this owner has let go of it.
    answering: bool,
}

/// One chunk; `R` is a request that waits.
#[derive(Debug)]
pub struct Chunk<R> {
    owner: Option<Owner>,
    waiting: Option<(PathId, R)>,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim<R> {
    /// It owns the chunk now and may be executed.
    Granted(R),
    /// It is executed when the present owner lets go. `superseded` waited before it, on another path: the client gave
    /// that one up and gets no answer to it.
    Waits {
        /// The request that is dropped.
        superseded: Option<R>,
    },
    /// The path has a request on this chunk already: the peer breaks the protocol.
    Refused(R),
}

impl<R> Default for Chunk<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Chunk<R> {
    /// A chunk that nobody uses.
    pub const fn new() -> Self {
        Self {
            owner: None,
            waiting: None,
        }
    }

    /// Asks for the chunk on behalf of a request that arrived on `path`.
    pub fn claim(&mut self, path: PathId, request: R) -> Claim<R> {
        if self
            .waiting
            .as_ref()
            .is_some_and(|(other, _)| *other == path)
        {
            return Claim::Refused(request);
        }
        match self.owner {
            None if self.waiting.is_none() => {
                self.own(path);
                Claim::Granted(request)
            }
            Some(owner) if owner.path == path && !owner.answering => Claim::Refused(request),
            _ => Claim::Waits {
                superseded: self.waiting.replace((path, request)).map(|(_, old)| old),
            },
        }
    }

    /// The owner begins to answer.
    pub fn answering(&mut self) {
        if let Some(owner) = &mut self.owner {
            owner.answering = true;
        }
    }

    /// The owner lets go of the chunk. Whether a request waits, which [`Self::take_next`] gives out.
    pub fn release(&mut self) -> bool {
        self.owner = None;
        self.waiting.is_some()
    }

    /// Takes the request that waited, which owns the chunk from now on; `None` if there is none or the chunk is owned.
    pub fn take_next(&mut self) -> Option<R> {
        if self.owner.is_some() {
            return None;
        }
        let (path, request) = self.waiting.take()?;
        self.own(path);
        Some(request)
    }

    /// Takes off a request of `path` that waits: the path is closed.
    pub fn cancel(&mut self, path: PathId) -> Option<R> {
        let (_, request) = self.waiting.take_if(|(waiting, _)| *waiting == path)?;
        Some(request)
    }

    fn own(&mut self, path: PathId) {
        self.owner = Some(Owner {
            path,
            answering: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_at_a_time() {
        let mut chunk = Chunk::new();
        assert_eq!(chunk.claim(1, "a"), Claim::Granted("a"));
        assert_eq!(chunk.claim(1, "b"), Claim::Refused("b"));
        assert!(!chunk.release());
        assert_eq!(chunk.claim(1, "c"), Claim::Granted("c"));
    }

    #[test]
    fn resent_request_waits_for_the_first() {
        let mut chunk = Chunk::new();
        assert_eq!(chunk.claim(1, "first"), Claim::Granted("first"));
        assert_eq!(chunk.claim(2, "again"), Claim::Waits { superseded: None });
        assert_eq!(chunk.take_next(), None);
        assert!(chunk.release());
        // Nobody overtakes what waits.
        assert_eq!(
            chunk.claim(3, "later"),
            Claim::Waits {
                superseded: Some("again")
            }
        );
        assert_eq!(chunk.take_next(), Some("later"));
        assert_eq!(chunk.claim(3, "twice"), Claim::Refused("twice"));
        assert!(!chunk.release());
    }

    #[test]
    fn newest_waiter_wins_and_one_path_waits_once() {
        let mut chunk = Chunk::new();
        assert_eq!(chunk.claim(1, 1), Claim::Granted(1));
        assert_eq!(chunk.claim(2, 2), Claim::Waits { superseded: None });
        assert_eq!(chunk.claim(2, 20), Claim::Refused(20));
        assert_eq!(
            chunk.claim(3, 3),
            Claim::Waits {
                superseded: Some(2)
            }
        );
        assert_eq!(chunk.claim(1, 10), Claim::Refused(10));
        assert!(chunk.release());
        assert_eq!(chunk.take_next(), Some(3));
    }

    #[test]
    fn answer_that_overtakes_its_own_release() {
        let mut chunk = Chunk::new();
        assert_eq!(chunk.claim(1, "read"), Claim::Granted("read"));
        chunk.answering();
        assert_eq!(chunk.claim(1, "next"), Claim::Waits { superseded: None });
        assert!(chunk.release());
        assert_eq!(chunk.take_next(), Some("next"));
    }

    #[test]
    fn closed_path_takes_its_waiter_along() {
        let mut chunk = Chunk::new();
        assert_eq!(chunk.claim(1, 1), Claim::Granted(1));
        assert_eq!(chunk.claim(2, 2), Claim::Waits { superseded: None });
        assert_eq!(chunk.cancel(3), None);
        assert_eq!(chunk.cancel(2), Some(2));
        assert!(!chunk.release());
        assert_eq!(chunk.claim(4, 4), Claim::Granted(4));
    }
}
