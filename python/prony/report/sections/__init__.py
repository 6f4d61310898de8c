"""The sections of a study's report, one module each: from results to Sections. Pure."""
