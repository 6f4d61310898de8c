drop table if exists counter_row_articles;
create table counter_row_articles (id integer primary key, views bigint not null);
insert into counter_row_articles values (1, 0);
