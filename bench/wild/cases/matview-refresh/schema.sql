drop table if exists fifth_sales cascade;
create table fifth_sales (id integer primary key, shop integer, cents integer);
insert into fifth_sales select n, n % 200, (n::bigint * 7919 % 10007)::integer from generate_series(1, 600000) n;
analyze fifth_sales;
create materialized view fifth_ranking as
select shop, count(*) as sales, sum(cents) as total, percentile_cont(0.5) within group (order by cents) as median
from fifth_sales group by shop;
create unique index on fifth_ranking (shop);
analyze fifth_ranking;
