drop table if exists missing_index_users;
create table missing_index_users (id serial primary key, email text not null, name text);
insert into missing_index_users (email, name)
    select 'user' || n || '@example.org', 'name ' || n from generate_series(0, 199999) n;
analyze missing_index_users;
