drop table if exists six_accounts;
create table six_accounts (id serial primary key, email text not null, name text not null, about text not null);
insert into six_accounts (email, name, about)
    select 'reader' || n || '@example.org', 'Reader ' || n, repeat('about ', 10) from generate_series(1, 30000) n;
create unique index on six_accounts (email);
analyze six_accounts;
