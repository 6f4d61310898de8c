drop table if exists fifth_visits;
create table fifth_visits (id integer primary key, stop text, at integer);
insert into fifth_visits select n, 'stop ' || n % 900, n * 13 % 86400 from generate_series(1, 700000) n;
analyze fifth_visits;
