"""From a study's text, or an app of the user's own, to cells in a seeded order."""
