drop table if exists nplus1_timecard;
drop table if exists nplus1_person;
drop table if exists nplus1_project;
create table nplus1_project (id serial primary key, name varchar(50) not null);
create table nplus1_person (id serial primary key, name varchar(50) not null);
create table nplus1_timecard (
    id serial primary key,
    person_id integer not null references nplus1_person (id),
    project_id integer not null references nplus1_project (id),
    hours integer not null
);
insert into nplus1_project (name) select 'project ' || n from generate_series(1, 50) n;
insert into nplus1_person (name) select 'person ' || n from generate_series(1, 200) n;
insert into nplus1_timecard (person_id, project_id, hours)
    select 1 + n % 200, 1 + n % 50, n % 40 from generate_series(1, 2000) n;
analyze nplus1_timecard;
