drop table if exists fifth_books;
create table fifth_books (id integer primary key, shelf integer, title text, cents integer);
insert into fifth_books select n, n % 100, 'The book of ' || n, 500 + n % 90 from generate_series(1, 6000) n;
create index on fifth_books (shelf);
analyze fifth_books;
