drop table if exists rack_nplus1_posts;
drop table if exists rack_nplus1_members;
create table rack_nplus1_members (id integer primary key, name text not null);
create table rack_nplus1_posts (id integer primary key, title text not null, member integer not null);
insert into rack_nplus1_members select n, 'member ' || n from generate_series(1, 500) n;
insert into rack_nplus1_posts select n, 'post ' || n, n * 7 from generate_series(1, 60) n;
analyze rack_nplus1_members;
