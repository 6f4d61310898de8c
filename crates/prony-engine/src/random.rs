//! Numbers that look random and are a function of a seed.
//!
//! *Source*: Steele, Lea and Flood, 2014, Fast Splittable Pseudorandom Number Generators (SplitMix64).

/// What the state of the generator grows by with each number: odd, and near 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that follows on a state; the state moves on.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    scrambled(*state)
}

/// One number for each number, of which every bit depends on every bit.
pub fn scrambled(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation (Vigna, 2015, splitmix64.c) on the state 1234567.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut state = 1_234_567;
        let first: Vec<u64> = (0..3).map(|_| next(&mut state)).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(first, expected);
    }
}
