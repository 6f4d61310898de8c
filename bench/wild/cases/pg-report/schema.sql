drop table if exists pg_report_sales;
create table pg_report_sales (region integer, month integer, customer integer, amount numeric(10, 2));
insert into pg_report_sales select n % 5, n % 12, n * 7 % 997, n % 1000 + 0.5 from generate_series(1, 40000) n;
analyze pg_report_sales;
