// SPDX-License-Identifier: GPL-2.0

//! Random system calls on RDS sockets: `rds-calls SEED SECONDS NAMESPACE...`, namespaces as files.
//!
//! Threads share some sockets in all the namespaces and make random calls on them, right ones and wrong ones, while
//! signals interrupt them. Four things are judged: an error is one that the call may give ([`calls`]); a message is one
//! that was sent, comes once and in order ([`ledger`]); no call takes longer than half a minute; and each call that can
//! succeed has. The status is 0 if all is well.
//!
//! The seed determines what each thread does, as far as the results of its calls do not; not who is first.

mod calls;
mod ledger;
mod memory;
mod message;
mod name;
mod ops;
mod rng;
mod shared;
mod worker;

use calls::Call;
use rng::Rng;
use shared::{lock, Shared};
use std::env;
use std::fs;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use worker::{Worker, LIMIT};

const THREADS: u32 = 6;
/// Between two signals.
const PAUSE: Duration = Duration::from_millis(20);
/// A call that has waited for so long is interrupted for certain.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let numbers: Vec<_> = words
        .iter()
        .take(2)
        .filter_map(|word| word.parse().ok())
        .collect();
    let ([seed, seconds], true) = (
        numbers[..].try_into().unwrap_or([0, 0]),
        words.len() > 2 && numbers.len() == 2,
    ) else {
        eprintln!("usage: rds-calls SEED SECONDS NAMESPACE...");
        return ExitCode::from(2);
    };
    match fuzz(seed, Duration::from_secs(seconds), words[2..].to_vec()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            println!("{count} violations");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("rds-calls: {error}");
            ExitCode::from(2)
        }
    }
}

/// Makes calls for a while; how many violations there were.
fn fuzz(seed: u64, time: Duration, namespaces: Vec<String>) -> io::Result<u32> {
    println!("seed {seed}");
    memory::harmless(libc::SIGUSR1, false);
    memory::harmless(libc::SIGUSR2, true);
    memory::harmless(libc::SIGIO, true);
    // CAST: To a wider type.
    let shared: &'static Shared = Box::leak(Box::new(Shared::new(THREADS as usize, namespaces)?));
    let begin = Instant::now();
    let mut threads = Vec::new();
    for index in 0..THREADS {
        let mut worker = Worker::new(shared, seed, index)?;
        threads.push(thread::spawn(move || worker.run()));
    }
    let mut rng = Rng::new(seed, 0);
    // Calls are chosen at random: some have seldom come about when few were made.
    while begin.elapsed() < time || (!idle(shared).is_empty() && begin.elapsed() < 3 * time) {
        disturb(shared, &mut rng);
    }
    let took = begin.elapsed();
    shared.over.store(true, Ordering::Relaxed);
    finish(shared, threads, &mut rng);
    report(shared, took);
    Ok(shared.violations())
}

/// Sends a signal to some thread, and to those that have waited for long; ends the program if one is stuck.
fn disturb(shared: &Shared, rng: &mut Rng) {
    thread::sleep(PAUSE);
    let chosen = rng.below(shared.watches.len());
    for (index, watch) in shared.watches.iter().enumerate() {
        let Some((what, since)) = watch.waits() else {
            continue;
        };
        if since > LIMIT {
            stuck(watch.thread.load(Ordering::Relaxed), &what);
        }
        let number = if since > PATIENCE {
            libc::SIGUSR1
        } else {
            rng.of(&[libc::SIGUSR1, libc::SIGUSR2])
        };
        if index == chosen || since > PATIENCE {
            signal(watch.thread.load(Ordering::Relaxed), number);
        }
    }
}

fn signal(thread: i32, number: i32) {
    let words = [thread, number].map(|word| usize::try_from(word).unwrap_or(0));
    if let Ok(process) = usize::try_from(std::process::id()) {
        // The thread may have ended.
        let _gone = memory::call(libc::SYS_tgkill, [process, words[0], words[1], 0, 0, 0]);
    }
}

/// Tells where a thread stands and ends the program, as the thread will not.
fn stuck(thread: i32, what: &str) -> ! {
    println!("violation: {what} has not ended after {LIMIT:?}; it stands in");
    println!(
        "{}",
        fs::read_to_string(format!("/proc/self/task/{thread}/stack")).unwrap_or_default()
    );
    std::process::exit(1);
}

/// Waits for the threads and closes all sockets.
fn finish(shared: &Shared, threads: Vec<JoinHandle<()>>, rng: &mut Rng) {
    while !threads.iter().all(JoinHandle::is_finished) {
        disturb(shared, rng);
    }
    for thread in threads {
        if thread.join().is_err() {
            shared.violation("a thread has panicked");
        }
    }
    for slot in &shared.slots {
        let sock = lock(slot).take();
        drop(sock);
    }
}

/// Calls that can work and never have.
fn idle(shared: &Shared) -> Vec<Call> {
    Call::all()
        .filter(|call| call.works() && shared.successes(*call) == 0)
        .collect()
}

/// Prints what was done; what never worked is a violation, as it was not tested.
fn report(shared: &Shared, took: Duration) {
    for call in Call::all() {
        println!("# {}", shared.summary(call));
    }
    for call in idle(shared) {
        shared.violation(&format!("{call:?} has never worked"));
    }
    let received = shared.received.load(Ordering::Relaxed);
    if received == 0 {
        shared.violation("no message was received");
    }
    let rate = u128::from(shared.calls()) * 1000 / took.as_millis().max(1);
    let namespaces = lock(&shared.ledger).namespaces();
    println!("# {} calls in {took:.1?}, {rate} a second; {received} messages came; {namespaces} namespaces", shared.calls());
}
