//! Samples the processes of a subject.
