drop table if exists fifth_coupons;
create table fifth_coupons (code text primary key, percent integer, until date);
insert into fifth_coupons select 'C' || n, n % 40, '2027-01-01' from generate_series(1, 2000) n;
analyze fifth_coupons;
