//! What came of a load: what one worker records, and the Recording of all.

pub mod generator;
pub mod recorder;
pub mod recording;
pub mod verdict;

pub use recording::Recording;
