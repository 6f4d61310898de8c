"""The sections of a study's report, one module each: a Reading as Sections. Pure."""
