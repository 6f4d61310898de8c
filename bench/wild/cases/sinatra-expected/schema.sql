drop table if exists six_books;
create table six_books (id serial primary key, title text not null, year int not null);
insert into six_books (title, year) select 'Book ' || n, 1900 + n % 124 from generate_series(1, 2000) n;
create index on six_books (year desc, id);
analyze six_books;
