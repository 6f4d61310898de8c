"""The sections of a study's report, one module each: from a Reading to Sections. Pure."""
