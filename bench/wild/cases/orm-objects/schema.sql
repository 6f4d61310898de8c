drop table if exists orm_objects_templates;
create table orm_objects_templates (
    id integer primary key, name text, kind text, subject text, content text, created timestamp, version integer
);
insert into orm_objects_templates
select n, 'template ' || n, 'email', 'subject ' || n, 'Dear ((name)), your order ' || n, now()::timestamp, n % 9
from generate_series(1, 2000) n;
analyze orm_objects_templates;
