drop table if exists six_stock;
create table six_stock (article int primary key, left_over int not null);
insert into six_stock select n, 100000000 from generate_series(1, 100) n;
