"""What is known of numbers alone: effects, intervals, verdicts. It knows no trial."""
