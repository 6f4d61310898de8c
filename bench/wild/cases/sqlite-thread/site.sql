create table users (id integer primary key, name text not null);
insert into users values (1, 'ann'), (2, 'bob');
