create index minutes_words on minutes using gin (to_tsvector('english', body));
analyze minutes;
