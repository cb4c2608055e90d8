// SPDX-License-Identifier: GPL-2.0

//! Every defect must be found, and called by its name.

use super::*;

const RECIPE: Recipe = Recipe {
    key: 5,
    session: 77,
    sizes: Sizes::Mixed { max: 5000 },
};

fn place(sequence: u64) -> Place {
    Place {
        stream: 2,
        sequence,
    }
}

fn message(recipe: Recipe, sequence: u64) -> Vec<u8> {
    let mut bytes = vec![9; 3];
    recipe.write(place(sequence), &mut bytes);
    bytes
}

/// The first message of at least (or less than) `HEADER` bytes after `from`.
fn find(long: bool, from: u64) -> u64 {
    (from..)
        .find(|seq| (message(RECIPE, *seq).len() >= HEADER) == long)
        .unwrap()
}

#[test]
fn what_is_sent_is_accepted() {
    for sequence in 0..2000 {
        assert_eq!(
            RECIPE.check(place(sequence), &message(RECIPE, sequence)),
            Ok(())
        );
    }
}

#[test]
fn empty_messages_are_possible() {
    let recipe = Recipe {
        sizes: Sizes::Even { min: 0, max: 0 },
        ..RECIPE
    };
    assert!(message(recipe, 4).is_empty());
    assert_eq!(recipe.check(place(4), &[]), Ok(()));
    assert_eq!(
        recipe.check(place(4), &[0]),
        Err(Defect::Length {
            expected: 0,
            got: 1
        })
    );
}

#[test]
fn every_flipped_bit_is_found() {
    for long in [false, true] {
        let sequence = find(long, 10);
        let bytes = message(RECIPE, sequence);
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(RECIPE.check(place(sequence), &bad).is_err(), "{long} {bit}");
        }
    }
}

#[test]
fn exchanged_messages_are_recognised() {
    let (long, other) = (find(true, 10), find(true, 50));
    let expected = Err(Defect::Sequence(other));
    assert_eq!(RECIPE.check(place(long), &message(RECIPE, other)), expected);
    let short = (100..)
        .find(|seq| (4..HEADER).contains(&message(RECIPE, *seq).len()))
        .unwrap();
    let expected = Err(Defect::Sequence(short));
    assert_eq!(RECIPE.check(place(long), &message(RECIPE, short)), expected);
    assert_eq!(
        RECIPE.check(place(short - 1), &message(RECIPE, short)),
        expected
    );
}

#[test]
fn cut_messages_are_recognised() {
    let sequence = find(true, 10);
    let bytes = message(RECIPE, sequence);
    let cut = &bytes[..bytes.len() - 1];
    let expected = bytes.len();
    let result = RECIPE.check(place(sequence), cut);
    assert_eq!(
        result,
        Err(Defect::Length {
            expected,
            got: cut.len()
        })
    );
    assert!(RECIPE.check(place(sequence), &bytes[..HEADER - 1]).is_err());
    assert!(RECIPE.check(place(sequence), &[]).is_err());
}

#[test]
fn foreign_messages_are_recognised() {
    let sequence = find(true, 10);
    let old = Recipe {
        session: 76,
        ..RECIPE
    };
    let result = RECIPE.check(place(sequence), &message(old, sequence));
    assert_eq!(result, Err(Defect::Stale));
    let elsewhere = Place {
        stream: 3,
        sequence,
    };
    assert!(matches!(
        RECIPE.check(elsewhere, &message(RECIPE, sequence)),
        Err(Defect::Stream(2) | Defect::Length { .. })
    ));
    let zeros = vec![0; message(RECIPE, sequence).len()];
    assert_eq!(RECIPE.check(place(sequence), &zeros), Err(Defect::NoHeader));
}

#[test]
fn noise_below_stays_below() {
    let mut noise = Noise::new(1, 2, 3);
    assert!((0..1000).all(|_| noise.below(3) < 3));
    assert_eq!(noise.below(1), 0);
}
