drop table if exists minutes;
create table minutes (id int primary key, body text not null);
insert into minutes
select i,
       case when i % 90 = 3 then 'The lighthouse keeper was heard. ' else 'The council met. ' end
       || (select string_agg(substr(md5((i * 131 + j)::text), 1, 7), ' ') from generate_series(1, 110) j)
from generate_series(1, 500) i;
analyze minutes;
